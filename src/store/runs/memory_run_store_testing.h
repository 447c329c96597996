// A run store in memory, for tests of what lies above it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "store/runs/memory_labels_testing.h"
#include "store/runs/run_store.h"

namespace expanse::store {

// Thread-safe.
class MemoryRunStore final : public RunStore {
 public:
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
  LabelStore& labels() override { return labels_; }
  DiagnosisQueue& diagnoses() override { return diagnoses_; }

 private:
  std::vector<const RunRow*> OldestFirst() const;
  std::size_t DropOldest(bool of_system, std::size_t keep, std::size_t limit);
  std::size_t Drop(const std::vector<std::string>& ids);

  MemoryLabels labels_;
  MemoryDiagnosisQueue diagnoses_{labels_};
  mutable std::mutex mutex_;  // guards both maps
  std::map<std::string, RunRow, std::less<>> runs_;
  std::map<std::string, RunArtifactRow, std::less<>> artifacts_;
};

}  // namespace expanse::store
