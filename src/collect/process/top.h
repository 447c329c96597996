// The few programs of a workload that use most, by process name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "collect/process/table.h"

namespace expanse::collect {

struct ProgramUsage {
  std::string name;
  double cpu_cores = 0;
  std::uint64_t resident_bytes = 0;
  std::size_t processes = 0;
};

// Not thread-safe. One per workload.
class TopPrograms {
 public:
  // The programs among `pids` that use most CPU and most memory, at most `kEach` of either kind;
  // over a workload's life at most `kNames` different names (each one is a series). Nothing on the
  // first call.
  static constexpr std::size_t kEach = 3;
  static constexpr std::size_t kNames = 16;
  std::vector<ProgramUsage> Update(ProcessTable& table, const std::vector<pid_t>& pids,
                                   base::MonoTime now);

 private:
  struct Seen {
    std::uint64_t start = 0;
    std::uint64_t ticks = 0;
  };
  std::map<pid_t, Seen> seen_;
  std::set<std::string, std::less<>> names_;
  base::MonoTime at_{};
  bool first_ = true;
};

}  // namespace expanse::collect
