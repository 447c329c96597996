// What a run used, added up over its nodes. Each node tells what it saw of a run (cgroups of its
// own machine, CPU seconds, peak of memory, …), again and again and at the run's end; a run on
// several nodes used the sum of it, and only the controller hears all of them. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "evidence/execution.h"
#include "schedulers/slurm/job_table.h"

namespace expanse::schedulers::slurm {

class NodeUsage {
 public:
  explicit NodeUsage(std::size_t most_entries = 200'000) : most_entries_(most_entries) {}

  // The run's usage with what `node` says now. Nothing while not all `nodes` nodes of the run have
  // said something: part of a job must not stand where the scheduler's own total would. Peaks of
  // memory are added though they need not coincide: requests are totals too, and a job that is
  // given less than the sum may die on one of its nodes. `nodes` 0, not known: nothing either.
  std::optional<evidence::Usage> Add(RunId run, std::string_view node, std::uint32_t nodes,
                                     const evidence::Usage& usage, base::WallTime at);
  // Drops runs of which no node said anything since `before`.
  void Forget(base::WallTime before);

  std::size_t entries() const { return entries_; }
  std::uint64_t refused() const { return refused_; }  // beyond the most entries

 private:
  struct Run {
    std::map<std::string, evidence::Usage, std::less<>> nodes;
    base::WallTime heard_at{};
  };
  const std::size_t most_entries_;
  std::map<RunId, Run> runs_;
  std::size_t entries_ = 0;
  std::uint64_t refused_ = 0;
};

// The sum of two parts of one run: unknown where one of them is; the weaker basis of the two peaks.
evidence::Usage AddUsage(const evidence::Usage& a, const evidence::Usage& b);

}  // namespace expanse::schedulers::slurm
