#include "store/records/records_retention.h"

#include <string>
#include <string_view>
#include <vector>

#include "store/records/change_feed.h"

namespace expanse::store::records {
namespace {

base::Result<std::vector<std::string>> ReadIds(sql::Transaction& tx, std::string_view sql,
                                               std::int64_t before_us, std::size_t limit) {
  std::vector<std::string> ids;
  EXPANSE_RETURN_IF_ERROR(tx.Query(sql, {before_us, limit}, {sql::Column::kText},
                                   [&](const sql::Row& row) { ids.push_back(row.Text(0)); }));
  return ids;
}

// Of those that are executions and not only what hangs on one.
base::Result<std::vector<Removal>> ToRemove(sql::Transaction& tx,
                                            const std::vector<std::string>& ids) {
  std::vector<Removal> removals;
  for (const std::string& id : ids) {
    EXPANSE_RETURN_IF_ERROR(
        tx.Query("SELECT organisation_id FROM execution WHERE execution_id = :id", {id},
                 {sql::Column::kText}, [&](const sql::Row& row) {
                   removals.push_back({.organisation_id = row.Text(0), .execution_id = id});
                 }));
  }
  return removals;
}

base::Status DropOne(sql::Transaction& tx, const std::string& id) {
  for (const char* sql : {"DELETE FROM log_tail WHERE execution_id = :id",
                          "DELETE FROM bundle_file WHERE execution_id = :id",
                          "DELETE FROM bundle_skipped WHERE execution_id = :id",
                          "DELETE FROM bundle WHERE execution_id = :id",
                          "DELETE FROM execution WHERE execution_id = :id"}) {
    EXPANSE_RETURN_IF_ERROR(tx.Execute(sql, {id}));
  }
  return {};
}

}  // namespace

base::Result<std::size_t> DropExecutions(sql::Transaction& tx, std::int64_t before_us,
                                         std::size_t limit, std::size_t keep_removals) {
  constexpr std::string_view kInTurn[] = {
      "SELECT execution_id FROM execution WHERE done_at < :before ORDER BY done_at LIMIT :limit",
      "SELECT DISTINCT execution_id FROM log_tail WHERE seen_at < :before AND NOT EXISTS"
      " (SELECT 1 FROM execution WHERE execution.execution_id = log_tail.execution_id) LIMIT "
      ":limit",
      "SELECT execution_id FROM bundle WHERE seen_at < :before AND NOT EXISTS"
      " (SELECT 1 FROM execution WHERE execution.execution_id = bundle.execution_id) LIMIT :limit",
  };
  for (std::string_view sql : kInTurn) {
    EXPANSE_ASSIGN_OR_RETURN(const auto ids, ReadIds(tx, sql, before_us, limit));
    if (ids.empty()) continue;
    EXPANSE_ASSIGN_OR_RETURN(const auto removals, ToRemove(tx, ids));
    EXPANSE_RETURN_IF_ERROR(NoteRemovals(tx, removals, keep_removals));
    for (const std::string& id : ids) EXPANSE_RETURN_IF_ERROR(DropOne(tx, id));
    return ids.size();
  }
  return std::size_t{0};
}

}  // namespace expanse::store::records
