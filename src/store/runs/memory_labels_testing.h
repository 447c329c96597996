// Labels and the queue of diagnoses in memory, for tests of what lies above them.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "store/runs/diagnosis_queue.h"
#include "store/runs/label_store.h"

namespace expanse::store {

using ExecutionPlace = std::pair<std::string, std::string>;  // organisation and execution id

// Thread-safe.
class MemoryLabels final : public LabelStore {
 public:
  base::Status Put(const FailureLabel& label) override;
  base::Status Drop(std::string_view organisation_id, std::string_view execution_id) override;
  base::Result<std::vector<FailureLabel>> Get(
      std::string_view organisation_id, const std::vector<std::string>& execution_ids) override;
  base::Result<std::vector<NodeFailures>> NodeHistory(const NodeQuery& query) override;
  base::Result<std::size_t> DropBefore(base::WallTime diagnosed_before, std::size_t limit) override;
  void ForgetRun(const std::string& run_id);

 private:
  std::mutex mutex_;  // guards labels_
  std::map<ExecutionPlace, FailureLabel> labels_;
};

// Thread-safe.
class MemoryDiagnosisQueue final : public DiagnosisQueue {
 public:
  explicit MemoryDiagnosisQueue(LabelStore& labels) : labels_(labels) {}
  base::Result<FeedPlace> Place() override;
  base::Status Follow(std::span<const DiagnosisChange> changes, const FeedPlace& next,
                      base::WallTime now) override;
  base::Status StartOver() override;
  base::Result<std::optional<DueDiagnosis>> Take(base::WallTime now, base::WallTime lease) override;
  base::Status Finish(const DueDiagnosis& taken, std::optional<base::WallTime> next,
                      bool succeeded) override;
  base::Result<std::size_t> Waiting() override;
  base::Result<std::optional<base::WallTime>> NextDue() override;

 private:
  struct Entry {
    DueDiagnosis diagnosis;
    base::WallTime due_at{};
  };
  std::map<ExecutionPlace, Entry>::iterator Longest();

  LabelStore& labels_;
  std::mutex mutex_;  // guards all below
  FeedPlace place_;
  std::map<ExecutionPlace, Entry> waiting_;
};

}  // namespace expanse::store
