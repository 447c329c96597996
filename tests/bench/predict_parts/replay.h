// Replays a trace in submit order, group by group: a policy sets each run's limit knowing only what
// had ended by then; a limit below the need fails and is tried again. Deterministic.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/predict_parts/policies.h"
#include "bench/predict_parts/trace.h"

namespace expanse::bench {

enum class Half : std::uint8_t { kAll, kTuned, kHeld };

// One run under every policy, for who wants to see where a policy fails.
struct PlayedRun {
  const TraceRun* run = nullptr;
  Resource resource = Resource::kMemory;
  double need = 0;
  std::size_t known = 0;  // runs that had ended
  struct Limit {
    double first = 0;  // 0: the policy had no answer
    double allocated = 0;
  };
  std::vector<Limit> limits;  // in the order of the policies of a score
};

struct ReplayOptions {
  std::uint64_t seed = 1;
  Half half = Half::kAll;
  bool round_to_units = true;  // every policy's limits, as requests are written
  std::string only_policy;     // empty: all
  double target = 0.95;
  std::function<void(const PlayedRun&)> on_run;
};

struct PolicyScore {
  std::string policy;
  std::size_t runs = 0;
  std::size_t failed_first = 0;
  std::size_t tries = 0;
  double allocated = 0;  // GiB-hours, or core-hours reserved by the limits; failed tries included
};

// Of our predictions, over the limits that the policies chose.
struct ForecastScore {
  std::size_t forecasts = 0;
  double brier = 0;  // of the chance that a run fits a limit
  struct Bin {
    std::size_t forecasts = 0;
    double predicted = 0;  // mean
    double happened = 0;   // share
  };
  std::array<Bin, 10> bins;
  // Of the predicted need, in shares of the mean need.
  std::size_t intervals = 0;
  double pinball_p10 = 0;
  double pinball_p90 = 0;
  double coverage = 0;  // of [p10, p90]
  double below_p10 = 0;
  double above_p90 = 0;
};

// Of the probability that a run completes (Jeffreys), where runs fail of their own.
struct CompletionScore {
  std::size_t forecasts = 0;
  double brier = 0;
  double brier_of_base_rate = 0;  // always predicting the trace's share of completions
};

struct ResourceScore {
  Resource resource = Resource::kMemory;
  double used = 0;  // as `allocated`
  std::vector<PolicyScore> policies;
  ForecastScore forecast;
};

struct TraceScore {
  std::string trace;
  std::size_t runs = 0;
  std::size_t groups = 0;
  std::vector<ResourceScore> resources;
  CompletionScore completion;
  std::vector<double> recommendation_us;  // one a call
};

TraceScore Replay(const Trace& trace, const ReplayOptions& options);

// The policies with both fewer first-try failures and less waste than `ours` (index 0).
std::vector<std::string> DominatedBy(const ResourceScore& score);

}  // namespace expanse::bench
