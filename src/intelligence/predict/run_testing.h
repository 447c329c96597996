// Runs for the predictor's tests.
#pragma once

#include <vector>

#include "intelligence/predict/run.h"

namespace expanse::intelligence::predict {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;
inline constexpr double kHour = 3600;

// gtest's fixtures have a member named Run.
using RecordedRun = Run;
using Runs = std::vector<Run>;

inline RecordedRun Succeeded(double memory_gib, double runtime_s) {
  RecordedRun run;
  run.ending = Ending::kSuccess;
  run.memory_peak_bytes = memory_gib * kGiB;
  run.runtime_s = runtime_s;
  return run;
}

inline RecordedRun OutOfMemoryAt(double limit_gib) {
  RecordedRun run;
  run.ending = Ending::kOutOfMemory;
  run.requested.memory_bytes = limit_gib * kGiB;
  run.memory_peak_bytes = limit_gib * kGiB * 0.99;
  run.runtime_s = 60;
  return run;
}

inline RecordedRun TimedOutAt(double limit_s) {
  RecordedRun run;
  run.ending = Ending::kTimeout;
  run.requested.walltime_s = limit_s;
  run.runtime_s = limit_s + 4;
  return run;
}

inline RecordedRun Ended(Ending ending) {
  RecordedRun run;
  run.ending = ending;
  return run;
}

}  // namespace expanse::intelligence::predict
