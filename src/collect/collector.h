// A source of samples. The daemon owns the collectors and calls each one from one thread, a tick at
// a time; the core knows no source. To add one: a folder here with a Collector, a line in the
// daemon's wiring, its metrics in evidence/metric_catalogue.cc, its row in docs/metrics.md.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "evidence/records.h"

namespace expanse::collect {

// A running workload that samples are to be attributed to. A scheduler adapter keeps the list.
struct TrackedWorkload {
  evidence::ExecutionKey key;
  // The node that it runs on, in the scheduler's words; empty: this host. Several nodes of a
  // scheduler may be on one host, and an execution on more than one of them: then it is in the list
  // once for each.
  std::string node;
  // Directories of the workload's cgroups, absolute, one per hierarchy (v1) or one (v2). Empty: the
  // workload has none of its own and is followed by its process tree.
  std::vector<std::string> cgroups;
  // Roots of the process tree, and their start times in clock ticks since boot (field 22 of
  // /proc/PID/stat), so that a recycled pid is not taken for the workload.
  struct Root {
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;
  };
  std::vector<Root> roots;
  uid_t uid = 0;
  base::WallTime started{};
  // GPUs granted by the scheduler, by UUID; empty: unknown.
  std::vector<std::string> gpu_uuids;
};

// What tells the tracked workloads of a host apart, for state that is kept from tick to tick.
struct WorkloadKey {
  explicit WorkloadKey(const TrackedWorkload& workload)
      : source_type(workload.key.source_type),
        identity(workload.key.identity),
        node(workload.node) {}
  auto operator<=>(const WorkloadKey&) const = default;

  evidence::SourceType source_type;
  std::string identity;
  std::string node;
};

struct Tick {
  base::WallTime wall{};
  base::MonoTime mono{};
};

// Takes what a collector measured in one tick. Implemented by the daemon's sampler.
class SampleSink {
 public:
  virtual ~SampleSink() = default;
  // One point of one series; `workload` null: the compute itself. The node of a workload that has
  // one takes the place of the series' own.
  virtual void Add(const TrackedWorkload* workload, const evidence::SeriesColumn& series,
                   double value) = 0;
};

// Not thread-safe. Start/Collect/Stop are the fixed frame; a source implements the ...Impl.
class Collector {
 public:
  virtual ~Collector() = default;
  std::string_view name() const { return name_; }

  // False from Start: the source is not there (no GPU, no permission); health() says why, and
  // Collect tries again at most once a minute.
  bool Start() { return started_ = StartImpl(); }
  // Never blocks on anything but local files; costs are measured by the caller.
  void Collect(const Tick& tick, const std::vector<TrackedWorkload>& workloads, SampleSink& sink) {
    if (!started_ &&
        (tick.mono - last_try_ >= std::chrono::minutes(1) || last_try_ == base::MonoTime{})) {
      last_try_ = tick.mono;
      started_ = StartImpl();
    }
    if (started_) CollectImpl(tick, workloads, sink);
  }
  void Stop() {
    StopImpl();
    started_ = false;
  }
  // ok, degraded or failed with its reason, as of the last tick.
  virtual evidence::HealthRow health() const = 0;

 protected:
  explicit Collector(std::string name) : name_(std::move(name)) {}
  virtual bool StartImpl() = 0;
  virtual void CollectImpl(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
                           SampleSink& sink) = 0;
  virtual void StopImpl() {}

 private:
  std::string name_;
  bool started_ = false;
  base::MonoTime last_try_{};
};

}  // namespace expanse::collect
