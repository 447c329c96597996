#include "workload/source/fact_collector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "workload/source/model_catalogue.h"

namespace expanse::workload::source {
namespace {

constexpr std::size_t kMaxListed = 64;

using Entry = std::pair<std::string_view, Number>;
constexpr auto kNumbers = std::to_array<Entry>({
    {"batch_size", Number::kBatchSize},
    {"batchsize", Number::kBatchSize},
    {"bs", Number::kBatchSize},
    {"train_batch_size", Number::kBatchSize},
    {"train_bs", Number::kBatchSize},
    {"per_device_train_batch_size", Number::kBatchSize},
    {"per_gpu_train_batch_size", Number::kBatchSize},
    {"per_device_batch_size", Number::kBatchSize},
    {"batch_size_per_gpu", Number::kBatchSize},
    {"batch_size_per_device", Number::kBatchSize},
    {"micro_batch_size", Number::kBatchSize},
    {"train_micro_batch_size_per_gpu", Number::kBatchSize},
    {"samples_per_gpu", Number::kBatchSize},
    {"batch_size_training", Number::kBatchSize},
    {"mini_batch_size", Number::kBatchSize},
    {"gradient_accumulation_steps", Number::kAccumulation},
    {"accumulate_grad_batches", Number::kAccumulation},
    {"accum_steps", Number::kAccumulation},
    {"grad_accum_steps", Number::kAccumulation},
    {"accum_freq", Number::kAccumulation},
    {"max_seq_length", Number::kSequenceLength},
    {"max_seq_len", Number::kSequenceLength},
    {"max_sequence_length", Number::kSequenceLength},
    {"seq_length", Number::kSequenceLength},
    {"seq_len", Number::kSequenceLength},
    {"sequence_length", Number::kSequenceLength},
    {"max_length", Number::kSequenceLength},
    {"model_max_length", Number::kSequenceLength},
    {"block_size", Number::kSequenceLength},
    {"context_length", Number::kSequenceLength},
    {"max_source_length", Number::kSequenceLength},
    {"cutoff_len", Number::kSequenceLength},
    {"max_model_len", Number::kSequenceLength},
    {"n_ctx", Number::kSequenceLength},
    {"ctx_size", Number::kSequenceLength},
    {"seqlen", Number::kSequenceLength},
    {"epochs", Number::kEpochs},
    {"num_epochs", Number::kEpochs},
    {"n_epochs", Number::kEpochs},
    {"num_train_epochs", Number::kEpochs},
    {"max_epochs", Number::kEpochs},
    {"nepochs", Number::kEpochs},
    {"max_steps", Number::kSteps},
    {"num_steps", Number::kSteps},
    {"total_steps", Number::kSteps},
    {"max_iters", Number::kSteps},
    {"train_steps", Number::kSteps},
    {"num_train_steps", Number::kSteps},
    {"max_train_steps", Number::kSteps},
    {"num_workers", Number::kLoaderWorkers},
    {"dataloader_num_workers", Number::kLoaderWorkers},
    {"workers", Number::kLoaderWorkers},
    {"n_workers", Number::kLoaderWorkers},
    {"data_workers", Number::kLoaderWorkers},
    {"num_data_workers", Number::kLoaderWorkers},
    {"devices", Number::kDevices},
    {"gpus", Number::kDevices},
    {"num_gpus", Number::kDevices},
    {"n_gpu", Number::kDevices},
    {"n_gpus", Number::kDevices},
    {"ngpus", Number::kDevices},
    {"ngpu", Number::kDevices},
    {"gpus_per_node", Number::kDevices},
    {"nproc_per_node", Number::kDevices},
    {"num_gpus_per_node", Number::kDevices},
    {"num_nodes", Number::kNodes},
    {"nnodes", Number::kNodes},
    {"tensor_parallel_size", Number::kTensorParallel},
    {"tp_size", Number::kTensorParallel},
    {"tensor_model_parallel_size", Number::kTensorParallel},
    {"pipeline_parallel_size", Number::kPipelineParallel},
    {"pp_size", Number::kPipelineParallel},
    {"pipeline_model_parallel_size", Number::kPipelineParallel},
    {"n_jobs", Number::kProcesses},
    {"njobs", Number::kProcesses},
    {"num_proc", Number::kProcesses},
    {"processes", Number::kProcesses},
    {"n_processes", Number::kProcesses},
    {"nprocs", Number::kProcesses},
    {"n_proc", Number::kProcesses},
    {"max_workers", Number::kProcesses},
    {"num_processes", Number::kProcesses},
    {"n_procs", Number::kProcesses},
    {"ncores", Number::kProcesses},
    {"n_cores", Number::kProcesses},
    {"num_cores", Number::kProcesses},
    {"cores", Number::kProcesses},
    {"n_cpus", Number::kProcesses},
    {"num_cpus", Number::kProcesses},
    {"ncpus", Number::kProcesses},
    {"cpus", Number::kProcesses},
    {"nthread", Number::kThreads},
    {"nthreads", Number::kThreads},
    {"num_threads", Number::kThreads},
    {"n_threads", Number::kThreads},
    {"threads", Number::kThreads},
    {"lora_r", Number::kLoraRank},
    {"lora_rank", Number::kLoraRank},
    {"lora_dim", Number::kLoraRank},
    {"max_num_seqs", Number::kMaxSequences},
    {"gpu_memory_utilization", Number::kMemoryUtilization},
    {"mem_fraction_static", Number::kMemoryUtilization},
});

constexpr std::array<std::string_view, 17> kModelNames = {"model",
                                                          "model_name",
                                                          "model_id",
                                                          "model_path",
                                                          "model_name_or_path",
                                                          "base_model",
                                                          "base_model_name",
                                                          "pretrained_model_name_or_path",
                                                          "pretrained_model",
                                                          "pretrained",
                                                          "hf_model",
                                                          "llm",
                                                          "model_dir",
                                                          "checkpoint",
                                                          "model_checkpoint",
                                                          "base_model_id",
                                                          "pretrained_model_name"};
constexpr std::array<std::string_view, 16> kDataNames = {
    "data_path",  "data",       "data_dir",        "dataset",    "dataset_name", "dataset_path",
    "train_file", "train_data", "train_data_path", "input_file", "input_path",   "data_file",
    "csv",        "csv_path",   "train_path",      "input"};

// The largest that makes sense; more is another quantity under the same name.
double LargestOf(Number number) {
  switch (number) {
    case Number::kBatchSize:
      return 1e6;
    case Number::kSequenceLength:
      return 1e7;
    case Number::kSteps:
    case Number::kHeapBytes:
    case Number::kLiteralParameters:
      return 1e15;
    case Number::kMemoryUtilization:
      return 1;
    case Number::kAccumulation:
    case Number::kEpochs:
    case Number::kMaxSequences:
      return 1e6;
    case Number::kLoaderWorkers:
    case Number::kDevices:
    case Number::kNodes:
    case Number::kTensorParallel:
    case Number::kPipelineParallel:
    case Number::kProcesses:
    case Number::kThreads:
    case Number::kLoraRank:
      return 4096;
    case Number::kRanks:
      return 1e6;
  }
  return 0;
}

// Names of these are common, and what they say changes how many devices and cores are asked for: a
// variable or a default counts only where it is passed to something.
bool NeedsUse(Number number) {
  return number == Number::kDevices || number == Number::kNodes || number == Number::kProcesses ||
         number == Number::kThreads;
}

bool Truthy(const Literal& value) {
  if (value.kind == Literal::Kind::kText) {
    return !value.text.empty() && value.text != "none" && value.text != "no" &&
           value.text != "None";
  }
  if (value.kind == Literal::Kind::kSymbol) return !value.text.empty();
  return value.number != 0;
}

}  // namespace

Literal LiteralOf(std::string_view word) {
  const std::string lower = base::ToLower(word);
  if (lower == "true" || lower == "false") {
    return {.kind = Literal::Kind::kBool, .number = lower == "true" ? 1.0 : 0.0, .text = {}};
  }
  if (const auto number = base::ParseDouble(word); number && std::isfinite(*number)) {
    return {.kind = Literal::Kind::kNumber, .number = *number, .text = {}};
  }
  return {.kind = Literal::Kind::kText, .text = std::string(word)};
}

std::string SettingName(std::string_view name) {
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) {
    name = name.substr(dot + 1);
  }
  name.remove_prefix(std::min(name.find_first_not_of("-_"), name.size()));
  std::string setting = base::ToLower(name.substr(0, 100));
  std::ranges::replace(setting, '-', '_');
  return setting;
}

