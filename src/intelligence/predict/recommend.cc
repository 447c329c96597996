#include "intelligence/predict/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "intelligence/predict/devices.h"
#include "intelligence/predict/limits.h"
#include "intelligence/predict/needs.h"
#include "intelligence/predict/probability.h"
#include "intelligence/predict/risk.h"

namespace expanse::intelligence::predict {
namespace {

constexpr std::size_t kMaxEvidence = 10;

// Of the same source it takes two runs: one alone may be any of many.
Confidence ConfidenceOf(Basis basis, std::size_t measured) {
  if (measured == 0) return Confidence::kLow;
  switch (basis) {
    case Basis::kExactBundle:
      return measured > 1 ? Confidence::kHigh : Confidence::kMedium;
    case Basis::kSimilarBundle:
    case Basis::kSameName:
      return Confidence::kMedium;
    case Basis::kNone:
      return Confidence::kLow;
  }
  return Confidence::kLow;
}

// Whether a run would have fitted, as far as one limit tells: nothing, fitted, or not.
enum class Fit : std::uint8_t { kUntold, kFits, kTooLarge };

void MarkFits(std::vector<Fit>& fits, const std::optional<LimitModel>& limit,
              std::optional<double> amount) {
  if (!limit || !amount) return;
  double largest = 0;
  for (const Observation& need : limit->needs) {
    if (!need.censored) largest = std::max(largest, need.need);
  }
  for (const Observation& need : limit->needs) {
    bool too_large = need.killed ? need.need >= *amount : need.need > *amount;
    // A run killed below the amount is like those that needed more (its mass lies on them, see
    // NeedModel). Where none did nobody knows what it needs: it is not known to fit.
    if (need.killed && need.need >= largest) too_large = true;
    if (need.censored && !too_large) continue;
    Fit& fit = fits[need.run];
    if (too_large)
      fit = Fit::kTooLarge;
    else if (fit == Fit::kUntold)
      fit = Fit::kFits;
  }
}

void CountFits(Recommendation& result, std::size_t run_count,
               const std::optional<LimitModel>& memory, const std::optional<LimitModel>& walltime) {
  std::vector<Fit> fits(run_count, Fit::kUntold);
  MarkFits(fits, memory, result.memory.amount);
  MarkFits(fits, walltime, result.walltime.amount);
  for (const Fit fit : fits) {
    if (fit != Fit::kUntold) ++result.runs;
    if (fit == Fit::kFits) ++result.fit;
  }
  if (result.runs > 0)
    result.score = static_cast<double>(result.fit + 1) / static_cast<double>(result.runs + 2);
}

std::string RightSizeClass(const Recommendation& result) {
  std::string text;
  for (const ResourceAdvice* advice :
       {&result.cpu, &result.memory, &result.gpu, &result.walltime}) {
    if (advice->change == Change::kNone) continue;
    if (!text.empty()) text += '+';
    text += fmt::format("{}_{}", Name(advice->resource), Name(advice->change));
  }
  return text.empty() ? "none" : text;
}

std::string RationaleOf(const Recommendation& result) {
  std::string text;
  for (const ResourceAdvice* advice :
       {&result.memory, &result.walltime, &result.cpu, &result.gpu}) {
    if (advice->reason.empty()) continue;
    if (!text.empty()) text += ". ";
    text += fmt::format("{}: {}", Name(advice->resource), advice->reason);
  }
  return text.empty() ? text : text + ".";
}

Amounts Usable(const Amounts& amounts) {
  return {.cpu_cores = Positive(amounts.cpu_cores),
          .memory_bytes = Positive(amounts.memory_bytes),
          .gpu_count = Positive(amounts.gpu_count),
          .walltime_s = Positive(amounts.walltime_s)};
}

void CiteEvidence(Recommendation& result, std::span<const Run> runs, std::size_t first) {
  for (std::size_t i = runs.size(); i-- > 0 && result.evidence.size() < kMaxEvidence;) {
    if (TellsOfCompletion(runs[i].ending)) result.evidence.push_back(first + i);
  }
}

void Warn(Recommendation& result, std::span<const Run> runs) {
  if (runs.empty()) {
    result.warnings.emplace_back("no recorded run of this workload");
    return;
  }
  if (result.memory.runs == 0)
    result.warnings.emplace_back("no recorded run that can be compared has a measured memory peak");
  if (result.walltime.runs == 0)
    result.warnings.emplace_back(
        "no recorded run that can be compared tells how long this workload takes");
}

}  // namespace

std::string_view Name(Change change) {
  switch (change) {
    case Change::kNone:
      return "none";
    case Change::kLower:
      return "lower";
    case Change::kRaise:
      return "raise";
  }
  return "";
}

void Summarise(Recommendation* recommendation) {
  recommendation->right_size = RightSizeClass(*recommendation);
  recommendation->rationale = RationaleOf(*recommendation);
}

Recommendation Recommend(std::span<const Run> all_runs, Basis basis, const Amounts& requested_as_is,
                         const PredictOptions& options) {
  const std::size_t first = all_runs.size() - std::min(all_runs.size(), kMaxRuns);
  const std::span<const Run> runs = all_runs.subspan(first);
  const Amounts requested = Usable(requested_as_is);
  const double target = std::clamp(options.target, 0.5, 0.9999);

  Recommendation result;
  const auto memory = ModelLimit(Resource::kMemory, runs, basis, requested, options.input_size);
  const auto walltime = ModelLimit(Resource::kWalltime, runs, basis, requested, options.input_size);
  const LimitAmounts amounts = ChooseTogether(memory, walltime, target, options.round_to_units);
  result.memory =
      AdviseLimit(Resource::kMemory, memory, amounts.memory, requested.memory_bytes, target);
  result.walltime =
      AdviseLimit(Resource::kWalltime, walltime, amounts.walltime, requested.walltime_s, target);
  result.cpu = AdviseCpu(runs, requested.cpu_cores);
  result.gpu = AdviseGpu(runs, requested.gpu_count);
  if (result.memory.chance || result.walltime.chance)
    result.joint_chance = result.memory.chance.value_or(1) * result.walltime.chance.value_or(1);

  GpuMemory gpu = MeasuredGpu(runs);
  result.gpu_memory_peak_bytes = gpu.peak_bytes;
  result.gpu_memory_floor_bytes = gpu.floor_bytes;
  result.gpu_memory_available_bytes =
      options.gpu_memory_available_bytes ? options.gpu_memory_available_bytes : gpu.available_bytes;
  result.gpu_utilisation_pct = gpu.utilisation_pct;
  result.gpu_type = std::move(gpu.gpu_type);

  CountFits(result, runs.size(), memory, walltime);
  result.confidence = ConfidenceOf(basis, result.runs);
  result.completion = CompletionProbability(all_runs, basis);
  if (result.completion) result.residual = Residual(*result.completion);
  result.risks =
      RisksAt(runs, basis, requested, memory, walltime, options.gpu_memory_available_bytes);
  result.residual_class =
      ResidualClass(runs, memory, walltime, result.memory.amount, result.walltime.amount);
  Summarise(&result);
  CiteEvidence(result, runs, first);
  Warn(result, runs);
  return result;
}

}  // namespace expanse::intelligence::predict
