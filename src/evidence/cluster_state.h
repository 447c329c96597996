// What a scheduler's cluster looks like now: capacity, nodes and who waits for what. Not evidence
// but a snapshot: only the newest of a compute is kept, and a daemon that has none to give leaves
// the last one, whose times say how old it is. Plain data; an absent optional is "unknown", never
// zero.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "evidence/execution.h"

namespace expanse::evidence {

// GPUs of one type; an empty type is one that the scheduler does not tell.
struct GpuCapacity {
  std::string type;
  std::optional<std::uint32_t> total;
  std::optional<std::uint32_t> allocated;
  bool operator==(const GpuCapacity&) const = default;
};

struct ClusterPartition {
  std::string name;
  std::string state;  // verbatim: "UP", "DOWN", "DRAIN", "INACTIVE"
  bool is_default = false;
  std::optional<std::int64_t> max_time_s;      // absent: no limit, or unknown
  std::optional<std::int64_t> default_time_s;  // absent: max_time_s, or unknown
  std::optional<std::uint32_t> nodes_total;
  std::map<std::string, std::uint32_t> nodes_by_state;  // by ClusterNode::state
  std::optional<std::uint64_t> cpus_total;
  std::optional<std::uint64_t> cpus_allocated;
  std::optional<std::uint64_t> cpus_idle;   // free for jobs now
  std::optional<std::uint64_t> cpus_other;  // neither: of nodes that are down or drained
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<std::uint64_t> memory_allocated_bytes;
  std::vector<GpuCapacity> gpus;
  std::optional<std::uint32_t> pending_jobs;
  std::optional<std::uint32_t> running_jobs;
  bool operator==(const ClusterPartition&) const = default;
};

struct ClusterNode {
  std::string name;
  std::string state;               // the base state, verbatim: "IDLE", "MIXED", "ALLOCATED", "DOWN"
  std::vector<std::string> flags;  // "DRAIN", "NOT_RESPONDING", "RESERVED", …
  std::string reason;              // an administrator's words
  std::optional<std::uint32_t> cpus_total;
  std::optional<std::uint32_t> cpus_allocated;
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<std::uint64_t> memory_allocated_bytes;
  std::optional<std::uint64_t> memory_free_bytes;  // as the node's kernel sees it
  std::vector<GpuCapacity> gpus;
  std::vector<std::string> partitions;
  std::vector<std::string> features;
  bool operator==(const ClusterNode&) const = default;
};

struct PendingJob {
  ExecutionKey key;
  std::string native_id;  // "41982", "41982_[0-99%5]"
  std::string name;
  std::string user;
  std::string account;
  std::string partition;  // several, with commas between, where the job may go to any of them
  std::string reason;     // verbatim: "Priority", "QOSMaxCpuPerUserLimit"
  std::optional<base::WallTime> submitted_at;
  std::optional<base::WallTime> eligible_at;
  std::optional<base::WallTime> expected_start_at;
  std::optional<double> priority;
  Resources requested;
  bool operator==(const PendingJob&) const = default;
};

struct ClusterState {
  std::string cluster;
  base::WallTime observed_at{};  // of the queue
  std::optional<base::WallTime> nodes_observed_at;
  std::optional<base::WallTime> partitions_observed_at;
  std::vector<ClusterPartition> partitions;
  std::vector<ClusterNode> nodes;
  // Of all jobs, whatever `pending` holds. An array that is not split yet counts once.
  std::optional<std::uint32_t> pending_jobs;
  std::optional<std::uint32_t> running_jobs;
  std::map<std::string, std::uint32_t> pending_by_reason;
  std::vector<PendingJob> pending;  // those of the highest priority, highest first; at most 1000
  bool operator==(const ClusterState&) const = default;
};

}  // namespace expanse::evidence