std::optional<Number> NumberNamed(std::string_view setting_name) {
  const auto found = std::ranges::find(kNumbers, setting_name, &Entry::first);
  if (found == kNumbers.end()) return std::nullopt;
  return found->second;
}

bool NamesModel(std::string_view name) {
  return std::ranges::find(kModelNames, name) != kModelNames.end();
}
bool NamesData(std::string_view name) {
  return std::ranges::find(kDataNames, name) != kDataNames.end();
}

std::string NumberType(std::string_view text) {
  const std::string name = SettingName(text);
  using Type = std::pair<std::string_view, std::string_view>;
  constexpr auto kTypes = std::to_array<Type>({{"bfloat16", "bfloat16"},
                                               {"bf16", "bfloat16"},
                                               {"float16", "float16"},
                                               {"fp16", "float16"},
                                               {"half", "float16"},
                                               {"float32", "float32"},
                                               {"fp32", "float32"},
                                               {"float", "float32"},
                                               {"float64", "float64"},
                                               {"double", "float64"},
                                               {"float8", "float8"},
                                               {"fp8", "float8"},
                                               {"int8", "int8"},
                                               {"8bit", "int8"},
                                               {"w8a8", "int8"},
                                               {"int4", "int4"},
                                               {"4bit", "int4"},
                                               {"nf4", "int4"},
                                               {"fp4", "int4"},
                                               {"gptq", "int4"},
                                               {"awq", "int4"},
                                               {"bitsandbytes", "int4"},
                                               {"gptq_marlin", "int4"},
                                               {"awq_marlin", "int4"},
                                               {"float8_e4m3fn", "float8"},
                                               {"q4_k_m", "int4"},
                                               {"q8_0", "int8"}});
  const auto found = std::ranges::find(kTypes, name, &Type::first);
  return found == kTypes.end() ? std::string() : std::string(found->second);
}

