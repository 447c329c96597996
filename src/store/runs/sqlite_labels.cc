#include "store/runs/sqlite_labels.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"

namespace expanse::store::runs {
namespace {

using sql::Bytes;
using sql::Column;
using sql::Row;
using sql::Transaction;
using sql::Value;

// Nodes are parts of keys, which are text; a name that cannot be one names no node.
std::optional<std::string> NodeKey(std::string_view node) {
  if (node.empty() || node.find('\0') != std::string_view::npos) return std::nullopt;
  return base::ToValidUtf8(node);
}

std::set<std::string> NodeKeys(const std::vector<std::string>& nodes, std::size_t most) {
  std::set<std::string> keys;
  for (const std::string& node : nodes) {
    if (keys.size() == most) break;
    if (auto key = NodeKey(node)) keys.insert(*std::move(key));
  }
  return keys;
}

base::Result<std::optional<FailureLabel>> Read(Transaction& tx, std::string_view organisation_id,
                                               std::string_view execution_id) {
  std::optional<FailureLabel> label;
  EXPANSE_RETURN_IF_ERROR(tx.Query(
      "SELECT compute_id, failure_class, title, confidence, run_id, asked_by, user_name, workload, "
      "ended_at, diagnosed_at FROM failure_label WHERE organisation_id = :organisation AND "
      "execution_id = :id",
      {organisation_id, execution_id},
      {Column::kText, Column::kText, Column::kBytes, Column::kInt, Column::kText, Column::kText,
       Column::kBytes, Column::kText, Column::kInt, Column::kInt},
      [&](const Row& row) {
        label = {.organisation_id = std::string(organisation_id),
                 .execution_id = std::string(execution_id),
                 .compute_id = row.Text(0),
                 .failure_class = row.Text(1),
                 .title = row.Blob(2),
                 .confidence = static_cast<std::uint8_t>(row.Int(3)),
                 .run_id = row.Text(4),
                 .asked_by = row.Text(5),
                 .user = row.Blob(6),
                 .workload = row.Text(7),
                 .nodes = {},
                 .ended_at = row.Time(8),
                 .diagnosed_at = row.Time(9)};
      }));
  if (!label) return label;
  EXPANSE_RETURN_IF_ERROR(
      tx.Query("SELECT node FROM failure_node WHERE organisation_id = :organisation AND "
               "execution_id = :id ORDER BY node",
               {organisation_id, execution_id}, {Column::kText},
               [&](const Row& row) { label->nodes.push_back(row.Text(0)); }));
  return label;
}

// The labels that a query looks at, as a table `recent`.
constexpr std::string_view kRecent =
    "WITH recent AS (SELECT organisation_id, execution_id, failure_class, user_name, workload FROM "
    "failure_label WHERE organisation_id = :organisation AND compute_id = :compute AND ended_at >= "
    ":from AND ended_at <= :to AND node_count = 1 ORDER BY ended_at DESC LIMIT :most) ";

std::vector<Value> RecentValues(const NodeQuery& query) {
  return {query.organisation_id, query.compute_id, query.ended_from, query.ended_to,
          LabelStore::kMostCounted};
}

}  // namespace

base::Status SqliteLabels::Put(const FailureLabel& label) {
  return database_.WithWrite([&](Transaction& tx) -> base::Status {
    const std::optional<std::string_view> run =
        label.run_id.empty() ? std::nullopt : std::optional<std::string_view>(label.run_id);
    EXPANSE_ASSIGN_OR_RETURN(
        const std::int64_t changed,
        tx.Execute(
            "INSERT INTO failure_label (organisation_id, execution_id, compute_id, failure_class, "
            "title, confidence, run_id, asked_by, user_name, workload, ended_at, diagnosed_at, "
            "node_count) VALUES (:organisation, :id, :compute, :class, :title, :confidence, :run, "
            ":asked, :user, :workload, :ended, :diagnosed, :nodes)"
            " ON CONFLICT (organisation_id, execution_id) DO UPDATE SET"
            " compute_id = excluded.compute_id, failure_class = excluded.failure_class,"
            " title = excluded.title, confidence = excluded.confidence,"
            " run_id = excluded.run_id, asked_by = excluded.asked_by,"
            " user_name = excluded.user_name, workload = excluded.workload,"
            " ended_at = excluded.ended_at, diagnosed_at = excluded.diagnosed_at,"
            " node_count = excluded.node_count"
            " WHERE excluded.diagnosed_at >= failure_label.diagnosed_at",
            {label.organisation_id, label.execution_id, label.compute_id, label.failure_class,
             Bytes{label.title}, label.confidence, run, label.asked_by, Bytes{label.user},
             label.workload, label.ended_at, label.diagnosed_at, label.nodes.size()}));
    if (changed == 0) return {};
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "DELETE FROM failure_node WHERE organisation_id = :organisation AND execution_id = :id",
        {label.organisation_id, label.execution_id}));
    for (const std::string& node : NodeKeys(label.nodes, kMostNodes)) {
      EXPANSE_RETURN_IF_ERROR(
          tx.Execute("INSERT INTO failure_node (organisation_id, execution_id, node) VALUES "
                     "(:organisation, :id, :node)",
                     {label.organisation_id, label.execution_id, node}));
    }
    return {};
  });
}

