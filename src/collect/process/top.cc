#include "collect/process/top.h"

#include <unistd.h>

#include <algorithm>

namespace expanse::collect {
namespace {

constexpr double kTicksPerSecond = 100;
constexpr double kIdle = 0.005;  // cores; below it a program is not among the busy ones

}  // namespace

std::vector<ProgramUsage> TopPrograms::Update(ProcessTable& table, const std::vector<pid_t>& pids,
                                              base::MonoTime now) {
  const double seconds = base::ToSeconds(now - at_);
  std::map<pid_t, Seen> seen;
  std::map<std::string, ProgramUsage, std::less<>> programs;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (pid_t pid : pids) {
    const ProcessTable::Entry* entry = table.Refresh(pid);
    if (entry == nullptr) continue;
    const ProcStat& stat = entry->stat;
    seen[pid] = {stat.start, stat.own()};
    ProgramUsage& program = programs[stat.name];
    ++program.processes;
    program.resident_bytes += stat.rss_pages * page;
    const auto before = seen_.find(pid);
    // A process that is new since the last call has used all of its time since then.
    const bool known = before != seen_.end() && before->second.start == stat.start;
    const std::uint64_t since = known ? before->second.ticks : 0;
    if (seconds > 0 && stat.own() > since) {
      program.cpu_cores += static_cast<double>(stat.own() - since) / kTicksPerSecond / seconds;
    }
  }
  seen_ = std::move(seen);
  at_ = now;
  if (first_ || seconds <= 0) {
    first_ = false;
    return {};
  }
  std::vector<ProgramUsage> all;
  for (auto& [name, program] : programs) {
    program.name = name;
    all.push_back(std::move(program));
  }
  std::set<std::string_view> chosen;
  // Names decide between equals, so that the choice is the same every time.
  std::ranges::sort(all, [](const ProgramUsage& a, const ProgramUsage& b) {
    return a.cpu_cores != b.cpu_cores ? a.cpu_cores > b.cpu_cores : a.name < b.name;
  });
  for (std::size_t i = 0; i < std::min(kEach, all.size()) && all[i].cpu_cores >= kIdle; ++i)
    chosen.insert(all[i].name);
  std::vector<const ProgramUsage*> by_memory;
  for (const ProgramUsage& program : all) by_memory.push_back(&program);
  std::ranges::sort(by_memory, [](const ProgramUsage* a, const ProgramUsage* b) {
    return a->resident_bytes != b->resident_bytes ? a->resident_bytes > b->resident_bytes
                                                  : a->name < b->name;
  });
  for (std::size_t i = 0; i < std::min(kEach, by_memory.size()); ++i)
    chosen.insert(by_memory[i]->name);

  std::vector<ProgramUsage> top;
  for (const ProgramUsage& program : all) {
    if (!chosen.contains(program.name)) continue;
    if (!names_.contains(program.name)) {
      if (names_.size() >= kNames) continue;
      names_.insert(program.name);
    }
    top.push_back(program);
  }
  return top;
}

}  // namespace expanse::collect
