// Runs Slurm's programs (squeue, sacct, scontrol) the one way that is safe: absolute paths, argv
// vectors, an environment of our own (UTC, C locale, times in epoch seconds, nothing of SLURM_* or
// SQUEUE_* inherited), a deadline, bounded output. What they cost is measured, also when they fail.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/subprocess.h"

namespace expanse::schedulers::slurm {

enum class Program { kSqueue, kSacct, kScontrol };

std::string_view Name(Program program);

struct Command {
  Program program = Program::kSqueue;
  std::vector<std::string> arguments;  // what follows the program's name
  std::chrono::milliseconds deadline{30'000};
  std::size_t max_output = 16U << 20;  // beyond: the command counts as failed
  // Takes the output as it comes, on the thread that called Run; nothing of it is kept then. False:
  // nothing more is wanted, which is no failure.
  std::function<bool(std::string_view)> on_output = {};
};

struct CommandCost {
  std::chrono::microseconds wall{};
  std::chrono::microseconds cpu{};  // of the program itself, on this host
  // What slurmctld or slurmdbd and the way to them took, at most: what the program waited.
  std::chrono::microseconds served() const { return wall > cpu ? wall - cpu : wall.zero(); }
};

struct CommandOutcome {
  // subprocess.* or os.* when it could not be started; slurm.timeout, slurm.stopped,
  // slurm.unreachable (slurmctld or slurmdbd does not answer), slurm.no_accounting,
  // slurm.no_configuration, slurm.permission, slurm.job_not_found, slurm.output_too_large, else
  // slurm.command_failed. The message is what the program said.
  base::Status status;
  std::string out;
  CommandCost cost;
};

// Blocks up to the deadline and the few seconds that ending a program takes. Thread-safe.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  virtual CommandOutcome Run(const Command& command, std::stop_token stop) = 0;
};

struct SystemRunnerOptions {
  std::string bin_directory;  // empty: `search_path`, then the usual places
  std::string search_path;    // a PATH value
  std::string slurm_conf;     // SLURM_CONF of the programs; empty: their own default
};

class SystemCommandRunner final : public CommandRunner {
 public:
  // Fails with slurm.not_found when squeue or scontrol is nowhere. A missing sacct is not a failure
  // here: running it is.
  static base::Result<SystemCommandRunner> Create(const SystemRunnerOptions& options);

  CommandOutcome Run(const Command& command, std::stop_token stop) override;
  const std::vector<std::string>& environment() const { return environment_; }

 private:
  std::map<Program, std::string> paths_;
  std::vector<std::string> environment_;
};

// Why a program that ran did not do what it was asked for; nothing when it did.
std::optional<base::Error> FailureOf(Program program, const base::ProcessOutcome& outcome);

}  // namespace expanse::schedulers::slurm
