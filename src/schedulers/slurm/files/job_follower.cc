#include "schedulers/slurm/files/job_follower.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "base/crypto.h"
#include "base/files.h"
#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestStep = 200ms;
// How much of the budgets is saved up while there is little to do.
constexpr double kSavedSeconds = 10;
// A bundle that other executions have too is given again if it is small; else its hash is enough.
constexpr std::size_t kRepeatedBytes = 32U << 10;

base::Duration ThreadCpuTime() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

JobFollower::JobFollower(const JobFilesOptions& options, base::Clock& clock, ResultQueue& results,
                         FilesMonitor& monitor, std::function<base::Duration()> cpu_time)
    : options_(options),
      clock_(clock),
      results_(results),
      monitor_(monitor),
      cpu_time_(cpu_time ? std::move(cpu_time) : ThreadCpuTime),
      users_(options.user ? options.user : collect::LookUpUser),
      sources_(options.sources),
      refilled_(clock.Mono()),
      cpu_left_s_(options.cpu_share * kSavedSeconds),
      bytes_left_(static_cast<double>(options.result_bytes_per_second) * kSavedSeconds) {}

void JobFollower::Follow(const JobFilesRequest& request, ScriptText script) {
  auto& slot = jobs_[request.key.identity];
  const bool is_new = slot == nullptr;
  if (is_new) {
    slot = std::make_unique<Job>();
    slot->key = request.key;
    slot->uid = request.uid;
    slot->interval = options_.next_look;
    if (!request.sources_taken) {
      slot->sources = std::make_unique<SourceJob>();
      slot->script_pending = request.script_pending;
    }
  }
  Job& job = *slot;
  const bool waited = job.script_pending;
  const bool had_files = job.out.followed() || job.err.followed();
  Update(job, request, std::move(script));
  const base::MonoTime now = clock_.Mono();
  if (request.ended && !job.ended) {
    End(job.key.identity);
    return;
  }
  const bool has_files = job.out.followed() || job.err.followed();
  const bool news = (waited && !job.script_pending) || (has_files && !had_files);
  if (is_new || (news && !job.ended)) {
    job.begun = false;
    Schedule(job, /*urgent=*/true, now);
  }
}

void JobFollower::Update(Job& job, const JobFilesRequest& request, ScriptText script) {
  if (!request.stdout_path.empty()) job.out.SetPath(request.stdout_path);
  if (!request.stderr_path.empty()) {
    const bool same = request.stderr_path == job.out.path();
    job.err.SetPath(same ? std::string_view() : request.stderr_path);
    job.out.SetName(same ? "combined" : "stdout");
  }
  if (request.started) job.started = request.started;
  if (SourceJob* sources = job.sources.get()) {
    sources->uid = job.uid;
    if (!request.working_directory.empty()) sources->working_directory = request.working_directory;
    if (!request.command.empty()) sources->command = request.command;
    if (script) sources->script = std::move(script);
    if (!request.script_sha256.empty()) sources->script_sha256 = request.script_sha256;
    job.script_pending = job.script_pending && request.script_pending;
  }
  const CaptureChoice choice =
      ChooseCapture(options_.switches, request.user, request.account, request.comment);
  if (!choice.logs || !request.logs) {
    job.out.Close();
    job.err.Close();
  }
  if (!choice.sources) {
    job.sources.reset();
    job.script_pending = false;
  }
  for (const std::string& note : choice.notes) {
    if (std::find(job.notes.begin(), job.notes.end(), note) == job.notes.end())
      job.notes.push_back(note);
  }
}

void JobFollower::End(const std::string& identity) {
  const auto found = jobs_.find(identity);
  if (found == jobs_.end() || found->second->ended) return;
  found->second->ended = true;
  Schedule(*found->second, /*urgent=*/true, clock_.Mono() + options_.settle);
}

void JobFollower::Forget(const std::string& identity) {
  if (const auto found = jobs_.find(identity); found != jobs_.end()) Erase(*found->second);
}

void JobFollower::Schedule(Job& job, bool urgent, base::MonoTime at) {
  Unschedule(job);
  job.urgent = urgent;
  job.due = at;
  (urgent ? urgent_ : routine_).insert({at, &job});
}

void JobFollower::Unschedule(Job& job) {
  if (job.due) (job.urgent ? urgent_ : routine_).erase({*job.due, &job});
  job.due.reset();
}

void JobFollower::Erase(Job& job) {
  Unschedule(job);
  jobs_.erase(std::string(job.key.identity));  // a copy: the name goes with the job
}

