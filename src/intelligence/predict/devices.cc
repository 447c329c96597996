#include "intelligence/predict/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "intelligence/predict/needs.h"
#include "intelligence/predict/probability.h"
#include "intelligence/predict/units.h"

namespace expanse::intelligence::predict {
namespace {

constexpr double kMeanMargin = 1.25;  // a mean hides the busy minutes
constexpr double kIdleShare = 0.1;
constexpr double kSaturated = 1.05;  // measured above the request by more than noise
constexpr std::size_t kFewestForGpu = 2;

bool Ran(const Run& run) {
  return run.ending == Ending::kSuccess || run.ending == Ending::kTimeout;
}

struct CpuUse {
  double most = 0;        // cores, with the margin where only means are known
  double plain_most = 0;  // as measured
  std::size_t runs = 0;
  std::size_t above_request = 0;
};

CpuUse MeasureCpu(std::span<const Run> runs) {
  CpuUse use;
  for (const Run& run : runs) {
    const auto mean = Positive(run.cpu_mean_cores);
    const auto peak = Positive(run.cpu_peak_cores);
    if (!Ran(run) || (!mean && !peak)) continue;
    ++use.runs;
    const double plain = peak ? std::max(*peak, mean.value_or(0)) : *mean;
    use.plain_most = std::max(use.plain_most, plain);
    use.most = std::max(use.most, peak ? plain : plain * kMeanMargin);
    const auto asked = Positive(run.requested.cpu_cores);
    if (asked && mean && *mean > *asked * kSaturated) ++use.above_request;
  }
  return use;
}

}  // namespace

ResourceAdvice AdviseCpu(std::span<const Run> runs, std::optional<double> requested) {
  ResourceAdvice advice;
  advice.resource = Resource::kCpu;
  advice.requested = requested;
  advice.amount = requested;
  const CpuUse use = MeasureCpu(runs);
  advice.runs = use.runs;
  if (use.runs == 0) {
    advice.reason = "no recorded run tells how many cores are used";
    return advice;
  }
  advice.floor = use.plain_most;
  const std::string used =
      fmt::format("the busiest of {} run{} used {}", use.runs, use.runs == 1 ? "" : "s",
                  Say(Resource::kCpu, use.plain_most));
  const double enough = RoundUpToUnit(Resource::kCpu, use.most);
  if (!requested) {
    advice.amount = enough;
    advice.reason = used;
  } else if (enough <= *requested - 1 && enough <= (1 - kIdleShare) * *requested) {
    advice.amount = enough;
    advice.change = Change::kLower;
    advice.reason = fmt::format("{} of the {} requested", used, Say(Resource::kCpu, *requested));
  } else if (2 * use.above_request >= use.runs && use.plain_most > *requested * kSaturated) {
    advice.amount = RoundUpToUnit(Resource::kCpu, use.plain_most);
    advice.change = Change::kRaise;
    advice.reason = fmt::format("{}, more than requested", used);
  } else {
    advice.reason = fmt::format("{}, the {} requested fit", used, Say(Resource::kCpu, *requested));
  }
  return advice;
}

ResourceAdvice AdviseGpu(std::span<const Run> runs, std::optional<double> requested) {
  ResourceAdvice advice;
  advice.resource = Resource::kGpu;
  advice.requested = requested;
  advice.amount = requested;
  double most = 0;
  bool idle_in_all = true;
  for (const Run& run : runs) {
    if (!Ran(run) || !run.gpus_active || !std::isfinite(*run.gpus_active) || *run.gpus_active < 0)
      continue;
    ++advice.runs;
    most = std::max(most, *run.gpus_active);
    const auto had = Positive(run.requested.gpu_count);
    if (!had || *run.gpus_active >= *had) idle_in_all = false;
  }
  if (advice.runs == 0) {
    if (requested) advice.reason = "no recorded run tells how many GPUs are used";
    return advice;
  }
  advice.floor = most;
  const std::string used = fmt::format("{} run{} made at most {} active", advice.runs,
                                       advice.runs == 1 ? "" : "s", Say(Resource::kGpu, most));
  advice.reason = used;
  if (!requested) {
    if (most > 0) advice.amount = std::ceil(most);
    return advice;
  }
  if (advice.runs >= kFewestForGpu && idle_in_all && std::ceil(most) < *requested) {
    advice.amount = std::ceil(most);
    advice.change = Change::kLower;
    advice.reason = fmt::format("{} of the {} requested", used, Say(Resource::kGpu, *requested));
  }
  return advice;
}

GpuMemory MeasuredGpu(std::span<const Run> runs) {
  GpuMemory measured;
  double utilisation = 0;
  std::size_t utilised = 0;
  for (const Run& run : runs) {
    if (!run.gpu_type.empty()) measured.gpu_type = run.gpu_type;
    if (const auto available = Positive(run.gpu_memory_available_bytes))
      measured.available_bytes = available;
    if (!TellsOfCompletion(run.ending)) continue;
    if (const auto peak = Positive(run.gpu_memory_peak_bytes)) {
      measured.peak_bytes = std::max(measured.peak_bytes.value_or(0), *peak);
      if (run.ending == Ending::kSuccess)
        measured.floor_bytes = std::min(measured.floor_bytes.value_or(*peak), *peak);
    }
    if (run.gpu_utilisation_pct && std::isfinite(*run.gpu_utilisation_pct)) {
      utilisation += *run.gpu_utilisation_pct;
      ++utilised;
    }
  }
  if (utilised > 0) measured.utilisation_pct = utilisation / static_cast<double>(utilised);
  return measured;
}

}  // namespace expanse::intelligence::predict
