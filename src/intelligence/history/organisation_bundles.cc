#include "intelligence/history/organisation_bundles.h"

#include <mutex>

namespace expanse::intelligence::history {

void OrganisationBundles::Put(const std::string& organisation_id, std::int64_t bundle_id,
                              const Signature& signature) {
  const std::unique_lock lock(mutex_);
  indexes_[organisation_id].Put(bundle_id, signature);
}

void OrganisationBundles::Follow(const std::vector<BundleChange>& changes) {
  if (changes.empty()) return;
  const std::unique_lock lock(mutex_);
  for (const BundleChange& change : changes) {
    if (!change.removed) {
      indexes_[change.organisation_id].Put(change.bundle_id, change.signature);
      continue;
    }
    const auto at = indexes_.find(change.organisation_id);
    if (at == indexes_.end()) continue;
    at->second.Remove(change.bundle_id);
    if (at->second.size() == 0) indexes_.erase(at);
  }
}

void OrganisationBundles::Clear() {
  const std::unique_lock lock(mutex_);
  indexes_.clear();
}

std::vector<SimilarBundle> OrganisationBundles::Find(std::string_view organisation_id,
                                                     const Signature& signature, double at_least,
                                                     std::size_t most) const {
  const std::shared_lock lock(mutex_);
  const auto at = indexes_.find(organisation_id);
  if (at == indexes_.end()) return {};
  return at->second.Find(signature, at_least, most);
}

double OrganisationBundles::SimilarityTo(std::string_view organisation_id, std::int64_t bundle_id,
                                         const Signature& signature) const {
  const std::shared_lock lock(mutex_);
  const auto at = indexes_.find(organisation_id);
  return at == indexes_.end() ? 0 : at->second.SimilarityTo(bundle_id, signature);
}

std::size_t OrganisationBundles::size() const {
  const std::shared_lock lock(mutex_);
  std::size_t bundles = 0;
  for (const auto& [organisation, index] : indexes_) bundles += index.size();
  return bundles;
}

std::size_t OrganisationBundles::memory_bytes() const {
  const std::shared_lock lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [organisation, index] : indexes_) bytes += index.memory_bytes();
  return bytes;
}

}  // namespace expanse::intelligence::history
