#include "collect/process/tree.h"

#include <algorithm>
#include <unordered_map>

namespace expanse::collect {
namespace {

constexpr double kTicksPerSecond = 100;
constexpr int kDeepestTree = 256;

double Seconds(std::uint64_t ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }

}  // namespace

void ProcessTree::FindMembers(ProcessTable& table) {
  std::map<pid_t, std::uint64_t> alive;
  const auto keep = [&](pid_t pid, std::uint64_t start) {
    const ProcessTable::Entry* entry = table.Refresh(pid);
    // start 0: the caller did not know it.
    if (entry != nullptr && (start == 0 || entry->stat.start == start))
      alive.emplace(pid, entry->stat.start);
  };
  for (const auto& root : roots_) keep(root.pid, root.start_ticks);
  for (const auto& [pid, start] : members_) keep(pid, start);
  if (alive.empty()) {
    members_.clear();
    return;
  }
  // Children of members are members. The pids of children are mostly above their parents' and the
  // list ascends, so one pass finds nearly all; another one runs as long as something was found.
  std::vector<std::pair<pid_t, const ProcStat*>> others;
  for (pid_t pid : table.Pids()) {
    if (alive.contains(pid)) continue;
    if (const ProcessTable::Entry* entry = table.Look(pid)) others.emplace_back(pid, &entry->stat);
  }
  for (bool found = true; found;) {
    found = false;
    std::erase_if(others, [&](const auto& other) {
      const auto parent = alive.find(other.second->parent);
      // A child is not older than its parent; otherwise the pid was of another process when we
      // looked.
      if (parent == alive.end() || other.second->start < parent->second) return false;
      if (const ProcessTable::Entry* entry = table.Refresh(other.first))
        alive.emplace(other.first, entry->stat.start);
      return found = true;
    });
  }
  members_ = std::move(alive);
}

void ProcessTree::KeepTimesOfEnded(const std::map<pid_t, Times>& now) {
  struct Ended {
    std::uint64_t user = 0;
    std::uint64_t system = 0;
  };
  // By the nearest ancestor that is still there: its children's time has grown by what it took
  // over.
  std::map<pid_t, Ended> ended;
  for (const auto& [pid, times] : times_) {
    if (now.contains(pid)) continue;
    pid_t heir = times.parent;
    // Bounded: recycled pids can make a circle of parents.
    for (int step = 0; step < kDeepestTree && !now.contains(heir); ++step) {
      const auto parent = times_.find(heir);
      if (parent == times_.end()) break;
      heir = parent->second.parent;
    }
    Ended& sum = ended[now.contains(heir) ? heir : 0];
    sum.user += times.user;
    sum.system += times.system;
  }
  for (const auto& [heir, lost] : ended) {
    std::uint64_t taken = 0;
    const auto after = now.find(heir);
    const auto before = times_.find(heir);
    if (after != now.end() && before != times_.end()) {
      taken = after->second.children - std::min(after->second.children, before->second.children);
    }
    const std::uint64_t sum = lost.user + lost.system;
    if (sum <= taken) continue;
    const std::uint64_t kept = sum - taken;
    const std::uint64_t kept_user = kept * lost.user / sum;
    kept_user_ += kept_user;
    kept_system_ += kept - kept_user;
  }
}

void ProcessTree::AddMemory(ProcessTable& table, ProcessUsage& usage) const {
  std::uint64_t anon = 0;
  std::uint64_t shmem = 0;
  std::uint64_t most_shmem = 0;
  for (const auto& [pid, start] : members_) {
    ProcessTable::Entry* entry = table.Refresh(pid);
    const auto need = entry == nullptr ? std::nullopt : table.ReadNeed(*entry, members_.size() > 1);
    if (!need) continue;
    usage.memory_known = true;
    anon += need->anon;
    // Without proportional figures: processes of one workload that use shared memory share it.
    if (!need->exact) {
      usage.memory_exact = false;
      most_shmem = std::max(most_shmem, need->shmem);
    } else {
      shmem += need->shmem;
    }
  }
  usage.memory_need_bytes = anon + shmem + most_shmem;
}

base::Result<ProcessUsage> ProcessTree::Update(ProcessTable& table) {
  FindMembers(table);
  std::map<pid_t, Times> now;
  ProcessUsage usage;
  for (const auto& [pid, start] : members_) {
    const ProcessTable::Entry* entry = table.Refresh(pid);
    if (entry == nullptr) continue;
    const ProcStat& stat = entry->stat;
    now[pid] = {stat.parent, stat.user + stat.children_user, stat.system + stat.children_system,
                stat.children()};
    ++usage.processes;
    usage.threads += stat.threads;
  }
  KeepTimesOfEnded(now);
  times_ = std::move(now);
  if (members_.empty()) {
    return base::Fail(base::Code::kNotFound, "process.gone", "no process of the workload is left");
  }
  std::uint64_t user = kept_user_;
  std::uint64_t system = kept_system_;
  for (const auto& [pid, times] : times_) {
    user += times.user;
    system += times.system;
  }
  highest_ = std::max(highest_, user + system);
  usage.cpu_s = Seconds(highest_);
  usage.cpu_user_s = Seconds(user);
  usage.cpu_system_s = Seconds(system);
  AddMemory(table, usage);
  return usage;
}

base::Result<ProcessUsage> ReadProcessTree(const std::string& root,
                                           const std::vector<TrackedWorkload::Root>& roots) {
  ProcessTable table(root, /*open_files=*/0);
  return ProcessTree(roots).Update(table);
}

}  // namespace expanse::collect
