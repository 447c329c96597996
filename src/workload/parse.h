// The one entry to the parsers: finds out what a file is and reads it.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/parse_options.h"
#include "workload/patch/edit.h"
#include "workload/submission.h"

namespace expanse::workload {

// By content first (a #SBATCH line, apiVersion and kind, a job block or Nomad's JSON), by name
// (.sbatch .slurm .yaml .yml .json .nomad .hcl .py …) and shebang where the content leaves it open.
// Refuses with "unknown_format" what is none of them.
Parsed<Format> DetectFormat(std::string_view path, std::string_view text);

Parsed<Submission> Parse(std::string_view path, std::string_view text,
                         const ParseOptions& options = {});

// Edits that make the submission ask for what is wanted, in the unit and spelling that the file
// uses; none for what it asks for already. Every edit is checked by parsing the edited text again:
// fails with "patch.unresolved" (the value is a template), "patch.no_place" (nowhere to write it),
// "patch.not_reached" (the edited text would not ask for it).
base::Result<std::vector<Edit>> PlanEdits(std::string_view path, std::string_view text,
                                          const Submission& submission,
                                          const std::vector<Wanted>& wanted,
                                          const ParseOptions& options = {});

}  // namespace expanse::workload
