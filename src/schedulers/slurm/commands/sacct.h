// Runs of jobs from what sacct prints, with their steps: the final truth about a job, some seconds
// after its end, and all its history before we came. How to ask: sacct_query.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schedulers/slurm/commands/sacct_query.h"
#include "schedulers/slurm/commands/sacct_rows.h"
#include "schedulers/slurm/commands/sacct_usage.h"
#include "schedulers/slurm/job.h"

namespace expanse::schedulers::slurm {

// Labels that only accounting gives.
inline constexpr std::string_view kLabelWaitReason = "slurm.wait_reason";  // of its last wait
inline constexpr std::string_view kLabelWcKey = "slurm.wckey";
inline constexpr std::string_view kLabelContainer = "slurm.container";
inline constexpr std::string_view kLabelFailedNode = "slurm.failed_node";
inline constexpr std::string_view kLabelEnergy = "slurm.energy_j";
inline constexpr std::string_view kLabelGpuUtil = "slurm.gpu_util_pct";  // mean of one GPU
inline constexpr std::string_view kLabelGpuMemory = "slurm.gpu_memory_bytes";
// Steps that the kernel's memory limit hit, also where the job itself says COMPLETED: "batch,0".
inline constexpr std::string_view kLabelStepsOutOfMemory = "slurm.steps_out_of_memory";
// "cpu", "gpu": accounting has more of it than there can have been.
inline constexpr std::string_view kLabelSuspectUsage = "slurm.suspect_usage";

struct SacctReaderOptions {
  std::string cluster;           // in the identities of its runs; empty: as the rows have it
  std::size_t max_steps = 4096;  // of one job kept until evidence::BoundSteps chooses among them
  std::size_t max_runs = 1024;   // of one job id held back to count its restarts
};

struct SacctFigures {
  std::uint64_t rows = 0;
  std::uint64_t runs = 0;
  std::uint64_t bad_rows = 0;      // without a job id, a submit time or a state: left out
  std::uint64_t orphan_steps = 0;  // steps without an id or the row of their job: left out
  bool torn = false;               // the output ended within a row
};

// How often jobs were requeued, by job id, for versions whose sacct has no Restarts. Remembers only
// ids that were requeued or may be, and the last few of them.
class RestartCounts {
 public:
  explicit RestartCounts(std::size_t most = 100'000) : most_(most) {}
  // The restart count of a run; runs of one id come in the order of their submit times.
  std::uint32_t Next(const Job& run);

 private:
  struct Last {
    std::uint32_t restarts = 0;
    base::WallTime submitted{};
    base::WallTime ended{};
    std::optional<uid_t> uid;
  };
  const std::size_t most_;
  std::unordered_map<std::uint32_t, Last> last_;
  std::deque<std::uint32_t> order_;
};

// Not thread-safe. Memory: one job with its steps, besides what SacctRows holds.
class SacctReader {
 public:
  // `separator` is the one that the program was given. `restarts` outlives the reader; null: the
  // reader counts by itself.
  SacctReader(SacctFormat format, std::string separator, SacctReaderOptions options,
              std::function<void(Job)> on_run, RestartCounts* restarts = nullptr);
  SacctReader(const SacctReader&) = delete;
  SacctReader& operator=(const SacctReader&) = delete;

  void Feed(std::string_view piece) { rows_.Feed(piece); }
  // The output has ended, well or not; gives the last run. Where `whole` is false (the program was
  // ended) it is left out: steps of it may be missing.
  void Finish(bool whole);

  SacctFigures figures() const;

 private:
  void TakeRow(const SacctRow& row);
  void TakeStep(const SacctRow& row, std::string_view step);
  void EndJob();
  void EndId();

  const SacctReaderOptions options_;
  const std::function<void(Job)> on_run_;
  RestartCounts own_restarts_;
  RestartCounts& restarts_;
  SacctRows rows_;

  // The job whose steps come now.
  std::optional<Job> job_;
  std::string db_index_;
  evidence::Usage job_row_usage_;
  SacctUsage usage_;
  std::string out_of_memory_;
  double elapsed_s_ = -1;
  std::vector<Job> same_id_;  // runs of one job id, until the next id comes
  SacctFigures figures_;
};

}  // namespace expanse::schedulers::slurm
