// A batch script with what its reader and its patcher share.
#pragma once

#include <string_view>
#include <vector>

#include "workload/sbatch/component.h"
#include "workload/sbatch/directives.h"
#include "workload/submission.h"

namespace expanse::workload::sbatch {

struct Script {
  Submission submission;
  std::vector<Asked> asked;  // of each part
  std::size_t body = 0;      // first byte behind the directives
};

Parsed<Script> ReadScript(std::string_view text);

}  // namespace expanse::workload::sbatch
