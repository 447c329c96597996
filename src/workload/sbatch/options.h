// The options of sbatch, of all releases from 20.11 to 26.05, and how getopt_long finds them.
// Source: `sbatch --help` and sbatch(1) of those releases, and what sbatch 22.05.8 was seen to do.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace expanse::workload::sbatch {

enum class Argument : std::uint8_t { kNone, kRequired, kOptional };

// Options that the reader looks at; all others are only known.
enum class OptionId : std::uint8_t {
  kOther,
  kArray,
  kChdir,
  kComment,
  kCoresPerSocket,
  kCpusPerGpu,
  kCpusPerTask,
  kError,
  kExclusive,
  kExport,
  kExtraNodeInfo,
  kGpus,
  kGpusPerNode,
  kGpusPerSocket,
  kGpusPerTask,
  kGres,
  kIgnorePbs,
  kInput,
  kJobName,
  kMem,
  kMemPerCpu,
  kMemPerGpu,
  kMinCpus,
  kNodes,
  kNtasks,
  kNtasksPerCore,
  kNtasksPerGpu,
  kNtasksPerNode,
  kNtasksPerSocket,
  kOutput,
  kOvercommit,
  kSocketsPerNode,
  kTime,
  kThreadsPerCore,
  kTimeMin,
  kTmp,
  kTresPerTask,
  kWrap,
};

struct Option {
  std::string_view name;  // long, without "--"; empty where there is only a letter
  char letter = 0;        // short, 0 if none
  Argument argument = Argument::kNone;
  OptionId id = OptionId::kOther;
  // In a heterogeneous job: a component starts without it, whatever the one before had.
  bool reset = false;
};

std::span<const Option> AllOptions();

const Option* FindShort(char letter);  // nullptr: there is none

struct LongMatch {
  const Option* option = nullptr;
  std::vector<std::string_view> candidates;  // names, where the beginning of several was written
};
// By the whole name, or a beginning of it that only one option has.
LongMatch FindLong(std::string_view name);

}  // namespace expanse::workload::sbatch
