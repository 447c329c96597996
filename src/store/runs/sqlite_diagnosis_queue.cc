#include <utility>

#include "store/runs/sqlite_labels.h"

namespace expanse::store::runs {

using sql::Column;
using sql::Row;
using sql::Transaction;

namespace {

base::Status Remove(Transaction& tx, const char* sql, const DiagnosisChange& change) {
  EXPANSE_RETURN_IF_ERROR(tx.Execute(sql, {change.organisation_id, change.execution_id}));
  return {};
}

base::Status TakeIn(Transaction& tx, const DiagnosisChange& change, base::WallTime now) {
  if (change.due) {
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "INSERT INTO diagnosis_due (organisation_id, execution_id, version, tries, changed_at, "
        "due_at) VALUES (:organisation, :id, 1, 0, :now, :due)"
        " ON CONFLICT (organisation_id, execution_id) DO UPDATE SET"
        " version = diagnosis_due.version + 1, tries = 0, changed_at = excluded.changed_at,"
        " due_at = CASE WHEN excluded.due_at < diagnosis_due.due_at THEN excluded.due_at"
        " ELSE diagnosis_due.due_at END",
        {change.organisation_id, change.execution_id, now, *change.due}));
    return {};
  }
  EXPANSE_RETURN_IF_ERROR(Remove(
      tx, "DELETE FROM diagnosis_due WHERE organisation_id = :organisation AND execution_id = :id",
      change));
  if (!change.removed) return {};
  return Remove(
      tx, "DELETE FROM failure_label WHERE organisation_id = :organisation AND execution_id = :id",
      change);
}

base::Status SetPlace(Transaction& tx, const FeedPlace& place) {
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("UPDATE diagnosis_feed SET last_change = :change, began = :began WHERE feed_id = "
                 "1",
                 {place.change, place.began}));
  return {};
}

}  // namespace

base::Result<FeedPlace> SqliteDiagnosisQueue::Place() {
  FeedPlace place;
  EXPANSE_RETURN_IF_ERROR(database_.WithRead([&](Transaction& tx) {
    return tx.Query("SELECT last_change, began FROM diagnosis_feed WHERE feed_id = 1", {},
                    {Column::kInt, Column::kInt}, [&](const Row& row) {
                      place.change = row.Unsigned(0);
                      place.began = row.Unsigned(1);
                    });
  }));
  return place;
}

base::Status SqliteDiagnosisQueue::Follow(std::span<const DiagnosisChange> changes,
                                          const FeedPlace& next, base::WallTime now) {
  return database_.WithWrite([&](Transaction& tx) -> base::Status {
    for (const DiagnosisChange& change : changes) EXPANSE_RETURN_IF_ERROR(TakeIn(tx, change, now));
    return SetPlace(tx, next);
  });
}

base::Status SqliteDiagnosisQueue::StartOver() {
  return database_.WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(tx.Execute("DELETE FROM diagnosis_due"));
    return SetPlace(tx, {});
  });
}

base::Result<std::optional<DueDiagnosis>> SqliteDiagnosisQueue::Take(base::WallTime now,
                                                                     base::WallTime lease) {
  return database_.WithWrite([&](Transaction& tx) -> base::Result<std::optional<DueDiagnosis>> {
    std::optional<DueDiagnosis> due;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT organisation_id, execution_id, version, tries, changed_at FROM diagnosis_due WHERE "
        "due_at <= :now ORDER BY due_at, organisation_id, execution_id LIMIT 1",
        {now}, {Column::kText, Column::kText, Column::kInt, Column::kInt, Column::kInt},
        [&](const Row& row) {
          due = {.organisation_id = row.Text(0),
                 .execution_id = row.Text(1),
                 .version = row.Unsigned(2) + 1,
                 .tries = static_cast<std::uint32_t>(row.Unsigned(3)) + 1,
                 .changed_at = row.Time(4)};
        }));
    if (!due) return due;
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "UPDATE diagnosis_due SET version = :version, tries = :tries, due_at = :lease WHERE "
        "organisation_id = :organisation AND execution_id = :id",
        {due->version, due->tries, lease, due->organisation_id, due->execution_id}));
    return due;
  });
}

base::Status SqliteDiagnosisQueue::Finish(const DueDiagnosis& taken,
                                          std::optional<base::WallTime> next, bool succeeded) {
  return database_.WithWrite([&](Transaction& tx) -> base::Status {
    if (!next) {
      EXPANSE_RETURN_IF_ERROR(
          tx.Execute("DELETE FROM diagnosis_due WHERE organisation_id = :organisation AND "
                     "execution_id = :id AND version = :version",
                     {taken.organisation_id, taken.execution_id, taken.version}));
      return {};
    }
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "UPDATE diagnosis_due SET tries = :tries, due_at = :next WHERE organisation_id = "
        ":organisation AND execution_id = :id AND version = :version",
        {succeeded ? 0U : taken.tries, *next, taken.organisation_id, taken.execution_id,
         taken.version}));
    return {};
  });
}

base::Result<std::size_t> SqliteDiagnosisQueue::Waiting() {
  return database_.WithRead([](Transaction& tx) -> base::Result<std::size_t> {
    EXPANSE_ASSIGN_OR_RETURN(const auto count, tx.QueryInt("SELECT COUNT(*) FROM diagnosis_due"));
    return static_cast<std::size_t>(count.value_or(0));
  });
}

base::Result<std::optional<base::WallTime>> SqliteDiagnosisQueue::NextDue() {
  return database_.WithRead([](Transaction& tx) -> base::Result<std::optional<base::WallTime>> {
    EXPANSE_ASSIGN_OR_RETURN(const auto due, tx.QueryInt("SELECT MIN(due_at) FROM diagnosis_due"));
    if (!due) return std::optional<base::WallTime>();
    return std::optional(base::FromMicros(*due));
  });
}

}  // namespace expanse::store::runs
