// What would end the next run at the resources that were requested, from runs that ended so or that
// needed more. Pure.
#pragma once

#include <span>
#include <vector>

#include "intelligence/predict/limits.h"
#include "intelligence/predict/recommend.h"

namespace expanse::intelligence::predict {

// Likeliest first; only what at least one run speaks for. Each probability counts runs: those that
// would not have fitted (or failed) of those that tell.
std::vector<Risk> RisksAt(std::span<const Run> runs, Basis basis, const Amounts& requested,
                          const std::optional<LimitModel>& memory,
                          const std::optional<LimitModel>& walltime,
                          std::optional<double> gpu_memory_available_bytes);

// The class of what is likeliest to go wrong at the recommended amounts, "none" where no run speaks
// for anything.
std::string ResidualClass(std::span<const Run> runs, const std::optional<LimitModel>& memory,
                          const std::optional<LimitModel>& walltime,
                          std::optional<double> memory_amount,
                          std::optional<double> walltime_amount);

}  // namespace expanse::intelligence::predict
