// Slurm batch scripts, read as sbatch of 20.11 to 26.05 reads them: its directives, the resources
// that they ask for, the commands behind them, and the edits that change what is asked for.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/patch/edit.h"
#include "workload/submission.h"

namespace expanse::workload {

// One part per component (one, or one per "#SBATCH hetjob" more). Settings stand for every
// directive with a quantity, replaced ones too (effective = false); totals are what Slurm would
// reserve at least (one node where none is named, one task per node, one CPU per task). Linear in
// the text.
//
// Refuses what every sbatch refuses: no "#!" in the first line, an unmatched quote, a word that is
// no option, a value that its option cannot have, a missing value, options that exclude each other.
// Long options that no sbatch knows are noted: a site's plugins can add some.
Parsed<Submission> ParseSbatch(std::string_view text);

// Edits of one script, see PlanEdits of workload/parse.h. Amounts are rounded up in the unit that
// the script uses; walltimes to minutes. Never changes how many tasks or nodes there are.
base::Result<std::vector<Edit>> PlanSbatchEdits(std::string_view text, const Submission& submission,
                                                const std::vector<Wanted>& wanted);

}  // namespace expanse::workload
