// The options that a component's words give, taken as getopt_long takes them: short options joined
// ("-HQ", "-n4"), values behind "=" or in the next word, unique beginnings of long names.
#pragma once

#include <string>
#include <vector>

#include "workload/line_index.h"
#include "workload/sbatch/directives.h"
#include "workload/sbatch/options.h"

namespace expanse::workload::sbatch {

struct Given {
  const Option* option = nullptr;  // nullptr: no release of sbatch has it
  std::string written;             // as in the file: "--mem", "-t", "--nta"; "#PBS -l mem"
  std::size_t at = 0;              // of its first byte
  bool has_value = false;
  Piece value;
  std::uint32_t times = 1;  // what a count is multiplied by: nodes, of "#PBS -l nodes=2:ppn=4"
};

// Refuses with "invalid_directive" (a word that is no option), "missing_value",
// "unexpected_value", "ambiguous_option". Options nobody knows, and words that a template would
// replace, become notes.
Parsed<std::vector<Given>> ReadArguments(const Component& component, const LineIndex& lines,
                                         std::vector<Note>& notes);

}  // namespace expanse::workload::sbatch
