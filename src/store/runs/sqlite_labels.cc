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

// How many executions of other workloads had each class on each of the nodes.
base::Status CountOnNodes(Transaction& tx, const NodeQuery& query,
                          const std::set<std::string>& nodes, std::vector<NodeFailures>* found) {
  std::vector<Value> values = {query.organisation_id, query.compute_id};
  std::string in;
  for (const std::string& node : nodes) {
    in += (in.empty() ? ":n" : ", :n") + std::to_string(values.size());
    values.push_back(node);
  }
  for (const Value& value :
       {Value(query.ended_from), Value(query.ended_to), Value(query.without_workload),
        Value(query.least_executions), Value(query.least_users)})
    values.push_back(value);
  const std::string sql =
      "SELECT only_node, failure_class, COUNT(*), COUNT(DISTINCT user_name) FROM failure_label "
      "WHERE organisation_id = :organisation AND compute_id = :compute AND only_node IN (" +
      in +
      ") AND ended_at >= :from AND ended_at <= :to AND workload <> :workload GROUP BY only_node, "
      "failure_class HAVING COUNT(*) >= :least AND COUNT(DISTINCT user_name) >= :users ORDER BY "
      "only_node, failure_class";
  return tx.Query(sql, std::span<const Value>(values),
                  {Column::kText, Column::kText, Column::kInt, Column::kInt}, [&](const Row& row) {
                    found->push_back({.node = row.Text(0),
                                      .failure_class = row.Text(1),
                                      .executions = static_cast<std::uint32_t>(row.Unsigned(2)),
                                      .users = static_cast<std::uint32_t>(row.Unsigned(3))});
                  });
}

// Executions of other workloads with the class, on whatever node.
base::Result<std::uint32_t> CountOnAll(Transaction& tx, const NodeQuery& query,
                                       std::string_view failure_class) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto count,
      tx.QueryInt("SELECT COUNT(*) FROM failure_label WHERE organisation_id = :organisation AND "
                  "compute_id = :compute AND failure_class = :class AND ended_at >= :from AND "
                  "ended_at <= :to AND workload <> :workload AND only_node <> ''",
                  {query.organisation_id, query.compute_id, failure_class, query.ended_from,
                   query.ended_to, query.without_workload}));
  return static_cast<std::uint32_t>(count.value_or(0));
}

// Some nodes on which anything failed.
base::Result<std::set<std::string>> SomeNodes(Transaction& tx, const NodeQuery& query) {
  std::set<std::string> nodes;
  EXPANSE_RETURN_IF_ERROR(tx.Query(
      "SELECT DISTINCT only_node FROM failure_label WHERE organisation_id = :organisation AND "
      "compute_id = :compute AND only_node > '' AND ended_at >= :from AND ended_at <= :to LIMIT "
      ":most",
      {query.organisation_id, query.compute_id, query.ended_from, query.ended_to,
       LabelStore::kMostOthers + 1},
      {Column::kText}, [&](const Row& row) { nodes.insert(row.Text(0)); }));
  return nodes;
}

}  // namespace

base::Status SqliteLabels::Put(const FailureLabel& label) {
  return database_.WithWrite([&](Transaction& tx) -> base::Status {
    const std::optional<std::string_view> run =
        label.run_id.empty() ? std::nullopt : std::optional<std::string_view>(label.run_id);
    const std::string only_node =
        label.nodes.size() == 1 ? NodeKey(label.nodes.front()).value_or("") : "";
    EXPANSE_ASSIGN_OR_RETURN(
        const std::int64_t changed,
        tx.Execute(
            "INSERT INTO failure_label (organisation_id, execution_id, compute_id, failure_class, "
            "title, confidence, run_id, asked_by, user_name, workload, ended_at, diagnosed_at, "
            "only_node) VALUES (:organisation, :id, :compute, :class, :title, :confidence, :run, "
            ":asked, :user, :workload, :ended, :diagnosed, :node)"
            " ON CONFLICT (organisation_id, execution_id) DO UPDATE SET"
            " compute_id = excluded.compute_id, failure_class = excluded.failure_class,"
            " title = excluded.title, confidence = excluded.confidence,"
            " run_id = excluded.run_id, asked_by = excluded.asked_by,"
            " user_name = excluded.user_name, workload = excluded.workload,"
            " ended_at = excluded.ended_at, diagnosed_at = excluded.diagnosed_at,"
            " only_node = excluded.only_node"
            " WHERE excluded.diagnosed_at >= failure_label.diagnosed_at",
            {label.organisation_id, label.execution_id, label.compute_id, label.failure_class,
             Bytes{label.title}, label.confidence, run, label.asked_by, Bytes{label.user},
             label.workload, label.ended_at, label.diagnosed_at, only_node}));
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
  const std::set<std::string> nodes = NodeKeys(query.nodes, kMostAsked);
  if (nodes.empty()) return found;
  EXPANSE_RETURN_IF_ERROR(database_.WithRead([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(CountOnNodes(tx, query, nodes, &found));
    if (found.empty()) return {};
    EXPANSE_ASSIGN_OR_RETURN(const auto some, SomeNodes(tx, query));
    std::map<std::string, std::uint32_t> on_all;
    for (NodeFailures& node : found) {
      if (!on_all.contains(node.failure_class)) {
        EXPANSE_ASSIGN_OR_RETURN(on_all[node.failure_class],
                                 CountOnAll(tx, query, node.failure_class));
      }
      node.elsewhere = on_all[node.failure_class] - node.executions;
      const std::size_t others = some.size() - some.count(node.node);
      node.other_nodes = static_cast<std::uint32_t>(std::min(others, kMostOthers));
    }
    return {};
  }));
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
