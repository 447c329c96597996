// #PBS and #BSUB lines: sbatch obeys some of them, after its own directives, unless --ignore-pbs
// stands among those. What it makes of them was seen on 22.05.8.
#pragma once

#include <vector>

#include "workload/sbatch/arguments.h"
#include "workload/sbatch/directives.h"

namespace expanse::workload::sbatch {

// The options of sbatch that they stand for, in the order in which they come to count (PBS before
// BSUB). Adds a note for each scheduler that they are obeyed; what sbatch leaves out of them has no
// option here.
std::vector<Given> ReadForeign(const std::vector<ForeignLine>& lines, const LineIndex& index,
                               std::vector<Note>& notes);

}  // namespace expanse::workload::sbatch
