// What a job and its steps used, from the columns that accounting has for it. Pure functions over
// rows of sacct; formulas and their reasons are here, since no column alone gives the truth.
//
// Memory. MaxRSS is the peak of the one task that needed most, so for a step of eight tasks it is
// an eighth of the truth. The peak of a step is, in this order:
//   TRESUsageInTot mem     the sum over tasks of each task's own peak, as slurmstepd added it up
//   AveRSS x NTasks        the same by another way, where that column is missing or 0
//   MaxRSS x NTasks        an upper bound; exact for one task
// and never below MaxRSS. The tasks' peaks need not have come at the same time, and memory they
// share counts once for each, so a sum of several tasks is not believed beyond what was allocated.
// A job's peak is that of its largest step: steps mostly follow one another. 0 means that nothing
// was measured (the step ended before the first look), which is unknown.
//
// CPU. TotalCPU is the job's when it is not 0. Steps of Slurm 25.05 have 00:00:00 there, so what
// TRESUsageInTot says of cpu is the fall-back, for steps and, summed up, for the job.
//
// I/O. A step that ended before the first look has zeros everywhere: then they are unknown too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "evidence/execution.h"
#include "schedulers/slurm/commands/sacct_rows.h"

namespace expanse::schedulers::slurm {

// Adds up the steps of one job as they come. A small value.
class SacctUsage {
 public:
  // What one step used, added to the rest; `allocated_bytes` is the memory of the whole job.
  evidence::Usage AddStep(const SacctRow& row, std::optional<std::uint64_t> allocated_bytes);
  // The peak of the step's largest task.
  static std::optional<std::uint64_t> TaskPeak(const SacctRow& row);
  // Of the job: what its own row says, completed by its steps.
  evidence::Usage Total(const evidence::Usage& of_job_row) const;
  // CPU times of the job's own row; memory and I/O are of steps alone.
  static evidence::Usage OfJobRow(const SacctRow& row);

  // Mean utilisation of one GPU in percent, where accounting measures it (gres/gpuutil is a sum
  // over GPUs); absent for a sum that no such number of GPUs gives.
  std::optional<double> GpuUtil(std::uint32_t gpus) const;
  // Whether accounting gave a utilisation at all.
  bool has_gpu_util() const { return gpu_util_sum_.has_value(); }
  std::optional<std::uint64_t> gpu_memory_bytes() const { return gpu_memory_bytes_; }

 private:
  evidence::Usage steps_;  // summed up; memory: the largest
  std::optional<double> gpu_util_sum_;
  std::optional<std::uint64_t> gpu_memory_bytes_;
};

// True if a job used more CPU time than its CPUs had in `elapsed_s`: accounting counted something
// twice, or nothing kept the job on its CPUs.
bool IsCpuSuspect(const evidence::Usage& used, std::optional<double> cpus, double elapsed_s);

}  // namespace expanse::schedulers::slurm
