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
      {2,
       "failure classes and the queue of diagnoses",
       {
           "CREATE TABLE failure_label ("
           " organisation_id TEXT NOT NULL, execution_id TEXT NOT NULL, compute_id TEXT NOT NULL,"
           " failure_class TEXT NOT NULL, title {bytes}, confidence {int64} NOT NULL,"
           " run_id TEXT REFERENCES run (run_id) ON DELETE SET NULL, asked_by TEXT NOT NULL,"
           " user_name {bytes}, workload TEXT NOT NULL,"
           " ended_at {int64} NOT NULL, diagnosed_at {int64} NOT NULL,"
           " PRIMARY KEY (organisation_id, execution_id))",
           "CREATE INDEX label_by_end ON failure_label (organisation_id, compute_id, ended_at)",
           "CREATE INDEX label_by_run ON failure_label (run_id)",
           "CREATE INDEX label_by_age ON failure_label (diagnosed_at)",
           "CREATE TABLE failure_node ("
           " organisation_id TEXT NOT NULL, execution_id TEXT NOT NULL, node TEXT NOT NULL,"
           " PRIMARY KEY (organisation_id, execution_id, node),"
           " FOREIGN KEY (organisation_id, execution_id)"
           " REFERENCES failure_label (organisation_id, execution_id) ON DELETE CASCADE)",
           "CREATE TABLE diagnosis_due ("
           " organisation_id TEXT NOT NULL, execution_id TEXT NOT NULL, version {int64} NOT NULL,"
           " tries {int64} NOT NULL, changed_at {int64} NOT NULL, due_at {int64} NOT NULL,"
           " PRIMARY KEY (organisation_id, execution_id))",
           "CREATE INDEX diagnosis_by_due ON diagnosis_due (due_at, organisation_id, "
           "execution_id)",
           "CREATE TABLE diagnosis_feed ("
           " feed_id {int64} PRIMARY KEY, last_change {int64} NOT NULL, began {int64} NOT NULL)",
           "INSERT INTO diagnosis_feed (feed_id, last_change, began) VALUES (1, 0, 0)",
       }},
      {3,
       "the node of executions that had one",
       {
           "ALTER TABLE failure_label ADD COLUMN only_node TEXT NOT NULL DEFAULT ''",
           "CREATE INDEX label_by_node ON failure_label (organisation_id, compute_id, only_node, "
           "ended_at)",
           // Covers the count of a class on all nodes.
           "CREATE INDEX label_by_class ON failure_label (organisation_id, compute_id, "
           "failure_class, ended_at, workload, only_node)",
           "DROP INDEX label_by_end",
       }},
  };
  return migrations;
}

}  // namespace expanse::store::runs
