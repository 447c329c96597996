// Labels and the queue of diagnoses in the run store's database. Internal to store/runs.
#pragma once

#include "store/runs/diagnosis_queue.h"
#include "store/runs/label_store.h"
#include "store/sql/database.h"

namespace expanse::store::runs {

// Thread-safe. The database outlives it.
class SqliteLabels final : public LabelStore {
 public:
  explicit SqliteLabels(sql::Database& database) : database_(database) {}
  base::Status Put(const FailureLabel& label) override;
  base::Status Drop(std::string_view organisation_id, std::string_view execution_id) override;
  base::Result<std::vector<FailureLabel>> Get(
      std::string_view organisation_id, const std::vector<std::string>& execution_ids) override;
  base::Result<std::vector<NodeFailures>> NodeHistory(const NodeQuery& query) override;
  base::Result<std::size_t> DropBefore(base::WallTime diagnosed_before, std::size_t limit) override;

 private:
  sql::Database& database_;
};

// Thread-safe. The database outlives it.
class SqliteDiagnosisQueue final : public DiagnosisQueue {
 public:
  explicit SqliteDiagnosisQueue(sql::Database& database) : database_(database) {}
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
  sql::Database& database_;
};

}  // namespace expanse::store::runs
