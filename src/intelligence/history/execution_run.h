// An execution as the predictor sees it. Pure. Internal to history.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/execution.h"
#include "intelligence/history/fingerprint.h"
#include "intelligence/predict/run.h"

namespace expanse::intelligence::history {

// What the index keeps of a run.
struct IndexedRun {
  std::string execution_id;
  std::string compute_id;
  evidence::SourceType source_type = evidence::SourceType::kUnspecified;
  std::string user;
  std::string job_name;
  std::string owner;  // OwnerName(…) or empty
  std::string arguments_hash;
  std::string arguments_shape;
  std::vector<double> numbers;        // of the arguments
  std::optional<double> array_index;  // of a task of a job array
  predict::Run run;                   // without similarity and input size
  bool operator==(const IndexedRun&) const = default;
};

// Whether the run is over, so that it tells something. A guessed end is none.
bool TellsSomething(const evidence::Execution& execution);

// Requested is what was really applied: what was allocated, else what was asked for. Memory peaks
// that were sampled, read from resident sets or of single processes are floors. Run time is without
// suspension.
IndexedRun ToIndexedRun(const evidence::Execution& execution);

// Node failures, preemption and the like come before the outcome: they say nothing about the
// workload.
predict::Ending EndingOf(const evidence::Execution& execution);

// The words behind the script or program, from a command line as argv or, as Slurm has it, as one
// word.
std::vector<std::string> ArgumentsOf(const std::vector<std::string>& command);

// From the labels that collectors set: owner.kind, owner.namespace and owner.name, or nomad.job and
// nomad.group.
std::string OwnerOf(const evidence::Execution& execution);

// For the index: not for reading by others or later versions. Decode: absent where it does not fit.
std::string EncodeRun(const IndexedRun& run);
std::optional<IndexedRun> DecodeRun(std::string_view bytes);

}  // namespace expanse::intelligence::history
