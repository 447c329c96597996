#include "collect/cgroup/procs.h"

#include <sys/stat.h>

#include "base/files.h"
#include "collect/kernel_file.h"

namespace expanse::collect {
namespace {

constexpr int kDeepest = 5;  // a Slurm job, its step, user, task; and one to spare

void AddPids(const std::string& directory, int depth, std::size_t limit, std::string& buffer,
             std::vector<pid_t>& pids) {
  KernelFile procs(base::JoinPath(directory, "cgroup.procs"), nullptr,
                   KernelFile::Shape::kManyRecords);
  if (auto text = procs.Read(buffer)) {
    std::string_view line;
    while (NextLine(*text, line) && pids.size() < limit) {
      const auto pid = NextNumber(line);
      if (pid && *pid > 0 && *pid <= 1U << 22)
        pids.push_back(static_cast<pid_t>(*pid));  // PID_MAX_LIMIT
    }
  }
  struct stat info{};
  // A link count of 2 says, without a listing, that there is no directory below.
  if (depth == kDeepest || ::stat(directory.c_str(), &info) != 0 || info.st_nlink == 2) return;
  const auto names = base::ListDirectory(directory);
  if (!names) return;
  for (const std::string& name : *names) {
    if (pids.size() >= limit) return;
    const std::string below = base::JoinPath(directory, name);
    if (::stat(below.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      AddPids(below, depth + 1, limit, buffer, pids);
  }
}

}  // namespace

std::vector<pid_t> CgroupPids(const std::string& root, const std::vector<std::string>& paths,
                              std::size_t limit) {
  std::vector<pid_t> pids;
  std::string buffer;
  for (const std::string& path : paths) {
    AddPids(base::JoinPath(root, path), 0, limit, buffer, pids);
    if (!pids.empty()) break;
  }
  return pids;
}

}  // namespace expanse::collect
