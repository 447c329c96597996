#include "workload/sbatch/options.h"

#include <array>

namespace expanse::workload::sbatch {
namespace {

constexpr Argument kRequired = Argument::kRequired;
constexpr Argument kOptional = Argument::kOptional;

constexpr auto kOptions = std::to_array<Option>({
    {.name = "account", .letter = 'A', .argument = kRequired},
    {.name = "acctg-freq", .argument = kRequired},
    {.name = "array", .letter = 'a', .argument = kRequired, .id = OptionId::kArray},
    {.name = "batch", .argument = kRequired},
    {.name = "bb", .argument = kRequired},
    {.name = "bbf", .argument = kRequired},
    {.name = "begin", .letter = 'b', .argument = kRequired},
    {.name = "chdir", .letter = 'D', .argument = kRequired, .id = OptionId::kChdir},
    {.name = "cluster", .letter = 'M', .argument = kRequired},
    {.name = "cluster-constraint", .argument = kRequired},
    {.name = "clusters", .letter = 'M', .argument = kRequired},
    {.name = "comment", .argument = kRequired, .id = OptionId::kComment},
    {.name = "consolidate-segments"},
    {.name = "constraint", .letter = 'C', .argument = kRequired},
    {.name = "container", .argument = kRequired},
    {.name = "container-id", .argument = kRequired},
    {.name = "context", .argument = kRequired},
    {.name = "contiguous"},
    {.name = "core-spec", .letter = 'S', .argument = kRequired},
    {.name = "cores-per-socket",
     .argument = kRequired,
     .id = OptionId::kCoresPerSocket,
     .reset = true},
    {.name = "cpu-freq", .argument = kRequired},
    {.name = "cpus-per-gpu", .argument = kRequired, .id = OptionId::kCpusPerGpu, .reset = true},
    {.name = "cpus-per-task",
     .letter = 'c',
     .argument = kRequired,
     .id = OptionId::kCpusPerTask,
     .reset = true},
    {.name = "deadline", .argument = kRequired},
    {.name = "delay-boot", .argument = kRequired},
    {.name = "dependency", .letter = 'd', .argument = kRequired},
    {.name = "distribution", .letter = 'm', .argument = kRequired},
    {.name = "error", .letter = 'e', .argument = kRequired, .id = OptionId::kError},
    {.name = "exclude", .letter = 'x', .argument = kRequired},
    {.name = "exclusive", .argument = kOptional, .id = OptionId::kExclusive, .reset = true},
    {.name = "export", .argument = kRequired, .id = OptionId::kExport},
    {.name = "export-file", .argument = kRequired},
    {.name = "extra", .argument = kRequired},
    {.name = "extra-node-info",
     .letter = 'B',
     .argument = kRequired,
     .id = OptionId::kExtraNodeInfo,
     .reset = true},
    {.name = "get-user-env", .argument = kOptional},
    {.name = "gid", .argument = kRequired},
    {.name = "gpu-bind", .argument = kRequired},
    {.name = "gpu-freq", .argument = kRequired},
    {.name = "gpus", .letter = 'G', .argument = kRequired, .id = OptionId::kGpus, .reset = true},
    {.name = "gpus-per-node", .argument = kRequired, .id = OptionId::kGpusPerNode, .reset = true},
    {.name = "gpus-per-socket",
     .argument = kRequired,
     .id = OptionId::kGpusPerSocket,
     .reset = true},
    {.name = "gpus-per-task", .argument = kRequired, .id = OptionId::kGpusPerTask, .reset = true},
    {.name = "gres", .argument = kRequired, .id = OptionId::kGres, .reset = true},
    {.name = "gres-flags", .argument = kRequired},
    {.name = "help", .letter = 'h'},
    {.name = "hint", .argument = kRequired},
    {.name = "hold", .letter = 'H'},
    {.name = "ignore-pbs", .id = OptionId::kIgnorePbs},
    {.name = "input", .letter = 'i', .argument = kRequired, .id = OptionId::kInput},
    {.name = "job-name", .letter = 'J', .argument = kRequired, .id = OptionId::kJobName},
    {.name = "kill-on-invalid-dep", .argument = kRequired},
    {.name = "licenses", .letter = 'L', .argument = kRequired},
    {.name = "mail-type", .argument = kRequired},
    {.name = "mail-user", .argument = kRequired},
    {.name = "mcs-label", .argument = kRequired},
    {.name = "mem", .argument = kRequired, .id = OptionId::kMem},
    {.name = "mem-bind", .argument = kRequired},
    {.name = "mem-per-cpu", .argument = kRequired, .id = OptionId::kMemPerCpu, .reset = true},
    {.name = "mem-per-gpu", .argument = kRequired, .id = OptionId::kMemPerGpu, .reset = true},
    {.name = "mincpus", .argument = kRequired, .id = OptionId::kMinCpus, .reset = true},
    {.name = "network", .argument = kRequired},
    {.name = "nice", .argument = kOptional},
    {.name = "no-kill", .letter = 'k', .argument = kOptional},
    {.name = "no-requeue"},
    {.name = "nodefile", .letter = 'F', .argument = kRequired},
    {.name = "nodelist", .letter = 'w', .argument = kRequired},
    {.name = "nodes", .letter = 'N', .argument = kRequired, .id = OptionId::kNodes, .reset = true},
    {.name = "ntasks",
     .letter = 'n',
     .argument = kRequired,
     .id = OptionId::kNtasks,
     .reset = true},
    {.name = "ntasks-per-core",
     .argument = kRequired,
     .id = OptionId::kNtasksPerCore,
     .reset = true},
    {.name = "ntasks-per-gpu", .argument = kRequired, .id = OptionId::kNtasksPerGpu, .reset = true},
    {.name = "ntasks-per-node",
     .argument = kRequired,
     .id = OptionId::kNtasksPerNode,
     .reset = true},
    {.name = "ntasks-per-socket",
     .argument = kRequired,
     .id = OptionId::kNtasksPerSocket,
     .reset = true},
    {.name = "ntasks-per-tres",
     .argument = kRequired,
     .id = OptionId::kNtasksPerGpu,
     .reset = true},
    {.name = "oom-kill-step", .argument = kOptional},
    {.name = "open-mode", .argument = kRequired},
    {.name = "output", .letter = 'o', .argument = kRequired, .id = OptionId::kOutput},
    {.name = "overcommit", .letter = 'O', .id = OptionId::kOvercommit},
    {.name = "oversubscribe", .letter = 's', .id = OptionId::kOther},
    {.name = "parsable"},
    {.name = "partition", .letter = 'p', .argument = kRequired},
    {.name = "power", .argument = kRequired},
    {.name = "prefer", .argument = kRequired},
    {.name = "priority", .argument = kRequired},
    {.name = "profile", .argument = kRequired},
    {.name = "propagate", .argument = kOptional},
    {.name = "qos", .letter = 'q', .argument = kRequired},
    {.name = "quiet", .letter = 'Q'},
    {.name = "reboot"},
    {.name = "requeue"},
    {.name = "reservation", .argument = kRequired},
    {.name = "resv-ports", .argument = kOptional},
    {.name = "segment", .argument = kRequired},
    {.name = "signal", .argument = kRequired},
    {.name = "sockets-per-node",
     .argument = kRequired,
     .id = OptionId::kSocketsPerNode,
     .reset = true},
    {.name = "spread-job"},
    {.name = "spread-segments"},
    {.name = "stepmgr"},
    {.name = "switches", .argument = kRequired},
    {.name = "tasks-per-node",
     .argument = kRequired,
     .id = OptionId::kNtasksPerNode,
     .reset = true},
    {.name = "test-only"},
    {.name = "thread-spec", .argument = kRequired},
    {.name = "threads-per-core",
     .argument = kRequired,
     .id = OptionId::kThreadsPerCore,
     .reset = true},
    {.name = "time", .letter = 't', .argument = kRequired, .id = OptionId::kTime},
    {.name = "time-min", .argument = kRequired, .id = OptionId::kTimeMin},
    {.name = "tmp", .argument = kRequired, .id = OptionId::kTmp, .reset = true},
    {.name = "tres-bind", .argument = kRequired},
    {.name = "tres-per-task", .argument = kRequired, .id = OptionId::kTresPerTask, .reset = true},
    {.name = "uid", .argument = kRequired},
    {.name = "usage"},
    {.name = "use-min-nodes"},
    {.name = "verbose", .letter = 'v'},
    {.name = "version", .letter = 'V'},
    {.name = "wait", .letter = 'W'},
    {.name = "wait-all-nodes", .argument = kRequired},
    {.name = "wckey", .argument = kRequired},
    {.name = "wrap", .argument = kRequired, .id = OptionId::kWrap},
});

}  // namespace

std::span<const Option> AllOptions() { return kOptions; }

const Option* FindShort(char letter) {
  if (letter == 0) return nullptr;
  for (const Option& option : kOptions)
    if (option.letter == letter) return &option;
  return nullptr;
}

LongMatch FindLong(std::string_view name) {
  LongMatch match;
  if (name.empty()) return match;
  for (const Option& option : kOptions) {
    if (option.name == name) return {.option = &option, .candidates = {}};
    if (option.name.starts_with(name)) match.candidates.push_back(option.name);
  }
  if (match.candidates.empty()) return match;
  const auto find = [](std::string_view whole) {
    for (const Option& option : kOptions)
      if (option.name == whole) return &option;
    return static_cast<const Option*>(nullptr);
  };
  // Two names of one option are no ambiguity.
  const Option* first = find(match.candidates.front());
  for (const std::string_view candidate : match.candidates) {
    const Option* other = find(candidate);
    const bool same = other->letter != 0 ? other->letter == first->letter
                                         : other->id != OptionId::kOther && other->id == first->id;
    if (other != first && !same) return match;
  }
  return {.option = first, .candidates = {}};
}

}  // namespace expanse::workload::sbatch
