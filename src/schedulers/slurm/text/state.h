// Words for the states of jobs and nodes, long and short, of Slurm 20.11 to 26.05, and what they
// mean. Sources: the manual pages of squeue, sacct and sinfo ("job state codes", "node state
// codes").
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/execution.h"

namespace expanse::schedulers::slurm {

struct JobState {
  std::string name;                // the long word: "CANCELLED"; an unknown one as it came
  std::vector<std::string> flags;  // what came with it: "COMPLETING"; long words too
  std::optional<uid_t> cancelled_by;
  evidence::ExecutionStatus status = evidence::ExecutionStatus::kUnspecified;
  evidence::Outcome outcome = evidence::Outcome::kUnspecified;
  // The run has ended and the scheduler is done with it: a state that no later one replaces. Not so
  // while nodes still clean up (COMPLETING) or data is staged out.
  bool final = false;
  bool operator==(const JobState&) const = default;
};

// "RUNNING", "PD", "CANCELLED by 1234", "CANCELLED+" (cut by a column's width), several words
// joined by blanks, commas, "+", "|" or "&". A word that is not known keeps its spelling and says
// nothing.
JobState ParseJobState(std::string_view text);
// The same for a list, as JSON has it: the state first, or only flags.
JobState JobStateFromWords(std::span<const std::string_view> words);

struct NodeState {
  std::string base;                // "IDLE", "MIXED", "ALLOCATED", "DOWN", ...; "" if unknown
  std::vector<std::string> flags;  // "DRAIN", "NOT_RESPONDING", "PLANNED", ...; each once
  // Takes jobs: neither down, draining, reserved for maintenance, powered down nor without answer.
  bool usable = false;
  bool operator==(const NodeState&) const = default;
  bool Has(std::string_view flag) const;
};

// scontrol's "IDLE+DRAIN", "DOWN*+DRAIN", "MIXED+PLANNED", and sinfo's long and compact words with
// their marks: "mixed*", "down$", "idle~", "drng", "alloc".
NodeState ParseNodeState(std::string_view text);

}  // namespace expanse::schedulers::slurm
