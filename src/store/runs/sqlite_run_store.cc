#include "store/runs/sqlite_run_store.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "store/runs/run_tables.h"
#include "store/runs/sqlite_labels.h"
#include "store/sql/database.h"

namespace expanse::store {

using sql::Bytes;
using sql::Column;
using sql::Row;
using sql::Transaction;
using sql::Value;

namespace {

// All columns of a run but the two large ones, which a list leaves out.
constexpr std::string_view kColumns =
    "run_id, organisation_id, user_id, kind, status, target, job_name, compute_id, created_at, "
    "finished_at, error, error_reason, cache_key";
constexpr std::string_view kLarge = ", request, answer";

const std::initializer_list<Column> kTypes = {
    Column::kText,  Column::kText,  Column::kText, Column::kInt,   Column::kInt,
    Column::kBytes, Column::kBytes, Column::kText, Column::kInt,   Column::kInt,
    Column::kBytes, Column::kText,  Column::kText, Column::kBytes, Column::kBytes};

RunRow ReadRun(const Row& row) {
  return {.run_id = row.Text(0),
          .organisation_id = row.Text(1),
          .user_id = row.Text(2),
          .kind = static_cast<RunKind>(row.Int(3)),
          .status = static_cast<RunStatus>(row.Int(4)),
          .target = row.Blob(5),
          .job_name = row.Blob(6),
          .compute_id = row.Text(7),
          .created_at = row.Time(8),
          .finished_at = row.MaybeTime(9),
          .error = row.Blob(10),
          .error_reason = row.Text(11),
          .cache_key = row.Text(12),
          .request = row.Blob(13),
          .answer = row.Blob(14)};
}

std::unexpected<base::Error> NoRun() {
  return base::Fail(base::Code::kNotFound, "run.not_found", "there is no such run");
}

base::Status InsertRun(Transaction& tx, const RunRow& run) {
  auto added = tx.Execute(
      "INSERT INTO run (run_id, organisation_id, user_id, kind, status, target, job_name, "
      "compute_id, created_at, finished_at, error, error_reason, cache_key, request, answer) "
      "VALUES (:id, :organisation, :user, :kind, :status, :target, :job, :compute, :created, "
      ":finished, :error, :reason, :key, :request, :answer)",
      {run.run_id, run.organisation_id, run.user_id, static_cast<int>(run.kind),
       static_cast<int>(run.status), Bytes{run.target}, Bytes{run.job_name}, run.compute_id,
       run.created_at, run.finished_at, Bytes{run.error}, run.error_reason, run.cache_key,
       Bytes{run.request}, Bytes{run.answer}});
  if (!added) return std::unexpected(std::move(added).error());
  return {};
}

base::Status InsertArtifacts(Transaction& tx, std::string_view run_id,
                             const std::vector<RunArtifactRow>& artifacts) {
  for (const RunArtifactRow& artifact : artifacts) {
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "INSERT INTO artifact (artifact_id, run_id, type, content_hash, source_file, source_hash, "
        "created_at, data) VALUES (:id, :run, :type, :hash, :file, :source, :created, :data)",
        {artifact.artifact_id, run_id, static_cast<int>(artifact.type), artifact.content_hash,
         Bytes{artifact.source_file}, artifact.source_hash, artifact.created_at,
         Bytes{artifact.data}}));
  }
  return {};
}

// The first run of a statement, if it has one.
base::Result<std::optional<RunRow>> ReadOne(Transaction& tx, const std::string& sql,
                                            std::initializer_list<Value> params) {
  std::optional<RunRow> run;
  EXPANSE_RETURN_IF_ERROR(
      tx.Query(sql, params, kTypes, [&](const Row& row) { run = ReadRun(row); }));
  return run;
}

std::string Select(std::string_view rest) {
  return std::string("SELECT ").append(kColumns).append(kLarge).append(rest);
}

}  // namespace

struct SqliteRunStore::Impl {
  explicit Impl(std::unique_ptr<sql::Database> opened) : database(std::move(opened)) {}

  const std::unique_ptr<sql::Database> database;
  runs::SqliteLabels labels{*database};
  runs::SqliteDiagnosisQueue diagnoses{*database};

