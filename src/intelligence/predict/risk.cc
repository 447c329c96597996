#include "intelligence/predict/risk.h"

#include <fmt/format.h>

#include <algorithm>

#include "intelligence/predict/probability.h"
#include "intelligence/predict/units.h"

namespace expanse::intelligence::predict {
namespace {

struct Outgrown {
  std::size_t runs = 0;  // that tell whether the limit would have been enough
  std::size_t too_small = 0;
  std::size_t killed = 0;  // of those: by a limit that was at least as high
  double largest = 0;      // need, or limit exceeded
};

Outgrown CountOutgrown(const LimitModel& limit, double amount) {
  Outgrown count;
  for (const Observation& need : limit.needs) {
    const bool too_small = need.killed ? need.need >= amount : need.need > amount;
    // Killed below the amount: whether that would have been enough nobody knows.
    if (need.censored && !too_small) continue;
    ++count.runs;
    if (!too_small) continue;
    ++count.too_small;
    if (need.killed) ++count.killed;
    count.largest = std::max(count.largest, need.need);
  }
  return count;
}

Probability ShareOf(std::size_t bad, std::size_t runs, Basis basis) {
  return Residual(JeffreysProbability(runs - bad, runs, basis));
}

void AddLimitRisk(std::vector<Risk>& risks, const std::optional<LimitModel>& limit,
                  std::optional<double> requested, std::string risk_class, Basis basis) {
  if (!limit || !requested) return;
  const Outgrown count = CountOutgrown(*limit, *requested);
  if (count.too_small == 0) return;
  const Resource resource = limit->resource;
  std::string summary =
      fmt::format("{} of {} run{} needed more than the {} requested (up to {}{})", count.too_small,
                  count.runs, count.runs == 1 ? "" : "s", Say(resource, *requested),
                  count.killed > 0 ? "more than " : "", Say(resource, count.largest));
  if (count.killed > 0) summary += fmt::format("; {} ended by the limit", count.killed);
  risks.push_back(
      {std::move(risk_class), ShareOf(count.too_small, count.runs, basis), std::move(summary)});
}

void AddGpuMemoryRisk(std::vector<Risk>& risks, std::span<const Run> runs,
                      std::optional<double> available, Basis basis) {
  available = Positive(available);
  if (!available) return;
  std::size_t measured = 0;
  std::size_t too_small = 0;
  double largest = 0;
  for (const Run& run : runs) {
    const auto peak = Positive(run.gpu_memory_peak_bytes);
    if (run.ending != Ending::kSuccess || !peak) continue;
    ++measured;
    largest = std::max(largest, *peak);
    if (*peak > *available) ++too_small;
  }
  if (too_small == 0) return;
  risks.push_back(
      {"gpu_out_of_memory", ShareOf(too_small, measured, basis),
       fmt::format("{} of {} runs used more GPU memory than the device's {} (up to {})", too_small,
                   measured, Say(Resource::kMemory, *available), Say(Resource::kMemory, largest))});
}

std::size_t CountFailures(std::span<const Run> runs) {
  return static_cast<std::size_t>(
      std::ranges::count_if(runs, [](const Run& run) { return run.ending == Ending::kFailure; }));
}

}  // namespace

std::vector<Risk> RisksAt(std::span<const Run> runs, Basis basis, const Amounts& requested,
                          const std::optional<LimitModel>& memory,
                          const std::optional<LimitModel>& walltime,
                          std::optional<double> gpu_memory_available_bytes) {
  std::vector<Risk> risks;
  AddLimitRisk(risks, memory, Positive(requested.memory_bytes), "out_of_memory", basis);
  AddLimitRisk(risks, walltime, Positive(requested.walltime_s), "timeout", basis);
  AddGpuMemoryRisk(risks, runs, gpu_memory_available_bytes, basis);
  if (const std::size_t failed = CountFailures(runs); failed > 0) {
    const auto told = static_cast<std::size_t>(
        std::ranges::count_if(runs, [](const Run& run) { return TellsOfCompletion(run.ending); }));
    risks.push_back({"failure", ShareOf(failed, told, basis),
                     fmt::format("{} of {} run{} failed of {} own", failed, told,
                                 told == 1 ? "" : "s", failed == 1 ? "its" : "their")});
  }
  std::ranges::stable_sort(risks, std::ranges::greater{},
                           [](const Risk& risk) { return risk.probability.mean; });
  return risks;
}

std::string ResidualClass(std::span<const Run> runs, const std::optional<LimitModel>& memory,
                          const std::optional<LimitModel>& walltime,
                          std::optional<double> memory_amount,
                          std::optional<double> walltime_amount) {
  Amounts recommended;
  recommended.memory_bytes = memory_amount;
  recommended.walltime_s = walltime_amount;
  const std::vector<Risk> risks =
      RisksAt(runs, Basis::kNone, recommended, memory, walltime, std::nullopt);
  return risks.empty() ? "none" : risks.front().risk_class;
}

}  // namespace expanse::intelligence::predict
