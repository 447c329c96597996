#include "intelligence/predict/model_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace expanse::intelligence::predict {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
// Tokens in a vocabulary: between 32,000 (Llama 2) and 152,000 (Qwen).
constexpr double kVocabulary = 64'000;
// Logits in 16 bits, once more in 32 bits for the loss, and their gradient.
constexpr double kBytesPerLogit = 10;
// Keys and values of models from about these sizes on are shared by four and by eight heads.
constexpr double kGroupedFrom = 7e9;
constexpr double kGroupedByEightFrom = 20e9;

bool IsSharded(std::string_view sharding, int stage) {
  if (sharding == "fsdp") return true;
  return sharding.starts_with("zero") && sharding.size() == 5 && sharding[4] - '0' >= stage;
}

}  // namespace

TransformerShape ShapeOf(double parameters) {
  constexpr double kHiddenPerLayer = 128;
  const double hidden = std::cbrt(std::max(parameters, 1.0) * kHiddenPerLayer / 12);
  const double heads = parameters >= kGroupedByEightFrom ? 8 : parameters >= kGroupedFrom ? 4 : 1;
  return {.layers = std::max(1.0, hidden / kHiddenPerLayer),
          .hidden = hidden,
          .key_width = hidden / heads};
}

std::optional<double> BytesOfType(std::string_view type) {
  using Type = std::pair<std::string_view, double>;
  constexpr auto kTypes = std::to_array<Type>({{"float64", 8},
                                               {"float32", 4},
                                               {"bfloat16", 2},
                                               {"float16", 2},
                                               {"float8", 1},
                                               {"int8", 1},
                                               {"int4", 0.56}});
  const auto found = std::ranges::find(kTypes, type, &Type::first);
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

double OptimizerBytes(std::string_view optimizer, bool momentum) {
  if (optimizer == "sgd") return momentum ? 4 : 0;
  if (optimizer == "adafactor") return 0;  // a row and a column of each matrix
  if (optimizer == "adamw_8bit") return 2;
  if (optimizer == "lion_8bit" || optimizer == "galore") return 1;
  constexpr std::array<std::string_view, 5> kOneState = {"lion", "rmsprop", "adagrad", "muon",
                                                         "momentum"};
  if (std::ranges::find(kOneState, optimizer) != kOneState.end()) return 4;
  return 8;  // Adam and its like
}

double LoraParameters(double parameters, double rank) {
  // Adapters add rank·(in + out) to every matrix of in·out: for square ones 2·rank/hidden of it.
  return parameters * std::min(1.0, 2 * rank / ShapeOf(parameters).hidden);
}

double KvCacheBytes(double parameters, double tokens) {
  const TransformerShape shape = ShapeOf(parameters);
  return 2 * shape.layers * shape.key_width * 2 * tokens;
}

MemoryParts TrainingMemory(const TrainingSetup& setup) {
  const double trained = setup.trainable.value_or(setup.parameters);
  // Trained weights of 16 bits without mixed precision have gradients and states of 16 bits too;
  // engines that shard keep a copy of 32 bits for the optimizer.
  const bool engine = setup.sharding.starts_with("zero");
  const bool half = setup.weight_bytes <= 2 && !setup.trainable;
  const bool master = half && engine;
  double weight = setup.weight_bytes;
  double gradient = half ? 2 : 4;
  double states = OptimizerBytes(setup.optimizer, setup.momentum);
  if (half && !master && states > 2) states /= 2;
  if (master || (engine && setup.mixed_precision && !setup.trainable)) {
    weight = 2;
    gradient = 2;
    states += 4;
  }
  const double devices = std::max(1.0, setup.devices);
  const auto share = [&](int stage) { return IsSharded(setup.sharding, stage) ? devices : 1.0; };
  MemoryParts parts;
  parts.bytes_per_parameter = weight + gradient + states;
  double weights = setup.parameters * weight;
  if (setup.trainable) {
    weights = setup.parameters * setup.weight_bytes + trained * 4;
    parts.bytes_per_parameter = 4 + gradient + states;
  }
  const double optimizer = trained * states;
  parts.states = weights / share(3) + trained * gradient / share(2);
  if (setup.offloads) {
    parts.offloaded = optimizer + trained * 4;
  } else {
    parts.states += optimizer / share(1);
  }
  const TransformerShape shape = ShapeOf(setup.parameters);
  const double tokens = setup.batch_size * setup.sequence_length;
  const bool sixteen = setup.mixed_precision || setup.weight_bytes <= 2;
  const double layer = tokens * shape.hidden * 34 * (sixteen ? 1 : 2);
  parts.activations = setup.checkpoints
                          ? shape.layers * tokens * shape.hidden * 2 * (sixteen ? 1 : 2) + layer
                          : shape.layers * layer;
  parts.activations += tokens * kVocabulary * kBytesPerLogit;
  return parts;
}

std::optional<double> LargestDeviceMemory(std::string_view gpu_type) {
  using Device = std::pair<std::string_view, double>;
  // In GiB as marketed; longer names first.
  constexpr auto kDevices = std::to_array<Device>(
      {{"b300", 288},  {"gb300", 288}, {"gb200", 192}, {"b200", 192},   {"gh200", 144},
       {"h200", 141},  {"h100", 96},   {"h800", 80},   {"a100", 80},    {"a800", 80},
       {"l40s", 48},   {"l40", 48},    {"l4", 24},     {"a6000", 48},   {"6000ada", 48},
       {"a5000", 24},  {"a40", 48},    {"a30", 24},    {"a10g", 24},    {"a10", 24},
       {"v100", 32},   {"p100", 16},   {"t4", 16},     {"k80", 12},     {"4090", 24},
       {"3090", 24},   {"2080", 11},   {"1080", 11},   {"mi300x", 192}, {"mi300a", 128},
       {"mi250x", 64}, {"mi250", 64},  {"mi210", 64},  {"mi100", 32}});
  const std::string name = base::ToLower(gpu_type.substr(0, 200));
  const auto is_word = [](char c) { return base::IsDigit(c) || (c >= 'a' && c <= 'z'); };
  for (const auto& [device, gib] : kDevices) {
    for (std::size_t at = name.find(device); at != std::string::npos;
         at = name.find(device, at + 1)) {
      const std::size_t end = at + device.size();
      const bool begins = at == 0 || !is_word(name[at - 1]) || base::IsDigit(device[0]);
      // "v100s" and "2080ti" are the same for this; "a1000" is not an a100.
      const bool ends = end == name.size() || !base::IsDigit(name[end]);
      if (begins && ends) return gib * kGiB;
    }
  }
  return std::nullopt;
}

}  // namespace expanse::intelligence::predict
