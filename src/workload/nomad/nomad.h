// Nomad jobspecs: HCL2 with variables, locals, functions and dynamic blocks, the older HCL1
// spelling, JSON of both kinds (the API's and HCL's own). One part per task; nothing is asked of
// the world, so what files, clocks or the environment decide is unresolved. Pure; time and memory
// are bounded by the text and by fixed limits on depth, expressions and steps of evaluation.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/parse_options.h"
#include "workload/patch/edit.h"
#include "workload/submission.h"

namespace expanse::workload {

// Refuses with "too_large", "too_deep", "syntax", "templated" (a template of Levant, nomad-pack or
// the like decides what stands there), "not_a_workload" (no job, or one without tasks) and
// "duplicate_block". Looser than Nomad where old spellings or values that are still to be filled in
// need it: that a jobspec parses does not mean that Nomad takes it.
Parsed<Submission> ParseNomad(std::string_view text, const ParseOptions& options = {});

// As PlanEdits of parse.h. Memory is written in whole MiB, and memory_max raised where it would
// fall below. A value that an expression gives is changed where it comes from if that is the
// literal default of a variable, or a literal local, that nothing else uses. CPU is changed only
// where the task counts in `cores`: how many MHz a core has the text does not say.
base::Result<std::vector<Edit>> PlanNomadEdits(std::string_view text, const Submission& submission,
                                               const std::vector<Wanted>& wanted,
                                               const ParseOptions& options = {});

}  // namespace expanse::workload
