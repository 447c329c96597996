// Reading sacct on a lane: a window of runs that ended, or all runs of some jobs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/time.h"
#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/commands/sacct.h"
#include "schedulers/slurm/commands/sacct_query.h"
#include "schedulers/slurm/reports.h"

namespace expanse::schedulers::slurm {

// What is kept from one task to the next. The lane's own.
struct AccountingState {
  std::optional<SacctFormat> format;  // asked for before the first window
  RestartCounts restarts;
};

struct AccountingTask {
  std::string cluster;
  SacctWindow window;                  // where there are no job_ids
  std::vector<std::uint32_t> job_ids;  // at most kMaxSacctJobs
  std::chrono::milliseconds deadline{120'000};
};

// Blocks while sacct runs, and while the capture thread is behind. Puts AccountingRuns and one
// AccountingDone.
void RunAccountingTask(const AccountingTask& task, CommandRunner& runner, AccountingState& state,
                       Mailbox& mailbox, const std::stop_token& stop);

}  // namespace expanse::schedulers::slurm
