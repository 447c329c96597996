// What Slurm reserves for a component, from what its options say. The rules are those of sbatch and
// slurmctld 22.05 (their defaults, and which option gives way to which), as seen on a real one.
#pragma once

#include <cstdint>
#include <optional>

#include "workload/submission.h"

namespace expanse::workload::sbatch {

// An option's value: not given, known, or given and not known (a template).
template <typename T>
struct Amount {
  bool given = false;
  std::optional<T> value;
  bool unknown() const { return given && !value; }
};

// The values that count, of one component.
struct Asked {
  Amount<std::uint32_t> nodes_min;
  Amount<std::uint32_t> nodes_max;
  Amount<std::uint32_t> tasks;
  Amount<std::uint32_t> tasks_per_node;
  Amount<std::uint32_t> tasks_per_gpu;
  Amount<std::uint32_t> cpus_per_task;
  Amount<std::uint32_t> cpus_per_gpu;
  Amount<std::uint32_t> cpus_per_node;  // --mincpus
  Amount<std::uint32_t> sockets;        // per node
  Amount<std::uint32_t> cores;          // per socket
  Amount<std::uint32_t> threads;        // per core
  bool geometry = false;                // --extra-node-info
  Amount<std::uint64_t> gpus;           // of the job
  Amount<std::uint64_t> gpus_per_node;
  Amount<std::uint64_t> gpus_per_task;
  Amount<std::uint64_t> gpus_per_socket;
  Amount<std::uint64_t> memory_per_node;
  Amount<std::uint64_t> memory_per_cpu;
  Amount<std::uint64_t> memory_per_gpu;
  Amount<std::int64_t> walltime_s;
  bool exclusive = false;
  bool overcommit = false;
};

// How many of each, for one component. Absent: not asked for, or not known. Sums that overflow are
// absent too.
struct Totals {
  std::optional<std::uint64_t> nodes;
  std::optional<std::uint64_t> tasks;
  std::optional<std::uint64_t> cpus;
  std::optional<std::uint64_t> gpus;
  std::optional<std::uint64_t> memory;
};
Totals MakeTotals(const Asked& asked);

}  // namespace expanse::workload::sbatch
