// The embedded run store: one SQLite file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/runs/run_store.h"

namespace expanse::store {

struct SqliteRunOptions {
  std::string path;  // of the file; its directory exists
  std::size_t readers = 4;
};

// Thread-safe. Besides what RunStore says, calls fail with the errors of store/sql/database.h.
class SqliteRunStore final : public RunStore {
 public:
  static base::Result<std::unique_ptr<SqliteRunStore>> Open(const SqliteRunOptions& options);
  ~SqliteRunStore() override;

  base::Status Add(const RunRow& run, const std::vector<RunArtifactRow>& artifacts) override;
  base::Status Enqueue(const RunRow& run, const QueueBounds& bounds) override;
  base::Result<std::optional<RunRow>> TakeQueued(std::size_t per_user) override;
  base::Status Finish(std::string_view run_id, const RunOutcome& outcome) override;
  base::Result<std::size_t> FailRunning(base::WallTime now, std::string_view error,
                                        std::string_view error_reason) override;
  base::Result<std::size_t> CountQueued() override;
  base::Result<RunRow> Get(const RunScope& scope, std::string_view run_id) override;
  base::Result<RunPage> List(const RunFilter& filter, const std::optional<RunCursor>& after,
                             std::size_t limit) override;
  base::Result<std::optional<RunRow>> FindCached(std::string_view organisation_id,
                                                 std::string_view user_id,
                                                 std::string_view cache_key) override;
  base::Result<RunArtifactRow> GetArtifact(const RunScope& scope,
                                           std::string_view artifact_id) override;
  base::Result<std::size_t> DropBefore(base::WallTime finished_before, std::size_t limit) override;
  base::Result<std::size_t> DropBeyond(std::size_t keep, std::size_t limit) override;
  base::Result<std::size_t> DropSystemBeyond(std::size_t keep, std::size_t limit) override;
  LabelStore& labels() override;
  DiagnosisQueue& diagnoses() override;

 private:
  struct Impl;
  explicit SqliteRunStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::store
