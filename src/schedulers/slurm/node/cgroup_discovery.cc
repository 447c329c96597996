#include "schedulers/slurm/node/cgroup_discovery.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "collect/cgroup/procs.h"
#include "schedulers/slurm/text/job_id.h"

namespace expanse::schedulers::slurm {
namespace {

// Roots are two levels below the mount on a plain host and up to six in a container's cgroup.
constexpr int kDeepest = 7;
constexpr std::size_t kMostRoots = 64;
constexpr std::size_t kMostJobs = 20'000;
constexpr std::size_t kMostProcesses = 200'000;

constexpr std::string_view kV1Root = "slurm";
constexpr std::string_view kV2Root = "slurmstepd.scope";
constexpr std::string_view kStepd = "slurmstepd";

bool IsRootName(std::string_view name) {
  return name == kV1Root || name == kV2Root || name.starts_with("slurm_") ||
         name.ends_with("_slurmstepd.scope");
}

// Names of the directories in a directory, as many as `limit`.
std::vector<std::string> Subdirectories(const std::string& path, std::size_t limit) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    if (names.size() >= limit) break;
    names.emplace_back(entry->d_name);
  }
  ::closedir(dir);
  return names;
}

std::optional<uid_t> UidOfDirectory(std::string_view name) {
  if (!name.starts_with("uid_")) return std::nullopt;
  const auto uid = base::ParseInt<std::uint32_t>(name.substr(4));
  return uid ? std::optional<uid_t>(*uid) : std::nullopt;
}

}  // namespace

std::optional<LocalJob> JobOfDirectory(std::string_view name) {
  if (IsSluid(name)) return LocalJob{.job_id = 0, .sluid = std::string(name)};
  if (!name.starts_with("job_")) return std::nullopt;
  const auto id = base::ParseInt<std::uint32_t>(name.substr(4));
  if (!id || *id == 0) return std::nullopt;
  return LocalJob{.job_id = *id, .sluid = ""};
}

std::string NodeOfRoot(std::string_view name) {
  constexpr std::string_view kV1Prefix = "slurm_";
  constexpr std::string_view kV2Suffix = "_slurmstepd.scope";
  if (name.ends_with(kV2Suffix))
    name.remove_suffix(kV2Suffix.size());
  else if (name.starts_with(kV1Prefix))
    name.remove_prefix(kV1Prefix.size());
  else
    return "";
  return std::string(name);
}

std::optional<JobPath> ParseJobPath(std::string_view path) {
  std::string root;
  std::string before_uid;
  bool after_uid = false;
  for (std::string_view part : base::Split(path, '/')) {
    if (part.empty()) continue;
    if (auto job = JobOfDirectory(part)) {
      return JobPath{.root = after_uid ? before_uid : root, .job = std::move(*job)};
    }
    after_uid = UidOfDirectory(part).has_value();
    if (after_uid) before_uid = root;
    root += '/';
    root += part;
  }
  return std::nullopt;
}

CgroupDiscovery::CgroupDiscovery(std::string root, std::size_t most_directories)
    : root_(std::move(root)), most_directories_(most_directories) {}

std::string CgroupDiscovery::OnHost(std::string_view path) const {
  return base::JoinPath(root_, path);
}

// Users may make cgroups below those that were given to them, of any name.
bool CgroupDiscovery::IsTrusted(const std::string& path) const {
  struct stat info{};
  return ::stat(OnHost(path).c_str(), &info) == 0 &&
         (info.st_uid == 0 || info.st_uid == ::geteuid());
}

void CgroupDiscovery::AddRoot(const std::string& mount, std::string_view relative) {
  Root root{.path = relative.empty() ? mount : base::JoinPath(mount, relative), .node = ""};
  root.node = NodeOfRoot(std::string_view(root.path).substr(root.path.rfind('/') + 1));
  if (roots_.size() >= kMostRoots) {
    figures_.complete = false;
    return;
  }
  if (std::ranges::find(roots_, root) == roots_.end() && IsTrusted(root.path))
    roots_.push_back(std::move(root));
}

// Breadth first, so that what is near the mount is found whatever else there is.
void CgroupDiscovery::SearchBelow(const std::string& mount) {
  std::deque<std::pair<std::string, int>> queue = {{"", 0}};
  std::size_t seen = 0;
  while (!queue.empty()) {
    const auto [relative, depth] = std::move(queue.front());
    queue.pop_front();
    const std::string directory = OnHost(mount + relative);
    struct stat info{};
    // A link count of 2 says, without a listing, that there is no directory below.
    if (::stat(directory.c_str(), &info) != 0 || info.st_nlink == 2) continue;
    for (const std::string& name : Subdirectories(directory, most_directories_)) {
      if (++seen > most_directories_) {
        figures_.complete = false;
        return;
      }
      const std::string path = relative + '/' + name;
      if (IsRootName(name)) {
        AddRoot(mount, path);
      } else if (depth + 1 < kDeepest && name != "user.slice") {
        queue.emplace_back(path, depth + 1);
      }
    }
  }
}