base::Status SqliteLabels::Drop(std::string_view organisation_id, std::string_view execution_id) {
  return database_.WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "DELETE FROM failure_label WHERE organisation_id = :organisation AND execution_id = :id",
        {organisation_id, execution_id}));
    return {};
  });
}

base::Result<std::vector<FailureLabel>> SqliteLabels::Get(
    std::string_view organisation_id, const std::vector<std::string>& execution_ids) {
  const std::set<std::string> ids(execution_ids.begin(), execution_ids.end());
  std::vector<FailureLabel> labels;
  EXPANSE_RETURN_IF_ERROR(database_.WithRead([&](Transaction& tx) -> base::Status {
    for (const std::string& id : ids) {
      EXPANSE_ASSIGN_OR_RETURN(auto label, Read(tx, organisation_id, id));
      if (label) labels.push_back(*std::move(label));
    }
    return {};
  }));
  return labels;
}

base::Result<std::vector<NodeFailures>> SqliteLabels::NodeHistory(const NodeQuery& query) {
  std::vector<NodeFailures> found;
  const std::set<std::string> nodes = NodeKeys(query.nodes, kMostNodes);
  if (nodes.empty()) return found;
  std::string in;
  std::vector<Value> values = RecentValues(query);
  for (const std::string& node : nodes) {
    in += (in.empty() ? ":n" : ", :n") + std::to_string(values.size());
    values.push_back(node);
  }
  values.push_back(query.without_workload);
  const std::string by_node =
      std::string(kRecent) +
      "SELECT node, failure_class, COUNT(*), COUNT(DISTINCT user_name) FROM recent JOIN "
      "failure_node ON failure_node.organisation_id = recent.organisation_id AND "
      "failure_node.execution_id = recent.execution_id WHERE node IN (" +
      in + ") AND workload <> :workload GROUP BY node, failure_class ORDER BY node, failure_class";
  const std::vector<Value> recent_values = RecentValues(query);
  std::vector<Value> all_values = recent_values;
  all_values.push_back(query.without_workload);
  static const std::string by_class =
      std::string(kRecent) +
      "SELECT failure_class, COUNT(*) FROM recent WHERE workload <> :workload GROUP BY "
      "failure_class";
  static const std::string all_nodes =
      std::string(kRecent) +
      "SELECT DISTINCT node FROM recent JOIN failure_node ON failure_node.organisation_id = "
      "recent.organisation_id AND failure_node.execution_id = recent.execution_id";
  std::map<std::string, std::uint32_t> of_class;
  std::uint32_t distinct = 0;
  EXPANSE_RETURN_IF_ERROR(database_.WithRead([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(
        tx.Query(by_node, std::span<const Value>(values),
                 {Column::kText, Column::kText, Column::kInt, Column::kInt}, [&](const Row& row) {
                   found.push_back({.node = row.Text(0),
                                    .failure_class = row.Text(1),
                                    .executions = static_cast<std::uint32_t>(row.Unsigned(2)),
                                    .users = static_cast<std::uint32_t>(row.Unsigned(3))});
                 }));
    if (found.empty()) return {};
    EXPANSE_RETURN_IF_ERROR(tx.Query(all_nodes, std::span<const Value>(recent_values),
                                     {Column::kText}, [&](const Row&) { ++distinct; }));
    return tx.Query(by_class, std::span<const Value>(all_values), {Column::kText, Column::kInt},
                    [&](const Row& row) {
                      of_class[row.Text(0)] = static_cast<std::uint32_t>(row.Unsigned(1));
                    });
  }));
  for (NodeFailures& node : found) {
    node.elsewhere = of_class[node.failure_class] - node.executions;
    node.other_nodes = distinct - 1;  // it is one of them
  }
  return found;
}

base::Result<std::size_t> SqliteLabels::DropBefore(base::WallTime diagnosed_before,
                                                   std::size_t limit) {
  return database_.WithWrite([&](Transaction& tx) -> base::Result<std::size_t> {
    std::vector<std::pair<std::string, std::string>> old;
    EXPANSE_RETURN_IF_ERROR(
        tx.Query("SELECT organisation_id, execution_id FROM failure_label WHERE diagnosed_at < "
                 ":before ORDER BY diagnosed_at LIMIT :limit",
                 {diagnosed_before, limit}, {Column::kText, Column::kText},
                 [&](const Row& row) { old.emplace_back(row.Text(0), row.Text(1)); }));
    for (const auto& [organisation, id] : old) {
      EXPANSE_RETURN_IF_ERROR(tx.Execute(
          "DELETE FROM failure_label WHERE organisation_id = :organisation AND execution_id = :id",
          {organisation, id}));
    }
    return old.size();
  });
}

}  // namespace expanse::store::runs
