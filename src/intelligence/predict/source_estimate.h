// What a workload will need, from its source alone: for one that no recorded run tells of. Always
// of low confidence; every amount has the reason that it comes from, and what the source leaves
// open is said in sentences. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "intelligence/predict/recommend.h"
#include "intelligence/predict/run.h"
#include "workload/source/source_facts.h"
#include "workload/submission.h"

namespace expanse::intelligence::predict {

struct Estimate {
  std::optional<double> amount;  // of the whole part, as computed
  std::string reason;            // one sentence
};

struct SourceEstimate {
  Estimate cpu;
  Estimate memory;
  Estimate gpu;
  Estimate walltime;
  Estimate gpu_memory;                // what each device must have at least
  std::vector<std::string> missing;   // what the source does not tell, and would have to
  std::vector<std::string> warnings;  // what will not work as it is written
};

SourceEstimate EstimateFromSource(const workload::SourceFacts& facts, const workload::Part& part,
                                  const Amounts& requested);

// Puts the estimate into a recommendation that no run supports: what was not asked for is filled
// in, what was asked for is raised where the source needs more and never lowered.
void ApplySourceEstimate(const SourceEstimate& estimate, Recommendation* recommendation);

}  // namespace expanse::intelligence::predict
