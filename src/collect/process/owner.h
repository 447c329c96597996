// Which workload a process belongs to: by its cgroup, else by its ancestors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collect/cgroup/hierarchy.h"
#include "collect/collector.h"

namespace expanse::collect {

// Not thread-safe. For a handful of processes (those on GPUs): a few reads per process and call.
class OwnerFinder {
 public:
  explicit OwnerFinder(std::string root);

  // Null when the process is gone or of none of them. What was found is remembered, so that a
  // process whose parents have ended since keeps its workload.
  const TrackedWorkload* Find(pid_t pid, const std::vector<TrackedWorkload>& workloads);
  // Forgets what was not asked for since the last call.
  void Sweep();

 private:
  struct Known {
    std::uint64_t start = 0;
    WorkloadKey key;
    bool asked = true;
  };
  const TrackedWorkload* ByCgroup(pid_t pid, const std::vector<TrackedWorkload>& workloads) const;
  const TrackedWorkload* ByAncestors(pid_t pid,
                                     const std::vector<TrackedWorkload>& workloads) const;

  std::string root_;
  CgroupHierarchy hierarchy_;
  std::map<pid_t, Known> known_;
};

}  // namespace expanse::collect