// Every running step has a slurmstepd in a cgroup of its job.
void CgroupDiscovery::AskStepds() {
  figures_.stepds = figures_.stepds_elsewhere = 0;
  std::size_t seen = 0;
  for (const std::string& name : Subdirectories(OnHost("/proc"), kMostProcesses)) {
    if (!base::IsDigit(name.front()) || ++seen > kMostProcesses) continue;
    const std::string process = OnHost("/proc/" + name);
    const auto comm = base::ReadFile(process + "/comm", 64);
    if (!comm || base::Trim(*comm) != kStepd || !IsTrusted("/proc/" + name)) continue;
    const auto text = base::ReadFile(process + "/cgroup", 64U << 10);
    if (!text) continue;
    // One that waits for its first step is in no job's; its home has the name of a root.
    bool has_job = text->find(kV2Root) != std::string::npos;
    for (const collect::CgroupMembership& membership : collect::ParseProcCgroup(*text)) {
      const auto path = ParseJobPath(membership.path);
      if (!path) continue;
      has_job = true;
      if (membership.controllers.empty() && hierarchy_.version == collect::CgroupVersion::kV2) {
        AddRoot(hierarchy_.v2_mount, path->root);
      }
      for (const std::string& controller : membership.controllers) {
        const auto mount = hierarchy_.v1_mounts.find(controller);
        if (mount != hierarchy_.v1_mounts.end()) AddRoot(mount->second, path->root);
      }
    }
    ++figures_.stepds;
    if (!has_job) ++figures_.stepds_elsewhere;
  }
}

base::Status CgroupDiscovery::FindRoots() {
  EXPANSE_ASSIGN_OR_RETURN(hierarchy_, collect::DetectHierarchy(root_));
  roots_.clear();
  figures_.complete = true;
  if (hierarchy_.version == collect::CgroupVersion::kV2) SearchBelow(hierarchy_.v2_mount);
  if (hierarchy_.version == collect::CgroupVersion::kV1) {
    std::vector<std::string> mounts;
    for (const auto& [controller, mount] : hierarchy_.v1_mounts) {
      // Several controllers may share a mount.
      if (std::ranges::find(mounts, mount) != mounts.end()) continue;
      mounts.push_back(mount);
      SearchBelow(mount);
    }
  }
  AskStepds();
  figures_.roots = roots_.size();
  return {};
}

std::vector<JobCgroups> CgroupDiscovery::ListJobs() {
  std::map<std::pair<std::string, LocalJob>, JobCgroups> jobs;
  const auto add = [&](const Root& root, const std::string& directory, const std::string& name,
                       std::optional<uid_t> uid) {
    auto job = JobOfDirectory(name);
    if (!job || jobs.size() >= kMostJobs) return;
    JobCgroups& entry = jobs[{root.node, *job}];
    entry.job = std::move(*job);
    entry.node = root.node;
    if (uid) entry.uid = uid;
    // Of v2 there is one: a second root whose node is not told holds another job of that id.
    if (hierarchy_.version == collect::CgroupVersion::kV2 && !entry.cgroups.empty()) return;
    std::string path = base::JoinPath(directory, name);
    if (std::ranges::find(entry.cgroups, path) == entry.cgroups.end()) {
      entry.cgroups.push_back(std::move(path));
    }
  };
  for (const Root& root : roots_) {
    for (const std::string& name : Subdirectories(OnHost(root.path), kMostJobs)) {
      const auto uid = UidOfDirectory(name);
      if (!uid) {
        add(root, root.path, name, std::nullopt);
        continue;
      }
      const std::string directory = base::JoinPath(root.path, name);
      for (const std::string& job : Subdirectories(OnHost(directory), kMostJobs)) {
        add(root, directory, job, uid);
      }
    }
  }
  std::vector<JobCgroups> list;
  for (auto& [key, job] : jobs) list.push_back(std::move(job));
  figures_.jobs = list.size();
  return list;
}

std::optional<std::size_t> CountTasks(const std::string& root,
                                      const std::vector<std::string>& cgroups) {
  constexpr std::size_t kEnough = 4096;
  for (const std::string& cgroup : cgroups) {
    std::size_t tasks = 0;
    bool any_step = false;
    for (const std::string& step : Subdirectories(base::JoinPath(root, cgroup), kEnough)) {
      if (!step.starts_with("step_")) continue;
      any_step = true;
      const std::string path = base::JoinPath(cgroup, step);
      std::size_t processes = 0;
      for (const std::string& below : Subdirectories(base::JoinPath(root, path), kEnough)) {
        // v2 has slurmstepd itself in "slurm", the rest in "user".
        if (below == "slurm") continue;
        processes += collect::CgroupPids(root, {base::JoinPath(path, below)}, kEnough).size();
      }
      // The extern step keeps one process that sleeps; more are sessions that were adopted.
      if (step == "step_extern" && processes > 0) --processes;
      tasks += processes;
    }
    if (any_step) return tasks;
  }
  return std::nullopt;
}

std::vector<pid_t> StepLeaders(const std::string& root, const std::vector<std::string>& cgroups) {
  constexpr std::size_t kMostSteps = 256;
  for (const std::string& cgroup : cgroups) {
    std::vector<pid_t> leaders;
    for (const std::string& step : Subdirectories(base::JoinPath(root, cgroup), kMostSteps)) {
      if (!step.starts_with("step_")) continue;
      const std::string path = base::JoinPath(root, base::JoinPath(cgroup, step));
      // v1 has slurmstepd in the step itself, v2 in "slurm" below it.
      for (const char* where : {"/cgroup.procs", "/slurm/cgroup.procs"}) {
        const auto pids = base::ReadFile(path + where, 4096);
        for (std::string_view pid : base::SplitSpaces(pids ? *pids : std::string())) {
          if (const auto number = base::ParseInt<pid_t>(pid)) leaders.push_back(*number);
        }
      }
    }
    if (!leaders.empty()) return leaders;
  }
  return {};
}

}  // namespace expanse::schedulers::slurm