std::string OptimizerNamed(std::string_view text) {
  std::string name = SettingName(text);
  for (const std::string_view prefix :
       {"paged_", "fused", "deepspeedcpu", "schedulefree", "distributed"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  using Optimizer = std::pair<std::string_view, std::string_view>;
  constexpr auto kOptimizers = std::to_array<Optimizer>({{"adamw", "adamw"},
                                                         {"adam", "adam"},
                                                         {"adamw_torch", "adamw"},
                                                         {"adamw_torch_fused", "adamw"},
                                                         {"adamw_hf", "adamw"},
                                                         {"adamw_apex_fused", "adamw"},
                                                         {"adamw_8bit", "adamw_8bit"},
                                                         {"adamw_bnb_8bit", "adamw_8bit"},
                                                         {"adamw8bit", "adamw_8bit"},
                                                         {"adam8bit", "adamw_8bit"},
                                                         {"adamw_32bit", "adamw"},
                                                         {"pagedadamw8bit", "adamw_8bit"},
                                                         {"sgd", "sgd"},
                                                         {"adafactor", "adafactor"},
                                                         {"lion", "lion"},
                                                         {"lion_8bit", "lion_8bit"},
                                                         {"lion_32bit", "lion"},
                                                         {"rmsprop", "rmsprop"},
                                                         {"adagrad", "adagrad"},
                                                         {"adadelta", "adadelta"},
                                                         {"nadam", "adam"},
                                                         {"radam", "adam"},
                                                         {"adamax", "adam"},
                                                         {"lamb", "adam"},
                                                         {"lbfgs", "lbfgs"},
                                                         {"muon", "muon"},
                                                         {"galore_adamw", "galore"}});
  const auto found = std::ranges::find(kOptimizers, name, &Optimizer::first);
  return found == kOptimizers.end() ? std::string() : std::string(found->second);
}

// The names that OfferNamed knows beside those of numbers, models and data.
bool IsSetting(std::string_view setting_name) {
  constexpr auto kOthers = std::to_array<std::string_view>({"optim",
                                                            "optimizer",
                                                            "optimizer_type",
                                                            "gradient_checkpointing",
                                                            "grad_checkpointing",
                                                            "use_gradient_checkpointing",
                                                            "activation_checkpointing",
                                                            "use_lora",
                                                            "lora",
                                                            "use_peft",
                                                            "qlora",
                                                            "use_qlora",
                                                            "momentum",
                                                            "bf16",
                                                            "fp16",
                                                            "amp",
                                                            "use_amp",
                                                            "use_fp16",
                                                            "load_in_4bit",
                                                            "load_in_8bit",
                                                            "torch_dtype",
                                                            "dtype",
                                                            "quantization",
                                                            "weight_type",
                                                            "quantize",
                                                            "precision",
                                                            "mixed_precision",
                                                            "zero_stage",
                                                            "stage",
                                                            "fsdp",
                                                            "use_fsdp",
                                                            "enable_fsdp",
                                                            "strategy",
                                                            "deepspeed",
                                                            "deepspeed_config",
                                                            "offload_optimizer_device",
                                                            "cpu_offload",
                                                            "device_map",
                                                            "accelerator",
                                                            "device"});
  return NumberNamed(setting_name) || NamesModel(setting_name) || NamesData(setting_name) ||
         std::ranges::find(kOthers, setting_name) != kOthers.end();
}

void FactCollector::Offer(Number number, double value, const Evidence& evidence,
                          Strength strength) {
  const bool all_cores = number == Number::kProcesses && value == -1;
  const bool zero_workers = number == Number::kLoaderWorkers && value == 0;
  if (!std::isfinite(value) || value > LargestOf(number) ||
      !(value > 0 || all_cores || zero_workers)) {
    return;
  }
  if (strength < Strength::kPassed && NeedsUse(number)) return;
  const int rank = Rank(strength);
  int& known = number_ranks_[number];
  if (rank <= known) return;
  known = rank;
  facts_.numbers.insert_or_assign(number, Fact<double>{value, evidence});
}

void FactCollector::Offer(Choice choice, std::string_view value, const Evidence& evidence,
                          Strength strength) {
  const int rank = Rank(strength);
  int& known = choice_ranks_[choice];
  if (rank <= known || value.empty()) return;
  known = rank;
  facts_.choices.insert_or_assign(choice, Fact<std::string>{std::string(value), evidence});
}

void FactCollector::Offer(Flag flag, const Evidence& evidence) {
  facts_.flags.emplace(flag, Fact<bool>{true, evidence});
}

void FactCollector::AddFramework(std::string_view name, const Evidence& evidence) {
  if (facts_.Uses(name) || facts_.frameworks.size() >= kMaxListed) return;
  facts_.frameworks.push_back({std::string(name), evidence});
}

void FactCollector::AddModel(std::string_view name, const Evidence& evidence) {
  if (!LooksLikeModel(name) || facts_.models.size() >= kMaxListed) return;
  if (std::ranges::find(facts_.models, name, &Model::name) != facts_.models.end()) return;
  facts_.models.push_back({std::string(name), ModelParameters(name), evidence});
  Offer(Choice::kWeightType, ModelWeightType(name), evidence, Strength::kQuantized);
}

void FactCollector::AddDataFile(std::string_view path, const Evidence& evidence) {
  if (path.empty() || path.size() > 1000 || facts_.data_files.size() >= kMaxListed) return;
  const bool known =
      std::ranges::any_of(facts_.data_files, [&](const auto& fact) { return fact.value == path; });
  if (!known) facts_.data_files.push_back({std::string(path), evidence});
}

void FactCollector::AddApplication(Application application) {
  if (facts_.applications.size() < kMaxListed)
    facts_.applications.push_back(std::move(application));
}

void FactCollector::OfferNamed(std::string_view name, const Literal& value,
                               const Evidence& evidence, Strength strength) {
  const std::string setting = SettingName(name);
  if (const auto number = NumberNamed(setting)) {
    if (value.kind == Literal::Kind::kNumber) Offer(*number, value.number, evidence, strength);
    return;
  }
  const bool text = value.kind == Literal::Kind::kText;
  if (NamesModel(setting)) {
    if (text) AddModel(value.text, evidence);
  } else if (NamesData(setting)) {
    if (text) AddDataFile(value.text, evidence);
  } else if (setting == "optim" || setting == "optimizer" || setting == "optimizer_type") {
    Offer(Choice::kOptimizer, OptimizerNamed(value.text), evidence, strength);
  } else if (setting == "gradient_checkpointing" || setting == "use_gradient_checkpointing" ||
             setting == "activation_checkpointing" || setting == "grad_checkpointing") {
    if (Truthy(value)) Offer(Flag::kCheckpointing, evidence);
  } else if (setting == "use_lora" || setting == "lora" || setting == "use_peft" ||
             setting == "qlora" || setting == "use_qlora") {
    if (Truthy(value)) Offer(Flag::kLora, evidence);
  } else if (setting == "momentum") {
    if (Truthy(value)) Offer(Flag::kMomentum, evidence);
  } else {
    OfferPrecision(setting, value, evidence, strength);
    OfferSharding(setting, value, evidence, strength);
  }
}

void FactCollector::OfferPrecision(std::string_view name, const Literal& value,
                                   const Evidence& evidence, Strength strength) {
  if (name == "bf16" || name == "fp16" || name == "amp" || name == "use_amp" ||
      name == "use_fp16") {
    if (Truthy(value))
      Offer(Choice::kMixedPrecision, name == "bf16" ? "bf16" : "fp16", evidence, strength);
  } else if (name == "load_in_4bit" || name == "load_in_8bit") {
    if (Truthy(value))
      Offer(Choice::kWeightType, name == "load_in_4bit" ? "int4" : "int8", evidence,
            Strength::kQuantized);
  } else if (name == "quantization" || name == "quantize") {
    Offer(Choice::kWeightType, NumberType(value.text), evidence, Strength::kQuantized);
  } else if (name == "torch_dtype" || name == "dtype" || name == "weight_type") {
    Offer(Choice::kWeightType, NumberType(value.text), evidence, strength);
  } else if (name == "precision" || name == "mixed_precision") {
    std::string text = value.kind == Literal::Kind::kNumber
                           ? std::to_string(static_cast<int>(std::clamp(value.number, 0.0, 99.0)))
                           : base::ToLower(value.text);
    if (text.starts_with("bf16") || text == "bfloat16" || text == "amp_bf16") {
      Offer(text.ends_with("true") ? Choice::kWeightType : Choice::kMixedPrecision,
            text.ends_with("true") ? "bfloat16" : "bf16", evidence, strength);
    } else if (text.starts_with("16") || text.starts_with("fp16") || text == "float16" ||
               text == "amp_fp16") {
      Offer(text.ends_with("true") ? Choice::kWeightType : Choice::kMixedPrecision,
            text.ends_with("true") ? "float16" : "fp16", evidence, strength);
    } else if (text.starts_with("32") || text == "float32") {
      Offer(Choice::kWeightType, "float32", evidence, strength);
    }
  }
}

void FactCollector::OfferSharding(std::string_view name, const Literal& value,
                                  const Evidence& evidence, Strength strength) {
  if (name == "zero_stage" || (name == "stage" && value.kind == Literal::Kind::kNumber)) {
    constexpr std::array<std::string_view, 4> kStages = {"", "zero1", "zero2", "zero3"};
    const double stage = value.kind == Literal::Kind::kNumber ? value.number : 0;
    if (stage == 1 || stage == 2 || stage == 3) {
      Offer(Choice::kSharding, kStages[static_cast<std::size_t>(stage)], evidence, strength);
    }
  } else if (name == "fsdp" || name == "use_fsdp" || name == "enable_fsdp") {
    if (!Truthy(value)) return;
    Offer(Choice::kSharding, "fsdp", evidence, strength);
    if (value.text.contains("offload")) Offer(Flag::kOffloads, evidence);
  } else if (name == "strategy" || name == "deepspeed" || name == "deepspeed_config") {
    const std::string text = base::ToLower(value.text);
    for (const std::string_view stage : {"1", "2", "3"}) {
      for (const std::string_view form : {"stage_", "zero", "zero_", "zero_stage", "stage", "z"}) {
        const std::string spelled = std::string(form) + std::string(stage);
        if (text.contains(spelled))
          Offer(Choice::kSharding, "zero" + std::string(stage), evidence, strength);
      }
    }
    if (text.starts_with("fsdp")) Offer(Choice::kSharding, "fsdp", evidence, strength);
    if (text.contains("offload")) Offer(Flag::kOffloads, evidence);
    if (text.starts_with("ddp")) Offer(Flag::kDataParallel, evidence);
  } else if (name == "offload_optimizer_device" || name == "cpu_offload") {
    if (Truthy(value)) Offer(Flag::kOffloads, evidence);
  } else if (name == "device_map") {
    const bool spreads =
        value.text == "auto" || value.text == "balanced" || value.text == "sequential";
    if (spreads) Offer(Flag::kSpreads, evidence);
    Offer(Flag::kUsesGpu, evidence);
  } else if (name == "accelerator" || name == "device") {
    const std::string text = base::ToLower(value.text);
    if (text.starts_with("cuda") || text == "gpu") Offer(Flag::kUsesGpu, evidence);
  }
}

void FactCollector::OfferUnknown(std::string_view name, const Evidence& evidence,
                                 std::string_view written) {
  const auto number = NumberNamed(SettingName(name));
  if (!number || unknown_.size() >= kMaxListed) return;
  std::string sentence = evidence.file.empty() ? "line" : evidence.file;
  sentence += (evidence.file.empty() ? " " : ":") + std::to_string(evidence.line) + ": ";
  sentence += std::string(Name(*number)) + " is " + std::string(written.substr(0, 60)) +
              ", whose value the text does not give";
  unknown_.push_back({*number, std::move(sentence)});
}

SourceFacts FactCollector::Take() {
  std::set<Number> told;
  for (Unknown& unknown : unknown_) {
    if (facts_.numbers.contains(unknown.number) || !told.insert(unknown.number).second) continue;
    facts_.unresolved.push_back(std::move(unknown.sentence));
  }
  return std::move(facts_);
}

}  // namespace expanse::workload::source
