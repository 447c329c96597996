#include "intelligence/predict/source_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "intelligence/predict/application_needs.h"
#include "intelligence/predict/model_memory.h"
#include "intelligence/predict/units.h"

namespace expanse::intelligence::predict {
namespace {

using workload::Choice;
using workload::Flag;
using workload::Number;
using workload::SourceFacts;

constexpr double kGiB = 1024.0 * 1024 * 1024;
// A process with Python, PyTorch and CUDA's host side, before it holds any data.
constexpr double kProcessBase = 4 * kGiB;
// A process that loads and prepares samples; what it holds beside depends on the data.
constexpr double kLoaderWorker = 1 * kGiB;
constexpr double kAssumedSequence = 512;
constexpr double kAssumedServedSequence = 4096;
constexpr double kTrainerBatch = 8;  // of transformers' TrainingArguments

std::string Gib(double bytes) {
  if (bytes < kGiB) return fmt::format("{:.0f} MiB", bytes / (1024 * 1024));
  return fmt::format("{:.{}f} GiB", bytes / kGiB, bytes < 100 * kGiB ? 1 : 0);
}

std::string Count(double count, std::string_view what) {
  const std::string_view plural = count == 1 ? "" : what.ends_with('s') ? "es" : "s";
  return fmt::format("{:.0f} {}{}", count, what, plural);
}

std::string Billions(double parameters) {
  if (parameters < 1e9) return fmt::format("{:.0f} M", parameters / 1e6);
  return fmt::format("{:.{}f} B", parameters / 1e9, parameters < 100e9 ? 1 : 0);
}

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Pictures rather than tokens.
bool IsVision(std::string_view name) {
  constexpr std::array<std::string_view, 15> kWords = {
      "resnet", "resnext", "vgg",  "vit",  "efficientnet", "convnext", "densenet", "mobilenet",
      "swin",   "deit",    "dino", "yolo", "inception",    "alexnet",  "unet"};
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return std::ranges::any_of(kWords, [&](std::string_view word) { return lower.contains(word); });
}

class Estimator {
 public:
  Estimator(const SourceFacts& facts, const workload::Part& part, const Amounts& requested)
      : facts_(facts), part_(part), requested_(requested) {
    for (const workload::Model& model : facts.models) {
      if (model.parameters && (model_ == nullptr || *model.parameters > *model_->parameters))
        model_ = &model;
    }
    parameters_ = model_ != nullptr ? model_->parameters : facts.Get(Number::kLiteralParameters);
  }

  SourceEstimate Run() {
    Devices();
    if (UsesGpu()) {
      if (!facts_.Get(Choice::kServer).empty()) {
        Serving();
      } else if (facts_.Is(Flag::kTrains) || facts_.Is(Flag::kLora)) {
        Training();
      } else if (parameters_) {
        Inference();
      }
      GpuHostMemory();
    } else if (parameters_) {
      CpuModel();
    }
    Applications();
    Heap();
    Cores();
    Missing();
    CheckDevice();
    return std::move(result_);
  }

 private:
  // What is known of it is that it computes on devices, not only that a device is asked for.
  bool KnownGpuProgram() const {
    return facts_.Is(Flag::kUsesGpu) || facts_.Is(Flag::kTrains) || parameters_.has_value();
  }

  // One of several pods that work together: what their commands say is of all of them.
  bool IsOneOfGroup() const {
    return part_.kind != "sbatch" && !part_.group.empty() && part_.kind != "service" &&
           part_.kind != "batch";
  }

  bool UsesGpu() const {
    // The trainers of these take a GPU where there is one.
    const bool trainer =
        facts_.Is(Flag::kTrains) && (facts_.Uses("transformers") || facts_.Uses("lightning"));
    return facts_.Is(Flag::kUsesGpu) || trainer || requested_.gpu_count.value_or(0) > 0;
  }

