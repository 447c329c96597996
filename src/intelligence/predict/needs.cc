#include "intelligence/predict/needs.h"

#include <algorithm>
#include <cmath>

namespace expanse::intelligence::predict {
namespace {

// The larger of those that are known.
std::optional<double> Larger(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

Observation Observe(const Run& run, std::size_t index, double need) {
  Observation observation;
  observation.need = need;
  observation.run = index;
  observation.submitted_micros = run.submitted_micros;
  if (const auto size = Positive(run.input_size)) observation.input_size = *size;
  return observation;
}

std::optional<Observation> MemoryNeed(const Run& run, std::size_t index) {
  const auto peak = Positive(run.memory_peak_bytes);
  switch (run.ending) {
    case Ending::kSuccess:
      if (!peak) return std::nullopt;
      return Observe(run, index, *peak * (run.memory_is_floor ? kSampledPeakMargin : 1.0));
    case Ending::kOutOfMemory: {
      const auto limit = Larger(Positive(run.requested.memory_bytes), peak);
      if (!limit) return std::nullopt;
      Observation observation = Observe(run, index, *limit);
      observation.censored = observation.killed = true;
      return observation;
    }
    case Ending::kFailure:
    case Ending::kTimeout: {
      if (!peak) return std::nullopt;
      Observation observation = Observe(run, index, *peak);
      observation.censored = true;
      return observation;
    }
    case Ending::kCancelled:
    case Ending::kInfrastructure:
    case Ending::kUnknown:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Observation> WalltimeNeed(const Run& run, std::size_t index) {
  // Schedulers count whole seconds: a run of "0 s" took less than one.
  std::optional<double> runtime = run.runtime_s;
  if (runtime && std::isfinite(*runtime) && *runtime >= 0) runtime = std::max(*runtime, 1.0);
  runtime = Positive(runtime);
  if (run.ending == Ending::kSuccess && runtime) return Observe(run, index, *runtime);
  if (run.ending != Ending::kTimeout) return std::nullopt;
  const auto limit = Larger(Positive(run.requested.walltime_s), runtime);
  if (!limit) return std::nullopt;
  Observation observation = Observe(run, index, *limit);
  observation.censored = observation.killed = true;
  return observation;
}

template <typename Need>
std::vector<Observation> Collect(std::span<const Run> runs, Need need) {
  std::vector<Observation> needs;
  needs.reserve(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (auto observation = need(runs[i], i)) needs.push_back(*observation);
  }
  return needs;
}

}  // namespace

std::optional<double> Positive(std::optional<double> value) {
  if (!value || !std::isfinite(*value) || *value <= 0) return std::nullopt;
  return value;
}

std::vector<Observation> MemoryNeeds(std::span<const Run> runs) {
  return Collect(runs, MemoryNeed);
}

std::vector<Observation> WalltimeNeeds(std::span<const Run> runs) {
  return Collect(runs, WalltimeNeed);
}

}  // namespace expanse::intelligence::predict
