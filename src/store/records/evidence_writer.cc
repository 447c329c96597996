#include "store/records/evidence_writer.h"

#include <utility>

#include "base/log.h"
#include "store/records/change_feed.h"
#include "store/records/detail.h"

namespace expanse::store::records {
namespace {

using sql::Bytes;
using sql::Column;
using sql::Row;

// When retention starts to count. A run that is over without a known end counts from now.
std::optional<base::WallTime> DoneAt(const evidence::Execution& execution, base::WallTime now) {
  if (execution.ended_at) return execution.ended_at;
  if (evidence::IsTerminal(execution.status)) return now;
  return std::nullopt;
}

}  // namespace

base::Status EvidenceWriter::Apply(const EvidenceChange& change) {
  if (change.execution) return ApplyExecution(change);
  if (change.log_tail) return ApplyLogTail(change.execution_id, *change.log_tail);
  if (change.bundle) return ApplyBundle(change.execution_id, *change.bundle);
  return {};  // its effect lies in another store
}

base::Status EvidenceWriter::ApplyExecution(const EvidenceChange& change) {
  evidence::Execution seen = *change.execution;
  seen.execution_id = change.execution_id;
  seen.compute_id = compute_id_;
  if (seen.source_type == evidence::SourceType::kUnspecified) seen.source_type = change.source_type;

  auto found = pending_.find(change.execution_id);
  if (found == pending_.end()) {
    EXPANSE_ASSIGN_OR_RETURN(auto known, Load(change.execution_id));
    if (!known) {
      // Merged too, so that what comes first obeys the same rules.
      known.emplace().first_seen = now_;
      known->execution.execution_id = change.execution_id;
      known->execution.compute_id = compute_id_;
    }
    found = pending_.emplace(change.execution_id, std::move(*known)).first;
  }
  found->second.execution = evidence::Merge(std::move(found->second.execution), seen);
  return {};
}

base::Result<std::optional<EvidenceWriter::Pending>> EvidenceWriter::Load(
    const std::string& execution_id) {
  std::optional<Pending> known;
  bool foreign = false;
  EXPANSE_RETURN_IF_ERROR(tx_.Query(
      "SELECT organisation_id, compute_id, first_seen, detail FROM execution WHERE execution_id = "
      ":id",
      {execution_id}, {Column::kText, Column::kText, Column::kInt, Column::kBytes},
      [&](const Row& row) {
        foreign = row.Text(0) != organisation_id_ || row.Text(1) != compute_id_;
        known.emplace().first_seen = row.Time(2);
        auto execution = DecodeExecution(row.Blob(3));
        if (execution) {
          known->execution = std::move(*execution);
          return;
        }
        // What is left of a damaged record is what is seen from now on.
        base::LogError("store.corrupt",
                       {{"execution", execution_id}, {"error", execution.error().message}});
        known->execution.execution_id = execution_id;
        known->execution.compute_id = compute_id_;
      }));
  if (foreign) {
    return base::Fail(base::Code::kPermissionDenied, "execution.foreign",
                      "the execution belongs to another compute or organisation");
  }
  return known;
}

base::Status EvidenceWriter::Finish() {
  const std::size_t most = pending_.size() + bundled_.size();
  if (most == 0) return {};
  EXPANSE_ASSIGN_OR_RETURN(std::uint64_t change, TakeChanges(tx_, most));
  for (const auto& [id, pending] : pending_) EXPANSE_RETURN_IF_ERROR(Store(pending, change++));
  for (const std::string& id : bundled_) {
    if (pending_.contains(id)) continue;
    // Of an execution that is not there yet, the record will bring the change.
    EXPANSE_RETURN_IF_ERROR(tx_.Execute(
        "UPDATE execution SET changed = :change WHERE execution_id = :id", {change++, id}));
  }
  pending_.clear();
  bundled_.clear();
  return {};
}

base::Status EvidenceWriter::Store(const Pending& pending, std::uint64_t change) {
  const evidence::Execution& execution = pending.execution;
  const base::WallTime sort_at =
      execution.started_at.value_or(execution.submitted_at.value_or(pending.first_seen));
  const std::string detail = EncodeDetail(execution);
  EXPANSE_RETURN_IF_ERROR(tx_.Execute(
      "INSERT INTO execution (execution_id, organisation_id, compute_id, source_type, native_id, "
      "user_name, status,"
      " outcome, started_at, done_at, first_seen, sort_at, changed, detail) VALUES (:id, "
      ":organisation, :compute, :source,"
      " :native, :user, :status, :outcome, :started, :done, :seen, :sort, :change, :detail)"
      " ON CONFLICT (execution_id) DO UPDATE SET source_type = excluded.source_type,"
      " native_id = excluded.native_id, user_name = excluded.user_name, status = excluded.status,"
      " outcome = excluded.outcome, started_at = excluded.started_at, done_at = excluded.done_at,"
      " sort_at = excluded.sort_at, changed = excluded.changed, detail = excluded.detail",
      {execution.execution_id, organisation_id_, compute_id_,
       static_cast<int>(execution.source_type), Bytes{execution.native_id}, Bytes{execution.user},
       static_cast<int>(execution.status), static_cast<int>(execution.outcome),
       execution.started_at, DoneAt(execution, now_), pending.first_seen, sort_at, change,
       Bytes{detail}}));
  return {};
}

// Tails arrive in any order; the one of the longer stream is the newer. A first error stays known
// when a later tail no longer shows it.
base::Status EvidenceWriter::ApplyLogTail(const std::string& execution_id, const LogTailRow& tail) {
  EXPANSE_RETURN_IF_ERROR(tx_.Execute(
      "INSERT INTO log_tail (execution_id, stream, data_blob, data_offset, total_bytes, "
      "first_error_blob,"
      " first_error_offset, redactions, seen_at) VALUES (:id, :stream, :blob, :offset, :total, "
      ":error_blob,"
      " :error_offset, :redactions, :seen)"
      " ON CONFLICT (execution_id, stream) DO UPDATE SET data_blob = excluded.data_blob,"
      " data_offset = excluded.data_offset, total_bytes = excluded.total_bytes,"
      " first_error_offset = CASE WHEN excluded.first_error_blob = '' THEN "
      "log_tail.first_error_offset"
      " ELSE excluded.first_error_offset END,"
      " first_error_blob = CASE WHEN excluded.first_error_blob = '' THEN log_tail.first_error_blob"
      " ELSE excluded.first_error_blob END,"
      " redactions = excluded.redactions, seen_at = excluded.seen_at"
      " WHERE excluded.total_bytes >= log_tail.total_bytes",
      {execution_id, tail.stream, tail.data_blob, tail.offset, tail.total_bytes,
       tail.first_error_blob, tail.first_error_offset, tail.redactions, now_}));
  return {};
}

base::Status EvidenceWriter::ApplyBundle(const std::string& execution_id, const BundleRow& bundle) {
  EXPANSE_RETURN_IF_ERROR(
      tx_.Execute("DELETE FROM bundle_file WHERE execution_id = :id", {execution_id}));
  EXPANSE_RETURN_IF_ERROR(
      tx_.Execute("DELETE FROM bundle_skipped WHERE execution_id = :id", {execution_id}));
  EXPANSE_RETURN_IF_ERROR(tx_.Execute(
      "INSERT INTO bundle (execution_id, bundle_hash, seen_at) VALUES (:id, :hash, :seen)"
      " ON CONFLICT (execution_id) DO UPDATE SET bundle_hash = excluded.bundle_hash, seen_at = "
      "excluded.seen_at",
      {execution_id, bundle.bundle_hash, now_}));
  std::int64_t position = 0;
  for (const BundleFileRow& file : bundle.files) {
    EXPANSE_RETURN_IF_ERROR(
        tx_.Execute("INSERT INTO bundle_file (execution_id, position, path, role, blob, "
                    "content_hash, size_bytes, redactions)"
                    " VALUES (:id, :position, :path, :role, :blob, :hash, :size, :redactions)",
                    {execution_id, position++, Bytes{file.path}, file.role, file.blob,
                     file.content_hash, file.size_bytes, file.redactions}));
  }
  position = 0;
  for (const evidence::SkippedFile& skipped : bundle.skipped) {
    EXPANSE_RETURN_IF_ERROR(
        tx_.Execute("INSERT INTO bundle_skipped (execution_id, position, path, reason) VALUES "
                    "(:id, :position, :path, :reason)",
                    {execution_id, position++, Bytes{skipped.path}, skipped.reason}));
  }
  bundled_.insert(execution_id);
  return {};
}

}  // namespace expanse::store::records
