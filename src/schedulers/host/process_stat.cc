// /proc/PID/stat (proc(5)): who a process's parent is, when it started, whether it is stopped.
#include <sys/types.h>

#include <algorithm>
#include <map>

#include "base/files.h"
#include "base/text.h"
#include "schedulers/host/child.h"

namespace expanse::schedulers::host {
namespace {

struct Stat {
  char state = '?';
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;
};

std::optional<Stat> ReadStat(const std::string& proc, pid_t pid) {
  const auto text = base::ReadFile(proc + "/" + std::to_string(pid) + "/stat", 4096);
  if (!text) return std::nullopt;
  // The name in parentheses may hold blanks and parentheses itself.
  const std::size_t close = text->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const auto fields = base::SplitSpaces(std::string_view(*text).substr(close + 1));
  if (fields.size() < 20 || fields[0].size() != 1) return std::nullopt;  // fields[0] is field 3
  const auto parent = base::ParseInt<pid_t>(fields[1]);
  const auto ticks = base::ParseInt<std::uint64_t>(fields[19]);
  if (!parent || !ticks) return std::nullopt;
  return Stat{fields[0][0], *parent, *ticks};
}

}  // namespace

ProcessStamp StampOf(pid_t pid, const std::string& proc) {
  const auto stat = ReadStat(proc, pid);
  return {pid, stat ? stat->start_ticks : 0};
}

bool IsAlive(const ProcessStamp& stamp, const std::string& proc) {
  const auto stat = ReadStat(proc, stamp.pid);
  return stat && stat->start_ticks == stamp.start_ticks && stat->state != 'Z' && stat->state != 'X';
}

bool Child::IsStopped() const {
  const auto stat = ReadStat("/proc", pid_);
  return stat && stat->state == 'T';
}

std::vector<pid_t> ProcessTree(pid_t root) {
  const auto names = base::ListDirectory("/proc");
  std::multimap<pid_t, pid_t> children;
  if (names) {
    for (const std::string& name : *names) {
      const auto pid = base::ParseInt<pid_t>(name);
      if (!pid || *pid <= 0) continue;
      if (const auto stat = ReadStat("/proc", *pid)) children.emplace(stat->parent, *pid);
    }
  }
  std::vector<pid_t> tree = {root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [begin, end] = children.equal_range(tree[i]);
    for (auto it = begin; it != end; ++it) {
      if (std::find(tree.begin(), tree.end(), it->second) == tree.end()) tree.push_back(it->second);
    }
  }
  return tree;
}

bool DescendsFrom(pid_t pid, pid_t root) {
  for (int depth = 0; depth < 64 && pid > 1; ++depth) {
    if (pid == root) return true;
    const auto stat = ReadStat("/proc", pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

}  // namespace expanse::schedulers::host
