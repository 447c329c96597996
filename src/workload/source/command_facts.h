// Facts of command lines: options of training scripts and servers, what launchers start, programs
// that are known by name.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "workload/source/fact_collector.h"
#include "workload/submission.h"

namespace expanse::workload::source {

// By name without dashes, lower case, "_" for "-". A switch is true; what is given and not known is
// an empty symbol.
using Options = std::map<std::string, Literal, std::less<>>;
Options OptionsOf(const std::vector<Word>& words);

// A command of a part, its launchers included.
void ReadCommandFacts(const Command& command, FactCollector* facts);
// A part whose image is a server's and whose arguments are all there is of a command.
void ReadImageFacts(const Part& part, FactCollector* facts);

// The script, module or program text that a Python command runs.
struct PythonTarget {
  std::string script;  // "train.py"
  std::string module;  // of -m
  std::string code;    // of -c, or from standard input
  std::vector<Word> arguments;
};
// Absent where the command runs no Python.
std::optional<PythonTarget> PythonTargetOf(const Command& command);

Evidence EvidenceOf(const Command& command);

}  // namespace expanse::workload::source
