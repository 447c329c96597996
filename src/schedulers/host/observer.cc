#include "schedulers/host/observer.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/log.h"
#include "base/text.h"
#include "collect/cgroup/reader.h"
#include "schedulers/host/child.h"
#include "schedulers/host/run_cgroup.h"

namespace expanse::schedulers::host {
namespace {

using std::chrono::seconds;

// After its command is gone `expanse run` has this long to write the end; while it lives, longer.
constexpr seconds kEndGrace{3};
constexpr seconds kEndPatience{600};
// The file system's clock is coarse: a change in the second of a look may have come after it.
constexpr seconds kCoarse{2};
constexpr std::chrono::hours kTemporaryAge{1};
constexpr std::size_t kMaxState = kMaxSpoolEvent + 64;
// Runs that are followed, in all and of one user other than root, who shall not keep all others
// out.
constexpr std::size_t kMaxRuns = 10'000;
constexpr std::size_t kMaxRunsOfUser = 2'000;
constexpr std::size_t kMaxFollowedPath = 512;
constexpr std::size_t kRunIdLength = 36;

std::string SystemUserName(uid_t uid) {
  std::array<char, 16384> buffer{};
  struct passwd entry{};
  struct passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return std::to_string(uid);
}

// The real user of a process ("Uid:" of /proc/PID/status, proc(5)).
std::optional<uid_t> RealUid(const std::string& proc, pid_t pid) {
  const auto text = base::ReadFile(fmt::format("{}/{}/status", proc, pid), 1U << 16);
  if (!text) return std::nullopt;
  for (std::string_view line : base::Split(*text, '\n')) {
    if (!line.starts_with("Uid:")) continue;
    const auto fields = base::SplitSpaces(line);
    return fields.size() < 2 ? std::nullopt : base::ParseInt<uid_t>(fields[1]);
  }
  return std::nullopt;
}

// "/proc" -> "/": what CgroupsOfPid takes.
std::string RootOf(const std::string& proc) {
  return proc == "/proc" ? "/"
                         : proc.substr(0, proc.size() - std::min<std::size_t>(proc.size(), 5));
}

// What following a run needs of its start. Users write these, and thousands are held in memory: the
// rest (a command line, labels) is in the store already, where a later record adds to it.
SpoolEvent ToFollow(const SpoolEvent& start) {
  SpoolEvent event{.kind = start.kind,
                   .run_id = start.run_id,
                   .root = start.root,
                   .runner = start.runner,
                   .cgroups = {},
                   .records = {}};
  for (const std::string& cgroup : start.cgroups) {
    if (cgroup.size() <= kMaxFollowedPath) event.cgroups.push_back(cgroup);
  }
  for (const evidence::Record& record : start.records) {
    const auto* seen = std::get_if<evidence::ExecutionObservation>(&record.payload);
    if (seen == nullptr) continue;
    evidence::Execution execution;
    execution.started_at = seen->execution.started_at;
    event.records = {{.sequence = 1,
                      .observed_at = record.observed_at,
                      .payload = evidence::ExecutionObservation{
                          {evidence::SourceType::kHost, start.run_id}, std::move(execution)}}};
  }
  return event;
}

bool IsBad(const base::Error& error) { return error.reason.starts_with("spool."); }

}  // namespace

HostObserver::HostObserver(HostObserverOptions options) : options_(std::move(options)) {
  for (const std::string& directory : options_.spool_directories) {
    const bool known = std::any_of(spools_.begin(), spools_.end(),
                                   [&](auto& s) { return s.directory == directory; });
    if (!directory.empty() && !known)
      spools_.push_back({.directory = directory, .reader = {}, .error = {}});
  }
}

base::Status HostObserver::Start() {
  for (const char* part : {"runs", "quarantine"}) {
    EXPANSE_RETURN_IF_ERROR(
        base::MakeDirectories(base::JoinPath(options_.state_directory, part), 0700));
  }
  const std::string runs = base::JoinPath(options_.state_directory, "runs");
  EXPANSE_ASSIGN_OR_RETURN(std::vector<std::string> names, base::ListDirectory(runs));
  for (const std::string& name : names) {
    const std::string path = base::JoinPath(runs, name);
    const auto data = base::ReadFile(path, kMaxState);
    // "<owner uid>\n" and the start event as it was in the spool.
    const std::size_t line = data ? data->find('\n') : std::string::npos;
    const auto owner =
        line == std::string::npos ? std::nullopt : base::ParseInt<uid_t>(data->substr(0, line));
    if (!owner) {
      (void)base::RemoveFile(path);
      continue;
    }
    auto event = DecodeSpoolEvent(std::string_view(*data).substr(line + 1), base::WallTime::max());
    if (event && event->kind == SpoolKind::kStart) {
      Follow(*std::move(event), *owner);
    } else {
      (void)base::RemoveFile(path);
    }
  }
  RebuildRunning();
  return {};
}

void HostObserver::Observe(const collect::Tick& tick, EvidenceSink& sink) {
  observed_at_ = tick.wall;
  refused_ = 0;
  unreadable_ = 0;
  behind_ = false;
  for (Spool& spool : spools_) ObserveSpool(spool, tick, sink);
  FollowRuns(tick, sink);
  RebuildRunning();
}

void HostObserver::ObserveSpool(Spool& spool, const collect::Tick& tick, EvidenceSink& sink) {
  if (!spool.reader) {
    auto reader = SpoolReader::Open(spool.directory);
    if (!reader) {
      spool.error = std::move(reader.error());
      return;
    }
    spool.reader.emplace(std::move(*reader));
    spool.error.reset();
  }
  const auto changed = spool.reader->ModifiedAt();
  if (!changed) {  // removed, perhaps made anew: opened again the next time
    spool.reader.reset();
    spool.error = changed.error();
    return;
  }
  if (*changed == spool.seen_at) return;
  std::vector<std::string> strange;
  auto names = spool.reader->List(strange);
  if (!names) {
    spool.error = std::move(names.error());
    return;
  }
  spool.reader->SweepTemporary(strange, tick.wall, kTemporaryAge);
  for (const std::string& name : strange) {
    if (name.starts_with('.')) continue;
    spool.reader->Quarantine(name, base::JoinPath(options_.state_directory, "quarantine"),
                             options_.max_quarantined);
    ++quarantined_;
  }
  std::erase_if(spool.stuck, [&](const auto& file) {
    return !std::binary_search(names->begin(), names->end(), file.first);
  });
  bool complete = names->size() <= options_.max_files + spool.stuck.size();
  if (!complete) {
    names->resize(options_.max_files + spool.stuck.size());
    behind_ = true;
  }
  // Time that passes, not a Clock's: a backlog on a slow disk must not hold up the samples, which
  // the same thread takes.
  const auto until = std::chrono::steady_clock::now() + options_.max_look;
  std::string_view waiting;  // a run of which an event was refused: no later one overtakes it
  for (const std::string& name : *names) {
    if (!waiting.empty() && name.starts_with(waiting)) continue;
    if (std::chrono::steady_clock::now() >= until) {
      complete = false;
      behind_ = true;
      break;
    }
    if (TakeFile(spool, name, tick, sink)) continue;
    complete = false;
    waiting = std::string_view(name).substr(0, kRunIdLength);
  }
  // Removing files changed the directory: the look after a busy one finds it quiet.
  const bool quiet = complete && tick.wall - *changed > kCoarse;
  spool.seen_at = quiet && names->empty() ? *changed : base::WallTime{};
}

bool HostObserver::TakeFile(Spool& spool, const std::string& name, const collect::Tick& tick,
                            EvidenceSink& sink) {
  const auto spooled = spool.reader->Read(name, tick.wall);
  if (!spooled) {
    if (spooled.error().code == base::Code::kNotFound) return true;
    if (!IsBad(spooled.error())) {
      ++unreadable_;
      return false;
    }
    static base::RateLimit limit{seconds(60)};
    if (limit.Allow())
      base::LogWarn("host.spool_file_refused",
                    {{"file", name}, {"reason", spooled.error().reason}});
    spool.reader->Quarantine(name, base::JoinPath(options_.state_directory, "quarantine"),
                             options_.max_quarantined);
    ++quarantined_;
    return true;
  }
  if (const auto stuck = spool.stuck.find(name);
      stuck != spool.stuck.end() && stuck->second == spooled->inode)
    return true;
  if (!TakeEvent(*spooled, tick, sink)) {
    ++refused_;
    return false;
  }
  ++events_;
  if (!spool.reader->Remove(name, spooled->inode)) spool.stuck[name] = spooled->inode;
  return true;
}

evidence::ExecutionKey HostObserver::KeyOf(std::string_view run_id, uid_t owner) const {
  // The owner is part of it: whoever guesses another user's run id does not get at that run.
  return {evidence::SourceType::kHost, fmt::format("{}.{}", run_id, owner)};
}

bool HostObserver::TakeEvent(const SpooledEvent& spooled, const collect::Tick& tick,
                             EvidenceSink& sink) {
  const SpoolEvent& event = spooled.event;
  const evidence::ExecutionKey key = KeyOf(event.run_id, spooled.owner);
  for (const evidence::Record& record : event.records) {
    evidence::Payload payload = record.payload;
    if (auto* observation = std::get_if<evidence::ExecutionObservation>(&payload)) {
      observation->key = key;
      observation->execution.source_type = evidence::SourceType::kHost;
      observation->execution.user = UserName(spooled.owner);
    } else if (auto* tail = std::get_if<evidence::LogTail>(&payload)) {
      tail->key = key;
    } else if (auto* bundle = std::get_if<evidence::SourceBundle>(&payload)) {
      bundle->key = key;
    }
    // A clock that ran ahead while the event was written must not keep it from the store.
    if (!sink.Emit(std::move(payload), std::min(record.observed_at, tick.wall))) return false;
  }
  if (event.kind == SpoolKind::kStart && !runs_.contains(key.identity) &&
      MayFollow(spooled.owner)) {
    SpoolEvent start = ToFollow(event);
    const std::string state = fmt::format("{}\n{}", spooled.owner, EncodeSpoolEvent(start));
    // Without it the run is not taken up again after a restart. The start is in the outbox: to
    // refuse it now would put it there again every second, on a disk that is full.
    static base::RateLimit limit{seconds(60)};
    if (auto kept = base::WriteFileAtomically(StatePath(key.identity), state, 0600);
        !kept && limit.Allow())
      base::LogWarn("host.run_not_kept", {{"message", kept.error().message}});
    Follow(std::move(start), spooled.owner);
  }
  if (event.kind == SpoolKind::kEnd) Forget(key.identity);
  return true;
}

bool HostObserver::MayFollow(uid_t owner) const {
  if (runs_.size() >= kMaxRuns) return false;
  if (owner == 0 || runs_.size() < kMaxRunsOfUser) return true;
  const auto own = std::count_if(runs_.begin(), runs_.end(),
                                 [&](const auto& run) { return run.second.owner == owner; });
  return static_cast<std::size_t>(own) < kMaxRunsOfUser;
}

void HostObserver::Follow(SpoolEvent start, uid_t owner) {
  const std::string identity = KeyOf(start.run_id, owner).identity;
  Run run{.start = std::move(start),
          .owner = owner,
          .cgroups = {},
          .verified = false,
          .gone_since = {}};
  // Its process is believed to be the user's only if the kernel says so, and its cgroups only if
  // the process is in them: samples of others' work would go to this run otherwise.
  const ProcessStamp& root = run.start.root;
  if (IsAlive(root, options_.proc)) {
    const auto uid = RealUid(options_.proc, root.pid);
    run.verified = owner == 0 || uid == owner;
    const auto own = collect::CgroupsOfPid(RootOf(options_.proc), root.pid);
    for (const std::string& cgroup : run.start.cgroups) {
      const bool inside = own && std::find(own->begin(), own->end(), cgroup) != own->end();
      const bool ours = cgroup.ends_with(fmt::format("/{}{}", kRunCgroupPrefix, run.start.run_id));
      if (run.verified && inside && ours) run.cgroups.push_back(cgroup);
    }
  }
  runs_.insert_or_assign(identity, std::move(run));
}

void HostObserver::Forget(const std::string& key) {
  const auto found = runs_.find(key);
  if (found != runs_.end()) {
    for (const std::string& cgroup : found->second.cgroups) ::rmdir(cgroup.c_str());
    runs_.erase(found);
  }
  (void)base::RemoveFile(StatePath(key));
}

void HostObserver::FollowRuns(const collect::Tick& tick, EvidenceSink& sink) {
  std::vector<std::string> over;
  for (auto& [key, run] : runs_) {
    if (IsAlive(run.start.root, options_.proc)) {
      run.gone_since.reset();
      continue;
    }
    if (!run.gone_since) run.gone_since = tick.mono;
    const bool runner_lives = run.start.runner.pid != 0 && IsAlive(run.start.runner, options_.proc);
    if (behind_) continue;  // its end may be among what waits
    const base::Duration gone = tick.mono - *run.gone_since;
    if (gone < (runner_lives ? base::Duration(kEndPatience) : base::Duration(kEndGrace))) continue;
    if (FinishLost(run, tick, sink)) over.push_back(key);
  }
  for (const std::string& key : over) Forget(key);
}

// `expanse run` was killed, or the host went down: what can still be known.
bool HostObserver::FinishLost(const Run& run, const collect::Tick& tick, EvidenceSink& sink) {
  evidence::ExecutionObservation seen;
  seen.key = KeyOf(run.start.run_id, run.owner);
  for (const evidence::Record& record : run.start.records) {
    if (const auto* start = std::get_if<evidence::ExecutionObservation>(&record.payload))
      seen = *start;
  }
  seen.key = KeyOf(run.start.run_id, run.owner);
  evidence::Execution& execution = seen.execution;
  execution.source_type = evidence::SourceType::kHost;
  execution.user = UserName(run.owner);
  execution.status = evidence::ExecutionStatus::kUnknown;
  execution.outcome = evidence::Outcome::kUnknown;
  execution.native_state = "lost";
  execution.native_reason = "ended, exit code not seen";
  // The clock may have been set back meanwhile.
  execution.ended_at = std::max(tick.wall, execution.started_at.value_or(tick.wall));
  execution.updated_at = execution.ended_at;
  execution.capture_notes.push_back(
      "expanse run did not write the end; the end is when the daemon missed the command");
  if (!run.cgroups.empty()) {
    if (const auto usage = collect::ReadCgroup(RootOf(options_.proc), run.cgroups)) {
      execution.used.cpu_s = usage->cpu_s;
      execution.used.cpu_user_s = usage->cpu_user_s;
      execution.used.cpu_system_s = usage->cpu_system_s;
      execution.used.memory_peak_bytes = usage->memory_peak_bytes;
      if (usage->memory_peak_bytes) execution.used.memory_peak_basis = "cgroup_peak";
      execution.used.oom_kills = usage->oom_kills;
      if (usage->oom_kills.value_or(0) > 0) {
        execution.status = evidence::ExecutionStatus::kFailed;
        execution.outcome = evidence::Outcome::kOutOfMemory;
        execution.native_reason = "memory limit";
      }
    }
  }
  if (!sink.Emit(std::move(seen), tick.wall)) {
    ++refused_;
    return false;
  }
  ++lost_;
  return true;
}

void HostObserver::RebuildRunning() {
  running_.clear();
  for (const auto& [key, run] : runs_) {
    if (run.gone_since || !run.verified) continue;
    collect::TrackedWorkload workload;
    workload.key = {evidence::SourceType::kHost, key};
    workload.cgroups = run.cgroups;
    workload.roots.push_back({run.start.root.pid, run.start.root.start_ticks});
    workload.uid = run.owner;
    for (const evidence::Record& record : run.start.records) {
      const auto* start = std::get_if<evidence::ExecutionObservation>(&record.payload);
      if (start != nullptr && start->execution.started_at)
        workload.started = *start->execution.started_at;
    }
    running_.push_back(std::move(workload));
  }
}

std::string HostObserver::UserName(uid_t uid) {
  const auto found = user_names_.find(uid);
  if (found != user_names_.end()) return found->second;
  if (user_names_.size() > 4096) user_names_.clear();
  return user_names_[uid] = options_.user_name ? options_.user_name(uid) : SystemUserName(uid);
}

std::string HostObserver::StatePath(const std::string& key) const {
  return fmt::format("{}/runs/{}", options_.state_directory, key);
}

std::vector<evidence::HealthRow> HostObserver::health() const {
  evidence::HealthRow row{
      .collector = "host_runs", .status = evidence::HealthStatus::kOk, .reason = {}, .message = {}};
  row.checked_at = observed_at_;
  const Spool* broken = nullptr;
  std::size_t working = 0;
  for (const Spool& spool : spools_) {
    if (!spool.error) {
      ++working;
    } else if (broken == nullptr || spool.error->reason != "spool.missing") {
      broken = &spool;
    }
  }
  if (broken != nullptr && (working == 0 || broken->error->reason != "spool.missing")) {
    row.status = working == 0 ? evidence::HealthStatus::kFailed : evidence::HealthStatus::kDegraded;
    const bool missing = broken->error->reason == "spool.missing";
    row.reason = missing                                      ? "no_spool"
                 : broken->error->reason == "spool.untrusted" ? "spool_untrusted"
                                                              : "spool_unreadable";
    row.message =
        missing ? fmt::format("{} is missing; runs wait in their users' homes", broken->directory)
                : broken->error->message;
  } else if (refused_ > 0) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "outbox_refuses";
    row.message = "events wait in the spool because the outbox does not take them";
  }
  for (const Spool& spool : spools_) {
    if (row.status != evidence::HealthStatus::kOk || spool.stuck.empty()) continue;
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "cannot_remove";
    row.message = fmt::format("{} events of {} were taken but cannot be removed by the daemon",
                              spool.stuck.size(), spool.directory);
  }
  if (row.status == evidence::HealthStatus::kOk && unreadable_ > 0) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "no_permission";
    row.message =
        "the daemon may not read files in the spool; run it as root or with CAP_DAC_READ_SEARCH";
  }
  row.figures = {{"events", static_cast<double>(events_)},
                 {"quarantined", static_cast<double>(quarantined_)},
                 {"lost_ends", static_cast<double>(lost_)},
                 {"running", static_cast<double>(running_.size())}};
  return {row};
}

}  // namespace expanse::schedulers::host
