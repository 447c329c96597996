// How much GPU memory a neural network takes, from what is known of it without running it. The
// formulas and their sources:
//   states    weights + gradients + optimizer states, bytes per parameter; 16 for mixed-precision
//             Adam: ZeRO, Rajbhandari et al. 2020 (arXiv 1910.02054), section 3.1. Stages 1, 2 and
//             3 divide optimizer states, gradients and weights by the number of devices (figure 1).
//   activations of a transformer's training step, 16 bits: 34·s·b·h bytes per layer without the
//             attention matrix, 2·s·b·h where they are recomputed: Korthikanti et al. 2022 (arXiv
//             2205.05198), sections 4.1 and 5.
//   KV cache  2·layers·(width of keys)·2 bytes per token.
//   shape     12·layers·hidden² parameters, hidden about 128 times the layers: Kaplan et al. 2020
//             (arXiv 2001.08361), table 1, with the ratio of today's models.
// All of it is an estimate before the first run; amounts are bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace expanse::intelligence::predict {

struct TransformerShape {
  double layers = 0;
  double hidden = 0;
  double key_width = 0;  // of keys, and of values: less than hidden where heads share them
};
TransformerShape ShapeOf(double parameters);

// Bytes of one weight: "bfloat16" is 2, "int4" 0.56 with its scales; nothing for unknown types.
std::optional<double> BytesOfType(std::string_view type);

struct TrainingSetup {
  double parameters = 0;
  std::optional<double> trainable;  // fewer than all: adapters
  double weight_bytes = 4;          // each, as loaded
  bool mixed_precision = false;
  std::string optimizer = "adamw";
  bool momentum = false;
  std::string sharding;  // "", "zero1", "zero2", "zero3", "fsdp"
  double devices = 1;
  bool offloads = false;
  bool checkpoints = false;
  double batch_size = 1;
  double sequence_length = 512;
};

struct MemoryParts {
  double states = 0;               // on each device
  double activations = 0;          // of one step
  double offloaded = 0;            // in host memory, all devices together
  double bytes_per_parameter = 0;  // of what is trained, before it is divided
};
MemoryParts TrainingMemory(const TrainingSetup& setup);

// Optimizer states per trained parameter of 32 bits.
double OptimizerBytes(std::string_view optimizer, bool momentum);

// Parameters of LoRA adapters of this rank on all linear layers of a model.
double LoraParameters(double parameters, double rank);

// Of all sequences at their full length.
double KvCacheBytes(double parameters, double tokens);

// What a process needs on a device before it computes anything: context, kernels, workspaces.
inline constexpr double kDeviceBase = 1.0 * 1024 * 1024 * 1024;

// The memory of the largest variant of a device, by its name or a scheduler's type of it ("a100",
// "NVIDIA H100 80GB HBM3", "gpu:v100:2"); nothing for names that are not known.
std::optional<double> LargestDeviceMemory(std::string_view gpu_type);

}  // namespace expanse::intelligence::predict
