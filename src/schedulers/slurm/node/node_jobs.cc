#include "schedulers/slurm/node/node_jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "collect/process/parse.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostEvents = 8192;
constexpr std::size_t kMostReadings = 20'000;
constexpr auto kReadAtLeast = 10s;
constexpr auto kReadAtMost = 1s;
constexpr int kReadsPerAge = 33;  // what is missing at the end is about 3 % of the whole
constexpr auto kCountEvery = 30s;
// A sampler that dies loses what came after the last report.
constexpr auto kReportAtMost = 1min;
constexpr auto kReportAtLeast = 10min;

// A cgroup that loses files while it is removed must not lose what was read before.
template <typename T>
void TakeLarger(std::optional<T>& known, const std::optional<T>& seen) {
  if (seen && (!known || *seen > *known)) known = seen;
}

}  // namespace

NodeJobs::NodeJobs(NodeJobsOptions options)
    : options_(std::move(options)),
      discovery_(options_.root),
      gpus_(options_.root),
      fds_(options_.open_files) {}

void NodeJobs::TakeEvent(const HookEvent& event) {
  const std::pair key(event.node, event.job_id);
  if (event.kind == HookKind::kEpilog) {
    begun_.erase(key);
    return;
  }
  if (begun_.size() >= kMostEvents && !begun_.contains(key)) {
    begun_.erase(
        std::ranges::min_element(begun_, {}, [](const auto& entry) { return entry.second.order; }));
  }
  begun_[key] = {event, events_++};
}

// A slurmd that is alone on its host has no name in its cgroups, but always one in its hooks.
const HookEvent* NodeJobs::EventOf(const Followed& followed) const {
  const NodeJob& job = followed.job;
  for (const auto& [key, granted] : begun_) {
    const HookEvent& event = granted.event;
    const bool same_job = job.id.job_id != 0 ? event.job_id == job.id.job_id
                                             : !event.sluid.empty() && event.sluid == job.id.sluid;
    if (same_job && (job.node.empty() || event.node.empty() || event.node == job.node)) {
      return &event;
    }
  }
  return nullptr;
}

// An Epilog says so too, where there is one.
void NodeJobs::ForgetEvents(const NodeJob& job) {
  std::erase_if(begun_, [&](const auto& entry) {
    return entry.second.event.job_id == job.id.job_id &&
           (job.node.empty() || entry.second.event.node == job.node);
  });
}

void NodeJobs::ApplyEvent(Followed& followed) const {
  if (followed.events == events_) return;  // none since the last time
  followed.events = events_;
  const HookEvent* event = EventOf(followed);
  if (event == nullptr) return;
  NodeJob& job = followed.job;
  job.started = event->at;
  job.id.job_id = event->job_id;
  if (job.id.sluid.empty()) job.id.sluid = event->sluid;
  if (event->uid) job.uid = event->uid;
  if (job.gpu_uuids.empty()) job.gpu_uuids = gpus_.UuidsOf(*event);
}

NodeJobs::Followed& NodeJobs::Follow(const JobCgroups& found, const collect::Tick& tick) {
  auto& followed = followed_[Key(found.node, found.job)];
  if (followed == nullptr || followed->cgroups != found.cgroups) {
    const bool is_new = followed == nullptr;
    auto fresh = std::make_unique<Followed>(options_.root, found.cgroups, &fds_);
    if (is_new) {
      fresh->job.id = found.job;
      fresh->job.node = found.node;
      fresh->job.uid = found.uid;
      if (scans_ > 0) fresh->job.started = tick.wall;
      fresh->found_at = tick.mono;
      fresh->next_report = tick.mono + kReportAtMost;
      fresh->next_read = tick.mono;
      fresh->next_count = tick.mono;
    } else {
      // One more hierarchy has it now: what is known of the job stays.
      fresh->job = std::move(followed->job);
      fresh->found_at = followed->found_at;
      fresh->next_report = followed->next_report;
      fresh->next_read = tick.mono;
      fresh->next_count = followed->next_count;
      fresh->was_read = followed->was_read;
      fresh->need_peak = followed->need_peak;
      fresh->cache_peak = followed->cache_peak;
      fresh->kernel_peak = followed->kernel_peak;
      fresh->usage = std::move(followed->usage);
      fresh->events = followed->events;
    }
    fresh->job.cgroups = found.cgroups;
    followed = std::move(fresh);
  }
  followed->present = true;
  return *followed;
}

