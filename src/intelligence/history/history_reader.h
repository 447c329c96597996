// Look-ups in the index, inside a read transaction. Internal to history. Bundles belong to one
// organisation and so do places: whoever starts from an organisation's bundles or places never sees
// another's runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "intelligence/history/execution_run.h"
#include "intelligence/history/similarity_index.h"
#include "store/sql/database.h"

namespace expanse::intelligence::history {

struct Place {
  std::int64_t place_id = 0;
  std::string compute_id;
};

struct BundleFacts {
  std::string shape_hash;
  std::vector<double> numbers;
};

// A run and what led to it.
struct Candidate {
  IndexedRun run;
  std::int64_t bundle_id = 0;  // 0: its source is not known
  double similarity = 0;
};

class HistoryReader {
 public:
  explicit HistoryReader(store::sql::Transaction& tx) : tx_(tx) {}

  base::Result<std::vector<Place>> Places(std::string_view organisation_id);
  // The normalised hash of a file that was captured without its secrets.
  base::Result<std::optional<std::string>> RedactedAs(std::string_view organisation_id,
                                                      std::string_view content_hash);

  // Bundles of exactly this key, whichever file was submitted.
  base::Result<std::vector<std::int64_t>> BundlesWithKey(std::string_view organisation_id,
                                                         std::string_view bundle_key);
  // Bundles that have the entry file and either all the other files, or only such (then with the
  // same entry): nothing that both know differs. The newest.
  base::Result<std::vector<std::int64_t>> BundlesAround(std::string_view organisation_id,
                                                        std::string_view entry_hash,
                                                        const std::set<std::string>& files);
  base::Result<BundleFacts> Facts(std::int64_t bundle_id);

  // Append to `runs` the newest `limit` runs at any of `places` (all of one organisation).
  base::Status RunsOfBundle(std::int64_t bundle_id, const std::string* arguments_hash,
                            const std::vector<Place>& places, std::size_t limit,
                            std::vector<Candidate>* runs);
  base::Status RunsOfName(std::string_view user, std::string_view job_name,
                          const std::vector<Place>& places, std::size_t limit,
                          std::vector<Candidate>* runs);
  base::Status RunsOfOwner(std::string_view owner, const std::vector<Place>& places,
                           std::size_t limit, std::vector<Candidate>* runs);

 private:
  base::Result<bool> FitsAround(std::int64_t bundle_id, std::string_view entry_hash,
                                const std::set<std::string>& files);
  // `condition` compares columns with `keys`, in their order.
  base::Status SelectNewest(std::string_view condition,
                            std::initializer_list<store::sql::Value> keys,
                            const std::vector<Place>& places, std::size_t limit,
                            std::vector<Candidate>* runs);

  store::sql::Transaction& tx_;
};

// Newest first, at most `limit`; true when some were left out.
bool KeepNewest(std::size_t limit, std::vector<Candidate>* runs);

// For the start: every bundle's signature, and what the index holds.
struct StoredSignature {
  std::string organisation_id;
  std::int64_t bundle_id = 0;
  Signature signature;
};
base::Status EachSignature(store::sql::Transaction& tx,
                           const std::function<void(const StoredSignature&)>& on_signature);

}  // namespace expanse::intelligence::history
