#include "store/records/sqlite_evidence_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "store/records/change_feed.h"
#include "store/records/detail.h"
#include "store/records/evidence_writer.h"
#include "store/records/execution_query.h"
#include "store/records/records_retention.h"
#include "store/records/records_tables.h"
#include "store/sql/database.h"

namespace expanse::store {

using sql::Bytes;
using sql::Column;
using sql::Row;
using sql::Transaction;

struct SqliteEvidenceStore::Impl {
  std::unique_ptr<sql::Database> database;
  base::Clock& clock;
  std::size_t max_health_nodes;
  std::size_t max_removals;
};

SqliteEvidenceStore::SqliteEvidenceStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteEvidenceStore::~SqliteEvidenceStore() = default;

base::Result<std::unique_ptr<SqliteEvidenceStore>> SqliteEvidenceStore::Open(
    const SqliteEvidenceOptions& options, base::Clock& clock) {
  EXPANSE_ASSIGN_OR_RETURN(auto database,
                           sql::Database::Open({.path = options.path, .readers = options.readers},
                                               records::RecordMigrations()));
  return std::unique_ptr<SqliteEvidenceStore>(new SqliteEvidenceStore(std::unique_ptr<Impl>(
      new Impl{std::move(database), clock, options.max_health_nodes, options.max_removals})));
}

namespace {

base::Result<std::uint64_t> ReadWatermark(Transaction& tx, std::string_view compute_id,
                                          std::string_view stream_id) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto sequence,
      tx.QueryInt(
          "SELECT sequence FROM watermark WHERE compute_id = :compute AND stream_id = :stream",
          {compute_id, stream_id}));
  return static_cast<std::uint64_t>(sequence.value_or(0));
}

}  // namespace

base::Result<std::uint64_t> SqliteEvidenceStore::Watermark(std::string_view compute_id,
                                                           std::string_view stream_id) {
  return impl_->database->WithRead(
      [&](Transaction& tx) { return ReadWatermark(tx, compute_id, stream_id); });
}

base::Result<std::uint64_t> SqliteEvidenceStore::Apply(std::string_view organisation_id,
                                                       std::string_view compute_id,
                                                       std::string_view stream_id,
                                                       std::span<const EvidenceChange> changes) {
  return impl_->database->WithWrite([&](Transaction& tx) -> base::Result<std::uint64_t> {
    EXPANSE_ASSIGN_OR_RETURN(const std::uint64_t applied, ReadWatermark(tx, compute_id, stream_id));
    std::uint64_t reached = applied;
    records::EvidenceWriter writer(tx, organisation_id, compute_id, impl_->clock.Now());
    for (const EvidenceChange& change : changes) {
      if (change.sequence <= reached) continue;
      EXPANSE_RETURN_IF_ERROR(writer.Apply(change));
      reached = change.sequence;
    }
    if (reached == applied) return applied;
    EXPANSE_RETURN_IF_ERROR(writer.Finish());
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "INSERT INTO watermark (compute_id, stream_id, sequence) VALUES (:compute, :stream, "
        ":sequence)"
        " ON CONFLICT (compute_id, stream_id) DO UPDATE SET sequence = excluded.sequence",
        {compute_id, stream_id, reached}));
    return reached;
  });
}

base::Result<ExecutionPage> SqliteEvidenceStore::List(const ExecutionFilter& filter,
                                                      const std::optional<ExecutionCursor>& after,
                                                      std::size_t limit) {
  return impl_->database->WithRead(
      [&](Transaction& tx) { return records::ListExecutions(tx, filter, after, limit); });
}

base::Result<evidence::Execution> SqliteEvidenceStore::Get(std::string_view organisation_id,
                                                           std::string_view execution_id) {
  std::optional<std::string> detail;
  EXPANSE_RETURN_IF_ERROR(impl_->database->WithRead([&](Transaction& tx) {
    return tx.Query(
        "SELECT detail FROM execution WHERE execution_id = :id AND organisation_id = :organisation",
        {execution_id, organisation_id}, {Column::kBytes},
        [&](const Row& row) { detail = row.Blob(0); });
  }));
  if (!detail)
    return base::Fail(base::Code::kNotFound, "execution.not_found", "there is no such execution");
  return records::DecodeExecution(*detail);
}

