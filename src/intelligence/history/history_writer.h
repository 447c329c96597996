// Writes one page of changes into the index. Internal to history.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "intelligence/history/execution_run.h"
#include "intelligence/history/fingerprint.h"
#include "store/records/evidence_store.h"
#include "store/sql/database.h"

namespace expanse::intelligence::history {

// A bundle that was read and fingerprinted, under the hash that its capture has.
struct CapturedBundle {
  std::string organisation_id;
  std::string bundle_hash;
  Fingerprint fingerprint;
  // Of files whose text lacks secrets: hash of the bytes they had, hash of what is left.
  std::vector<std::pair<std::string, std::string>> redacted;
};

// One execution as it is to be in the index.
struct RunChange {
  std::string organisation_id;
  std::string execution_id;
  std::optional<IndexedRun> run;  // absent: not or no longer in it
  std::string bundle_hash;        // of its capture; empty: none
  std::optional<base::WallTime> settle_at;
};

// What memory has to follow once the transaction has committed.
struct BundleChange {
  std::string organisation_id;
  std::int64_t bundle_id = 0;
  Signature signature;
  bool removed = false;
};

// One per transaction.
class HistoryWriter {
 public:
  explicit HistoryWriter(store::sql::Transaction& tx) : tx_(tx) {}

  // Also of an execution that goes on: others that end before it may share its bundle.
  base::Status AddBundle(const CapturedBundle& bundle);
  base::Status Apply(const RunChange& change);
  // What the samples of a run say by now. Its source stays what it was.
  base::Status Settle(const std::string& execution_id, const std::optional<IndexedRun>& run,
                      const std::optional<base::WallTime>& next);
  // Removes bundles that lost their last run. Call once, at the end.
  base::Status Finish();
  base::Status SetPlace(const store::FeedPlace& place);
  // Bundles without runs: of executions that went on when their bundle was read. They are read
  // again at the execution's next change.
  base::Status DropUnused();
  // Empties the index.
  base::Status Clear();

  std::vector<BundleChange> TakeChanges() { return std::move(changes_); }

 private:
  base::Result<std::int64_t> PlaceOf(const std::string& organisation_id,
                                     const std::string& compute_id);
  base::Result<std::int64_t> BundleFor(const CapturedBundle& bundle);
  base::Status InsertBundle(std::int64_t bundle_id, const CapturedBundle& bundle);
  base::Result<std::optional<std::int64_t>> CapturedAs(const std::string& organisation_id,
                                                       const std::string& bundle_hash);
  base::Status GiveWanted(const CapturedBundle& bundle, std::int64_t bundle_id);
  base::Status NotePlace(std::int64_t bundle_id, std::int64_t place_id);
  base::Status NoteLoss(const std::string& execution_id, std::optional<std::int64_t> kept);

  store::sql::Transaction& tx_;
  std::map<std::pair<std::string, std::string>, std::int64_t> places_;
  std::map<std::pair<std::string, std::string>, std::optional<std::int64_t>> captured_;
  std::set<std::pair<std::int64_t, std::int64_t>> bundle_places_;
  std::set<std::int64_t> lost_a_run_;
  std::vector<BundleChange> changes_;
};

// The place in the feed; {} for a new index, or for one that another version made.
base::Result<store::FeedPlace> ReadPlace(store::sql::Transaction& tx);

}  // namespace expanse::intelligence::history
