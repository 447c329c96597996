// What a workload's source says about what it will need: frameworks, models, precision, optimiser,
// batch size, devices, workers … Only what stands there as a literal, as the literal default of an
// argument, or as an argument of the command that is run; each fact with its place. Nothing is
// guessed here: what follows from the facts is for intelligence/predict/source_estimate.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/submission.h"

namespace expanse::workload {

struct Evidence {
  std::string file;        // as named; empty for a command of the submission itself
  std::uint32_t line = 0;  // from 1; 0 where there is none
  std::string text;        // the line, shortened
  bool operator==(const Evidence&) const = default;
};

template <typename T>
struct Fact {
  T value{};
  Evidence evidence;
};

enum class Number : std::uint8_t {
  kBatchSize,       // per device where the name says so, else as the source has it
  kAccumulation,    // batches per step of the optimiser
  kSequenceLength,  // tokens
  kEpochs,
  kSteps,
  kLoaderWorkers,  // processes that load data, per training process
  kDevices,        // GPUs of one node
  kNodes,
  kTensorParallel,
  kPipelineParallel,
  kProcesses,  // of a pool; -1: as many as there are cores
  kThreads,    // of one process
  kRanks,      // processes that a launcher starts: mpirun -np
  kLoraRank,
  kMaxSequences,       // that a server handles at the same time
  kMemoryUtilization,  // share of a device that a server takes
  kHeapBytes,          // java -Xmx
  kLiteralParameters,  // of layers whose sizes are literals: at least as many
};
enum class Choice : std::uint8_t {
  kWeightType,      // "float32", "bfloat16", "float16", "float8", "int8", "int4"
  kMixedPrecision,  // "bf16", "fp16"
  kOptimizer,       // "adamw", "adam", "sgd", "adafactor", "adamw_8bit", "lion", …
  kSharding,        // "zero1", "zero2", "zero3", "fsdp"
  kServer,          // "vllm", "sglang", "tgi", "llama.cpp"
};
enum class Flag : std::uint8_t {
  kTrains,  // calls for gradients
  kInfers,  // generates or predicts
  kUsesGpu,
  kLora,
  kCheckpointing,  // of activations
  kOffloads,       // optimizer states or weights in host memory
  kDataParallel,   // a full copy of the model per device
  kSpreads,        // one copy over all devices: device_map="auto"
  kMomentum,       // of SGD
};
std::string_view Name(Number number);  // "batch size", for people
std::string_view Name(Choice choice);
std::string_view Name(Flag flag);

struct Model {
  std::string name;                  // as written: "org/Name-7B", "resnet50"
  std::optional<double> parameters;  // absent: the name does not tell
  Evidence evidence;
};

// A program that is known by its name, and the words behind it.
struct Application {
  std::string name;  // "gromacs", "star"
  std::string program;
  std::vector<std::string> arguments;
  Evidence evidence;
};

struct SourceFacts {
  std::vector<Fact<std::string>> frameworks;  // "torch", "pandas"; each once
  std::vector<Model> models;                  // each name once
  std::map<Number, Fact<double>> numbers;
  std::map<Choice, Fact<std::string>> choices;
  std::map<Flag, Fact<bool>> flags;
  std::vector<Fact<std::string>> data_files;
  std::vector<Application> applications;
  // Settings that matter and whose value the text does not give: "train.py:12: batch size …".
  std::vector<std::string> unresolved;

  bool empty() const;
  bool Uses(std::string_view framework) const;
  bool Is(Flag flag) const;
  std::optional<double> Get(Number number) const;
  std::string Get(Choice choice) const;  // empty where it is not known
};

struct SourceText {
  std::string path;
  std::string_view text;
};

// Of the commands of a part and the files that they run; `files` may hold more (modules that those
// import), whose facts count less. Linear, with bounds on the bytes (1 MiB, of imported modules 256
// KiB) and the time (a second): what is beyond them is left to the commands alone.
SourceFacts ReadSourceFacts(const Part& part, const std::vector<SourceText>& files);

}  // namespace expanse::workload
