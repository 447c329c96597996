// The processes in a cgroup and the ones below it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace expanse::collect {

// Pids in the first of `paths` (as in TrackedWorkload::cgroups) that lists any, sub-cgroups
// included, at most `limit`; the kernel's order. Empty when there are none, or none that we may
// see.
std::vector<pid_t> CgroupPids(const std::string& root, const std::vector<std::string>& paths,
                              std::size_t limit = 4096);

}  // namespace expanse::collect
