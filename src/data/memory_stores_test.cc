// The stores in memory pass the contracts of the real ones, so that tests on them mean something.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "data/memory_stores_testing.h"
#include "store/blobs/blob_store_contract.h"
#include "store/records/change_feed_contract.h"
#include "store/records/evidence_store_contract.h"
#include "store/series/series_store_contract.h"

namespace expanse::data {
namespace {

// What "opened again" means for a store in memory: the same one, found by its directory, unless it
// is to have another bound. Stores of directories that are gone are forgotten with the next test.
template <typename Memory, typename Argument>
std::shared_ptr<Memory> SameStore(const std::string& directory, Argument& argument,
                                  std::size_t bound = 0) {
  static std::map<std::pair<std::string, std::size_t>, std::shared_ptr<Memory>> stores;
  std::erase_if(stores, [](const auto& entry) { return !base::Exists(entry.first.first); });
  std::shared_ptr<Memory>& store = stores[{directory, bound}];
  if (!store) store = std::make_shared<Memory>(argument);
  return store;
}

// Forwards to the store it keeps alive and never fails.
template <typename Memory, typename Forward>
class Handle : public Forward {
 public:
  explicit Handle(std::shared_ptr<Memory> memory)
      : Forward(*memory, none_), memory_(std::move(memory)) {}

 private:
  std::shared_ptr<Memory> memory_;
  static inline FailurePlan none_;
};

}  // namespace
}  // namespace expanse::data

namespace expanse::store {
namespace {

using data::Handle;
using data::SameStore;

INSTANTIATE_TEST_SUITE_P(
    Memory, EvidenceStoreContract,
    testing::Values(EvidenceBackend{[](const std::string& directory, base::Clock& clock)
                                        -> base::Result<std::unique_ptr<EvidenceStore>> {
      return std::make_unique<Handle<data::MemoryEvidenceStore, data::FailingEvidenceStore>>(
          SameStore<data::MemoryEvidenceStore>(directory, clock));
    }}));

INSTANTIATE_TEST_SUITE_P(
    Memory, SeriesStoreContract,
    testing::Values(SeriesBackend{[](const std::string& directory, std::size_t max_series)
                                      -> base::Result<std::unique_ptr<SeriesStore>> {
      return std::make_unique<Handle<data::MemorySeriesStore, data::FailingSeriesStore>>(
          SameStore<data::MemorySeriesStore>(directory, max_series, max_series));
    }}));

INSTANTIATE_TEST_SUITE_P(
    Memory, BlobStoreContract,
    testing::Values(BlobBackend{[](const std::string& directory,
                                   base::Clock& clock) -> base::Result<std::unique_ptr<BlobStore>> {
      return std::make_unique<Handle<data::MemoryBlobStore, data::FailingBlobStore>>(
          SameStore<data::MemoryBlobStore>(directory, clock));
    }}));

}  // namespace
}  // namespace expanse::store