  // Deletes those of `ids` that are over, each with its artefacts; all of them still are.
  base::Result<std::size_t> Drop(const std::vector<std::string>& ids) {
    if (ids.empty()) return std::size_t{0};
    return database->WithWrite([&](Transaction& tx) -> base::Result<std::size_t> {
      std::size_t gone = 0;
      for (const std::string& id : ids) {
        EXPANSE_ASSIGN_OR_RETURN(
            const std::int64_t changed,
            tx.Execute("DELETE FROM run WHERE run_id = :id AND finished_at IS NOT NULL", {id}));
        gone += static_cast<std::size_t>(changed);
      }
      return gone;
    });
  }

  // The oldest beyond the newest `keep` of each user to whom `which` (of kSystemUser) applies.
  base::Result<std::size_t> DropOldest(std::string_view which, std::size_t keep, std::size_t limit);
};

base::Result<std::size_t> SqliteRunStore::Impl::DropOldest(std::string_view which, std::size_t keep,
                                                           std::size_t limit) {
  struct Owner {
    std::string organisation_id;
    std::string user_id;
    std::size_t beyond = 0;
  };
  std::vector<std::string> ids;
  const std::string count =
      std::string("SELECT organisation_id, user_id, COUNT(finished_at) FROM run WHERE ")
          .append(which)
          .append(" GROUP BY organisation_id, user_id HAVING COUNT(finished_at) > :keep");
  // Counting goes over a whole index, so it is a read beside the writers.
  EXPANSE_RETURN_IF_ERROR(database->WithRead([&](Transaction& tx) -> base::Status {
    std::vector<Owner> owners;
    EXPANSE_RETURN_IF_ERROR(
        tx.Query(count, {kSystemUser, keep}, {Column::kText, Column::kText, Column::kInt},
                 [&](const Row& row) {
                   owners.push_back({row.Text(0), row.Text(1), row.Unsigned(2) - keep});
                 }));
    for (const Owner& owner : owners) {
      if (ids.size() >= limit) break;
      EXPANSE_RETURN_IF_ERROR(tx.Query(
          "SELECT run_id FROM run WHERE organisation_id = :organisation AND user_id = :user AND "
          "finished_at IS NOT NULL ORDER BY created_at, run_id LIMIT :limit",
          {owner.organisation_id, owner.user_id, std::min(owner.beyond, limit - ids.size())},
          {Column::kText}, [&](const Row& row) { ids.push_back(row.Text(0)); }));
    }
    return {};
  }));
  return Drop(ids);
}

SqliteRunStore::SqliteRunStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteRunStore::~SqliteRunStore() = default;

base::Result<std::unique_ptr<SqliteRunStore>> SqliteRunStore::Open(
    const SqliteRunOptions& options) {
  EXPANSE_ASSIGN_OR_RETURN(auto database,
                           sql::Database::Open({.path = options.path, .readers = options.readers},
                                               runs::RunMigrations()));
  return std::unique_ptr<SqliteRunStore>(
      new SqliteRunStore(std::make_unique<Impl>(std::move(database))));
}

base::Status SqliteRunStore::Add(const RunRow& run, const std::vector<RunArtifactRow>& artifacts) {
  return impl_->database->WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(InsertRun(tx, run));
    return InsertArtifacts(tx, run.run_id, artifacts);
  });
}

base::Status SqliteRunStore::Enqueue(const RunRow& run, const QueueBounds& bounds) {
  return impl_->database->WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_ASSIGN_OR_RETURN(
        const auto mine,
        tx.QueryInt("SELECT COUNT(*) FROM run WHERE status = 1 AND finished_at IS NULL AND "
                    "user_id = :user",
                    {run.user_id}));
    if (static_cast<std::size_t>(mine.value_or(0)) >= bounds.per_user) {
      return base::Fail(base::Code::kResourceExhausted, "run.queue_user",
                        "too many of your runs are waiting; try again when some are done");
    }
    EXPANSE_ASSIGN_OR_RETURN(
        const auto all,
        tx.QueryInt("SELECT COUNT(*) FROM run WHERE status = 1 AND finished_at IS NULL"));
    if (static_cast<std::size_t>(all.value_or(0)) >= bounds.in_all) {
      return base::Fail(base::Code::kResourceExhausted, "run.queue_full",
                        "too many runs are waiting; try again later");
    }
    return InsertRun(tx, run);
  });
}

