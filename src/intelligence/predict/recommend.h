// What to request for the next run of a workload, from its recorded runs: the cheapest limits whose
// chance to be enough clears a target, in units that people write, with the reason for each. The
// rules stand in docs/prediction.md. Pure: no I/O, no clock; O(n log n) in the runs, of which the
// newest kMaxRuns are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intelligence/predict/run.h"

namespace expanse::intelligence::predict {

inline constexpr std::size_t kMaxRuns = 500;

struct PredictOptions {
  // The chance that a run fits both its memory and its walltime.
  double target = 0.95;
  // Of the run to come, where the runs carry one (Run::input_size).
  std::optional<double> input_size;
  // Of the device, for the risk that GPU memory does not suffice.
  std::optional<double> gpu_memory_available_bytes;
  // False: amounts as computed, for comparing rules rather than requests.
  bool round_to_units = true;
};

enum class Change : std::uint8_t { kNone, kLower, kRaise };
std::string_view Name(Change change);  // "none", "lower", "raise"

// One resource. `amount` is what to request: a recommendation where runs tell of a need, else what
// was requested; absent where neither is known.
struct ResourceAdvice {
  Resource resource = Resource::kMemory;
  std::optional<double> amount;
  std::optional<double> requested;
  Change change = Change::kNone;
  // That the next run needs at most `amount`, and at most `requested`; absent without runs that
  // tell (and for cpu and gpu, which slow a run down rather than end it).
  std::optional<double> chance;
  std::optional<double> requested_chance;
  // The largest need seen (or proven by a kill at a limit): what must not be undercut.
  std::optional<double> floor;
  // Predicted need of the next run.
  std::optional<double> need_p10;
  std::optional<double> need_p50;
  std::optional<double> need_p90;
  std::size_t runs = 0;  // that told something
  std::string reason;    // one or two sentences
};

// What would end the run at the resources requested.
struct Risk {
  std::string risk_class;  // "out_of_memory", "timeout", "gpu_out_of_memory", "failure"
  Probability probability;
  std::string summary;
};

struct Recommendation {
  ResourceAdvice cpu;
  ResourceAdvice memory;
  ResourceAdvice gpu;
  ResourceAdvice walltime;
  // Measured, of the device that needed most, and what a device must have at least.
  std::optional<double> gpu_memory_peak_bytes;
  std::optional<double> gpu_memory_floor_bytes;
  std::optional<double> gpu_memory_available_bytes;
  std::optional<double> gpu_utilisation_pct;
  std::string gpu_type;

  Confidence confidence = Confidence::kLow;
  // Measured runs that would have fitted into the recommendation, of all measured; the score is
  // (fit + 1) / (runs + 2). A run killed at a limit that no run got beyond is one that does not
  // fit: nobody knows what it needs. Absent without measured runs.
  std::size_t fit = 0;
  std::size_t runs = 0;
  std::optional<double> score;

  // That the next run fits memory and walltime both.
  std::optional<double> joint_chance;
  std::optional<Probability> completion;  // absent with fewer than two runs that tell
  std::optional<Probability> residual;
  std::string residual_class = "none";  // what is most likely to go wrong even so
  std::vector<Risk> risks;              // at the requested resources, likeliest first
  // "<resource>_<lower|raise>" joined by "+" in the order cpu, memory, gpu, walltime; or "none".
  std::string right_size = "none";
  std::string rationale;              // the reasons in one text
  std::vector<std::string> warnings;  // what is missing
  std::vector<std::size_t> evidence;  // indices into the runs given, newest first, bounded
};

// `runs` oldest first. Amounts that are not finite or not positive count as unknown.
Recommendation Recommend(std::span<const Run> runs, Basis basis, const Amounts& requested,
                         const PredictOptions& options);

// Sets right_size and rationale from the four resources, for who changed one of them.
void Summarise(Recommendation* recommendation);

}  // namespace expanse::intelligence::predict