base::Result<std::vector<LogTailRow>> SqliteEvidenceStore::LogTails(std::string_view execution_id) {
  std::vector<LogTailRow> tails;
  EXPANSE_RETURN_IF_ERROR(impl_->database->WithRead([&](Transaction& tx) {
    return tx.Query(
        "SELECT stream, data_blob, data_offset, total_bytes, first_error_blob, first_error_offset, "
        "redactions"
        " FROM log_tail WHERE execution_id = :id ORDER BY stream",
        {execution_id},
        {Column::kText, Column::kText, Column::kInt, Column::kInt, Column::kText, Column::kInt,
         Column::kInt},
        [&](const Row& row) {
          tails.push_back({.stream = row.Text(0),
                           .data_blob = row.Text(1),
                           .offset = row.Unsigned(2),
                           .total_bytes = row.Unsigned(3),
                           .first_error_blob = row.Text(4),
                           .first_error_offset = row.Unsigned(5),
                           .redactions = static_cast<std::uint32_t>(row.Int(6))});
        });
  }));
  return tails;
}

base::Result<std::optional<BundleRow>> SqliteEvidenceStore::Bundle(std::string_view execution_id) {
  return impl_->database->WithRead([&](Transaction& tx) -> base::Result<std::optional<BundleRow>> {
    std::optional<BundleRow> bundle;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT bundle_hash FROM bundle WHERE execution_id = :id", {execution_id}, {Column::kText},
        [&](const Row& row) { bundle.emplace().bundle_hash = row.Text(0); }));
    if (!bundle) return bundle;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT path, role, blob, content_hash, size_bytes, redactions FROM bundle_file WHERE "
        "execution_id = :id"
        " ORDER BY position",
        {execution_id},
        {Column::kBytes, Column::kText, Column::kText, Column::kText, Column::kInt, Column::kInt},
        [&](const Row& row) {
          bundle->files.push_back({.path = row.Blob(0),
                                   .role = row.Text(1),
                                   .blob = row.Text(2),
                                   .content_hash = row.Text(3),
                                   .size_bytes = row.Unsigned(4),
                                   .redactions = static_cast<std::uint32_t>(row.Int(5))});
        }));
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT path, reason FROM bundle_skipped WHERE execution_id = :id ORDER BY position",
        {execution_id}, {Column::kBytes, Column::kText}, [&](const Row& row) {
          bundle->skipped.push_back({.path = row.Blob(0), .reason = row.Text(1)});
        }));
    return bundle;
  });
}

base::Result<ChangePage> SqliteEvidenceStore::Changed(const FeedPlace& after, std::size_t limit) {
  return impl_->database->WithRead(
      [&](Transaction& tx) { return records::ReadChanges(tx, after, limit); });
}

namespace {

// Of the reports that one answer holds.
constexpr std::size_t kMaxHealthBytes = 16U << 20;

// Makes room for `node` unless it is known.
base::Status ForgetSilentNodes(Transaction& tx, std::string_view organisation_id,
                               std::string_view compute_id, std::string_view node,
                               std::size_t most) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto known,
      tx.QueryInt("SELECT COUNT(*) FROM health WHERE organisation_id = :organisation AND "
                  "compute_id = :compute AND node = :node",
                  {organisation_id, compute_id, node}));
  if (known.value_or(0) > 0) return {};
  EXPANSE_ASSIGN_OR_RETURN(
      const auto count,
      tx.QueryInt("SELECT COUNT(*) FROM health WHERE organisation_id = :organisation AND "
                  "compute_id = :compute",
                  {organisation_id, compute_id}));
  const std::int64_t over = count.value_or(0) + 1 - static_cast<std::int64_t>(most);
  if (over <= 0) return {};
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("DELETE FROM health WHERE organisation_id = :organisation AND compute_id = "
                 ":compute AND node IN (SELECT node FROM health WHERE organisation_id = "
                 ":same_organisation AND compute_id = :same_compute ORDER BY reported_at, node "
                 "LIMIT :over)",
                 {organisation_id, compute_id, organisation_id, compute_id, over}));
  return {};
}

}  // namespace

base::Status SqliteEvidenceStore::PutHealth(std::string_view organisation_id,
                                            std::string_view compute_id,
                                            const evidence::HealthReport& report,
                                            base::WallTime now) {
  const std::string detail = records::EncodeDetail(report);
  return impl_->database->WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(
        ForgetSilentNodes(tx, organisation_id, compute_id, report.node, impl_->max_health_nodes));
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("INSERT INTO health (organisation_id, compute_id, node, reported_at, detail)"
                   " VALUES (:organisation, :compute, :node, :reported, :detail)"
                   " ON CONFLICT (organisation_id, compute_id, node) DO UPDATE SET reported_at = "
                   "excluded.reported_at,"
                   " detail = excluded.detail WHERE excluded.reported_at >= health.reported_at",
                   {organisation_id, compute_id, report.node, now, Bytes{detail}}));
    return {};
  });
}