base::Result<std::optional<RunRow>> SqliteRunStore::TakeQueued(std::size_t per_user) {
  static const std::string kNext = Select(
      " FROM run WHERE status = 1 AND finished_at IS NULL AND"
      " (SELECT COUNT(*) FROM run AS other WHERE other.status = 2 AND other.finished_at IS "
      "NULL AND other.user_id = run.user_id) < :per_user"
      " ORDER BY created_at, run_id LIMIT 1");
  return impl_->database->WithWrite([&](Transaction& tx) -> base::Result<std::optional<RunRow>> {
    EXPANSE_ASSIGN_OR_RETURN(auto run, ReadOne(tx, kNext, {per_user}));
    if (!run) return run;
    run->status = RunStatus::kRunning;
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("UPDATE run SET status = 2 WHERE run_id = :id", {run->run_id}));
    return run;
  });
}

base::Status SqliteRunStore::Finish(std::string_view run_id, const RunOutcome& outcome) {
  return impl_->database->WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_ASSIGN_OR_RETURN(
        const std::int64_t changed,
        tx.Execute("UPDATE run SET status = :status, finished_at = :finished, job_name = :job, "
                   "error = :error, error_reason = :reason, cache_key = :key, answer = :answer, "
                   "request = NULL WHERE run_id = :id AND status = 2 AND finished_at IS NULL",
                   {static_cast<int>(outcome.status), outcome.finished_at, Bytes{outcome.job_name},
                    Bytes{outcome.error}, outcome.error_reason, outcome.cache_key,
                    Bytes{outcome.answer}, run_id}));
    if (changed == 0) {
      return base::Fail(base::Code::kFailedPrecondition, "run.not_running",
                        "the run is not running");
    }
    return InsertArtifacts(tx, run_id, outcome.artifacts);
  });
}

base::Result<std::size_t> SqliteRunStore::FailRunning(base::WallTime now, std::string_view error,
                                                      std::string_view error_reason) {
  return impl_->database->WithWrite([&](Transaction& tx) -> base::Result<std::size_t> {
    EXPANSE_ASSIGN_OR_RETURN(
        const std::int64_t changed,
        tx.Execute("UPDATE run SET status = 4, finished_at = :finished, error = :error, "
                   "error_reason = :reason, request = NULL WHERE status = 2 AND finished_at IS "
                   "NULL",
                   {now, Bytes{error}, error_reason}));
    return static_cast<std::size_t>(changed);
  });
}

base::Result<std::size_t> SqliteRunStore::CountQueued() {
  return impl_->database->WithRead([&](Transaction& tx) -> base::Result<std::size_t> {
    EXPANSE_ASSIGN_OR_RETURN(
        const auto count,
        tx.QueryInt("SELECT COUNT(*) FROM run WHERE status = 1 AND finished_at IS NULL"));
    return static_cast<std::size_t>(count.value_or(0));
  });
}

base::Result<RunRow> SqliteRunStore::Get(const RunScope& scope, std::string_view run_id) {
  static const std::string kGet = Select(" FROM run WHERE run_id = :id");
  EXPANSE_ASSIGN_OR_RETURN(auto run, impl_->database->WithRead([&](Transaction& tx) {
    return ReadOne(tx, kGet, {run_id});
  }));
  if (!run || run->organisation_id != scope.organisation_id ||
      (scope.user_id && run->user_id != *scope.user_id)) {
    return NoRun();
  }
  return std::move(*run);
}

