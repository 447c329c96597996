// Trackable resources (TRES) and generic resources (GRES) as Slurm writes them, and the rule by
// which GPUs are counted: `gres/gpu` where it is given, else the sum of the typed ones, else
// unknown. Never zero by default: a cluster may not track GPUs at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/execution.h"

namespace expanse::schedulers::slurm {

// "cpu=4,mem=16G,node=1,billing=4,gres/gpu=4,gres/gpu:a100=4,license/x@y=3"; the numeric ids of the
// database ("1=4,2=16000,4=1") too. What does not parse is left out.
struct Tres {
  std::optional<double> cpus;
  std::optional<std::uint64_t> memory_bytes;  // of the job, over all its nodes
  std::optional<std::uint64_t> nodes;
  std::optional<double> billing;
  std::optional<std::uint32_t> gpus;
  std::string gpu_type;  // "" when not told; "a100,v100" for several
  bool operator==(const Tres&) const = default;
};
Tres ParseTres(std::string_view text);

// `text` as resources of a job: what of it an execution has fields for, and `text` itself.
evidence::Resources ResourcesFromTres(std::string_view text);

// One entry of a list of generic resources.
struct Gres {
  std::string name;  // "gpu", "shard", "mps"
  std::string type;  // "" when none is given
  std::uint64_t count = 1;
  std::vector<std::uint32_t> indices;  // (IDX:0,3): which devices; scontrol -d and GresUsed only
  bool operator==(const Gres&) const = default;
};
// "gpu:a100:4(S:0-1),shard:8", "gres:gpu:2", "gres/gpu:a100=2", "gpu:NVlink_A100_40GB:2(IDX:0,3)",
// "(null)", "N/A". Commas inside brackets belong to their entry. What does not parse is left out.
std::vector<Gres> ParseGres(std::string_view text);

struct GpuCount {
  std::optional<std::uint32_t> count;
  std::string type;
  bool operator==(const GpuCount&) const = default;
};
// The GPUs of such a list: a node's, or those requested per node. Entries are added up; unknown
// when none is there.
GpuCount GpusOf(const std::vector<Gres>& list);

// What a step or job used: sacct's TRESUsage* fields,
// "cpu=00:01:02,mem=12K,fs/disk=1,gres/gpuutil=9".
struct TresUsage {
  std::optional<double> cpu_s;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> virtual_memory_bytes;
  std::optional<std::uint64_t> disk_bytes;
  std::optional<std::uint64_t> pages;
  std::optional<double> energy_j;
  std::optional<double> gpu_utilisation_pct;  // summed over GPUs: 396 for four busy ones
  std::optional<std::uint64_t> gpu_memory_bytes;
  bool operator==(const TresUsage&) const = default;
};
TresUsage ParseTresUsage(std::string_view text);

}  // namespace expanse::schedulers::slurm