void JobFollower::Refill(base::MonoTime now) {
  const double elapsed = base::ToSeconds(now - refilled_);
  refilled_ = now;
  const auto rate = static_cast<double>(options_.result_bytes_per_second);
  cpu_left_s_ =
      std::min(cpu_left_s_ + elapsed * options_.cpu_share, kSavedSeconds * options_.cpu_share);
  bytes_left_ = std::min(bytes_left_ + elapsed * rate, kSavedSeconds * rate);
}

JobFollower::Job* JobFollower::NextDue(base::MonoTime now) {
  if (!urgent_.empty() && urgent_.begin()->first <= now) return urgent_.begin()->second;
  const bool may = cpu_left_s_ > 0 && bytes_left_ > 0;
  if (may && !routine_.empty() && routine_.begin()->first <= now) return routine_.begin()->second;
  return nullptr;
}

bool JobFollower::Step(const std::stop_token& stop) {
  const base::MonoTime begin = clock_.Mono();
  base::MonoTime now = begin;
  Refill(now);
  Job* job = nullptr;
  while (!stop.stop_requested() && !results_.full() && now - begin < kLongestStep &&
         (job = NextDue(now)) != nullptr) {
    Visit(*job, stop);
    if (stop.stop_requested()) return false;
    now = clock_.Mono();
  }
  Publish(now);
  return job != nullptr && !results_.full();
}

void JobFollower::Visit(Job& job, const std::stop_token& stop) {
  const base::Duration cpu_before = cpu_time_();
  const base::MonoTime now = clock_.Mono();
  const bool urgent = job.urgent;
  const bool final = job.ended;
  Unschedule(job);
  ++figures_.looks;
  std::vector<evidence::Payload> found;
  if (job.out.followed() || job.err.followed() || job.sources) {
    monitor_.Enter(job.out.followed() ? job.out.path() : job.err.path(), now);
    const auto& user = users_.Get(job.uid, now);
    if (user) {
      Read(job, *user, final, found);
    } else {
      // Where the user data base does not answer, the sources wait for the next look.
      Refuse(job, StreamTrouble::kUnknownUser, final || user.error().code == base::Code::kNotFound);
    }
    monitor_.Leave();
    if (stop.stop_requested()) return;  // it may have taken for ever: the owner may be gone
  }
  const auto again = final ? LookOnceMore(job) : std::nullopt;
  AddNotes(job, final && !again, found);
  std::size_t bytes = 0;
  for (evidence::Payload& payload : found) bytes += results_.Add(std::move(payload));
  if (again) {
    Schedule(job, /*urgent=*/true, clock_.Mono() + *again);
  } else if (final) {
    Finish(job);
  } else {
    Continue(job);
  }
  const base::Duration cpu = cpu_time_() - cpu_before;
  figures_.cpu_s += base::ToSeconds(cpu);
  if (urgent) return;
  cpu_left_s_ -= base::ToSeconds(cpu);
  bytes_left_ -= static_cast<double>(bytes);
}

void JobFollower::Refuse(Job& job, StreamTrouble trouble, bool give_up) {
  job.out.Fail(trouble);
  job.err.Fail(trouble);
  if (!give_up || !job.sources) return;
  const auto sources = std::move(job.sources);
  job.script_pending = false;
  if (!sources->script && sources->command.empty()) return;
  job.notes.push_back(trouble == StreamTrouble::kUnknownUser
                          ? "sources: the job's user is not known here"
                          : "sources: the daemon may not read as the job's user");
}

void JobFollower::Read(Job& job, const collect::UserIdentity& user, bool final,
                       std::vector<evidence::Payload>& out) {
  const auto rights = collect::UserRights::Assume(user);
  figures_.rights_refused = !rights;
  if (!rights) return Refuse(job, StreamTrouble::kNoRights, /*give_up=*/true);
  const collect::FileOpener open = [&user](const std::string& path) {
    return collect::OpenAs(user, path);
  };
  if (job.sources && (final || !job.script_pending)) TakeSources(job, open, out);
  if (!job.begun && !final) {
    if (job.started) {
      job.out.Begin(open, *job.started);
      job.err.Begin(open, *job.started);
    }
    return;
  }
  const collect::FileTailOptions options{
      .tail = options_.tail,
      .scan_bytes = final ? options_.scan_bytes_at_end : options_.scan_bytes_per_look};
  for (OutputStream* stream : {&job.out, &job.err}) {
    if (!job.begun && job.started) stream->Begin(open, *job.started);
    auto tail = stream->Look(open, options, final);
    if (!tail) continue;
    tail->key = job.key;
    ++figures_.tails;
    figures_.redactions += tail->redactions;
    out.emplace_back(*std::move(tail));
  }
}