base::Result<RunPage> SqliteRunStore::List(const RunFilter& filter,
                                           const std::optional<RunCursor>& after,
                                           std::size_t limit) {
  std::string sql = std::string("SELECT ").append(kColumns).append(
      ", NULL, NULL FROM run WHERE organisation_id = :organisation");
  std::vector<Value> params = {filter.scope.organisation_id};
  const auto add = [&](const char* condition, Value value) {
    sql += condition;
    params.push_back(value);
  };
  if (filter.scope.user_id) add(" AND user_id = :user", *filter.scope.user_id);
  if (filter.kind) add(" AND kind = :kind", static_cast<int>(*filter.kind));
  if (!filter.compute_id.empty()) add(" AND compute_id = :compute", filter.compute_id);
  if (after) {
    add(" AND (created_at, run_id) < (:after", after->created_micros);
    add(", :after_id)", after->run_id);
  }
  // One more tells whether there is a next page.
  add(" ORDER BY created_at DESC, run_id DESC LIMIT :limit", limit + 1);
  RunPage page;
  EXPANSE_RETURN_IF_ERROR(impl_->database->WithRead([&](Transaction& tx) {
    return tx.Query(sql, std::span<const Value>(params), kTypes,
                    [&](const Row& row) { page.runs.push_back(ReadRun(row)); });
  }));
  if (page.runs.size() > limit) {
    page.runs.resize(limit);
    page.next = RunCursor{base::ToMicros(page.runs.back().created_at), page.runs.back().run_id};
  }
  return page;
}

base::Result<std::optional<RunRow>> SqliteRunStore::FindCached(std::string_view organisation_id,
                                                               std::string_view user_id,
                                                               std::string_view cache_key) {
  static const std::string kCached = Select(
      " FROM run WHERE cache_key = :key AND organisation_id = :organisation AND user_id = "
      ":user AND status = 3 ORDER BY created_at DESC, run_id DESC LIMIT 1");
  if (cache_key.empty()) return std::optional<RunRow>();
  return impl_->database->WithRead(
      [&](Transaction& tx) { return ReadOne(tx, kCached, {cache_key, organisation_id, user_id}); });
}

base::Result<RunArtifactRow> SqliteRunStore::GetArtifact(const RunScope& scope,
                                                         std::string_view artifact_id) {
  std::optional<RunArtifactRow> artifact;
  EXPANSE_RETURN_IF_ERROR(impl_->database->WithRead([&](Transaction& tx) {
    return tx.Query(
        "SELECT artifact_id, artifact.run_id, type, content_hash, source_file, source_hash, "
        "artifact.created_at, data, organisation_id, user_id FROM artifact "
        "JOIN run ON run.run_id = artifact.run_id WHERE artifact_id = :id",
        {artifact_id},
        {Column::kText, Column::kText, Column::kInt, Column::kText, Column::kBytes, Column::kText,
         Column::kInt, Column::kBytes, Column::kText, Column::kText},
        [&](const Row& row) {
          if (row.Text(8) != scope.organisation_id) return;
          if (scope.user_id && row.Text(9) != *scope.user_id) return;
          artifact = {.artifact_id = row.Text(0),
                      .run_id = row.Text(1),
                      .type = static_cast<RunArtifactType>(row.Int(2)),
                      .content_hash = row.Text(3),
                      .source_file = row.Blob(4),
                      .source_hash = row.Text(5),
                      .data = row.Blob(7),
                      .created_at = row.Time(6)};
        });
  }));
  if (!artifact) {
    return base::Fail(base::Code::kNotFound, "artifact.not_found", "there is no such artefact");
  }
  return std::move(*artifact);
}

base::Result<std::size_t> SqliteRunStore::DropBefore(base::WallTime finished_before,
                                                     std::size_t limit) {
  std::vector<std::string> ids;
  EXPANSE_RETURN_IF_ERROR(impl_->database->WithRead([&](Transaction& tx) {
    return tx.Query(
        "SELECT run_id FROM run WHERE finished_at < :before ORDER BY finished_at LIMIT :limit",
        {finished_before, limit}, {Column::kText},
        [&](const Row& row) { ids.push_back(row.Text(0)); });
  }));
  return impl_->Drop(ids);
}

base::Result<std::size_t> SqliteRunStore::DropBeyond(std::size_t keep, std::size_t limit) {
  return impl_->DropOldest("user_id <> :system", keep, limit);
}

base::Result<std::size_t> SqliteRunStore::DropSystemBeyond(std::size_t keep, std::size_t limit) {
  return impl_->DropOldest("user_id = :system", keep, limit);
}

LabelStore& SqliteRunStore::labels() { return impl_->labels; }
DiagnosisQueue& SqliteRunStore::diagnoses() { return impl_->diagnoses; }

}  // namespace expanse::store
