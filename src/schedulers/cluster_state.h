// The snapshot of a cluster under the names that scheduler adapters use. The structs are in
// evidence/, since the data plane keeps them and knows no schedulers.
#pragma once

#include "evidence/cluster_state.h"

namespace expanse::schedulers {

using evidence::ClusterNode;
using evidence::ClusterPartition;
using evidence::ClusterState;
using evidence::GpuCapacity;
using evidence::PendingJob;

}  // namespace expanse::schedulers
