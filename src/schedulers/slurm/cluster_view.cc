#include "schedulers/slurm/cluster_view.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "schedulers/slurm/commands/scontrol_cluster.h"

namespace expanse::schedulers::slurm {
namespace {

struct Counts {
  std::uint32_t queued = 0;
  std::uint32_t running = 0;
};

std::optional<base::WallTime> Time(std::int64_t s) {
  if (s == 0) return std::nullopt;
  return base::WallTime(std::chrono::seconds(s));
}

using Waiting = std::pair<RunId, const TrackedRun*>;

// The highest priority first, then who has waited longest.
bool ComesFirst(const Waiting& a, const Waiting& b) {
  const double of_a = a.second->waiting->priority;
  const double of_b = b.second->waiting->priority;
  if (of_a != of_b) return of_a > of_b;
  if (a.first.submitted_s != b.first.submitted_s) return a.first.submitted_s < b.first.submitted_s;
  return a.first < b.first;
}

evidence::PendingJob Describe(const JobTable& table, const Waiting& waiting) {
  const auto& [id, run] = waiting;
  const WaitingDetail& detail = *run->waiting;
  evidence::PendingJob job;
  job.key = table.KeyOf(id);
  job.native_id = detail.native_id;
  job.name = detail.name;
  job.user = table.names()[detail.user];
  job.account = table.names()[detail.account];
  job.partition = table.names()[run->partition];
  job.reason = detail.reason;
  job.submitted_at = Time(id.submitted_s);
  job.eligible_at = Time(detail.eligible_s);
  job.expected_start_at = Time(detail.expected_start_s);
  if (detail.priority >= 0) job.priority = detail.priority;
  job.requested = detail.requested;
  return job;
}

// "ReqNodeNotAvail, UnavailableNodes:n[1-9]" counts under its first word: the rest differs from job
// to job.
std::string_view ReasonWord(std::string_view reason) {
  return base::Trim(reason.substr(0, reason.find(',')));
}

}  // namespace

evidence::ClusterState MakeClusterState(const JobTable& table, const ClusterParts& parts) {
  evidence::ClusterState state;
  state.cluster = table.cluster();
  state.observed_at = parts.queue_at;
  state.nodes_observed_at = parts.nodes_at;
  state.partitions_observed_at = parts.partitions_at;
  state.nodes = parts.nodes;
  state.partitions = parts.partitions;
  AddUpNodes(state.nodes, &state.partitions);

  Counts all;
  std::vector<Counts> by_partition(table.names().size());
  std::map<std::string_view, std::uint32_t> by_reason;
  std::vector<Waiting> waiting;
  for (const auto& [id, run] : table.runs()) {
    if (run.gone_s != 0 || run.phase == RunPhase::kEnded) continue;
    if (run.phase == RunPhase::kRunning) {
      ++all.running;
      ++by_partition[run.partition].running;
      continue;
    }
    ++all.queued;
    ++by_partition[run.partition].queued;
    if (!run.waiting) continue;  // known from the last life, not read again yet
    ++by_reason[ReasonWord(run.waiting->reason)];
    waiting.emplace_back(id, &run);
  }
  state.pending_jobs = all.queued;
  state.running_jobs = all.running;
  for (const auto& [reason, count] : by_reason)
    state.pending_by_reason[reason.empty() ? "unknown" : std::string(reason)] += count;

  const std::size_t shown = std::min(parts.pending_shown, waiting.size());
  std::partial_sort(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(shown),
                    waiting.end(), ComesFirst);
  waiting.resize(shown);
  for (const Waiting& one : waiting) state.pending.push_back(Describe(table, one));

  std::map<std::string_view, Counts> by_name;
  for (std::uint32_t i = 0; i < by_partition.size(); ++i) {
    const Counts& counts = by_partition[i];
    if (counts.queued == 0 && counts.running == 0) continue;
    // A waiting job may be for any of several partitions; it counts in each.
    for (const std::string_view name : base::Split(table.names()[i], ',')) {
      by_name[name].queued += counts.queued;
      by_name[name].running += counts.running;
    }
  }
  for (evidence::ClusterPartition& partition : state.partitions) {
    const Counts& counts = by_name[partition.name];
    partition.pending_jobs = counts.queued;
    partition.running_jobs = counts.running;
  }
  return state;
}

}  // namespace expanse::schedulers::slurm
