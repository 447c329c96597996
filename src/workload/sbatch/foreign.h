// #PBS and #BSUB lines: sbatch obeys some of them, after its own directives, unless --ignore-pbs
// stands among those. What it makes of them was seen on 22.05.8.
#pragma once

#include <vector>

#include "workload/sbatch/arguments.h"
#include "workload/sbatch/directives.h"

namespace expanse::workload::sbatch {

// The options of sbatch that they stand for; #PBS lines only where there are no #BSUB lines. Adds a
// note that they are obeyed. What sbatch leaves out of them has no option here.
Parsed<std::vector<Given>> ReadForeign(const std::vector<ForeignLine>& lines,
                                       const LineIndex& index, std::vector<Note>& notes);

}  // namespace expanse::workload::sbatch
