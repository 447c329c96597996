// `expanse-daemon backfill`: imports Slurm's accounting history. Works beside a running daemon: it
// has an outbox of its own under <state_dir>/backfill, which it uploads itself.
#include "schedulers/slurm/backfill.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/time.h"
#include "base/version.h"
#include "daemon/commands/command.h"
#include "daemon/commands/slurm_role.h"
#include "daemon/daemon.h"
#include "daemon/daemon_settings.h"
#include "daemon/outboxes.h"
#include "daemon/planes.h"
#include "daemon/session.h"
#include "daemon/uploader.h"
#include "net/compute_identity.h"
#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/commands/scontrol_config.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;
using schedulers::slurm::BackfillProgress;

constexpr int kInterrupted = 130;
// On disk at most, so that an import cannot fill what the daemon needs.
constexpr std::uint64_t kMostOutboxBytes = 256U << 20;

// The cluster that this host belongs to; fails where there is no history to import.
base::Result<std::string> FindCluster(schedulers::slurm::CommandRunner& runner) {
  const auto shown = runner.Run(
      {.program = schedulers::slurm::Program::kScontrol, .arguments = {"show", "config"}}, {});
  if (!shown.status) return std::unexpected(shown.status.error());
  EXPANSE_ASSIGN_OR_RETURN(const auto config, schedulers::slurm::ParseSlurmConfig(shown.out));
  if (!config.has_accounting()) {
    return base::Fail(base::Code::kFailedPrecondition, "slurm.no_accounting",
                      fmt::format("cluster {} keeps no accounting (AccountingStorageType in "
                                  "slurm.conf), so there is no history to import",
                                  config.cluster));
  }
  return config.cluster;
}

base::Result<schedulers::slurm::BackfillOptions> OptionsOf(const Invocation& invocation,
                                                           base::WallTime now) {
  const auto flag = [&](const char* name) -> const std::string& {
    return invocation.flags.at(name);
  };
  if (flag("since").empty()) {
    return base::Fail(base::Code::kInvalidArgument, "flags.value",
                      "--since is needed: how far back to import, such as 30d or 2026-01-01");
  }
  schedulers::slurm::BackfillOptions options;
  EXPANSE_ASSIGN_OR_RETURN(options.span.from, schedulers::slurm::ParseSince(flag("since"), now));
  options.span.to = now;
  if (!flag("until").empty()) {
    EXPANSE_ASSIGN_OR_RETURN(options.span.to, schedulers::slurm::ParseSince(flag("until"), now));
  }
  if (options.span.to <= options.span.from) {
    return base::Fail(base::Code::kInvalidArgument, "backfill.time",
                      "--until must be later than --since");
  }
  EXPANSE_ASSIGN_OR_RETURN(const auto chunk, base::ParseDuration(flag("chunk")));
  EXPANSE_ASSIGN_OR_RETURN(options.pause, base::ParseDuration(flag("pause")));
  if (chunk < 10min || chunk > 24h * 31) {
    return base::Fail(base::Code::kOutOfRange, "backfill.chunk", "--chunk must be from 10m to 31d");
  }
  options.chunk = std::chrono::floor<std::chrono::seconds>(chunk);
  options.again = flag("again") == "true";
  return options;
}

// One line on stderr when something changed, at most every second, the last one in any case.
class ProgressLines {
 public:
  explicit ProgressLines(base::Clock& clock) : clock_(clock) {}
  void Print(const BackfillProgress& progress) {
    const base::MonoTime now = clock_.Mono();
    const bool changed = progress.waiting_for != waiting_for_;
    const bool ends = progress.fraction >= 1 && fraction_ < 1;
    if (!changed && !ends && (now < next_ || fraction_ >= 1)) return;
    next_ = now + 1s;
    fraction_ = progress.fraction;
    waiting_for_ = progress.waiting_for;
    fmt::print(stderr, "{:3.0f}%  up to {}  {} runs{}{}\n", progress.fraction * 100,
               base::FormatRfc3339(progress.done_to), progress.runs,
               waiting_for_.empty() ? "" : "  waiting: ", waiting_for_);
  }

 private:
  base::Clock& clock_;
  base::MonoTime next_{};
  double fraction_ = 0;
  std::string waiting_for_;
};

// The import and the upload, each on a thread, until both are done or a signal comes.
class BackfillJob {
 public:
  BackfillJob(schedulers::slurm::BackfillOptions options, schedulers::slurm::CommandRunner& runner,
              Outboxes& outboxes, Session& session, std::uint64_t max_bytes,
              UploaderOptions uploader, base::Clock& clock)
      : clock_(clock),
        outboxes_(outboxes),
        session_(session),
        lines_(clock),
        uploader_(outboxes, session, clock, std::move(uploader)),
        backfill_(std::move(options), runner, outboxes, clock,
                  {.on_progress = [this](const BackfillProgress& p) { lines_.Print(p); },
                   .has_room =
                       [&outboxes, max_bytes] {
                         return outboxes.lifecycle().figures().bytes < max_bytes / 2;
                       }}) {}

