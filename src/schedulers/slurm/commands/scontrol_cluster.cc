#include "schedulers/slurm/commands/scontrol_cluster.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>

#include "base/text.h"
#include "schedulers/slurm/commands/scontrol_text.h"
#include "schedulers/slurm/text/tres.h"
#include "schedulers/slurm/text/values.h"

namespace expanse::schedulers::slurm {
namespace {

using evidence::ClusterNode;
using evidence::ClusterPartition;
using evidence::GpuCapacity;

// Keys of all versions, those we do not read too: each ends the value before it.
constexpr std::array<std::string_view, 56> kNodeKeys = {"NodeName",
                                                        "Arch",
                                                        "CoresPerSocket",
                                                        "CPUAlloc",
                                                        "CPUEfctv",
                                                        "CPUErr",
                                                        "CPUTot",
                                                        "CPULoad",
                                                        "AvailableFeatures",
                                                        "ActiveFeatures",
                                                        "Features",
                                                        "Gres",
                                                        "GresDrain",
                                                        "GresUsed",
                                                        "NodeAddr",
                                                        "NodeHostName",
                                                        "Port",
                                                        "Version",
                                                        "OS",
                                                        "RealMemory",
                                                        "AllocMem",
                                                        "FreeMem",
                                                        "Sockets",
                                                        "Boards",
                                                        "CoreSpecCount",
                                                        "CPUSpecList",
                                                        "MemSpecLimit",
                                                        "State",
                                                        "ThreadsPerCore",
                                                        "TmpDisk",
                                                        "Weight",
                                                        "Owner",
                                                        "MCS_label",
                                                        "Partitions",
                                                        "NextState",
                                                        "BootTime",
                                                        "SlurmdStartTime",
                                                        "LastBusyTime",
                                                        "ResumeAfterTime",
                                                        "SuspendTime",
                                                        "CfgTRES",
                                                        "AllocTRES",
                                                        "CapWatts",
                                                        "CurrentWatts",
                                                        "AveWatts",
                                                        "LowestJoules",
                                                        "ConsumedJoules",
                                                        "ExtSensorsJoules",
                                                        "ExtSensorsWatts",
                                                        "ExtSensorsTemp",
                                                        "Reason",
                                                        "Comment",
                                                        "Extra",
                                                        "InstanceId",
                                                        "InstanceType",
                                                        "ReservationName"};

constexpr std::array<std::string_view, 45> kPartitionKeys = {"PartitionName",
                                                             "AllowGroups",
                                                             "DenyAccounts",
                                                             "AllowAccounts",
                                                             "DenyQos",
                                                             "AllowQos",
                                                             "AllocNodes",
                                                             "Alternate",
                                                             "Default",
                                                             "QoS",
                                                             "DefaultTime",
                                                             "DisableRootJobs",
                                                             "ExclusiveUser",
                                                             "ExclusiveTopo",
                                                             "GraceTime",
                                                             "Hidden",
                                                             "MaxNodes",
                                                             "MaxTime",
                                                             "MinNodes",
                                                             "LLN",
                                                             "MaxCPUsPerNode",
                                                             "MaxCPUsPerSocket",
                                                             "Nodes",
                                                             "NodeSets",
                                                             "PriorityJobFactor",
                                                             "PriorityTier",
                                                             "RootOnly",
                                                             "ReqResv",
                                                             "OverSubscribe",
                                                             "OverTimeLimit",
                                                             "PreemptMode",
                                                             "State",
                                                             "TotalCPUs",
                                                             "TotalNodes",
                                                             "SelectTypeParameters",
                                                             "JobDefaults",
                                                             "DefMemPerNode",
                                                             "DefMemPerCPU",
                                                             "MaxMemPerNode",
                                                             "MaxMemPerCPU",
                                                             "TRES",
                                                             "TRESBillingWeights",
                                                             "ResumeTimeout",
                                                             "SuspendTimeout",
                                                             "SuspendTime"};

std::optional<std::uint32_t> Count(std::string_view text) {
  return base::ParseInt<std::uint32_t>(text);
}

// RealMemory, AllocMem and FreeMem are in MiB.
std::optional<std::uint64_t> Mebibytes(std::string_view text) {
  const auto count = Count(text);
  return count ? std::optional<std::uint64_t>(*count * kMebibyte) : std::nullopt;
}

std::vector<std::string> Names(std::string_view text) {
  std::vector<std::string> names;
  if (IsAbsent(text)) return names;
  for (const std::string_view name : base::Split(text, ',')) {
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

std::uint32_t Clamp32(std::uint64_t count) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(count, std::numeric_limits<std::uint32_t>::max()));
}

GpuCapacity& OfType(std::vector<GpuCapacity>& gpus, std::string_view type) {
  const auto found = std::ranges::find(gpus, type, &GpuCapacity::type);
  if (found != gpus.end()) return *found;
  gpus.push_back({.type = std::string(type)});
  return gpus.back();
}

void TakeGpus(const ScontrolRecord& record, ClusterNode& node) {
  for (const Gres& gres : ParseGres(record.Text("Gres"))) {
    if (gres.name != "gpu") continue;
    GpuCapacity& gpus = OfType(node.gpus, gres.type);
    gpus.total = Clamp32(gpus.total.value_or(0) + gres.count);
  }
  const Tres configured = ParseTres(record.Text("CfgTRES"));
  if (node.gpus.empty() && configured.gpus.value_or(0) > 0)
    node.gpus.push_back({.type = configured.gpu_type, .total = configured.gpus});
  if (node.gpus.empty()) return;
  if (const auto used = record.Get("GresUsed")) {
    for (GpuCapacity& gpus : node.gpus) gpus.allocated = 0;
    for (const Gres& gres : ParseGres(*used)) {
      if (gres.name != "gpu") continue;
      // A job that asked for no type is counted under none, where the node has a type.
      GpuCapacity& gpus = gres.type.empty() ? node.gpus.front() : OfType(node.gpus, gres.type);
      gpus.allocated = Clamp32(gpus.allocated.value_or(0) + gres.count);
    }
  } else if (configured.gpus && node.gpus.size() == 1) {
    node.gpus.front().allocated = ParseTres(record.Text("AllocTRES")).gpus.value_or(0);
  }
}

ClusterNode NodeFrom(const ScontrolRecord& record) {
  ClusterNode node;
  node.name = record.Text("NodeName");
  NodeState state = ParseNodeState(record.Text("State"));
  node.state = std::move(state.base);
  node.flags = std::move(state.flags);
  node.reason = record.Text("Reason");
  node.cpus_allocated = Count(record.Text("CPUAlloc"));
  node.cpus_total = Count(record.Text("CPUTot"));
  // Without the cores that are set aside for the system.
  if (const auto effective = Count(record.Text("CPUEfctv"));
      effective.value_or(0) > 0 && effective >= node.cpus_allocated) {
    node.cpus_total = effective;
  }
  node.memory_total_bytes = Mebibytes(record.Text("RealMemory"));
  node.memory_allocated_bytes = Mebibytes(record.Text("AllocMem"));
  node.memory_free_bytes = Mebibytes(record.Text("FreeMem"));
  TakeGpus(record, node);
  node.partitions = Names(record.Text("Partitions"));
  node.features = Names(record.Text("ActiveFeatures"));
  return node;
}

ClusterPartition PartitionFrom(const ScontrolRecord& record) {
  ClusterPartition partition;
  partition.name = record.Text("PartitionName");
  partition.state = record.Text("State");
  partition.is_default = record.Text("Default") == "YES";
  const auto limit = [&](std::string_view key) -> std::optional<std::int64_t> {
    const auto parsed = ParseTimeLimit(record.Text(key));
    if (!parsed || parsed->kind != TimeLimit::Kind::kLimited) return std::nullopt;
    return parsed->limit.count();
  };
  partition.max_time_s = limit("MaxTime");
  partition.default_time_s = limit("DefaultTime");
  partition.nodes_total = Count(record.Text("TotalNodes"));
  partition.cpus_total = Count(record.Text("TotalCPUs"));
  const Tres tres = ParseTres(record.Text("TRES"));
  partition.memory_total_bytes = tres.memory_bytes;
  if (tres.gpus) partition.gpus.push_back({.type = tres.gpu_type, .total = tres.gpus});
  return partition;
}

template <typename T>
void Add(std::optional<T>& sum, std::optional<std::uint64_t> value) {
  if (value) sum = static_cast<T>(sum.value_or(0) + *value);
}

void AddNode(const ClusterNode& node, bool usable, ClusterPartition& partition) {
  ++partition.nodes_by_state[node.state];
  Add(partition.nodes_total, 1);
  Add(partition.cpus_total, node.cpus_total);
  Add(partition.memory_total_bytes, node.memory_total_bytes);
  Add(partition.cpus_allocated, node.cpus_allocated);
  Add(partition.memory_allocated_bytes, node.memory_allocated_bytes);
  if (node.cpus_total && node.cpus_allocated) {
    const std::uint64_t rest =
        *node.cpus_total - std::min<std::uint64_t>(*node.cpus_total, *node.cpus_allocated);
    Add(usable ? partition.cpus_idle : partition.cpus_other, rest);
  }
  for (const GpuCapacity& gpus : node.gpus) {
    GpuCapacity& sum = OfType(partition.gpus, gpus.type);
    Add(sum.total, gpus.total);
    Add(sum.allocated, gpus.allocated);
  }
}

}  // namespace

std::vector<ClusterNode> ParseScontrolNodes(std::string_view text) {
  std::vector<ClusterNode> nodes;
  for (const std::string_view record : SplitRecords(text, "NodeName=", kMaxClusterNodes)) {
    ClusterNode node = NodeFrom(ScontrolRecord(record, kNodeKeys));
    if (!node.name.empty()) nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<ClusterPartition> ParseScontrolPartitions(std::string_view text) {
  std::vector<ClusterPartition> partitions;
  for (const std::string_view record : SplitRecords(text, "PartitionName=", kMaxPartitions)) {
    ClusterPartition partition = PartitionFrom(ScontrolRecord(record, kPartitionKeys));
    if (!partition.name.empty()) partitions.push_back(std::move(partition));
  }
  return partitions;
}

NodeState StateOf(const ClusterNode& node) {
  std::string text = node.state;
  for (const std::string& flag : node.flags) text += "+" + flag;
  return ParseNodeState(text);
}

void AddUpNodes(const std::vector<ClusterNode>& nodes, std::vector<ClusterPartition>* partitions) {
  std::map<std::string_view, ClusterPartition*> by_name;
  for (ClusterPartition& partition : *partitions) by_name.emplace(partition.name, &partition);
  std::map<ClusterPartition*, bool> touched;
  for (const ClusterNode& node : nodes) {
    const bool usable = StateOf(node).usable;
    for (const std::string& name : node.partitions) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) continue;
      ClusterPartition& partition = *found->second;
      if (touched.emplace(&partition, true).second) {
        // What the nodes say is newer than the partition's own totals, and adds up with the rest.
        partition.nodes_total.reset();
        partition.cpus_total.reset();
        partition.memory_total_bytes.reset();
        partition.gpus.clear();
      }
      AddNode(node, usable, partition);
    }
  }
}

}  // namespace expanse::schedulers::slurm
