// `scontrol show node -d` and `scontrol show partition` as parts of the cluster's state. scontrol
// rather than sinfo: it has each amount exactly and by name, in all versions, where sinfo cuts
// columns and joins nodes that are alike.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "evidence/cluster_state.h"
#include "schedulers/slurm/text/state.h"

namespace expanse::schedulers::slurm {

inline constexpr std::size_t kMaxClusterNodes = 65'536;
inline constexpr std::size_t kMaxPartitions = 4'096;

// Records beyond the bounds are left out, as are those without a name. GPUs in use come from
// GresUsed (of -d), else from AllocTRES where the cluster tracks GPUs, else they are unknown.
std::vector<evidence::ClusterNode> ParseScontrolNodes(std::string_view text);

// Without what only the nodes tell.
std::vector<evidence::ClusterPartition> ParseScontrolPartitions(std::string_view text);

// State and flags of a parsed node, for NodeState::usable.
NodeState StateOf(const evidence::ClusterNode& node);

// Fills in what the nodes of each partition add up to: states, CPUs, memory and GPUs. A node
// counts in each of its partitions.
void AddUpNodes(const std::vector<evidence::ClusterNode>& nodes,
                std::vector<evidence::ClusterPartition>* partitions);

}  // namespace expanse::schedulers::slurm
