// Reading squeue on a lane: all jobs, or some of them, and passing on the rows that are new.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/commands/squeue.h"
#include "schedulers/slurm/reports.h"
#include "schedulers/slurm/row_filter.h"

namespace expanse::schedulers::slurm {

// What one listing leaves for the next. The lane's threads' own: one task at a time.
struct QueueState {
  RowFilter filter;
  std::uint64_t hash_seed = 0;
  bool was_empty = false;       // the last listing, though there had been jobs
  std::uint64_t last_rows = 0;  // of the last complete listing
};

struct QueueTask {
  std::optional<Version> version;
  std::vector<std::uint32_t> job_ids;  // empty: a listing
  std::chrono::milliseconds deadline{60'000};
  // A look-up of several ids makes slurmctld send all jobs; with more jobs than this it is cheaper
  // to ask for each id by itself.
  std::uint64_t many_jobs = 2'000;
};

// Blocks while squeue runs. Puts RowBatches and one QueueDone.
void RunQueueTask(const QueueTask& task, CommandRunner& runner, QueueState& state, Mailbox& mailbox,
                  std::stop_token stop);

}  // namespace expanse::schedulers::slurm
