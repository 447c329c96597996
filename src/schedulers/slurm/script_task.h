// A batch script as slurmctld keeps it: from its state directory where we may read that, which
// costs it nothing, else from scontrol.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/reports.h"

namespace expanse::schedulers::slurm {

struct ScriptTask {
  std::uint32_t job_id = 0;  // raw; with the submit time: who wants it
  std::int64_t submitted_s = 0;
  std::uint32_t script_id = 0;  // whose script it is: the array's or het job's id, else the job's
  std::string state_save_location;  // empty: not known
  bool may_ask = false;             // scontrol, if the directory does not give it
};

// Blocks on a file system and perhaps on slurmctld. Puts one ScriptDone.
void RunScriptTask(const ScriptTask& task, CommandRunner& runner, Mailbox& mailbox,
                   const std::stop_token& stop);

// `<location>/hash.<id mod 10>/job.<id>/script`. Fails with os.*; never follows a link.
base::Result<std::string> ReadKeptScript(std::string_view location, std::uint32_t script_id);

}  // namespace expanse::schedulers::slurm
