// Failure classes of executions as they were last diagnosed: one small row an execution, for lists,
// for similar runs and for what else failed on a node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace expanse::store {

struct FailureLabel {
  std::string organisation_id;
  std::string execution_id;
  std::string compute_id;
  std::string failure_class;  // a word of the plane's own; never empty
  std::string title;
  std::uint8_t confidence = 0;  // a number of the plane's own
  std::string run_id;           // the diagnosis; empty: it is gone
  std::string asked_by;         // its user
  std::string user;             // who ran the execution: any bytes
  std::string workload;         // equal for executions of the same workload
  std::vector<std::string> nodes;
  base::WallTime ended_at{};  // of the execution
  base::WallTime diagnosed_at{};
  bool operator==(const FailureLabel&) const = default;
};

// What else failed on some nodes of a compute. Only executions on a single node are counted: of
// others, it cannot be told which node it was.
struct NodeQuery {
  std::string organisation_id;
  std::string compute_id;
  std::vector<std::string> nodes;
  std::string without_workload;
  base::WallTime ended_from{};  // inclusive, both
  base::WallTime ended_to{};
  // Classes with fewer on a node are left out.
  std::uint32_t least_executions = 1;
  std::uint32_t least_users = 1;
};

struct NodeFailures {
  std::string node;
  std::string failure_class;
  std::uint32_t executions = 0;
  std::uint32_t users = 0;
  std::uint32_t elsewhere = 0;    // executions with the class on other nodes
  std::uint32_t other_nodes = 0;  // on which anything failed; at most kMostOthers are counted
  bool operator==(const NodeFailures&) const = default;
};

// Thread-safe. What is written is durable on return.
class LabelStore {
 public:
  static constexpr std::size_t kMostNodes = 64;  // that are kept of a label
  static constexpr std::size_t kMostAsked = 16;  // nodes of a NodeQuery that are looked at
  static constexpr std::size_t kMostOthers = 8;  // nodes that NodeHistory counts beside one
  virtual ~LabelStore() = default;

  // Replaces an execution's label unless that was diagnosed later. Keeps the first kMostNodes. The
  // run it names is there.
  virtual base::Status Put(const FailureLabel& label) = 0;
  // No label is no error.
  virtual base::Status Drop(std::string_view organisation_id, std::string_view execution_id) = 0;
  // Those of the executions that have one, by execution id.
  virtual base::Result<std::vector<FailureLabel>> Get(
      std::string_view organisation_id, const std::vector<std::string>& execution_ids) = 0;
  // By node, then class.
  virtual base::Result<std::vector<NodeFailures>> NodeHistory(const NodeQuery& query) = 0;
  // Retention: at most `limit` in one short transaction; how many. Call again until 0.
  virtual base::Result<std::size_t> DropBefore(base::WallTime diagnosed_before,
                                               std::size_t limit) = 0;
};

}  // namespace expanse::store
