#include "intelligence/history/similarity_index.h"

#include <algorithm>

#include "intelligence/history/shingles.h"

namespace expanse::intelligence::history {
namespace {

constexpr std::size_t kBands = kPermutations / kBandRows;
constexpr std::size_t kFewestHeads = 16;

std::size_t HashBand(std::size_t number, const std::uint32_t* values) {
  std::uint64_t hash = number + 1;
  for (std::size_t i = 0; i < kBandRows; ++i) {
    hash = (hash ^ values[i]) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  return hash;
}

std::size_t EqualValues(const std::uint32_t* a, const std::uint32_t* b) {
  std::size_t equal = 0;
  for (std::size_t i = 0; i < kPermutations; ++i) equal += a[i] == b[i] ? 1 : 0;
  return equal;
}

double AsSimilarity(std::size_t equal) {
  return static_cast<double>(equal) / static_cast<double>(kPermutations);
}

}  // namespace

const std::uint32_t* SimilarityIndex::ValuesOf(std::uint32_t slot) const {
  return values_.data() + std::size_t{slot} * kPermutations;
}

bool SimilarityIndex::SameBand(std::size_t band, const std::uint32_t* a,
                               const std::uint32_t* b) const {
  return std::equal(a + band * kBandRows, a + (band + 1) * kBandRows, b + band * kBandRows);
}

std::size_t SimilarityIndex::HeadOf(const Band& band, std::size_t number,
                                    const std::uint32_t* values) const {
  const std::size_t mask = band.heads.size() - 1;
  std::size_t at = HashBand(number, values + number * kBandRows) & mask;
  while (band.heads[at] != kNone && !SameBand(number, ValuesOf(band.heads[at]), values))
    at = (at + 1) & mask;
  return at;
}

void SimilarityIndex::Grow(std::size_t number) {
  Band& band = bands_[number];
  std::vector<std::uint32_t> old(std::max(kFewestHeads, band.heads.size() * 2), kNone);
  old.swap(band.heads);
  for (const std::uint32_t head : old) {
    if (head != kNone) band.heads[HeadOf(band, number, ValuesOf(head))] = head;
  }
}

void SimilarityIndex::Link(std::size_t number, std::uint32_t slot) {
  Band& band = bands_[number];
  if (band.heads.empty() || band.used * 4 >= band.heads.size() * 3) Grow(number);
  std::uint32_t& head = band.heads[HeadOf(band, number, ValuesOf(slot))];
  if (head == kNone) ++band.used;
  band.next.push_back(head);
  head = slot;
}

void SimilarityIndex::Put(std::int64_t bundle_id, const Signature& signature) {
  Remove(bundle_id);
  if (signature.size() != kPermutations) return;
  bands_.resize(kBands);
  const auto slot = static_cast<std::uint32_t>(ids_.size());
  ids_.push_back(bundle_id);
  values_.insert(values_.end(), signature.begin(), signature.end());
  slots_[bundle_id] = slot;
  for (std::size_t number = 0; number < kBands; ++number) Link(number, slot);
}

void SimilarityIndex::Remove(std::int64_t bundle_id) {
  const auto at = slots_.find(bundle_id);
  if (at == slots_.end()) return;
  ids_[at->second] = 0;
  slots_.erase(at);
  if (ids_.size() >= 2 * slots_.size() + kFewestHeads) Compact();
}

void SimilarityIndex::Compact() {
  std::vector<std::uint32_t> values;
  std::vector<std::int64_t> ids;
  for (std::uint32_t slot = 0; slot < ids_.size(); ++slot) {
    if (ids_[slot] == 0) continue;
    slots_[ids_[slot]] = static_cast<std::uint32_t>(ids.size());
    ids.push_back(ids_[slot]);
    values.insert(values.end(), ValuesOf(slot), ValuesOf(slot) + kPermutations);
  }
  values_ = std::move(values);
  ids_ = std::move(ids);
  for (Band& band : bands_) band = {};
  for (std::uint32_t slot = 0; slot < ids_.size(); ++slot) {
    for (std::size_t number = 0; number < bands_.size(); ++number) Link(number, slot);
  }
}

std::vector<SimilarBundle> SimilarityIndex::Find(const Signature& signature, double at_least,
                                                 std::size_t most) const {
  std::vector<SimilarBundle> found;
  if (signature.size() != kPermutations || bands_.empty()) return found;
  std::vector<bool> seen(ids_.size());
  for (std::size_t number = 0; number < kBands; ++number) {
    const Band& band = bands_[number];
    if (band.heads.empty()) continue;
    for (std::uint32_t slot = band.heads[HeadOf(band, number, signature.data())]; slot != kNone;
         slot = band.next[slot]) {
      if (seen[slot]) continue;
      seen[slot] = true;
      if (ids_[slot] == 0) continue;
      const double similarity = AsSimilarity(EqualValues(ValuesOf(slot), signature.data()));
      if (similarity >= at_least) found.push_back({ids_[slot], similarity});
    }
  }
  const auto nearer = [](const SimilarBundle& a, const SimilarBundle& b) {
    return a.similarity != b.similarity ? a.similarity > b.similarity : a.bundle_id > b.bundle_id;
  };
  const std::size_t kept = std::min(most, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(),
                    nearer);
  found.resize(kept);
  return found;
}

double SimilarityIndex::SimilarityTo(std::int64_t bundle_id, const Signature& signature) const {
  const auto at = slots_.find(bundle_id);
  if (at == slots_.end() || signature.size() != kPermutations) return 0;
  return AsSimilarity(EqualValues(ValuesOf(at->second), signature.data()));
}

std::size_t SimilarityIndex::memory_bytes() const {
  // A node of the map: two words of value, a pointer and the allocator's header.
  std::size_t bytes = values_.capacity() * sizeof(std::uint32_t) +
                      ids_.capacity() * sizeof(std::int64_t) + slots_.size() * 40 +
                      slots_.bucket_count() * sizeof(void*);
  for (const Band& band : bands_)
    bytes += (band.heads.capacity() + band.next.capacity()) * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace expanse::intelligence::history
