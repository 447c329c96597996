// Bundles by similarity, in memory: signatures, and hash tables over bands of them (locality
// sensitive hashing), so that a look-up compares only what is likely to be near. Internal to
// history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "intelligence/history/fingerprint.h"

namespace expanse::intelligence::history {

// Measured: docs/prediction.md, "Similarity".
inline constexpr double kSimilarEnough = 0.5;
// A pair is compared if any of kBands bands of kBandRows values is equal: with 32 bands of 4 that
// is 87 % of pairs at similarity 0.5, 99 % at 0.6 and above 99.9 % from 0.7.
inline constexpr std::size_t kBandRows = 4;

struct SimilarBundle {
  std::int64_t bundle_id = 0;
  double similarity = 0;
  bool operator==(const SimilarBundle&) const = default;
};

// Not thread-safe. About 1.1 KiB a bundle.
class SimilarityIndex {
 public:
  // Replaces what the bundle had. An empty signature is similar to nothing and takes no room.
  void Put(std::int64_t bundle_id, const Signature& signature);
  void Remove(std::int64_t bundle_id);
  // Those with an estimated similarity of at least `at_least`, the most similar first, newer ones
  // (higher ids) first among equals, at most `most`.
  std::vector<SimilarBundle> Find(const Signature& signature, double at_least,
                                  std::size_t most) const;
  // Of a bundle that is here; 0 for others.
  double SimilarityTo(std::int64_t bundle_id, const Signature& signature) const;

  std::size_t size() const { return slots_.size(); }
  std::size_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;

  // One band: a hash table of slots, those of equal values chained through next_.
  struct Band {
    std::vector<std::uint32_t> heads;  // open addressing, a power of two; kNone: free
    std::size_t used = 0;
    std::vector<std::uint32_t> next;  // by slot
  };

  const std::uint32_t* ValuesOf(std::uint32_t slot) const;
  bool SameBand(std::size_t band, const std::uint32_t* a, const std::uint32_t* b) const;
  // Where the chain of these values begins or would.
  std::size_t HeadOf(const Band& band, std::size_t number, const std::uint32_t* values) const;
  void Link(std::size_t number, std::uint32_t slot);
  void Grow(std::size_t number);
  // Forgets the slots of removed bundles.
  void Compact();

  std::vector<std::uint32_t> values_;  // signatures, one after the other, by slot
  std::vector<std::int64_t> ids_;      // by slot; 0: removed
  std::unordered_map<std::int64_t, std::uint32_t> slots_;
  std::vector<Band> bands_;
};

}  // namespace expanse::intelligence::history
