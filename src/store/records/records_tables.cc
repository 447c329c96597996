#include "store/records/records_tables.h"

#include <vector>

namespace expanse::store::records {

std::span<const sql::Migration> RecordMigrations() {
  static const std::vector<sql::Migration> migrations = {
      {1,
       "executions, manifests, watermarks and health",
       {
           // sort_at: start, else submission, else first_seen. done_at: when retention counts from;
           // NULL while the run goes on. Times are microseconds since 1970. User and native id are
           // bytes: neither need be UTF-8.
           "CREATE TABLE execution ("
           " execution_id TEXT PRIMARY KEY,"
           " organisation_id TEXT NOT NULL, compute_id TEXT NOT NULL,"
           " source_type {int64} NOT NULL, native_id {bytes}, user_name {bytes},"
           " status {int64} NOT NULL, outcome {int64} NOT NULL,"
           " started_at {int64}, done_at {int64}, first_seen {int64} NOT NULL, sort_at {int64} NOT "
           "NULL,"
           " detail {bytes})",
           // One per filter, each in the order of the list, so that a page is one short range.
           "CREATE INDEX execution_newest ON execution (organisation_id, sort_at, execution_id)",
           "CREATE INDEX execution_by_compute ON execution (organisation_id, compute_id, sort_at, "
           "execution_id)",
           "CREATE INDEX execution_by_user ON execution (organisation_id, user_name, sort_at, "
           "execution_id)",
           "CREATE INDEX execution_by_status ON execution (organisation_id, status, sort_at, "
           "execution_id)",
           "CREATE INDEX execution_by_outcome ON execution (organisation_id, outcome, sort_at, "
           "execution_id)",
           "CREATE INDEX execution_by_source ON execution (organisation_id, source_type, sort_at, "
           "execution_id)",
           "CREATE INDEX execution_by_native_id ON execution (organisation_id, native_id, sort_at, "
           "execution_id)",
           "CREATE INDEX execution_by_end ON execution (done_at)",
           // No foreign keys from manifests to executions: a tail may arrive before its record.
           "CREATE TABLE log_tail ("
           " execution_id TEXT NOT NULL, stream TEXT NOT NULL, data_blob TEXT NOT NULL,"
           " data_offset {int64} NOT NULL, total_bytes {int64} NOT NULL,"
           " first_error_blob TEXT NOT NULL, first_error_offset {int64} NOT NULL,"
           " redactions {int64} NOT NULL, seen_at {int64} NOT NULL,"
           " PRIMARY KEY (execution_id, stream))",
           "CREATE INDEX log_tail_by_blob ON log_tail (data_blob)",
           "CREATE INDEX log_tail_by_error_blob ON log_tail (first_error_blob)",
           "CREATE INDEX log_tail_by_age ON log_tail (seen_at)",
           "CREATE TABLE bundle ("
           " execution_id TEXT PRIMARY KEY, bundle_hash TEXT NOT NULL, seen_at {int64} NOT NULL)",
           "CREATE INDEX bundle_by_age ON bundle (seen_at)",
           "CREATE TABLE bundle_file ("
           " execution_id TEXT NOT NULL, position {int64} NOT NULL, path {bytes}, role TEXT NOT "
           "NULL,"
           " blob TEXT NOT NULL, content_hash TEXT NOT NULL, size_bytes {int64} NOT NULL,"
           " redactions {int64} NOT NULL, PRIMARY KEY (execution_id, position))",
           "CREATE INDEX bundle_file_by_blob ON bundle_file (blob)",
           "CREATE TABLE bundle_skipped ("
           " execution_id TEXT NOT NULL, position {int64} NOT NULL, path {bytes}, reason TEXT NOT "
           "NULL,"
           " PRIMARY KEY (execution_id, position))",
           "CREATE TABLE watermark ("
           " compute_id TEXT NOT NULL, stream_id TEXT NOT NULL, sequence {int64} NOT NULL,"
           " PRIMARY KEY (compute_id, stream_id))",
           "CREATE TABLE health ("
           " organisation_id TEXT NOT NULL, compute_id TEXT NOT NULL, node TEXT NOT NULL,"
           " reported_at {int64} NOT NULL, detail {bytes},"
           " PRIMARY KEY (organisation_id, compute_id, node))",
       }},
      {2,
       "status and outcome in the index by user",
       {
           // Who looks for the few failed runs of a user with very many reads them off the index,
           // without a look at each row.
           "DROP INDEX execution_by_user",
           "CREATE INDEX execution_by_user ON execution (organisation_id, user_name, sort_at, "
           "execution_id, status, outcome)",
       }},
      {3,
       "the newest snapshot of each cluster",
       {
           // detail: zstd.
           "CREATE TABLE cluster_state ("
           " organisation_id TEXT NOT NULL, compute_id TEXT NOT NULL,"
           " reported_at {int64} NOT NULL, detail {bytes},"
           " PRIMARY KEY (organisation_id, compute_id))",
       }},
      {4,
       "the change feed",
       {
           // One row: the number of the last change, and that of the last removal whose row below
           // is gone. Whoever changes executions raises it first, in the same transaction, and so
           // waits for others that do: numbers become visible in order.
           "CREATE TABLE feed ("
           " feed_id {int64} PRIMARY KEY, last_change {int64} NOT NULL, forgotten {int64} NOT "
           "NULL)",
           "ALTER TABLE execution ADD COLUMN changed {int64} NOT NULL DEFAULT 0",
           "UPDATE execution SET changed = numbered.number FROM (SELECT execution_id AS id, "
           "row_number() OVER (ORDER BY first_seen, execution_id) AS number FROM execution)"
           " AS numbered WHERE numbered.id = execution.execution_id",
           "INSERT INTO feed (feed_id, last_change, forgotten) SELECT 1, COUNT(*), 0 FROM "
           "execution",
           "CREATE INDEX execution_by_change ON execution (changed)",
           "CREATE TABLE removed_execution ("
           " changed {int64} PRIMARY KEY, organisation_id TEXT NOT NULL, execution_id TEXT NOT "
           "NULL)",
       }},
  };
  return migrations;
}

}  // namespace expanse::store::records
