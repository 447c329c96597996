#include "schedulers/host/run_cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"

namespace expanse::schedulers::host {
namespace {

// v1 hierarchies that measure or limit something for us; without the last three a run is still
// whole.
constexpr std::array<std::string_view, 5> kV1Controllers = {"memory", "cpuacct", "blkio", "pids",
                                                            "freezer"};
constexpr std::chrono::minutes kLeftoverAge{1};

base::Status WriteControl(const std::string& path, std::string_view value) {
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return base::FailErrno(errno, path);
  // One write: the kernel parses what one call brings.
  if (::write(fd.get(), value.data(), value.size()) < 0) return base::FailErrno(errno, path);
  return {};
}

// One by one: the kernel refuses all of what one write brings when it lacks one of them.
void HandDownControllers(const std::string& directory) {
  for (const char* controller : {"+memory", "+cpu", "+pids", "+io"})
    (void)WriteControl(base::JoinPath(directory, "cgroup.subtree_control"), controller);
}

std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

bool HasWord(const std::string& path, std::string_view word) {
  const auto text = base::ReadFile(path, 4096);
  if (!text) return false;
  const auto words = base::SplitSpaces(*text);
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The path of `controller` ("" for v2) among a process's memberships.
std::optional<std::string> OwnPath(const std::vector<collect::CgroupMembership>& memberships,
                                   std::string_view controller) {
  for (const auto& membership : memberships) {
    const auto& names = membership.controllers;
    const bool found = controller.empty()
                           ? names.empty()
                           : std::find(names.begin(), names.end(), controller) != names.end();
    if (found && !membership.deleted) return membership.path;
  }
  return std::nullopt;
}

std::string Directory(const std::string& mount, const std::string& path) {
  return path == "/" ? mount : base::JoinPath(mount, path);
}

base::Status LimitMemory(const std::string& directory, bool v2, base::Bytes limit) {
  const std::string value = std::to_string(limit.count);
  if (v2) {
    EXPANSE_RETURN_IF_ERROR(WriteControl(base::JoinPath(directory, "memory.max"), value));
    (void)WriteControl(base::JoinPath(directory, "memory.swap.max"), "0");
    (void)WriteControl(base::JoinPath(directory, "memory.oom.group"), "1");
    return {};
  }
  EXPANSE_RETURN_IF_ERROR(WriteControl(base::JoinPath(directory, "memory.limit_in_bytes"), value));
  // Memory and swap together; the file is missing where swap is not accounted for.
  (void)WriteControl(base::JoinPath(directory, "memory.memsw.limit_in_bytes"), value);
  return {};
}

}  // namespace

std::vector<std::string> V2Parents(const std::string& mount, const std::string& own_path,
                                   bool root) {
  std::vector<std::string> parents;
  // A cgroup with processes in it cannot hand controllers down, so ours is the one beside it.
  if (own_path != "/") parents.push_back(Directory(mount, ParentOf(own_path)));
  if (root) parents.push_back(base::JoinPath(mount, "expanse"));
  return parents;
}

bool HasLimits(const std::string& directory) {
  const auto text = [&](const char* name) {
    const auto read = base::ReadFile(base::JoinPath(directory, name), 4096);
    return read ? std::string(base::Trim(*read)) : std::string();
  };
  for (const char* name : {"memory.max", "memory.high", "memory.swap.max", "cpu.max"}) {
    const std::string limit = text(name);
    if (!limit.empty() && !limit.starts_with("max")) return true;
  }
  return !text("cpuset.cpus").empty() || !text("cpuset.mems").empty();
}

// Whether a process that moves from `own_path` to below `parent` gets rid of a limit.
bool LeavesLimits(const std::string& mount, const std::string& own_path,
                  const std::string& parent) {
  for (std::string path = own_path; path != "/"; path = ParentOf(path)) {
    const std::string directory = Directory(mount, path);
    if (directory == parent) return false;
    if (HasLimits(directory)) return true;
  }
  return false;
}

base::Status RunCgroup::Add(const std::string& parent, std::string_view name) {
  const std::string directory = base::JoinPath(parent, name);
  if (::mkdir(directory.c_str(), 0755) != 0) return base::FailErrno(errno, directory);
  directories_.push_back(directory);
  // v1's "tasks" moves the writing thread alone and so spares the kernel's wait for all others (an
  // RCU grace period, 5 to 20 ms), which "cgroup.procs" costs.
  base::UniqueFd fd(::open(base::JoinPath(directory, "tasks").c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) {
    fd = base::UniqueFd(
        ::open(base::JoinPath(directory, "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  }
  if (!fd.valid()) {
    const int error = errno;
    ::rmdir(directory.c_str());
    directories_.pop_back();
    return base::FailErrno(error, directory);
  }
  join_fds_.push_back(std::move(fd));
  // Ours until we have read what was used: another run that begins when our command has just ended
  // would take it for a leftover, and with it would go the peak and the OOM kills.
  base::UniqueFd lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.valid() && ::flock(lock.get(), LOCK_SH) == 0) locks_.push_back(std::move(lock));
  return {};
}

base::Result<RunCgroup> RunCgroup::Create(std::string_view run_id,
                                          std::optional<base::Bytes> memory_limit) {
  EXPANSE_ASSIGN_OR_RETURN(collect::CgroupHierarchy hierarchy, collect::DetectHierarchy("/"));
  EXPANSE_ASSIGN_OR_RETURN(std::string text, base::ReadFile("/proc/self/cgroup", 1U << 20));
  const auto memberships = collect::ParseProcCgroup(text);
  const std::string name = fmt::format("{}{}", kRunCgroupPrefix, run_id);
  const bool v2 = hierarchy.version == collect::CgroupVersion::kV2;
  RunCgroup cgroup;
  base::Status last =
      base::Fail(base::Code::kFailedPrecondition, "cgroup.none", "this host has no cgroups");
  bool has_memory = false;

  if (v2) {
    const auto own = OwnPath(memberships, "");
    for (const std::string& parent :
         V2Parents(hierarchy.v2_mount, own.value_or("/"), ::geteuid() == 0)) {
      if (LeavesLimits(hierarchy.v2_mount, own.value_or("/"), parent)) {
        last = base::Fail(base::Code::kFailedPrecondition, "cgroup.limits",
                          "limits of the cgroup that it was started in would not hold in another");
        continue;
      }
      if (parent == base::JoinPath(hierarchy.v2_mount, "expanse")) {
        HandDownControllers(hierarchy.v2_mount);
        ::mkdir(parent.c_str(), 0755);
        HandDownControllers(parent);
      }
      if (!HasWord(base::JoinPath(parent, "cgroup.subtree_control"), "memory")) continue;
      last = cgroup.Add(parent, name);
      if (last) break;
    }
    has_memory = !cgroup.directories_.empty();
  } else {
    for (std::string_view controller : kV1Controllers) {
      const auto mount = hierarchy.v1_mounts.find(controller);
      const auto own = OwnPath(memberships, controller);
      if (mount == hierarchy.v1_mounts.end() || !own) continue;
      const std::string parent = Directory(mount->second, *own);
      const std::string directory = base::JoinPath(parent, name);
      // Controllers that are mounted together share the directory.
      if (std::find(cgroup.directories_.begin(), cgroup.directories_.end(), directory) !=
          cgroup.directories_.end())
        continue;
      auto added = cgroup.Add(parent, name);
      if (added && controller == "memory") has_memory = true;
      if (!added || last.has_value() == false) last = std::move(added);
    }
  }
  if (memory_limit) {
    base::Status limited =
        has_memory ? LimitMemory(cgroup.directories_.front(), v2, *memory_limit) : last;
    if (!limited) {
      return base::Fail(
          base::Code::kPermissionDenied, "cgroup.memory_limit",
          fmt::format("a memory limit needs a cgroup of its own, which cannot be made here ({})",
                      limited.error().message));
    }
  }
  if (cgroup.directories_.empty()) return std::unexpected(std::move(last.error()));
  return cgroup;
}

std::vector<int> RunCgroup::join_fds() const {
  std::vector<int> fds;
  for (const base::UniqueFd& fd : join_fds_) fds.push_back(fd.get());
  return fds;
}

std::vector<pid_t> RunCgroup::Members() const {
  std::vector<pid_t> members;
  for (const std::string& directory : directories_) {
    const auto text = base::ReadFile(base::JoinPath(directory, "cgroup.procs"), 4U << 20);
    if (!text) continue;
    for (std::string_view line : base::Split(*text, '\n')) {
      if (const auto pid = base::ParseInt<pid_t>(line); pid && *pid > 0) members.push_back(*pid);
    }
    break;  // each hierarchy has the same processes
  }
  return members;
}

void RunCgroup::Remove() {
  join_fds_.clear();
  locks_.clear();
  for (const std::string& directory : directories_) ::rmdir(directory.c_str());
}

void RemoveLeftoverCgroups(const std::vector<std::string>& directories, base::WallTime now) {
  for (const std::string& directory : directories) {
    const std::string parent = ParentOf(directory);
    const auto names = base::ListDirectory(parent);
    if (!names) continue;
    for (const std::string& name : *names) {
      const std::string path = base::JoinPath(parent, name);
      struct stat info{};
      if (!name.starts_with(kRunCgroupPrefix) || path == directory ||
          ::lstat(path.c_str(), &info) != 0)
        continue;
      const base::WallTime made{std::chrono::seconds(info.st_ctim.tv_sec)};
      if (!S_ISDIR(info.st_mode) || now - made <= kLeftoverAge) continue;
      base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::rmdir(path.c_str());
    }
  }
}

}  // namespace expanse::schedulers::host