  void Devices() {
    if (!UsesGpu()) return;
    const double parallel = facts_.Get(Number::kTensorParallel).value_or(1) *
                            facts_.Get(Number::kPipelineParallel).value_or(1);
    const auto each = facts_.Get(Number::kDevices);
    if (parallel > 1) {
      needed_devices_ = parallel;
      result_.gpu = {
          parallel,
          fmt::format("the model is split over {:.0f} devices (tensor and pipeline parallel)",
                      parallel)};
    } else if (each) {
      needed_devices_ = *each * facts_.Get(Number::kNodes).value_or(1);
      result_.gpu = {needed_devices_,
                     fmt::format("{:.0f} devices on each of {:.0f} nodes, at {}", *each,
                                 facts_.Get(Number::kNodes).value_or(1), Where(Number::kDevices))};
    } else {
      needed_devices_ = 1;
      result_.gpu = {1.0, "it computes on a GPU; nothing says that it uses more than one"};
    }
    devices_ = std::max(needed_devices_, requested_.gpu_count.value_or(0));
    if (IsOneOfGroup() && requested_.gpu_count && needed_devices_ > *requested_.gpu_count) {
      share_ = *requested_.gpu_count / needed_devices_;
      result_.gpu = {
          *requested_.gpu_count,
          fmt::format("the {:.0f} devices are those of all pods of the group", needed_devices_)};
    }
    if (requested_.gpu_count || part_.settings.empty()) return;
    // A job that asks for other things and for no GPU may be meant for processors.
    result_.gpu = {};
    if (!facts_.Is(Flag::kUsesGpu)) return;
    result_.warnings.push_back("the source computes on a GPU where there is one (" +
                               Where(facts_.flags.at(Flag::kUsesGpu).evidence) +
                               "), and none is asked for");
  }

  std::string Where(Number number) const {
    const auto found = facts_.numbers.find(number);
    return found == facts_.numbers.end() ? std::string() : Where(found->second.evidence);
  }
  static std::string Where(const workload::Evidence& evidence) {
    if (evidence.line == 0) return evidence.text;
    if (evidence.file.empty()) return fmt::format("line {}", evidence.line);
    return fmt::format("{}:{}", evidence.file, evidence.line);
  }

  std::string ModelText() const {
    if (model_ == nullptr)
      return fmt::format("{} parameters of layers with literal sizes", Billions(*parameters_));
    return fmt::format("{} has {} parameters ({})", model_->name, Billions(*parameters_),
                       Where(model_->evidence));
  }

  double WeightBytes(double otherwise) const {
    return BytesOfType(facts_.Get(Choice::kWeightType)).value_or(otherwise);
  }

  // What the sequences of a step hold; the two numbers are said to be missing where they are.
  double Batch() {
    if (const auto batch = facts_.Get(Number::kBatchSize)) return *batch;
    const bool trainer = facts_.Uses("transformers") && facts_.Is(Flag::kTrains);
    result_.missing.push_back(
        trainer ? "the batch size is not stated: 8 a device is transformers' default"
                : "the batch size is not stated: 1 is assumed");
    return trainer ? kTrainerBatch : 1;
  }
  double Sequence() {
    if (const auto length = facts_.Get(Number::kSequenceLength)) return *length;
    result_.missing.push_back(fmt::format(
        "the sequence length is not stated: {:.0f} tokens are assumed", kAssumedSequence));
    return kAssumedSequence;
  }

  void Training() {
    if (!parameters_) return;
    TrainingSetup setup;
    setup.parameters = *parameters_;
    setup.weight_bytes = WeightBytes(4);
    setup.mixed_precision = !facts_.Get(Choice::kMixedPrecision).empty();
    setup.optimizer = facts_.Get(Choice::kOptimizer);
    if (setup.optimizer.empty()) {
      setup.optimizer = "adamw";
      result_.missing.emplace_back("the optimizer is not stated: AdamW is assumed");
    }
    setup.momentum = facts_.Is(Flag::kMomentum);
    setup.sharding = facts_.Get(Choice::kSharding);
    setup.devices = devices_;
    setup.offloads = facts_.Is(Flag::kOffloads);
    setup.checkpoints = facts_.Is(Flag::kCheckpointing);
    setup.batch_size = Batch();
    const bool vision = model_ != nullptr && IsVision(model_->name);
    if (model_ != nullptr && !vision) setup.sequence_length = Sequence();
    if (facts_.Is(Flag::kLora)) {
      setup.trainable = LoraParameters(*parameters_, facts_.Get(Number::kLoraRank).value_or(16));
    }
    MemoryParts parts = TrainingMemory(setup);
    if (vision) {
      // About 100 MB of activations in 32 bits for a picture of 224² and a ResNet-50 of 25.6 M.
      const double picture = 100e6 * std::sqrt(*parameters_ / 25.6e6) *
                             (setup.mixed_precision || setup.weight_bytes <= 2 ? 0.5 : 1);
      parts.activations = setup.batch_size * picture;
    } else if (model_ == nullptr) {
      parts.activations = 0;
      result_.missing.emplace_back(
          "activations depend on what the layers are applied to: none are counted");
    }
    offloaded_ = parts.offloaded;
    const double floor = kDeviceBase + parts.states + parts.activations;
    std::string reason = ModelText() + ": ";
    if (setup.trainable) {
      reason +=
          fmt::format("LoRA trains {} of them at {:.0f} bytes each beside weights of {:.3g} bytes",
                      Billions(*setup.trainable), parts.bytes_per_parameter, setup.weight_bytes);
    } else {
      reason += fmt::format(
          "{:.3g} bytes each for weights, gradients and the states of {} (ZeRO, arXiv 1910.02054)",
          parts.bytes_per_parameter, setup.optimizer);
    }
    if (!setup.sharding.empty() && devices_ > 1)
      reason += fmt::format(", divided over {:.0f} devices by {}", devices_, setup.sharding);
    reason += fmt::format(", {} on a device; {} of activations", Gib(parts.states),
                          Gib(parts.activations));
    if (model_ != nullptr && !vision)
      reason += fmt::format(" for {:.0f} x {:.0f} tokens (arXiv 2205.05198)", setup.batch_size,
                            setup.sequence_length);
    result_.gpu_memory = {floor, std::move(reason)};
  }

