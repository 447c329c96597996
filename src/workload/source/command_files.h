// Which files commands name: the scripts that they run and what looks like an input of those.
#pragma once

#include <string>
#include <vector>

#include "workload/submission.h"

namespace expanse::workload::source {

inline constexpr std::size_t kMaxCommandFiles = 256;

// As written, in order, each once, at most kMaxCommandFiles: programs by a relative path ("./run"),
// what an interpreter is given to run, and words (or what stands behind "=" in one) that end like a
// source, a configuration or an input does. Words that need a shell to know are left out.
std::vector<std::string> FilesOfCommands(const std::vector<Command>& commands);

}  // namespace expanse::workload::source
