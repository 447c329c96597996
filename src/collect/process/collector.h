// Samples from /proc/PID: cpu and memory of executions that have no cgroup of their own (source
// "process"), and the few programs of every execution that use most (source "process:NAME").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collect/collector.h"
#include "collect/process/table.h"
#include "collect/process/top.h"
#include "collect/process/tree.h"
#include "collect/series.h"

namespace expanse::collect {

// Not thread-safe. One system call per process of a workload and tick; the other processes of the
// host are only looked at when some workload has no cgroup.
class ProcessCollector final : public Collector {
 public:
  explicit ProcessCollector(HostView view);
  // degraded (no_permission): processes of other users are hidden, or their shared memory cannot be
  // told from their own, so that a workload's memory is an upper bound. failed (not_found): no
  // /proc.
  evidence::HealthRow health() const override;

 protected:
  bool StartImpl() override;
  void CollectImpl(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
                   SampleSink& sink) override;
  void StopImpl() override { followed_.clear(); }

 private:
  struct Followed {
    explicit Followed(std::vector<TrackedWorkload::Root> roots) : tree(std::move(roots)) {}
    std::vector<std::string> cgroups;
    bool needs_cpu = true;     // no cgroup of it tells the cpu time
    bool needs_memory = true;  // … or the memory
    ProcessTree tree;
    TopPrograms top;
    RateTable rates;
    std::map<std::string, std::unique_ptr<SeriesTable>, std::less<>> programs;
    bool first = true;
    base::MonoTime seen_at{};
  };
  Followed& Follow(const Tick& tick, const TrackedWorkload& workload);
  std::vector<pid_t> FollowTree(const Tick& tick, const TrackedWorkload& workload,
                                Followed& followed, SampleSink& sink);
  void EmitTop(const Tick& tick, const TrackedWorkload& workload, const std::vector<pid_t>& pids,
               Followed& followed, SampleSink& sink);

  HostView view_;
  std::unique_ptr<ProcessTable> table_;
  SeriesTable series_;
  std::map<WorkloadKey, std::unique_ptr<Followed>> followed_;

  base::WallTime checked_at_{};
  bool started_ = false;
  bool hidden_ = false;        // processes of others, by a mount option
  std::size_t inexact_ = 0;    // workloads whose memory is an upper bound
  std::size_t trees_ = 0;      // workloads followed by their processes, in the last tick
  std::size_t processes_ = 0;  // of all workloads, in the last tick
};

}  // namespace expanse::collect
