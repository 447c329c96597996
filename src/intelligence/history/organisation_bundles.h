// The similarity indexes of all organisations, each by itself: a look-up in one can never meet a
// bundle of another. Internal to history.
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "intelligence/history/history_writer.h"
#include "intelligence/history/similarity_index.h"

namespace expanse::intelligence::history {

// Thread-safe. Look-ups run at the same time; changes wait for them.
class OrganisationBundles {
 public:
  void Put(const std::string& organisation_id, std::int64_t bundle_id, const Signature& signature);
  void Follow(const std::vector<BundleChange>& changes);
  void Clear();

  std::vector<SimilarBundle> Find(std::string_view organisation_id, const Signature& signature,
                                  double at_least, std::size_t most) const;
  double SimilarityTo(std::string_view organisation_id, std::int64_t bundle_id,
                      const Signature& signature) const;
  std::size_t size() const;
  std::size_t memory_bytes() const;

 private:
  mutable std::shared_mutex mutex_;  // guards all below
  std::map<std::string, SimilarityIndex, std::less<>> indexes_;
};

}  // namespace expanse::intelligence::history
