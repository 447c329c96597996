// Samples of the executions that have cgroups of their own, v1 or v2. Source "cgroup". Which
// cgroups those are is the scheduler adapter's business (TrackedWorkload::cgroups).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/cgroup/reader.h"
#include "collect/collector.h"
#include "collect/series.h"

namespace expanse::collect {

// Not thread-safe. Costs 7 to 11 system calls per workload and tick.
class CgroupCollector final : public Collector {
 public:
  explicit CgroupCollector(HostView view);
  // disabled (not_found): this host has no cgroups. degraded: no_permission where we may not read a
  // workload's cgroup; not_found when for 20 s none of the running workloads' cgroups
  // was there (a single one that is gone is how a workload ends).
  evidence::HealthRow health() const override;

 protected:
  bool StartImpl() override;
  void CollectImpl(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
                   SampleSink& sink) override;
  void StopImpl() override { followed_.clear(); }

 private:
  struct Followed {
    Followed(const std::string& root, const std::vector<std::string>& cgroups, FdBudget* fds)
        : paths(cgroups), reader(root, cgroups, fds) {}
    std::vector<std::string> paths;
    CgroupReader reader;
    RateTable rates;
    bool first = true;
    base::MonoTime seen_at{};
  };
  Followed& Follow(const Tick& tick, const TrackedWorkload& workload);
  void Emit(const Tick& tick, const TrackedWorkload& workload, const CgroupUsage& usage,
            Followed& followed, SampleSink& sink);

  HostView view_;
  FdBudget fds_;
  SeriesTable series_;
  std::map<WorkloadKey, std::unique_ptr<Followed>> followed_;

  CgroupVersion version_ = CgroupVersion::kNone;
  base::WallTime checked_at_{};
  std::size_t read_ = 0;                       // workloads read in the last tick
  std::size_t vanished_ = 0;                   // … whose cgroup was gone
  std::size_t denied_ = 0;                     // … that we may not read
  base::Duration empty_for_{};                 // as of the last tick
  std::optional<base::MonoTime> empty_since_;  // there were workloads and none could be read
};

}  // namespace expanse::collect
