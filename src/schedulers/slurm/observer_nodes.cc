// SlurmObserver: what nodes report of jobs, here and elsewhere.
#include <algorithm>
#include <set>
#include <utility>

#include "schedulers/slurm/node/node_observer.h"
#include "schedulers/slurm/node/node_report.h"
#include "schedulers/slurm/observer.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxStrays = 10'000;
constexpr auto kStrayFor = 10min;
// A sampler reports a job after a minute, and then every ten minutes at least.
constexpr auto kYoungRun = 3min;
constexpr auto kSilentFor = 12min;
constexpr std::size_t kMaxHosts = 65'536;

// Beside reports, a sampler says of a run what became of its files, and nothing else: who it was
// and how it ended is for Slurm to say.
bool IsOfFiles(const evidence::Execution& execution) {
  evidence::Execution files;
  files.source_type = execution.source_type;
  files.bundle_hash = execution.bundle_hash;
  files.capture_notes = execution.capture_notes;
  return execution == files;
}

}  // namespace

// Events of this host's hooks. What a crash loses of them, the next listing has.
void SlurmObserver::TakeHooks(const collect::Tick& tick) {
  // While the outbox takes nothing, they wait in their directory.
  if (!hooks_ || outgoing_.is_long()) return;
  auto entries = hooks_->Look(tick.wall);
  hooks_looked_ = entries ? base::Status() : std::unexpected(entries.error());
  if (!entries) return;
  for (const HookDirectory::Entry& entry : *entries) {
    node_jobs_.TakeEvent(entry.event);
    (void)OnLifecycle(MakeReport(entry.event), options_.host, entry.event.at);
    if (auto removed = hooks_->Remove(entry); !removed) hooks_looked_ = std::move(removed);
  }
}

// The jobs of this host: what they use, and what is to be sampled.
void SlurmObserver::TakeOwnJobs(const collect::Tick& tick) {
  node_jobs_.Scan(tick);
  running_.clear();
  unresolved_ = 0;
  foreign_ = 0;
  if (!table_) return;
  for (const NodeJob& job : node_jobs_.jobs()) {
    const auto id = ResolveRun(job.id, tick.wall);
    if (!id) {
      ++unresolved_;
      continue;
    }
    const TrackedRun& run = *table_->Find(*id);
    // A cgroup that was left behind, or whose epilog still runs: the run is over.
    if (run.phase == RunPhase::kEnded) continue;
    if (IsForeign(job.node, &run)) {
      ++foreign_;
      continue;
    }
    collect::TrackedWorkload workload = TrackedJob(job);
    workload.key = table_->KeyOf(*id);
    running_.push_back(std::move(workload));
  }
  const std::deque<JobReading>& readings = node_jobs_.readings();
  for (const JobReading& reading : readings) {
    (void)OnLifecycle(MakeUsageReport(reading.id, reading.node, reading.usage, reading.last),
                      options_.host, tick.wall);
  }
  node_jobs_.DropReadings(readings.size());
}

// Raw ids are Slurm's own: on a host with nodes of two clusters each has a job 41.
bool SlurmObserver::IsForeign(std::string_view node, const TrackedRun* run) const {
  if (node.empty()) return false;
  if (run != nullptr && !run->nodes.empty()) {
    return std::ranges::none_of(
        run->nodes, [&](std::uint32_t index) { return table_->names()[index] == node; });
  }
  return !hosts_.empty() && !hosts_.contains(node);
}

bool SlurmObserver::OnLifecycle(const evidence::ExecutionObservation& seen, std::string_view host,
                                base::WallTime at) {
  const auto report = ReadReport(seen);
  if (!report) {
    if (IsOfFiles(seen.execution)) return false;
    ++forged_;
    return true;
  }
  NoteHeard(host, at);
  if (report->kind == ReportKind::kUsage || report->kind == ReportKind::kLastUsage) {
    if (outgoing_.is_long() || !TakeUsage(seen, host, at)) {
      if (strays_.size() >= kMaxStrays) strays_.pop_front();
      strays_.push_back({.seen = seen, .host = std::string(host), .at = at});
    }
    return true;
  }
  if (!keeper_) return true;  // the first listing will have it
  std::uint32_t job_id = report->job.job_id;
  std::optional<RunId> id;
  if (job_id == 0) {
    id = table_->BySluid(report->job.sluid);
    if (!id) return true;
    job_id = id->job_id;
  } else {
    id = table_->At(job_id, at);
  }
  if (IsForeign(report->node, id ? table_->Find(*id) : nullptr)) return true;
  keeper_->TakeHint({.ends = report->kind == ReportKind::kEnded,
                     .job_id = job_id,
                     .at = at,
                     .started = seen.execution.started_at},
                    {.wall = clock_.Now(), .mono = clock_.Mono()});
  return true;
}

bool SlurmObserver::FlushReports(EvidenceSink& sink, base::WallTime at) {
  return outgoing_.Flush(sink, at);
}

void SlurmObserver::NoteHeard(std::string_view host, base::WallTime at) {
  if (const auto known = heard_.find(ShortName(host)); known != heard_.end()) {
    known->second.at = std::max(known->second.at, at);
    known->second.host = host;
  } else if (heard_.size() < kMaxHosts) {
    heard_.emplace(ShortName(host), Heard{.at = at, .host = std::string(host)});
  }
}

