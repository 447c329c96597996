// Applies one batch of changes inside a write transaction. Internal to store/records.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "store/records/evidence_store.h"
#include "store/sql/database.h"

namespace expanse::store::records {

// One per batch. Observations of the same execution are merged in memory and written once, by
// Finish.
class EvidenceWriter {
 public:
  EvidenceWriter(sql::Transaction& tx, std::string_view organisation_id,
                 std::string_view compute_id, base::WallTime now)
      : tx_(tx), organisation_id_(organisation_id), compute_id_(compute_id), now_(now) {}

  base::Status Apply(const EvidenceChange& change);
  base::Status Finish();

 private:
  struct Pending {
    evidence::Execution execution;
    base::WallTime first_seen{};
  };

  base::Status ApplyExecution(const EvidenceChange& change);
  base::Status ApplyLogTail(const std::string& execution_id, const LogTailRow& tail);
  base::Status ApplyBundle(const std::string& execution_id, const BundleRow& bundle);
  base::Result<std::optional<Pending>> Load(const std::string& execution_id);
  base::Status Store(const Pending& pending, std::uint64_t change);

  sql::Transaction& tx_;
  const std::string_view organisation_id_;
  const std::string_view compute_id_;
  const base::WallTime now_;
  std::map<std::string, Pending, std::less<>> pending_;
  std::set<std::string, std::less<>> bundled_;  // executions that got a bundle
};

}  // namespace expanse::store::records