  void Inference() {
    const double weights = *parameters_ * WeightBytes(4);
    const double split = facts_.Is(Flag::kSpreads) ? devices_ : 1;
    const bool vision = model_ != nullptr && IsVision(model_->name);
    double cache = 0;
    if (model_ != nullptr && !vision && *parameters_ >= 1e9) {
      cache = KvCacheBytes(*parameters_, facts_.Get(Number::kSequenceLength).value_or(2048) *
                                             facts_.Get(Number::kBatchSize).value_or(1));
    }
    const double floor = kDeviceBase + (weights + cache) / split * 1.1;
    std::string reason = fmt::format("{}: {} of weights at {:.3g} bytes each", ModelText(),
                                     Gib(weights), WeightBytes(4));
    if (cache > 0) reason += fmt::format(", {} of KV cache", Gib(cache));
    if (split > 1) reason += fmt::format(", spread over {:.0f} devices", split);
    result_.gpu_memory = {floor, reason + ", a tenth for what is computed"};
    if (facts_.Get(Choice::kWeightType).empty()) {
      result_.missing.emplace_back("the type of the weights is not stated: 32 bits are assumed");
    }
  }

  void Serving() {
    const std::string server = facts_.Get(Choice::kServer);
    if (!parameters_) return;
    const double split = std::max(1.0, facts_.Get(Number::kTensorParallel).value_or(1) *
                                           facts_.Get(Number::kPipelineParallel).value_or(1));
    const double weights = *parameters_ * WeightBytes(2);
    const auto length = facts_.Get(Number::kSequenceLength);
    const double tokens = length.value_or(kAssumedServedSequence);
    if (!length) {
      result_.missing.push_back(fmt::format(
          "the longest sequence is not stated: {} takes the model's, {:.0f} tokens are counted",
          server, kAssumedServedSequence));
    }
    const double cache = KvCacheBytes(*parameters_, tokens);
    const double share = facts_.Get(Number::kMemoryUtilization).value_or(0.9);
    // Sampling over a vocabulary of 128,000 for 256 sequences, and what a batch of prompts takes.
    constexpr double kActivations = 1.5 * kGiB;
    const double floor = ((weights + cache) / split + kActivations) / std::max(share, 0.1);
    result_.gpu_memory = {
        floor,
        fmt::format(
            "{}: {} of weights and {} of KV cache for one sequence of {:.0f} tokens{}; {} starts "
            "within {:.0f} % of a device. More memory serves more requests at a time",
            ModelText(), Gib(weights), Gib(cache), tokens,
            split > 1 ? fmt::format(", split over {:.0f} devices", split) : "", server,
            share * 100)};
  }

