#include "store/records/change_feed.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "store/records/detail.h"

namespace expanse::store::records {
namespace {

using sql::Column;
using sql::Row;

// Records of a page, all together.
constexpr std::size_t kMaxPageBytes = 16U << 20;

struct ChangedRow {
  ChangedExecution changed;
  std::string detail;  // empty for a removal
};

base::Status SelectExecutions(sql::Transaction& tx, std::uint64_t after, std::size_t limit,
                              std::vector<ChangedRow>* rows) {
  std::size_t bytes = 0;
  return tx.Query(
      "SELECT changed, organisation_id, execution_id, detail FROM execution WHERE changed > :after"
      " ORDER BY changed LIMIT :limit",
      {after, limit}, {Column::kInt, Column::kText, Column::kText, Column::kBytes},
      [&](const Row& row) {
        bytes += row.Blob(3).size();
        if (bytes > kMaxPageBytes && !rows->empty()) return false;
        rows->push_back({{.change = row.Unsigned(0),
                          .organisation_id = row.Text(1),
                          .execution_id = row.Text(2)},
                         row.Blob(3)});
        return true;
      });
}

base::Status SelectRemovals(sql::Transaction& tx, std::uint64_t after, std::uint64_t up_to,
                            std::size_t limit, std::vector<ChangedRow>* rows) {
  return tx.Query(
      "SELECT changed, organisation_id, execution_id FROM removed_execution WHERE changed > :after"
      " AND changed <= :up_to ORDER BY changed LIMIT :limit",
      {after, up_to, limit}, {Column::kInt, Column::kText, Column::kText}, [&](const Row& row) {
        rows->push_back({{.change = row.Unsigned(0),
                          .organisation_id = row.Text(1),
                          .execution_id = row.Text(2),
                          .removed = true},
                         {}});
      });
}

ChangedExecution Decoded(ChangedRow row) {
  if (row.changed.removed) return std::move(row.changed);
  auto execution = DecodeExecution(row.detail);
  if (execution) {
    row.changed.execution = std::move(*execution);
  } else {
    // One damaged record must not stop the feed; asking for it alone says what is wrong.
    base::LogError("store.corrupt",
                   {{"execution", row.changed.execution_id}, {"error", execution.error().message}});
    row.changed.execution.execution_id = row.changed.execution_id;
    row.changed.execution.capture_notes = {"the stored record is damaged"};
  }
  return std::move(row.changed);
}

}  // namespace

base::Result<std::uint64_t> TakeChanges(sql::Transaction& tx, std::size_t count) {
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("UPDATE feed SET last_change = last_change + :count WHERE feed_id = 1", {count}));
  EXPANSE_ASSIGN_OR_RETURN(const auto last,
                           tx.QueryInt("SELECT last_change FROM feed WHERE feed_id = 1"));
  if (!last)
    return base::Fail(base::Code::kDataLoss, "store.corrupt", "the change feed has lost its place");
  return static_cast<std::uint64_t>(*last) - count + 1;
}

base::Status NoteRemovals(sql::Transaction& tx, std::span<const Removal> removals,
                          std::size_t keep) {
  if (removals.empty()) return {};
  EXPANSE_ASSIGN_OR_RETURN(std::uint64_t change, TakeChanges(tx, removals.size()));
  for (const Removal& removal : removals) {
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("INSERT INTO removed_execution (changed, organisation_id, execution_id) VALUES "
                   "(:change, :organisation, :id)",
                   {change++, removal.organisation_id, removal.execution_id}));
  }
  EXPANSE_ASSIGN_OR_RETURN(const auto oldest_gone,
                           tx.QueryInt("SELECT changed FROM removed_execution ORDER BY changed "
                                       "DESC LIMIT 1 OFFSET :keep",
                                       {keep}));
  if (!oldest_gone) return {};
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("DELETE FROM removed_execution WHERE changed <= :gone", {*oldest_gone}));
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("UPDATE feed SET forgotten = :gone WHERE feed_id = 1", {*oldest_gone}));
  return {};
}

base::Result<ChangePage> ReadChanges(sql::Transaction& tx, const FeedPlace& from,
                                     std::size_t limit) {
  ChangePage page;
  page.next = from;
  if (limit == 0) return page;
  std::uint64_t last = 0;
  std::uint64_t forgotten = 0;
  EXPANSE_RETURN_IF_ERROR(tx.Query("SELECT last_change, forgotten FROM feed WHERE feed_id = 1", {},
                                   {Column::kInt, Column::kInt}, [&](const Row& row) {
                                     last = row.Unsigned(0);
                                     forgotten = row.Unsigned(1);
                                   }));
  const std::uint64_t after = from.change;
  if (after == 0) page.next.began = last;
  const std::uint64_t complete_to = std::max(after, page.next.began);
  // A place beyond the last change is of another database: this one was replaced or restored.
  if (complete_to < forgotten || complete_to > last) {
    page.next = {};
    page.restart = true;
    return page;
  }
  std::vector<ChangedRow> rows;
  EXPANSE_RETURN_IF_ERROR(SelectExecutions(tx, after, limit, &rows));
  // Nothing behind the last execution of a page that may not be all is known completely.
  const std::uint64_t up_to = rows.empty() ? last : rows.back().changed.change;
  EXPANSE_RETURN_IF_ERROR(SelectRemovals(tx, after, up_to, limit, &rows));
  std::sort(rows.begin(), rows.end(), [](const ChangedRow& a, const ChangedRow& b) {
    return a.changed.change < b.changed.change;
  });
  if (rows.size() > limit) rows.resize(limit);
  page.changes.reserve(rows.size());
  for (ChangedRow& row : rows) page.changes.push_back(Decoded(std::move(row)));
  if (!page.changes.empty()) page.next.change = page.changes.back().change;
  return page;
}

}  // namespace expanse::store::records
