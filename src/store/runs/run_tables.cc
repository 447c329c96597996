#include "store/runs/run_tables.h"

#include <vector>

namespace expanse::store::runs {

std::span<const sql::Migration> RunMigrations() {
  static const std::vector<sql::Migration> migrations = {
      {1,
       "runs and their artefacts",
       {
           // Target and job name are bytes: neither need be UTF-8. The large columns come last, so
           // that lists do not read over them. finished_at: NULL while a run waits or works.
           "CREATE TABLE run ("
           " run_id TEXT PRIMARY KEY, organisation_id TEXT NOT NULL, user_id TEXT NOT NULL,"
           " kind {int64} NOT NULL, status {int64} NOT NULL,"
           " target {bytes}, job_name {bytes}, compute_id TEXT NOT NULL,"
           " created_at {int64} NOT NULL, finished_at {int64},"
           " error {bytes}, error_reason TEXT NOT NULL, cache_key TEXT NOT NULL,"
           " request {bytes}, answer {bytes})",
           // One per filter, each in the order of the list.
           "CREATE INDEX run_newest ON run (organisation_id, created_at, run_id)",
           "CREATE INDEX run_by_user ON run (organisation_id, user_id, created_at, run_id, "
           "finished_at)",
           "CREATE INDEX run_by_key ON run (cache_key, created_at, run_id)",
           "CREATE INDEX run_by_end ON run (finished_at)",
           // Of the queue alone, which is short whatever the table holds.
           "CREATE INDEX run_open ON run (status, created_at, run_id) WHERE finished_at IS NULL",
           "CREATE TABLE artifact ("
           " artifact_id TEXT PRIMARY KEY,"
           " run_id TEXT NOT NULL REFERENCES run (run_id) ON DELETE CASCADE,"
           " type {int64} NOT NULL, content_hash TEXT NOT NULL, source_file {bytes},"
           " source_hash TEXT NOT NULL, created_at {int64} NOT NULL, data {bytes})",
           "CREATE INDEX artifact_by_run ON artifact (run_id)",
       }},
  };
  return migrations;
}

}  // namespace expanse::store::runs
