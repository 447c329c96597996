// What the predictor works on and what it says. Plain data in base units (cores, bytes, devices,
// seconds); no I/O, no clock, no product types. An absent value is unknown, never zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::intelligence::predict {

enum class Resource : std::uint8_t { kCpu, kMemory, kGpu, kWalltime };
std::string_view Name(Resource resource);  // "cpu", "memory", "gpu", "walltime"

// Why a run ended, as far as it tells about needs.
enum class Ending : std::uint8_t {
  kSuccess,
  kFailure,         // of its own: a crash, a wrong argument
  kOutOfMemory,     // needed more than its limit
  kTimeout,         // would have taken longer than its limit
  kCancelled,       // says nothing about needs, nor about completion
  kInfrastructure,  // node failure, preemption: the same
  kUnknown,
};
// "success", "failure", "out_of_memory", "timeout", "cancelled", "infrastructure", "unknown".
std::string_view Name(Ending ending);

struct Amounts {
  std::optional<double> cpu_cores;
  std::optional<double> memory_bytes;
  std::optional<double> gpu_count;
  std::optional<double> walltime_s;
  bool operator==(const Amounts&) const = default;
};

// One recorded run. Oldest first wherever there are several.
struct Run {
  std::string execution_id;
  std::string native_id;
  double similarity = 1;
  Ending ending = Ending::kUnknown;
  std::int64_t submitted_micros = 0;
  Amounts requested;  // the limits it ran under
  std::optional<double> runtime_s;
  std::optional<double> memory_peak_bytes;  // need, not page cache, of the whole run
  bool memory_is_floor = false;             // a sampled peak: the need may have been higher
  std::optional<double> cpu_mean_cores;     // CPU time over run time
  std::optional<double> cpu_peak_cores;     // the highest sustained (a minute) where sampled
  std::string gpu_type;
  std::optional<double> gpu_memory_peak_bytes;  // of the device that needed most
  std::optional<double> gpu_memory_available_bytes;
  std::optional<double> gpu_utilisation_pct;
  std::optional<double> gpus_active;  // devices that did anything
  std::optional<double> input_size;   // whatever measure the source shows, the same for all runs
  bool operator==(const Run&) const = default;
};

// Whose runs were counted (design: prediction, "Whose runs").
enum class Basis : std::uint8_t { kNone, kExactBundle, kSimilarBundle, kSameName };
// Runs of the same or of similar source, rather than of the same name alone.
bool OfSameSource(Basis basis);
std::string_view Name(Basis basis);  // "exact_bundle", "similar_bundle", "same_name", "none"

struct Probability {
  double mean = 0;
  double sigma = 0;
  double p10 = 0;
  double p90 = 0;
  std::uint32_t success_count = 0;  // completions, also of a residual and of a recurrence
  Basis basis = Basis::kNone;
  bool operator==(const Probability&) const = default;
};

enum class Confidence : std::uint8_t { kLow, kMedium, kHigh };

}  // namespace expanse::intelligence::predict
