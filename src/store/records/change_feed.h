// The change feed of executions (EvidenceStore::Changed). Internal to store/records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "store/records/evidence_store.h"
#include "store/sql/database.h"

namespace expanse::store::records {

// Takes `count` (at least 1) change numbers and returns the first. The row that holds the last
// number stays locked until the transaction ends: numbers become visible in order.
base::Result<std::uint64_t> TakeChanges(sql::Transaction& tx, std::size_t count);

// Of an execution about to be removed.
struct Removal {
  std::string organisation_id;
  std::string execution_id;
};
// Keeps the newest `keep` removals of all.
base::Status NoteRemovals(sql::Transaction& tx, std::span<const Removal> removals,
                          std::size_t keep);

base::Result<ChangePage> ReadChanges(sql::Transaction& tx, const FeedPlace& from,
                                     std::size_t limit);

}  // namespace expanse::store::records
