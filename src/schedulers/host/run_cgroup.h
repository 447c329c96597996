// A cgroup of its own for one run, where the kernel lets us: v2 beside our own cgroup (whose
// controllers are delegated there), v1 below our own in each hierarchy that measures something.
// Limits of whoever started us keep holding: where our own v2 cgroup has some, none is made beside
// it. Formats: cgroups(7).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/files.h"
#include "base/result.h"
#include "base/time.h"
#include "collect/cgroup/hierarchy.h"

namespace expanse::schedulers::host {

// Names of our cgroups begin with this; the run id follows.
inline constexpr std::string_view kRunCgroupPrefix = "expanse-";

// Directories under which a v2 cgroup may be made for us, best first.
std::vector<std::string> V2Parents(const std::string& mount, const std::string& own_path,
                                   bool root);

// True if a v2 cgroup limits memory, CPU time or which CPUs are used. Not the number of processes:
// every service has such a limit (systemd's TasksMax), and it is no reason to go unmeasured.
bool HasLimits(const std::string& directory);

// Owns the directories: they are removed on destruction unless a process is still in them.
class RunCgroup {
 public:
  // Fails with cgroup.none (no cgroups here), cgroup.no_permission, or cgroup.memory_limit when a
  // limit is asked for that cannot be set.
  static base::Result<RunCgroup> Create(std::string_view run_id,
                                        std::optional<base::Bytes> memory_limit);
  RunCgroup(RunCgroup&&) noexcept = default;
  RunCgroup& operator=(RunCgroup&&) = delete;
  ~RunCgroup() { Remove(); }

  // One directory (v2) or one per hierarchy (v1).
  const std::vector<std::string>& directories() const { return directories_; }
  // Descriptors of their cgroup.procs, close-on-exec. A process that writes "0" to each moves
  // itself.
  std::vector<int> join_fds() const;
  // Processes in it now, of which there may be many.
  std::vector<pid_t> Members() const;
  // rmdir; what still has processes stays and is left to RemoveLeftovers.
  void Remove();

 private:
  RunCgroup() = default;
  base::Status Add(const std::string& parent, std::string_view name);
  std::vector<std::string> directories_;
  std::vector<base::UniqueFd> join_fds_;
  std::vector<base::UniqueFd> locks_;  // shared locks on directories_
};

// Removes cgroups of runs that are over, found beside the given ones. Those that a RunCgroup owns
// stay, and those younger than a minute, which may be one's that is about to begin.
void RemoveLeftoverCgroups(const std::vector<std::string>& directories, base::WallTime now);

}  // namespace expanse::schedulers::host
