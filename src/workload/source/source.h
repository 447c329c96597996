// Source files: programs and scripts that ask a scheduler for nothing. Their language, what they
// run and the files they name; what they will need is for source_facts.h to find.
#pragma once

#include <string_view>

#include "workload/submission.h"

namespace expanse::workload {

// "python", "shell", "r", "julia", "notebook", … by the file's name, then by its "#!" line, then
// by what it begins with; empty where none of them tells.
std::string_view SourceLanguage(std::string_view path, std::string_view text);

// One part without settings. Commands: those of a shell script, else the one that runs the file,
// where its language has an interpreter. Refuses with "too_large", "binary" or "unknown_format".
Parsed<Submission> ParseSource(std::string_view path, std::string_view text);

}  // namespace expanse::workload