// Which nodes have jobs and a sampler, and how many jobs Slurm has on this host: for health.
void SlurmObserver::LookAtPlaces(const collect::Tick& tick) {
  places_ = {};
  // By node: the longest that a run has been there.
  std::vector<base::Duration> busy(table_->names().size(), base::Duration(-1));
  const auto now = std::chrono::floor<std::chrono::seconds>(tick.wall);
  for (const auto& [id, run] : table_->runs()) {
    if (run.phase != RunPhase::kRunning || run.gone_s != 0) continue;
    const base::Duration age = now.time_since_epoch() - std::chrono::seconds(run.started_s);
    bool is_here = false;
    for (const std::uint32_t node : run.nodes) {
      busy[node] = std::max(busy[node], age);
      is_here = is_here || IsNodeOf(table_->names()[node], options_.host);
    }
    if (is_here && age > 1min) ++places_.here;
  }
  for (std::uint32_t node = 0; node < busy.size(); ++node) {
    if (busy[node] < base::Duration(0)) continue;
    ++places_.nodes_with_jobs;
    const std::string& name = table_->names()[node];
    if (busy[node] < kYoungRun || IsNodeOf(name, options_.host)) continue;
    const auto host = hosts_.find(name);
    const std::string& machine = host == hosts_.end() ? name : host->second;
    const auto heard = heard_.find(ShortName(machine));
    const bool is_known = heard != heard_.end();
    places_.busy_hosts.push_back(is_known ? heard->second.host : machine);
    if (is_known && tick.wall - heard->second.at < kSilentFor) continue;
    if (places_.without_sampler++ == 0) places_.example = name;
  }
  // Several nodes may share a machine.
  std::ranges::sort(places_.busy_hosts);
  const auto repeated = std::ranges::unique(places_.busy_hosts);
  places_.busy_hosts.erase(repeated.begin(), repeated.end());
  if (places_.here == 0 || !node_jobs_.jobs().empty()) {
    unfound_since_.reset();
  } else if (!unfound_since_) {
    unfound_since_ = tick.mono;
  }
}

// False: the job, or on how many nodes it runs, is not known yet.
bool SlurmObserver::TakeUsage(const evidence::ExecutionObservation& seen, std::string_view host,
                              base::WallTime at) {
  const auto report = ReadReport(seen);
  const auto key = Resolve(seen.key, at, host);
  if (!report || !key) return false;
  const auto identity = ParseIdentity(key->identity);
  if (!identity) return false;
  const RunId id = RunIdOf(identity->job_id, identity->submitted);
  const TrackedRun* run = table_->Find(id);
  if (run == nullptr) return false;
  if (IsForeign(report->node, run)) return true;
  // What one of several nodes saw must not stand for the whole: until it is known how many there
  // are, it waits.
  const std::uint32_t nodes = run->node_count;
  if (nodes == 0) return false;
  const std::string_view node = report->node.empty() ? host : std::string_view(report->node);
  auto sum = node_usage_.Add(id, node, nodes, seen.execution.used, at);
  if (!sum) return true;
  evidence::ExecutionObservation whole;
  whole.key = *key;
  whole.execution.source_type = evidence::SourceType::kSlurm;
  whole.execution.restart_count = run->restarts.value_or(0);
  whole.execution.used = *std::move(sum);
  whole.execution.updated_at = clock_.Now();
  outgoing_.Add(std::move(whole));
  return true;
}

void SlurmObserver::TakeStrays(const collect::Tick& tick) {
  if (outgoing_.is_long()) return;
  for (std::size_t left = std::min<std::size_t>(strays_.size(), 500); left > 0; --left) {
    StrayUsage stray = std::move(strays_.front());
    strays_.pop_front();
    if (TakeUsage(stray.seen, stray.host, stray.at) || tick.wall - stray.at > kStrayFor) continue;
    strays_.push_back(std::move(stray));
  }
}

void SlurmObserver::OnSampler(std::string_view host, base::WallTime at, bool reads_files) {
  NoteHeard(host, at);
  const auto known = readers_.find(host);
  if (!reads_files) {
    if (known != readers_.end()) readers_.erase(known);
  } else if (known != readers_.end()) {
    known->second = std::max(known->second, at);
  } else {
    readers_.emplace(host, at);
  }
}

// Every sampler gives a sign of life once a minute at least.
void SlurmObserver::UpdateReaders(base::WallTime now) {
  constexpr auto kSilent = 150s;
  std::erase_if(readers_, [&](const auto& reader) { return now - reader.second > kSilent; });
  reader_of_.clear();
  std::set<std::string> live;
  for (const auto& [host, heard] : readers_) {
    reader_of_.emplace(ShortName(host), host);
    live.insert(host);
  }
  router_->SetSamplers(std::move(live));
}

std::string SlurmObserver::ReaderOf(std::string_view node) const {
  const auto host = hosts_.find(node);
  const auto reader =
      reader_of_.find(ShortName(host == hosts_.end() ? node : std::string_view(host->second)));
  return reader == reader_of_.end() ? std::string() : reader->second;
}

}  // namespace expanse::schedulers::slurm
