// Memory and walltime: what a limit must be for the next run to fit with a given chance, both
// chosen together. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "intelligence/predict/input_size.h"
#include "intelligence/predict/need_model.h"
#include "intelligence/predict/needs.h"
#include "intelligence/predict/recommend.h"

namespace expanse::intelligence::predict {

// A request that no run has outgrown is raised only if a need came this near to it.
inline constexpr double kMemoryHeadroom = 0.05;
inline constexpr double kWalltimeHeadroom = 0.10;
// Lowering is proposed if it gives back at least this share of the request.
inline constexpr double kWorthLowering = 0.10;

// A limit is at most this many times the largest need (or what the input's size lets expect, or the
// limit that the last run was killed at); less where the runs share a name alone, whose longest
// tails no limit of use would cover. There a walltime that was asked for is of use: its user knows
// more than the name tells.
inline constexpr double kMostTimes = 2;
inline constexpr double kMostTimesOfName = 1.5;
// Of a name alone, one run does not speak against the walltime that was asked for.
inline constexpr std::size_t kFewestToDoubtWalltime = 2;
// While fewer runs tell, this many times the largest need is asked for, within bounds so low that
// what less memory would give back is worth less than a failed run.
inline constexpr std::size_t kFewRuns = 4;
inline constexpr double kTimesOfFewRuns = 4;
inline constexpr double kLeastMemoryOfFewRuns = 128.0 * 1024 * 1024;
inline constexpr double kMostMemoryOfFewRuns = 256.0 * 1024 * 1024;
// A unit more that is this many times as much is weighed as a whole.
inline constexpr double kCoarseUnit = 1.4;
// What a failed run costs, in requests of its size: it is made again, and somebody has to.
inline constexpr double kFailureCost = 5;

// One limit's history, ready to be asked.
struct LimitModel {
  Resource resource = Resource::kMemory;
  NeedModel model;
  std::vector<Observation> needs;  // adjusted to the input size, if that explains them
  std::optional<Explanation> explanation;
  bool same_request = false;  // only runs that asked for the same were read
  double floor = 0;
  double most = 0;  // what is asked for at most; 0: no bound
};

// Nothing where no run tells of the resource. `requested`: what the next run asks for.
std::optional<LimitModel> ModelLimit(Resource resource, std::span<const Run> runs, Basis basis,
                                     const Amounts& requested, std::optional<double> input_size);

// The cheapest amount whose chance is at least `chance`, that is not below the floor, and beyond
// which more would not pay: a request goes on while one per cent more of it buys more than
// 1/kFailureCost per cent of chance.
double AmountFor(const LimitModel& limit, double chance, bool round_to_units);

struct LimitAmounts {
  std::optional<double> memory;
  std::optional<double> walltime;
};
// The pair whose joint chance is at least `target` (needs taken as independent) and whose relative
// cost is least; where only one is known, that one alone.
LimitAmounts ChooseTogether(const std::optional<LimitModel>& memory,
                            const std::optional<LimitModel>& walltime, double target,
                            bool round_to_units);

// What to do about a request, given the amount that clears the target: lower, raise or leave, with
// the reason.
ResourceAdvice AdviseLimit(Resource resource, const std::optional<LimitModel>& limit,
                           std::optional<double> amount, std::optional<double> requested,
                           double target);

}  // namespace expanse::intelligence::predict
