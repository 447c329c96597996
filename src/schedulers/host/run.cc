#include "schedulers/host/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>

#include "base/crypto.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "base/time.h"
#include "collect/cgroup/reader.h"
#include "collect/logs/redact.h"
#include "collect/sources/source_bundle.h"
#include "evidence/wire.h"
#include "schedulers/host/child.h"
#include "schedulers/host/outcome.h"
#include "schedulers/host/recorder.h"
#include "schedulers/host/run_cgroup.h"
#include "schedulers/host/run_loop.h"
#include "schedulers/host/run_record.h"
#include "schedulers/host/spool.h"
#include "schedulers/host/streams.h"

namespace expanse::schedulers::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kSharedSpool[] = "/var/lib/expanse/spool/host";
constexpr seconds kTailPeriod{30};
// How long the shell prompt may be kept waiting for the record to be written.
constexpr milliseconds kRecordPatience{5'000};
constexpr std::size_t kLeftoversPerRun = 64;

base::Status Check(const RunOptions& options) {
  if (options.command.empty() || options.command.front().empty()) {
    return base::Fail(base::Code::kInvalidArgument, "run.no_command", "no command was given");
  }
  if (options.memory_limit && *options.memory_limit < base::MiB(1)) {
    return base::Fail(base::Code::kInvalidArgument, "run.memory_limit",
                      "the memory limit is below 1 MiB");
  }
  if (options.walltime && options.walltime->count() <= 0) {
    return base::Fail(base::Code::kInvalidArgument, "run.walltime",
                      "the time limit is not positive");
  }
  return {};
}

// Forgets signals that came for the command, and the SIGPIPE of our own writes.
void DropPending(const sigset_t& signals) {
  const struct timespec now{};
  while (::sigtimedwait(&signals, nullptr, &now) > 0 || errno == EINTR) {
  }
}

// One run from its preparation to its exit code. Everything that could fail without the command's
// having to suffer is noted and goes on.
class Run {
 public:
  Run(const RunOptions& options, base::Clock& clock)
      : options_(options),
        clock_(clock),
        run_id_(base::NewUuid(clock.Now())),
        off_(options.comment.find("expanse=off") != std::string::npos) {}

  base::Result<int> Execute() {
    EXPANSE_RETURN_IF_ERROR(PrepareCgroup());
    PrepareStreams();
    const sigset_t blocked = LoopSignals();
    ::sigprocmask(SIG_BLOCK, &blocked, &launch_.mask);
    // Where SIGCHLD is ignored the kernel takes the command's end for itself, and nobody hears of
    // it.
    launch_.ignore_sigchld = ::signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    auto child = Launch();
    if (!child) {
      ::sigprocmask(SIG_SETMASK, &launch_.mask, nullptr);
      return std::unexpected(std::move(child.error()));
    }
    if (child->join_error() != 0) LeaveCgroup(child->join_error());
    // Everything that only the record needs comes after the command's start.
    if (cgroup_) reader_.emplace("/", cgroup_->directories(), nullptr);
    recorder_.emplace(SpoolWriter(
        options_.spool_directory.empty() ? DefaultSpoolDirectory() : options_.spool_directory,
        PrivateSpoolDirectory()));
    if (child->exec_error() == 0) RecordStart(*child);
    LoopResult loop = Follow(*child);
    const int code = Finish(*child, loop);
    if (loop.output_held) Linger(relays_, launch_.mask);
    DropPending(blocked);
    ::sigprocmask(SIG_SETMASK, &launch_.mask, nullptr);
    return code;
  }

 private:
  base::Status PrepareCgroup() {
    auto cgroup = RunCgroup::Create(run_id_, options_.memory_limit);
    if (cgroup) {
      cgroup_.emplace(std::move(*cgroup));
      launch_.join_fds = cgroup_->join_fds();
      launch_.must_join = options_.memory_limit.has_value();
      return {};
    }
    if (options_.memory_limit) return std::unexpected(std::move(cgroup.error()));
    NoteNoCgroup(cgroup.error().message);
    return {};
  }

  void NoteNoCgroup(std::string_view why) {
    notes_.push_back(
        fmt::format("no cgroup of its own, figures are of its process tree ({})", why));
  }

  // The command runs outside: figures of the cgroup would say that it used nothing.
  void LeaveCgroup(int error) {
    NoteNoCgroup(base::ErrnoError(error, "joining it").message);
    unused_cgroup_.emplace(std::move(*cgroup_));
    cgroup_.reset();
  }

  // Makes relays as planned; what cannot be made is passed through, with a note.
  void PrepareStreams() {
    plan_ = PlanStreams(options_.capture_output && !off_);
    if (plan_.session && !PrepareSession()) plan_.session = false;
    if (!plan_.session) PrepareOutput(1, plan_.out, plan_.joined ? "combined" : "stdout");
    const bool err_done = plan_.joined || (plan_.session && plan_.err == StreamMode::kTerminal);
    if (!err_done) PrepareOutput(2, plan_.err, "stderr");
    if (plan_.joined && !plan_.session) launch_.streams[2] = launch_.streams[1];
    for (int fd = 0; fd < 3; ++fd) {
      // Placeholders close on exec; a descriptor that stays as it is must not.
      const bool reserved = (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
      if (reserved) launch_.streams[static_cast<std::size_t>(fd)] = -1;
    }
  }

  bool PrepareSession() {
    auto pty = OpenPseudoTerminal(0, /*raw_output=*/false);
    if (!pty) {
      notes_.push_back("the terminal could not be relayed: " + pty.error().message);
      plan_.out = StreamMode::kPassThrough;
      if (plan_.err == StreamMode::kTerminal) plan_.err = StreamMode::kPassThrough;
      return false;
    }
    slave_ = std::move(pty->slave);
    launch_.terminal = slave_.get();
    launch_.streams[0] = launch_.streams[1] = slave_.get();
    if (plan_.err == StreamMode::kTerminal) launch_.streams[2] = slave_.get();
    session_.emplace(0, pty->master.get());
    relays_.push_back(
        std::make_unique<Relay>(plan_.joined ? "combined" : "stdout", std::move(pty->master), 1));
    return true;
  }

  void PrepareOutput(int fd, StreamMode mode, const std::string& name) {
    const auto index = static_cast<std::size_t>(fd);
    if (mode == StreamMode::kFile) {
      files_.emplace_back(name, fd);
    } else if (mode == StreamMode::kPipe) {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) {
        notes_.push_back(fmt::format("{} could not be relayed: {}", name, ::strerror(errno)));
        return;
      }
      ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
      relays_.push_back(std::make_unique<Relay>(name, base::UniqueFd(ends[0]), fd));
      held_.emplace_back(ends[1]);
      launch_.streams[index] = ends[1];
    } else if (mode == StreamMode::kTerminal) {
      auto pty = OpenPseudoTerminal(fd, /*raw_output=*/true);
      if (!pty) {
        notes_.push_back(fmt::format("{} could not be relayed: {}", name, pty.error().message));
        return;
      }
      outputs_.push_back({fd, pty->master.get()});
      launch_.streams[index] = pty->slave.get();
      held_.push_back(std::move(pty->slave));
      relays_.push_back(std::make_unique<Relay>(name, std::move(pty->master), fd));
    }
  }

  base::Result<Child> Launch() {
    launch_.argv = options_.command;
    started_at_ = clock_.Now();
    auto child = Child::Launch(launch_);
    // The command's ends are its own now; ours would keep its readers waiting.
    held_.clear();
    slave_.Reset();
    return child;
  }

  void RecordStart(const Child& child) {
    record_ = DescribeRun(options_, run_id_, started_at_, files_);
    SpoolEvent event{.kind = SpoolKind::kStart,
                     .run_id = run_id_,
                     .root = child.stamp(),
                     .runner = StampOf(::getpid())};
    if (cgroup_) event.cgroups = cgroup_->directories();
    event.records.push_back(ExecutionRecord(record_, clock_.Now()));
    recorder_->Post([event = std::move(event)](SpoolWriter& spool) mutable {
      RedactExecution(event);
      (void)spool.Write(event, /*durable=*/false);
      spool.MoveLeftovers(kLeftoversPerRun);
    });
    if (cgroup_) {
      recorder_->Post([directories = cgroup_->directories(), now = clock_.Now()](SpoolWriter&) {
        RemoveLeftoverCgroups(directories, now);
      });
    }
    if (options_.capture_sources && !off_) RecordSources();
  }

  void RecordSources() {
    collect::SourceRequest request{.command = options_.command,
                                   .program = {},
                                   .working_directory = record_.working_directory,
                                   .extra = options_.sources,
                                   .limits = {}};
    const char* path = std::getenv("PATH");
    const std::string& program = options_.command.front();
    if (program.find('/') == std::string::npos) {
      request.program =
          base::FindProgram(program, path != nullptr ? path : "/bin:/usr/bin").value_or("");
    }
    recorder_->Post([this_id = run_id_, request, now = clock_.Now(),
                     hash = bundle_hash_](SpoolWriter& spool) {
      evidence::SourceBundle bundle = collect::CollectSources(request);
      bundle.key = {evidence::SourceType::kHost, this_id};
      if (bundle.files.empty() && bundle.skipped.empty()) return;
      *hash = evidence::BundleHash(bundle);
      SpoolEvent event{.kind = SpoolKind::kSources, .run_id = this_id};
      event.records.push_back({.sequence = 1, .observed_at = now, .payload = std::move(bundle)});
      (void)spool.Write(event, /*durable=*/false);
    });
  }

  // The tails as of now, to be asked for, redacted and written by the recorder: a file that the
  // command writes to may lie on a network file system that hangs.
  std::function<std::vector<NamedTail>()> Tails() const {
    std::vector<NamedTail> relayed;
    for (const auto& relay : relays_) relayed.push_back({relay->name(), relay->tail()});
    return [relayed = std::move(relayed), files = files_] {
      std::vector<NamedTail> tails = relayed;
      for (const FileTail& file : files) tails.push_back({file.name(), file.Read()});
      return tails;
    };
  }

  void OnSecond() {
    SampleMemory();
    const base::MonoTime now = clock_.Mono();
    if (now < next_tail_) return;
    next_tail_ = now + kTailPeriod;
    if (relays_.empty() && files_.empty()) return;
    recorder_->Post([this_id = run_id_, now_written = Tails(), at = clock_.Now(),
                     last_written = last_written_](SpoolWriter& spool) {
      const std::vector<NamedTail> tails = now_written();
      std::uint64_t written = 0;
      for (const NamedTail& tail : tails) written += tail.ring.total_bytes();
      if (written == *last_written) return;
      *last_written = written;
      SpoolEvent event{.kind = SpoolKind::kTail, .run_id = this_id};
      AddTails(tails, this_id, at, /*final=*/false, event);
      (void)spool.Write(event, /*durable=*/false);
    });
  }

  void SampleMemory() {
    if (!reader_) return;
    if (const auto usage = reader_->Read()) {
      need_peak_ = std::max(need_peak_, usage->memory_need_bytes.value_or(0));
      cache_peak_ = std::max(cache_peak_, usage->memory_file_bytes.value_or(0));
    }
  }

  LoopResult Follow(Child& child) {
    next_tail_ = clock_.Mono() + kTailPeriod;
    LoopOptions loop{
        .walltime = options_.walltime, .grace = options_.grace, .members = {}, .on_second = {}};
    loop.members = [this, &child] {
      return cgroup_ ? cgroup_->Members() : ProcessTree(child.pid());
    };
    loop.on_second = [this] { OnSecond(); };
    RunLoop run(child, relays_, session_ ? &*session_ : nullptr, outputs_, std::move(loop), clock_);
    return run.Run();
  }

  int Finish(const Child& child, const LoopResult& loop) {
    const base::WallTime ended_at = clock_.Now();
    RunEnd end{.ended_at = ended_at,
               .usage = loop.end.usage,
               .cgroup = {},
               .need_peak_bytes = need_peak_,
               .cache_peak_bytes = cache_peak_};
    if (cgroup_) {
      if (auto usage = reader_->Read()) end.cgroup = *usage;
      cgroup_->Remove();
    }
    const EndFacts facts{.command = options_.command,
                         .wait_status = loop.end.wait_status,
                         .exec_error = child.exec_error(),
                         .walltime_reached = loop.walltime_reached,
                         .oom_kills = end.cgroup ? end.cgroup->oom_kills : std::nullopt,
                         .signals_received = loop.signals_received,
                         .on_terminal = session_.has_value()};
    if (facts.exec_error != 0) {
      record_ = DescribeRun(options_, run_id_, started_at_, files_);
      fmt::print(stderr, "expanse: {}: {}\n", options_.command.front(),
                 facts.exec_error == ENOENT ? "command not found" : ::strerror(facts.exec_error));
    }
    end.verdict = Judge(facts);
    RecordEnd(end);
    return ShellExitCode(facts);
  }

  void RecordEnd(const RunEnd& end) {
    evidence::Execution execution = record_;
    execution.capture_notes = notes_;
    DescribeEnd(end, execution);
    recorder_->Post([this_id = run_id_, execution = std::move(execution), tails = Tails(),
                     at = end.ended_at, hash = bundle_hash_](SpoolWriter& spool) mutable {
      execution.bundle_hash = *hash;
      SpoolEvent event{.kind = SpoolKind::kEnd, .run_id = this_id};
      event.records.push_back(ExecutionRecord(std::move(execution), at));
      RedactExecution(event);
      AddTails(tails(), this_id, at, /*final=*/true, event);
      (void)spool.Write(event, /*durable=*/true);
    });
    const bool finished = recorder_->Finish(kRecordPatience);
    const std::string trouble = finished ? recorder_->trouble() : "the spool does not answer";
    // Only where a person reads it: the command's own error output may be somebody's input.
    if (!trouble.empty() && ::isatty(2) == 1) {
      fmt::print(stderr, "expanse: this run is not recorded here yet: {}\n", trouble);
    }
  }

  const RunOptions& options_;
  base::Clock& clock_;
  std::string run_id_;
  std::optional<Recorder> recorder_;
  bool off_;
  LaunchSpec launch_;
  StreamPlan plan_;
  std::optional<RunCgroup> cgroup_;
  std::optional<RunCgroup> unused_cgroup_;  // could not be joined; removed at the end
  std::optional<collect::CgroupReader> reader_;
  std::uint64_t need_peak_ = 0;
  std::uint64_t cache_peak_ = 0;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::vector<FileTail> files_;
  std::vector<OutputTerminal> outputs_;
  std::vector<base::UniqueFd> held_;  // the command's ends, until it is started
  base::UniqueFd slave_;
  std::optional<TerminalSession> session_;
  std::vector<std::string> notes_;
  base::WallTime started_at_{};
  evidence::Execution record_;
  // Shared with the recorder's thread, which may outlive us.
  std::shared_ptr<std::string> bundle_hash_ = std::make_shared<std::string>();
  base::MonoTime next_tail_{};
  // The recorder's: bytes of output at the last tail.
  std::shared_ptr<std::uint64_t> last_written_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace

std::string DefaultSpoolDirectory() {
  const char* set = std::getenv("EXPANSE_SPOOL_DIR");
  if (set != nullptr && *set != '\0') return set;
  if (base::Exists(kSharedSpool)) return kSharedSpool;
  return PrivateSpoolDirectory();
}

base::Result<int> RunCommand(const RunOptions& options) {
  EXPANSE_RETURN_IF_ERROR(Check(options));
  ReserveStandardStreams();
  base::SystemClock clock;
  return Run(options, clock).Execute();
}

}  // namespace expanse::schedulers::host
