// Token shingles of texts and their MinHash. Internal to history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "intelligence/history/fingerprint.h"

namespace expanse::intelligence::history {

// Both measured: docs/prediction.md, "Similarity".
inline constexpr std::size_t kShingleTokens = 3;
inline constexpr std::size_t kPermutations = 128;

// Hashes of every `k` tokens in a row (of all tokens together where a text has fewer). A token is a
// word of letters, digits, "_" and bytes beyond ASCII, or one other character.
class ShingleSet {
 public:
  explicit ShingleSet(std::size_t k = kShingleTokens) : k_(k) {}
  // Shingles do not go over from one text to the next.
  void Add(std::string_view text);
  // Sorted, each once.
  std::vector<std::uint64_t> Take();

 private:
  std::size_t k_;
  std::vector<std::uint64_t> hashes_;
};

// Empty for no shingles. The permutations are fixed: signatures are stored.
Signature MinHash(const std::vector<std::uint64_t>& shingles,
                  std::size_t permutations = kPermutations);

// The share of shingles that two sorted sets have in common.
double Jaccard(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b);

}  // namespace expanse::intelligence::history