  // Host memory of what computes on devices: each process loads a copy of the weights before it
  // moves them.
  void GpuHostMemory() {
    if (!KnownGpuProgram()) return;
    const bool server = !facts_.Get(Choice::kServer).empty();
    const bool one_process = facts_.Is(Flag::kSpreads) || (!server && needed_devices_ <= 1);
    const bool per_device =
        facts_.Is(Flag::kDataParallel) || !facts_.Get(Choice::kSharding).empty();
    double processes = per_device ? devices_ : needed_devices_;
    processes = one_process && !per_device ? 1 : std::max(1.0, processes * share_);
    const double workers = facts_.Get(Number::kLoaderWorkers).value_or(0);
    double memory = processes * (kProcessBase + workers * kLoaderWorker) + offloaded_;
    std::string reason = processes > 1 ? Count(processes, "process") + " with their libraries at " +
                                             Gib(kProcessBase)
                                       : Gib(kProcessBase) + " for a process with its libraries";
    if (workers > 0)
      reason += fmt::format(", {} of about {}", Count(workers * processes, "data loader"),
                            Gib(kLoaderWorker));
    if (parameters_) {
      const double weights = *parameters_ * WeightBytes(server ? 2 : 4);
      const bool meta = IsOneOf(facts_.Get(Choice::kSharding), {"zero3", "fsdp"});
      const double copies = server || meta ? share_ : processes;
      memory += weights * copies;
      reason += fmt::format(", {} of weights while they are loaded", Gib(weights * copies));
    }
    if (offloaded_ > 0)
      reason +=
          fmt::format(", {} of optimizer states that are kept in host memory", Gib(offloaded_));
    result_.memory = {memory, std::move(reason)};
  }

  void CpuModel() {
    const double weights = *parameters_ * WeightBytes(4);
    const bool trains = facts_.Is(Flag::kTrains);
    const double memory = 2 * kGiB + weights * (trains ? 4 : 1.5);
    result_.memory = {
        memory,
        fmt::format("{}: {} of weights{}, and 2 GiB for the process", ModelText(), Gib(weights),
                    trains ? ", as much for gradients and twice for the optimizer"
                           : ", half as much to compute")};
  }

  void Applications() {
    for (const workload::Application& application : facts_.applications) {
      const ApplicationNeed need = NeedOf(application, facts_.Get(Number::kThreads));
      if (need.memory_bytes && *need.memory_bytes > result_.memory.amount.value_or(0)) {
        result_.memory = {need.memory_bytes, need.memory_reason};
      }
      if (need.walltime_s) {
        result_.walltime.amount = result_.walltime.amount.value_or(0) + *need.walltime_s;
        result_.walltime.reason = need.walltime_reason;
      }
      if (!need.missing.empty() &&
          std::ranges::find(result_.missing, need.missing) == result_.missing.end()) {
        result_.missing.push_back(need.missing);
      }
    }
  }

  void Heap() {
    const auto heap = facts_.Get(Number::kHeapBytes);
    if (!heap) return;
    const double memory = *heap * 1.2 + 0.5 * kGiB;
    if (memory <= result_.memory.amount.value_or(0)) return;
    result_.memory = {memory, fmt::format("Java may fill a heap of {} (-Xmx at {}), and takes "
                                          "about a fifth and 512 MiB more beside it",
                                          Gib(*heap), Where(Number::kHeapBytes))};
  }

  void OfferCores(double cores, std::string reason) {
    if (cores <= result_.cpu.amount.value_or(0) || cores > 1e6) return;
    result_.cpu = {cores, std::move(reason)};
  }

  void Cores() {
    const double threads = facts_.Get(Number::kThreads).value_or(1);
    const auto ranks = facts_.Get(Number::kRanks);
    if (ranks) {
      OfferCores(*ranks * threads,
                 fmt::format("{}{} ({})", Count(*ranks, "rank"),
                             threads > 1 ? " of " + Count(threads, "thread") : std::string(),
                             Where(Number::kRanks)));
    } else if (threads > 1) {
      OfferCores(threads, fmt::format("{:.0f} threads ({})", threads, Where(Number::kThreads)));
    }
    if (const auto processes = facts_.Get(Number::kProcesses)) {
      if (*processes > 0)
        OfferCores(*processes, fmt::format("a pool of {:.0f} processes ({})", *processes,
                                           Where(Number::kProcesses)));
    }
    if (!UsesGpu() || !KnownGpuProgram()) return;
    if (!facts_.Get(Choice::kServer).empty()) {
      OfferCores(2 + needed_devices_ * share_,
                 "a server takes a core for each device and two more (vLLM's documentation)");
      return;
    }
    const double workers = facts_.Get(Number::kLoaderWorkers).value_or(0);
    OfferCores(needed_devices_ * share_ * (workers + 1),
               fmt::format(
                   "{}{}",
                   needed_devices_ > 1 ? "a process for each of " + Count(needed_devices_, "device")
                                       : "one process",
                   workers > 0 ? fmt::format(" and its {} ({})", Count(workers, "data loader"),
                                             Where(Number::kLoaderWorkers))
                               : std::string()));
  }

