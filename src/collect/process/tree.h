// The processes of one workload that has no cgroup, followed from their roots: children as they are
// born, orphans that were seen before their parent ended, and what those consumed that have ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/collector.h"
#include "collect/process/table.h"

namespace expanse::collect {

struct ProcessUsage {
  double cpu_s = 0;  // since the workload began; never goes backwards
  double cpu_user_s = 0;
  double cpu_system_s = 0;
  std::uint64_t memory_need_bytes = 0;  // anonymous and shared memory of those alive
  bool memory_known = false;            // false: no process could be read
  bool memory_exact = true;  // false: an upper bound, shared pages are counted more than once
  std::size_t processes = 0;
  std::uint64_t threads = 0;
};

// Not thread-safe. One per workload.
//
// CPU time: a process that has ended shows in the children's time of the one that waited for it.
// What its parent did not take over (it ignores SIGCHLD, or the process was an orphan) is kept
// here, so that the sum is right to within what such a process used since it was last seen.
class ProcessTree {
 public:
  explicit ProcessTree(std::vector<TrackedWorkload::Root> roots) : roots_(std::move(roots)) {}

  // Looks through all of `table`'s processes. kNotFound (process.gone) when no process of the tree
  // is left; the usage so far is kept and returned by a later call if one comes back.
  base::Result<ProcessUsage> Update(ProcessTable& table);
  // The pids of the tree as of the last Update.
  const std::map<pid_t, std::uint64_t>& members() const { return members_; }
  const std::vector<TrackedWorkload::Root>& roots() const { return roots_; }

 private:
  struct Times {
    pid_t parent = 0;
    std::uint64_t user = 0;  // own and waited-for children's ticks
    std::uint64_t system = 0;
    std::uint64_t children = 0;  // the waited-for part
  };
  void FindMembers(ProcessTable& table);
  void KeepTimesOfEnded(const std::map<pid_t, Times>& now);
  void AddMemory(ProcessTable& table, ProcessUsage& usage) const;

  std::vector<TrackedWorkload::Root> roots_;
  std::map<pid_t, std::uint64_t> members_;  // pid -> start ticks
  std::map<pid_t, Times> times_;            // as of the last Update
  std::uint64_t kept_user_ = 0;             // ticks of ended processes that no one took over
  std::uint64_t kept_system_ = 0;
  std::uint64_t highest_ = 0;  // ticks: sum as of the last Update
};

// One reading for those who need just that (what ended processes used is known only as far as their
// parents waited for them).
base::Result<ProcessUsage> ReadProcessTree(const std::string& root,
                                           const std::vector<TrackedWorkload::Root>& roots);

}  // namespace expanse::collect
