// What makes the needs of runs differ: their arguments, or one number in them. Pure. Internal to
// history.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "intelligence/predict/run.h"

namespace expanse::intelligence::history {

// A run and the group that its arguments put it in.
struct GroupedRun {
  const predict::Run* run = nullptr;
  std::string arguments;  // equal for equal arguments
};

// The share of the spread of a need (its logarithm) that lies between groups of equal arguments
// rather than within them, adjusted for their number (adjusted R²): the larger one of memory and
// run time, over runs that succeeded. Absent where it cannot be told: fewer than kFewestToJudge
// runs, fewer than two groups of at least two, or needs that hardly differ.
struct Explained {
  double share = 0;
  predict::Resource resource = predict::Resource::kMemory;
};
std::optional<Explained> ExplainedByArguments(const std::vector<GroupedRun>& runs);

inline constexpr std::size_t kFewestToJudge = 6;
inline constexpr double kArgumentsMatter = 0.5;

// Numbers of one run, or of what is asked: of the arguments and of the submitted file, with what
// they are part of.
struct RunNumbers {
  std::string shape;
  std::vector<double> values;
};

// The one place at which the numbers of `runs` and `asked` differ, over those with the shape that
// was asked; absent where none or several do.
std::optional<std::size_t> OneThatVaries(const RunNumbers& asked,
                                         const std::vector<RunNumbers>& runs);

}  // namespace expanse::intelligence::history
