#include "collect/process/owner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/files.h"
#include "collect/process/parse.h"

namespace expanse::collect {
namespace {

constexpr int kDeepestTree = 256;

std::optional<ProcStat> StatOf(const std::string& root, pid_t pid) {
  const auto text = base::ReadFile(base::JoinPath(root, fmt::format("proc/{}/stat", pid)));
  return text ? ParseProcStat(*text) : std::nullopt;
}

bool IsBelow(std::string_view directory, std::string_view ancestor) {
  return directory.starts_with(ancestor) &&
         (directory.size() == ancestor.size() || directory[ancestor.size()] == '/');
}

}  // namespace

OwnerFinder::OwnerFinder(std::string root) : root_(std::move(root)) {
  if (auto hierarchy = DetectHierarchy(root_)) hierarchy_ = *std::move(hierarchy);
}

const TrackedWorkload* OwnerFinder::ByCgroup(pid_t pid,
                                             const std::vector<TrackedWorkload>& workloads) const {
  if (hierarchy_.version == CgroupVersion::kNone) return nullptr;
  const auto text = base::ReadFile(base::JoinPath(root_, fmt::format("proc/{}/cgroup", pid)));
  if (!text) return nullptr;
  const auto directories = CgroupDirectories(hierarchy_, ParseProcCgroup(*text));
  const TrackedWorkload* owner = nullptr;
  std::size_t longest = 0;  // the innermost, where workloads are nested
  for (const TrackedWorkload& workload : workloads) {
    for (const std::string& cgroup : workload.cgroups) {
      const bool inside = std::ranges::any_of(
          directories, [&](const std::string& d) { return IsBelow(d, cgroup); });
      if (inside && cgroup.size() > longest) {
        longest = cgroup.size();
        owner = &workload;
      }
    }
  }
  return owner;
}

const TrackedWorkload* OwnerFinder::ByAncestors(
    pid_t pid, const std::vector<TrackedWorkload>& workloads) const {
  for (int step = 0; step < kDeepestTree && pid > 1; ++step) {
    const auto stat = StatOf(root_, pid);
    if (!stat) return nullptr;
    for (const TrackedWorkload& workload : workloads) {
      for (const auto& root : workload.roots) {
        if (root.pid == pid && (root.start_ticks == 0 || root.start_ticks == stat->start))
          return &workload;
      }
    }
    pid = stat->parent;
  }
  return nullptr;
}

const TrackedWorkload* OwnerFinder::Find(pid_t pid, const std::vector<TrackedWorkload>& workloads) {
  const auto stat = StatOf(root_, pid);
  if (!stat) return nullptr;
  const auto known = known_.find(pid);
  if (known != known_.end() && known->second.start == stat->start) {
    known->second.asked = true;
    const auto same = std::ranges::find_if(workloads, [&](const TrackedWorkload& workload) {
      return WorkloadKey(workload) == known->second.key;
    });
    if (same != workloads.end()) return &*same;
  }
  const TrackedWorkload* owner = ByCgroup(pid, workloads);
  if (owner == nullptr) owner = ByAncestors(pid, workloads);
  if (owner != nullptr) known_.insert_or_assign(pid, Known{stat->start, WorkloadKey(*owner), true});
  return owner;
}

void OwnerFinder::Sweep() {
  std::erase_if(known_, [](const auto& entry) { return !entry.second.asked; });
  for (auto& [pid, known] : known_) known.asked = false;
}

}  // namespace expanse::collect
