// What recorded runs say about a need. A run is one observation for the resource it tells about:
// what a successful run used is its need; a run killed at a limit needed more than that
// (censored); cancelled runs and node failures say nothing. Pure data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "intelligence/predict/run.h"

namespace expanse::intelligence::predict {

struct Observation {
  double need = 0;        // positive; bytes or seconds
  bool censored = false;  // needed more than `need`
  bool killed = false;    // by the limit `need`
  double input_size = std::numeric_limits<double>::quiet_NaN();
  std::int64_t submitted_micros = 0;  // 0: unknown
  std::size_t run = 0;                // index into the runs
};

// Sampled peaks miss what happened between two samples: they count as this much more.
inline constexpr double kSampledPeakMargin = 1.05;

// Memory: the peak of a successful run; more than its limit where it was killed for memory; at
// least its peak where it failed otherwise. Walltime: the run time of a successful run; more than
// its limit where that ended it; a crash tells nothing. Oldest first, as the runs.
std::vector<Observation> MemoryNeeds(std::span<const Run> runs);
std::vector<Observation> WalltimeNeeds(std::span<const Run> runs);

// The value if it is finite and positive.
std::optional<double> Positive(std::optional<double> value);

}  // namespace expanse::intelligence::predict