  void Missing() {
    if (facts_.empty()) {
      result_.missing.emplace_back(
          "nothing in the source tells what it will need: the request is kept as it is");
      return;
    }
    for (const workload::Model& model : facts_.models) {
      if (!model.parameters && model_ == nullptr) {
        result_.missing.push_back(fmt::format("the size of the model {} is not known ({})",
                                              model.name, Where(model.evidence)));
      }
    }
    if (!parameters_ && facts_.models.empty() && UsesGpu() && !result_.gpu_memory.amount) {
      result_.missing.emplace_back(
          "which model it computes is not stated: GPU memory is not known");
    }
    const bool tables = facts_.Uses("pandas") || facts_.Uses("polars") || facts_.Uses("dask") ||
                        facts_.Uses("spark") || facts_.Uses("sklearn") || facts_.Uses("xgboost") ||
                        facts_.Uses("lightgbm");
    if (tables && !facts_.data_files.empty()) {
      result_.missing.push_back(fmt::format(
          "the size of {} is not known: a table takes several times its file's size in memory",
          facts_.data_files.front().value));
    } else if (tables) {
      result_.missing.emplace_back("how much data it reads is not stated");
    }
    if (!result_.walltime.amount)
      result_.missing.emplace_back("nothing in the source tells how long it takes");
    for (const std::string& unresolved : facts_.unresolved) result_.missing.push_back(unresolved);
  }

  void CheckDevice() {
    const auto floor = result_.gpu_memory.amount;
    if (!floor) return;
    const std::string& type = part_.request.gpu_type;
    if (const auto largest = LargestDeviceMemory(type); largest && *floor > *largest) {
      result_.warnings.push_back(
          fmt::format("about {} of GPU memory are needed on a device, and {} has at most {}",
                      Gib(*floor), type, Gib(*largest)));
    } else if (*floor > 288 * kGiB && facts_.Get(Choice::kServer).empty()) {
      result_.warnings.push_back(
          fmt::format("about {} of GPU memory are needed on a device, more than any has: the model "
                      "has to be divided",
                      Gib(*floor)));
    }
    if (requested_.gpu_count && share_ == 1 && needed_devices_ > *requested_.gpu_count) {
      result_.warnings.push_back(fmt::format("it starts on {:.0f} devices and asks for {:.0f}",
                                             needed_devices_, *requested_.gpu_count));
    }
  }

  const SourceFacts& facts_;
  const workload::Part& part_;
  const Amounts& requested_;
  const workload::Model* model_ = nullptr;  // the largest
  std::optional<double> parameters_;
  double needed_devices_ = 0;  // that the source says it uses
  double devices_ = 1;         // over which states are divided
  double offloaded_ = 0;
  double share_ = 1;  // of this pod in its group
  SourceEstimate result_;
};

void Apply(const Estimate& estimate, ResourceAdvice* advice) {
  if (!estimate.amount || !std::isfinite(*estimate.amount) || *estimate.amount <= 0) return;
  const double amount = RoundUpToUnit(advice->resource, *estimate.amount);
  if (!advice->requested) {
    advice->amount = amount;
    advice->reason = estimate.reason;
  } else if (amount > *advice->requested) {
    advice->amount = amount;
    advice->change = Change::kRaise;
    advice->reason = fmt::format("{}; {} are requested", estimate.reason,
                                 Say(advice->resource, *advice->requested));
  } else {
    advice->reason = fmt::format("the request is kept; the source tells of {} ({})",
                                 Say(advice->resource, amount), estimate.reason);
  }
}

}  // namespace

SourceEstimate EstimateFromSource(const SourceFacts& facts, const workload::Part& part,
                                  const Amounts& requested) {
  return Estimator(facts, part, requested).Run();
}

void ApplySourceEstimate(const SourceEstimate& estimate, Recommendation* recommendation) {
  Apply(estimate.cpu, &recommendation->cpu);
  Apply(estimate.memory, &recommendation->memory);
  Apply(estimate.gpu, &recommendation->gpu);
  Apply(estimate.walltime, &recommendation->walltime);
  recommendation->confidence = Confidence::kLow;
  std::string gpu_memory;
  if (estimate.gpu_memory.amount) {
    recommendation->gpu_memory_floor_bytes = estimate.gpu_memory.amount;
    gpu_memory = fmt::format(" gpu memory: about {} on each device ({}).",
                             Gib(*estimate.gpu_memory.amount), estimate.gpu_memory.reason);
  }
  Summarise(recommendation);
  recommendation->rationale += gpu_memory;
  for (const std::string& warning : estimate.warnings) recommendation->warnings.push_back(warning);
  for (const std::string& missing : estimate.missing) recommendation->warnings.push_back(missing);
}

}  // namespace expanse::intelligence::predict
