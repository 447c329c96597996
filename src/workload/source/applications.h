// Programs of science and engineering that are known by the name of their binary.
#pragma once

#include <string_view>
#include <vector>

#include "workload/submission.h"

namespace expanse::workload::source {

struct KnownApplication {
  std::string_view name;                              // "gromacs"
  std::vector<std::string_view> programs;             // base names
  std::vector<std::string_view> thread_options = {};  // whose value is a number of threads
};

// The application whose program the words begin with, behind an interpreter ("python x/spades.py",
// "java -jar picard.jar") too; null for programs that are not known.
const KnownApplication* FindApplication(const std::vector<Word>& words);

}  // namespace expanse::workload::source