void NodeJobs::Read(Followed& followed, const collect::Tick& tick) {
  const auto age = tick.mono - followed.found_at;
  followed.next_read =
      tick.mono + std::clamp<base::Duration>(age / kReadsPerAge, kReadAtMost, kReadAtLeast);
  const auto seen = followed.reader.Read();
  if (!seen) return;
  followed.was_read = true;
  followed.needs_roots = !seen->cpu_s || !seen->memory_need_bytes;
  evidence::Usage& usage = followed.usage;
  TakeLarger(usage.cpu_s, seen->cpu_s);
  TakeLarger(usage.cpu_user_s, seen->cpu_user_s);
  TakeLarger(usage.cpu_system_s, seen->cpu_system_s);
  TakeLarger(usage.io_read_bytes, seen->io_read_bytes);
  TakeLarger(usage.io_write_bytes, seen->io_write_bytes);
  TakeLarger(usage.oom_kills, seen->oom_kills);
  followed.need_peak = std::max(followed.need_peak, seen->memory_need_bytes.value_or(0));
  followed.cache_peak = std::max(followed.cache_peak, seen->memory_file_bytes.value_or(0));
  followed.kernel_peak = std::max(followed.kernel_peak, seen->memory_peak_bytes.value_or(0));
  // The kernel charges at once, but says only some seconds later whether it was for files.
  const std::uint64_t told =
      seen->memory_need_bytes.value_or(0) + seen->memory_file_bytes.value_or(0);
  const std::uint64_t charged = seen->memory_current_bytes.value_or(0);
  followed.untold = charged > told ? charged - told : 0;
  if (followed.need_peak > 0) {
    usage.memory_peak_bytes = followed.need_peak;
    usage.memory_peak_basis = "sampled";
  }
}

evidence::Usage NodeJobs::UsageOf(const Followed& followed, bool last) {
  evidence::Usage usage = followed.usage;
  // The kernel's peak misses nothing between two looks, but counts the page cache. Where that was
  // next to nothing in all of the job's life the peak is what it needed; else it is the largest
  // need that was seen. Not before the end: a stronger basis never gives way to a weaker one.
  const std::uint64_t cache = followed.cache_peak + followed.untold;
  if (last && usage.memory_peak_bytes && cache <= followed.kernel_peak / 50) {
    usage.memory_peak_bytes = std::max(*usage.memory_peak_bytes, followed.kernel_peak);
    usage.memory_peak_basis = "cgroup_peak";
  }
  return usage;
}

void NodeJobs::LookAtProcesses(Followed& followed, const collect::Tick& tick) {
  // A job's first steps come within seconds.
  const bool is_young = tick.mono - followed.found_at < kReadAtLeast;
  followed.next_count = tick.mono + (is_young ? base::Duration(kReadAtMost) : kCountEvery);
  NodeJob& job = followed.job;
  job.tasks = CountTasks(options_.root, followed.cgroups);
  job.roots.clear();
  if (!followed.needs_roots) return;
  for (const pid_t pid : StepLeaders(options_.root, followed.cgroups)) {
    const auto text =
        base::ReadFile(base::JoinPath(options_.root, fmt::format("proc/{}/stat", pid)), 4096);
    const auto stat = text ? collect::ParseProcStat(*text) : std::nullopt;
    if (stat) job.roots.push_back({.pid = pid, .start_ticks = stat->start});
  }
}

void NodeJobs::Report(const Followed& followed, bool last) {
  if (!followed.was_read) return;
  if (readings_.size() >= kMostReadings) {
    // Those of running jobs come again.
    const auto running = std::ranges::find(readings_, false, &JobReading::last);
    readings_.erase(running == readings_.end() ? readings_.begin() : running);
  }
  readings_.push_back({.id = followed.job.id,
                       .node = followed.job.node,
                       .usage = UsageOf(followed, last),
                       .last = last});
}

void NodeJobs::DropReadings(std::size_t count) {
  readings_.erase(readings_.begin(),
                  readings_.begin() + std::ptrdiff_t(std::min(count, readings_.size())));
}

void NodeJobs::Search(const collect::Tick& tick) {
  if (scans_ > 0 && tick.mono < next_search_) return;
  next_search_ = tick.mono + options_.search_interval;
  const auto found = discovery_.FindRoots();
  trouble_ = found ? "" : found.error().message;
}

void NodeJobs::Scan(const collect::Tick& tick) {
  Search(tick);
  for (auto& [key, followed] : followed_) followed->present = false;
  for (const JobCgroups& found : discovery_.ListJobs()) {
    Followed& followed = Follow(found, tick);
    ApplyEvent(followed);
    if (tick.mono >= followed.next_read) Read(followed, tick);
    if (tick.mono >= followed.next_count) LookAtProcesses(followed, tick);
    if (tick.mono >= followed.next_report) {
      Report(followed, /*last=*/false);
      const auto age = tick.mono - followed.found_at;
      followed.next_report =
          tick.mono + std::clamp<base::Duration>(age / 4, kReportAtMost, kReportAtLeast);
    }
  }
  std::erase_if(followed_, [&](const auto& entry) {
    if (entry.second->present) return false;
    Report(*entry.second, /*last=*/true);
    ForgetEvents(entry.second->job);
    return true;
  });
  jobs_.clear();
  for (const auto& [key, followed] : followed_) jobs_.push_back(followed->job);
  const bool blind = jobs_.empty() && figures().stepds_elsewhere > 0;
  if (!blind) blind_since_.reset();
  if (blind && !blind_since_) blind_since_ = tick.mono;
  blind_for_ = blind ? tick.mono - *blind_since_ : 0ns;
  ++scans_;
}

std::size_t NodeJobs::jobs_without_tasks() const {
  return std::size_t(std::ranges::count(jobs_, std::optional<std::size_t>(0), &NodeJob::tasks));
}

}  // namespace expanse::schedulers::slurm
