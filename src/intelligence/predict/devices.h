// Cores and GPUs: what a run is given of them slows it down rather than ends it, so the rules are
// about what stood idle and what was not enough. Pure.
#pragma once

#include <optional>
#include <span>

#include "intelligence/predict/recommend.h"

namespace expanse::intelligence::predict {

// Cores are lowered to what the busiest run used (its busiest minute where sampled, else its mean
// with a quarter on top) when at least one whole core and a tenth of the request stood idle in
// every measured run; raised only when runs used more than they asked for, which a scheduler that
// does not confine them allows.
ResourceAdvice AdviseCpu(std::span<const Run> runs, std::optional<double> requested);

// Devices are only ever lowered, to the most that any run made active, and only when at least two
// runs tell and all of them left a device idle.
ResourceAdvice AdviseGpu(std::span<const Run> runs, std::optional<double> requested);

struct GpuMemory {
  std::optional<double> peak_bytes;  // of the device that needed most
  // The least with which a run succeeded: what a device must have at least. Allocators that keep
  // what they have taken make larger peaks on larger devices.
  std::optional<double> floor_bytes;
  std::optional<double> available_bytes;  // of the newest run's device
  std::optional<double> utilisation_pct;  // mean over runs
  std::string gpu_type;
};
GpuMemory MeasuredGpu(std::span<const Run> runs);

}  // namespace expanse::intelligence::predict
