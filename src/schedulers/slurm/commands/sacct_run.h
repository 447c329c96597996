// One row of sacct as a job or as a step. Pure functions; sacct.h puts the two together.
#pragma once

#include <optional>
#include <string_view>

#include "schedulers/slurm/commands/sacct_rows.h"
#include "schedulers/slurm/job.h"

namespace expanse::schedulers::slurm {

// Seconds that the job or step ran, without the time it was suspended; below 0: unknown.
double ElapsedSeconds(const SacctRow& row);

// A job's own row, without usage and steps. Nothing when it does not say which run it is. The
// command line is redacted. `cluster` names the cluster in its identity; empty: as the row has it.
std::optional<Job> JobFromRow(const SacctRow& row, std::string_view cluster);

// A step's row, without usage; `id` is what stands behind the dot of its job id.
evidence::Step StepFromRow(const SacctRow& row, std::string_view id);

// Whether the memory limit hit this step.
bool IsOutOfMemory(const SacctRow& row);

}  // namespace expanse::schedulers::slurm