bool JobFollower::FindScript(SourceJob& sources, const collect::FileOpener& open) const {
  const auto words = base::SplitSpaces(sources.command);
  if (words.empty()) return false;
  const auto file =
      open(words[0].front() == '/' ? std::string(words[0])
                                   : base::JoinPath(sources.working_directory, words[0]));
  if (!file) return false;
  auto text = base::ReadFd(file->get(), options_.sources.file_bytes);
  if (!text || base::Sha256Hex(*text) != sources.script_sha256) return false;
  sources.script = std::make_shared<const std::string>(*std::move(text));
  return true;
}

void JobFollower::TakeSources(Job& job, const collect::FileOpener& open,
                              std::vector<evidence::Payload>& out) {
  const std::unique_ptr<SourceJob> sources = std::move(job.sources);
  if (!sources->script && sources->command.empty()) return;
  // Only its hash is known: the file is looked for. One whose text was given needs no file.
  const bool elsewhere = !sources->script && !sources->script_sha256.empty();
  if (elsewhere && !FindScript(*sources, open)) {
    job.notes.emplace_back("sources: the script's file is not what was submitted");
    return;
  }
  const CachedBundle taken = sources_.Take(*sources, job.key.identity, open, clock_.Mono());
  if (elsewhere && taken.bundle->files.size() + taken.bundle->skipped.size() <= 1) return;
  job.bundle_hash = taken.hash;
  job.tell = !taken.hash.empty();
  if (taken.bundle->files.empty() && taken.bundle->skipped.empty()) return;
  if (taken.repeated && taken.bytes > kRepeatedBytes) {
    job.notes.push_back("sources: the same as those of " + taken.first_of);
    return;
  }
  ++figures_.bundles;
  evidence::SourceBundle bundle = *taken.bundle;
  bundle.key = job.key;
  for (const auto& file : bundle.files) figures_.redactions += file.redactions;
  out.emplace_back(std::move(bundle));
}

void JobFollower::AddNotes(Job& job, bool final, std::vector<evidence::Payload>& out) {
  std::vector<std::string> notes = job.notes;
  for (const OutputStream* stream : {&job.out, &job.err}) {
    if (auto note = stream->Note(final)) notes.push_back(*std::move(note));
  }
  if (notes == job.told && !job.tell) return;
  job.tell = false;
  job.told = notes;
  evidence::ExecutionObservation observation{.key = job.key, .execution = {}};
  observation.execution.source_type = job.key.source_type;
  observation.execution.bundle_hash = job.bundle_hash;
  observation.execution.capture_notes = std::move(notes);
  out.emplace_back(std::move(observation));
}

// A file of a job that has just ended may be about to be replaced, or not be seen here yet: network
// file systems remember for up to a minute that a name was not there.
std::optional<std::chrono::milliseconds> JobFollower::LookOnceMore(Job& job) const {
  const auto may_come = [](const OutputStream& stream) {
    return stream.transient() || stream.trouble() == StreamTrouble::kNotFound;
  };
  if (!may_come(job.out) && !may_come(job.err)) return std::nullopt;
  switch (job.last_tries++) {
    case 0:
      return options_.settle;
    case 1:
      return options_.late_look;
    default:
      return std::nullopt;
  }
}

void JobFollower::Finish(Job& job) {
  for (const OutputStream* stream : {&job.out, &job.err})
    if (stream->trouble() != StreamTrouble::kNone) ++figures_.troubles;
  Erase(job);
}

void JobFollower::Continue(Job& job) {
  const base::MonoTime now = clock_.Mono();
  const bool first = !job.begun;
  job.begun = true;
  // Without files it stays known until its end, and costs nothing.
  if (!job.out.followed() && !job.err.followed() && !(job.sources && !job.script_pending)) return;
  if (first) return Schedule(job, /*urgent=*/false, now + options_.first_look);
  Schedule(job, /*urgent=*/false, now + job.interval);
  const bool grew = job.out.grew() || job.err.grew();
  job.interval = std::min(job.interval * 2, options_.longest * (grew ? 1 : 2));
}

void JobFollower::Publish(base::MonoTime now) {
  figures_.followed = jobs_.size();
  figures_.overdue_s = 0;
  if (!routine_.empty() && routine_.begin()->first < now)
    figures_.overdue_s = base::ToSeconds(now - routine_.begin()->first);
  monitor_.Set(figures_);
}

}  // namespace expanse::schedulers::slurm
