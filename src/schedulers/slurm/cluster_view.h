// The queue view: the cluster's state as the table of runs, the nodes and the partitions tell it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/time.h"
#include "evidence/cluster_state.h"
#include "schedulers/slurm/job_table.h"

namespace expanse::schedulers::slurm {

struct ClusterParts {
  const std::vector<evidence::ClusterNode>& nodes;
  const std::vector<evidence::ClusterPartition>& partitions;
  std::optional<base::WallTime> nodes_at;
  std::optional<base::WallTime> partitions_at;
  base::WallTime queue_at{};
  std::size_t pending_shown = 1000;
};

// Looks at every run: some milliseconds for 100,000 of them.
evidence::ClusterState MakeClusterState(const JobTable& table, const ClusterParts& parts);

}  // namespace expanse::schedulers::slurm
