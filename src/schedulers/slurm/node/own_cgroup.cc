#include "schedulers/slurm/node/own_cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "base/files.h"
#include "collect/cgroup/hierarchy.h"
#include "schedulers/slurm/node/cgroup_discovery.h"

namespace expanse::schedulers::slurm {
namespace {

base::Status Enter(const std::string& directory, pid_t pid) {
  const std::string path = base::JoinPath(directory, "cgroup.procs");
  base::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return base::FailErrno(errno, "open " + path);
  return base::WriteFd(file.get(), fmt::format("{}\n", pid));
}

}  // namespace

base::Result<bool> LeaveJobCgroups(const std::string& root, pid_t pid) {
  EXPANSE_ASSIGN_OR_RETURN(const collect::CgroupHierarchy hierarchy,
                           collect::DetectHierarchy(root));
  EXPANSE_ASSIGN_OR_RETURN(
      const std::string text,
      base::ReadFile(base::JoinPath(root, fmt::format("proc/{}/cgroup", pid)), 64U << 10));
  bool was_in_one = false;
  for (const collect::CgroupMembership& membership : collect::ParseProcCgroup(text)) {
    if (!ParseJobPath(membership.path)) continue;
    std::string mount = membership.controllers.empty() ? hierarchy.v2_mount : "";
    for (const std::string& controller : membership.controllers) {
      const auto known = hierarchy.v1_mounts.find(controller);
      // Slurm keeps track of processes by the freezer, which is mounted beside those we measure.
      mount = known != hierarchy.v1_mounts.end() ? known->second : "/sys/fs/cgroup/" + controller;
    }
    if (mount.empty()) continue;
    was_in_one = true;
    EXPANSE_RETURN_IF_ERROR(Enter(base::JoinPath(root, mount), pid));
  }
  return was_in_one;
}

}  // namespace expanse::schedulers::slurm
