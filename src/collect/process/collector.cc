#include "collect/process/collector.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "collect/cgroup/procs.h"
#include "collect/cgroup/reader.h"
#include "collect/health.h"

namespace expanse::collect {
namespace {

// A program's name is any bytes that it likes; the planes refuse a batch with a source that is not
// printable text, and with it all else that was measured of the workload.
std::string SourceOf(const std::string& program) {
  std::string source = "process:" + base::ToValidUtf8(program);
  std::replace_if(
      source.begin(), source.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return source;
}

}  // namespace

ProcessCollector::ProcessCollector(HostView view)
    : Collector("process"), view_(std::move(view)), series_("process", view_.node) {}

bool ProcessCollector::StartImpl() {
  // /proc/self is there for everybody, whatever of the others is hidden.
  started_ = base::Exists(base::JoinPath(view_.root, "proc/stat"));
  if (started_) table_ = std::make_unique<ProcessTable>(view_.root, view_.open_files);
  return started_;
}

void ProcessCollector::CollectImpl(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
                                   SampleSink& sink) {
  checked_at_ = tick.wall;
  inexact_ = trees_ = processes_ = 0;
  table_->NextRound(tick.mono);
  hidden_ = !table_->SeesOthers();
  for (const TrackedWorkload& workload : workloads) {
    Followed& followed = Follow(tick, workload);
    std::vector<pid_t> pids;
    if ((followed.needs_cpu || followed.needs_memory) && !workload.roots.empty()) {
      pids = FollowTree(tick, workload, followed, sink);
    }
    if (!followed.cgroups.empty()) pids = CgroupPids(view_.root, followed.cgroups);
    EmitTop(tick, workload, pids, followed, sink);
  }
  std::erase_if(followed_, [&](const auto& entry) {
    return tick.mono - entry.second->seen_at >= kWorkloadForgotten;
  });
}

ProcessCollector::Followed& ProcessCollector::Follow(const Tick& tick,
                                                     const TrackedWorkload& workload) {
  auto& followed = followed_[WorkloadKey(workload)];
  const auto same_root = [](const TrackedWorkload::Root& a, const TrackedWorkload::Root& b) {
    return a.pid == b.pid && a.start_ticks == b.start_ticks;
  };
  if (followed == nullptr || followed->cgroups != workload.cgroups ||
      !std::ranges::equal(followed->tree.roots(), workload.roots, same_root)) {
    followed = std::make_unique<Followed>(workload.roots);
    followed->cgroups = workload.cgroups;
    if (!workload.cgroups.empty()) {
      // What its cgroups measure is the cgroup collector's; a controller may not be enabled there.
      const auto usage = ReadCgroup(view_.root, workload.cgroups);
      followed->needs_cpu = usage && !usage->cpu_s;
      followed->needs_memory = usage && !usage->memory_need_bytes;
    }
  }
  followed->seen_at = tick.mono;
  return *followed;
}

std::vector<pid_t> ProcessCollector::FollowTree(const Tick& tick, const TrackedWorkload& workload,
                                                Followed& followed, SampleSink& sink) {
  const auto usage = followed.tree.Update(*table_);
  if (!usage) return {};  // it ended; its scheduler says so soon
  ++trees_;
  if (!usage->memory_exact) ++inexact_;
  const auto rate = [&](std::string_view metric, double counter) {
    auto per_second = followed.rates[metric].Update(counter, tick.mono);
    if (!per_second && followed.first)
      per_second = RateSinceStart(counter, workload.started, tick.wall);
    if (per_second) sink.Add(&workload, series_[metric], *per_second);
  };
  if (followed.needs_cpu) {
    rate("cpu", usage->cpu_s);
    rate("cpu-user", usage->cpu_user_s);
    rate("cpu-system", usage->cpu_system_s);
    sink.Add(&workload, series_["pids"], static_cast<double>(usage->threads));
  }
  if (followed.needs_memory && usage->memory_known) {
    sink.Add(&workload, series_["memory"], static_cast<double>(usage->memory_need_bytes));
  }
  followed.first = false;
  std::vector<pid_t> pids;
  for (const auto& [pid, start] : followed.tree.members()) pids.push_back(pid);
  return pids;
}

void ProcessCollector::EmitTop(const Tick& tick, const TrackedWorkload& workload,
                               const std::vector<pid_t>& pids, Followed& followed,
                               SampleSink& sink) {
  processes_ += pids.size();
  for (const ProgramUsage& program : followed.top.Update(*table_, pids, tick.mono)) {
    auto& series = followed.programs[program.name];
    if (series == nullptr) {
      series = std::make_unique<SeriesTable>(SourceOf(program.name), view_.node);
    }
    sink.Add(&workload, (*series)["process-cpu"], program.cpu_cores);
    sink.Add(&workload, (*series)["process-memory"], static_cast<double>(program.resident_bytes));
    sink.Add(&workload, (*series)["process-count"], static_cast<double>(program.processes));
  }
}

evidence::HealthRow ProcessCollector::health() const {
  evidence::HealthRow row;
  row.collector = name();
  row.checked_at = checked_at_;
  row.status = evidence::HealthStatus::kOk;
  row.figures = {{"trees", static_cast<double>(trees_)},
                 {"processes", static_cast<double>(processes_)},
                 {"inexact", static_cast<double>(inexact_)}};
  if (!started_) {
    row.status = evidence::HealthStatus::kFailed;
    row.reason = "not_found";
    row.message = "there is no /proc";
    return row;
  }
  std::map<std::string, std::string> missing;
  if (hidden_) missing.emplace("processes of other users", "no_permission");
  if (inexact_ > 0) {
    missing.emplace(
        fmt::format("shared memory of {} executions (theirs is an upper bound)", inexact_),
        "no_permission");
  }
  if (!missing.empty()) SetDegraded(row, missing);
  return row;
}

}  // namespace expanse::collect