base::Result<std::vector<NodeHealth>> SqliteEvidenceStore::Health(std::string_view organisation_id,
                                                                  std::string_view compute_id) {
  struct Stored {
    base::WallTime reported_at{};
    std::string detail;
  };
  std::vector<Stored> rows;
  std::size_t bytes = 0;
  EXPANSE_RETURN_IF_ERROR(impl_->database->WithRead([&](Transaction& tx) {
    return tx.Query(
        "SELECT reported_at, detail FROM health WHERE organisation_id = :organisation AND "
        "compute_id = :compute"
        " ORDER BY reported_at DESC, node",
        {organisation_id, compute_id}, {Column::kInt, Column::kBytes}, [&](const Row& row) {
          bytes += row.Blob(1).size();
          if (bytes > kMaxHealthBytes && !rows.empty()) return false;
          rows.push_back({.reported_at = row.Time(0), .detail = row.Blob(1)});
          return true;
        });
  }));
  std::vector<NodeHealth> nodes;
  nodes.reserve(rows.size());
  for (const Stored& row : rows) {
    EXPANSE_ASSIGN_OR_RETURN(auto report, records::DecodeHealth(row.detail));
    nodes.push_back({.report = std::move(report), .reported_at = row.reported_at});
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const NodeHealth& a, const NodeHealth& b) { return a.report.node < b.report.node; });
  return nodes;
}

base::Status SqliteEvidenceStore::PutClusterState(std::string_view organisation_id,
                                                  std::string_view compute_id,
                                                  const evidence::ClusterState& state,
                                                  base::WallTime now) {
  const std::string detail = records::EncodeDetail(state);
  return impl_->database->WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("INSERT INTO cluster_state (organisation_id, compute_id, reported_at, detail)"
                   " VALUES (:organisation, :compute, :reported, :detail)"
                   " ON CONFLICT (organisation_id, compute_id) DO UPDATE SET reported_at = "
                   "excluded.reported_at, detail = excluded.detail"
                   " WHERE excluded.reported_at >= cluster_state.reported_at",
                   {organisation_id, compute_id, now, Bytes{detail}}));
    return {};
  });
}

base::Result<std::optional<ReportedClusterState>> SqliteEvidenceStore::ClusterState(
    std::string_view organisation_id, std::string_view compute_id) {
  std::string detail;
  std::optional<ReportedClusterState> found;
  EXPANSE_RETURN_IF_ERROR(impl_->database->WithRead([&](Transaction& tx) {
    return tx.Query(
        "SELECT reported_at, detail FROM cluster_state WHERE organisation_id = :organisation AND "
        "compute_id = :compute",
        {organisation_id, compute_id}, {Column::kInt, Column::kBytes}, [&](const Row& row) {
          found.emplace().reported_at = row.Time(0);
          detail = row.Blob(1);
        });
  }));
  if (!found) return found;
  EXPANSE_ASSIGN_OR_RETURN(found->state, records::DecodeClusterState(detail));
  return found;
}

base::Result<std::size_t> SqliteEvidenceStore::DropExecutionsBefore(base::WallTime before,
                                                                    std::size_t limit) {
  return impl_->database->WithWrite([&](Transaction& tx) {
    return records::DropExecutions(tx, base::ToMicros(before), limit, impl_->max_removals);
  });
}

base::Result<bool> SqliteEvidenceStore::BlobReferenced(std::string_view blob) {
  if (blob.empty()) return false;  // the empty name means "nothing there"
  return impl_->database->WithRead([&](Transaction& tx) -> base::Result<bool> {
    EXPANSE_ASSIGN_OR_RETURN(
        const auto found,
        tx.QueryInt("SELECT CASE WHEN EXISTS (SELECT 1 FROM log_tail WHERE data_blob = :data)"
                    " OR EXISTS (SELECT 1 FROM log_tail WHERE first_error_blob = :error)"
                    " OR EXISTS (SELECT 1 FROM bundle_file WHERE blob = :file) THEN 1 ELSE 0 END",
                    {blob, blob, blob}));
    return found.value_or(0) != 0;
  });
}

}  // namespace expanse::store
