// Where cgroups are mounted and which ones a process is in.
// Formats: cgroups(7), proc(5) (/proc/PID/cgroup, /proc/PID/mounts).
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::collect {

enum class CgroupVersion { kNone, kV1, kV2 };

// Mount points as on the host, without the root prefix.
struct CgroupHierarchy {
  // kV1 also where a v2 hierarchy without controllers is mounted beside (systemd's "hybrid" mode).
  CgroupVersion version = CgroupVersion::kNone;
  std::string v2_mount;
  std::map<std::string, std::string, std::less<>> v1_mounts;  // controller -> mount point
};

// Text of /proc/mounts. A hierarchy that is mounted in several places counts at the first.
CgroupHierarchy ParseCgroupMounts(std::string_view mounts);
// Reads `root`/proc/mounts. Fails only if that cannot be read; no cgroups at all is kNone.
base::Result<CgroupHierarchy> DetectHierarchy(const std::string& root);

// A line of /proc/PID/cgroup: "4:memory:/a/b" (v1), "0::/a/b" (v2).
struct CgroupMembership {
  std::vector<std::string> controllers;  // none: v2; "name=systemd" is kept as written
  std::string path;
  bool deleted = false;  // the directory is gone, the process is the last one in it
};
// Malformed lines are left out.
std::vector<CgroupMembership> ParseProcCgroup(std::string_view text);

// Directories of the process's cgroups as absolute paths on the host (root prefix not included),
// those of v2 or else of the v1 controllers that we measure (cpu, cpuacct, memory, blkio, pids),
// each once. kNotFound when there is no such process.
// Hierarchies in whose root it is are left out: what those count is not the process's own.
base::Result<std::vector<std::string>> CgroupsOfPid(const std::string& root, pid_t pid);
std::vector<std::string> CgroupDirectories(const CgroupHierarchy& hierarchy,
                                           const std::vector<CgroupMembership>& memberships);

}  // namespace expanse::collect
