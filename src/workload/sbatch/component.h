// One component of a batch script: its options as settings of a part, and what they add up to.
#pragma once

#include <string>
#include <vector>

#include "workload/sbatch/arguments.h"
#include "workload/sbatch/totals.h"
#include "workload/submission.h"

namespace expanse::workload::sbatch {

struct ComponentReading {
  Part part;
  Asked asked;
  // Options that the next component of a het job starts with: of the same vectors.
  std::vector<const Given*> carried;
  std::vector<std::string> outputs;
  std::string input;      // --input
  std::string directory;  // --chdir
};

// `carried`: of the component before. Both must outlive what is returned. Refuses values that
// sbatch refuses, and options that exclude each other.
Parsed<ComponentReading> ReadComponent(const std::vector<Given>& given,
                                       const std::vector<const Given*>& carried,
                                       const LineIndex& lines, std::string_view text);

}  // namespace expanse::workload::sbatch