  // Returns the exit code.
  int Run(const sigset_t& signals) {
    std::jthread upload([this](std::stop_token stop) { Upload(std::move(stop)); });
    std::jthread import([this](std::stop_token stop) {
      imported_ = backfill_.Run(std::move(stop));
      import_done_ = true;
    });
    bool interrupted = false;
    while (!interrupted && !Finished()) interrupted = Signalled(signals);
    import.request_stop();
    import.join();
    upload.request_stop();
    upload.join();
    return Summary(interrupted);
  }

 private:
  // Waits a moment for a signal. A second one then ends the process at once: all that was told to
  // be durable is.
  static bool Signalled(const sigset_t& signals) {
    const struct timespec moment{.tv_sec = 0, .tv_nsec = 200'000'000};
    if (::sigtimedwait(&signals, nullptr, &moment) < 0) return false;
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    return true;
  }

  void Upload(std::stop_token stop) {
    while (!stop.stop_requested()) {
      const bool import_was_done = import_done_;
      const auto wait = uploader_.Step();
      if (import_was_done) {
        // This thread is the outbox's only reader.
        const auto next = outboxes_.lifecycle().ReadBatch(/*max_bytes=*/1, /*max_records=*/1);
        delivered_ = next && next->empty();
      }
      if (wait > 0ms) (void)clock_.WaitFor(stop, wait);
    }
  }

  // Nothing more can happen: all is imported and delivered, or one of the two failed for good.
  bool Finished() const {
    if (session_.revoked()) return true;
    return import_done_ && (!imported_ || delivered_);
  }

  int Summary(bool interrupted) {
    (void)outboxes_.Flush();
    const BackfillProgress& progress = backfill_.progress();
    fmt::print("imported {} runs that ended from {} to {}; {} queries, {:.1f} s of accounting\n",
               progress.runs, base::FormatRfc3339(progress.span.from),
               base::FormatRfc3339(progress.done_to), progress.queries,
               std::chrono::duration<double>(progress.served).count());
    if (progress.bad_rows + progress.refused > 0) {
      fmt::print("{} rows could not be read and {} records not be kept\n", progress.bad_rows,
                 progress.refused);
    }
    if (!delivered_) {
      fmt::print(stderr,
                 "expanse-daemon: not all of it is delivered yet; the next `expanse-daemon "
                 "backfill` sends what is left\n");
    }
    if (interrupted) return kInterrupted;
    if (session_.revoked())
      return Complain({.message = "the control plane refused the compute's credential"}, kFailure);
    return imported_ ? 0 : Complain(imported_.error(), kFailure);
  }

  base::Clock& clock_;
  Outboxes& outboxes_;
  Session& session_;
  ProgressLines lines_;
  Uploader uploader_;
  schedulers::slurm::Backfill backfill_;
  base::Status imported_;
  std::atomic<bool> import_done_{false};
  std::atomic<bool> delivered_{false};
};

}  // namespace

int Backfill(const Invocation& invocation) {
  const sigset_t signals = BlockSignals();
  if (auto configured = ConfigureLogging(invocation.settings); !configured)
    return Complain(configured.error(), kUsage);
  base::SystemClock clock;
  auto options = OptionsOf(invocation, clock.Now());
  if (!options) return Complain(options.error(), kUsage);
  auto identity = net::ReadComputeIdentity(invocation.config_path);
  if (!identity) return Complain(identity.error(), kFailure);
  if (identity->type != "slurm") {
    return Complain({.message = fmt::format("{} is the identity of a compute of type {}; only "
                                            "Slurm has a history to import",
                                            invocation.config_path, identity->type)},
                    kFailure);
  }
  auto runner = schedulers::slurm::SystemCommandRunner::Create(SlurmRunnerOptions(invocation));
  if (!runner) return Complain(runner.error(), kFailure);
  auto cluster = FindCluster(*runner);
  if (!cluster) return Complain(cluster.error(), kFailure);
  options->cluster = invocation.settings.GetString("slurm.cluster");
  if (options->cluster.empty()) options->cluster = *cluster;

  const DaemonOptions daemon =
      OptionsFrom(invocation.settings, base::Version(), invocation.environment, invocation.is_root);
  const std::string directory = base::JoinPath(daemon.state_dir, "backfill");
  auto lock = LockStateDirectory(directory);
  if (!lock) {
    if (lock.error().reason == "daemon.locked")
      lock.error().message = "another `expanse-daemon backfill` is at work here";
    return Complain(lock.error(), kFailure);
  }
  options->state_path = base::JoinPath(directory, "resume.json");
  auto planes = ConnectToPlanes(identity->control_plane_url, identity->data_plane_url,
                                fmt::format("expanse-daemon/{}", base::Version()));
  if (!planes) return Complain(planes.error(), kFailure);
  SystemFileIo files;
  const std::uint64_t max_bytes = std::min(daemon.outbox_max_bytes, kMostOutboxBytes);
  auto outboxes = Outboxes::Open(
      {.directory = base::JoinPath(directory, "outbox"), .max_bytes = max_bytes}, files, clock);
  if (!outboxes) return Complain(outboxes.error(), kFailure);
  const std::string path = invocation.config_path;
  Session session(**planes, std::move(*identity), clock,
                  [path] { return net::ReadComputeIdentity(path); });
  BackfillJob job(std::move(*options), *runner, **outboxes, session, max_bytes, daemon.uploader,
                  clock);
  return job.Run(signals);
}

}  // namespace expanse::daemon
