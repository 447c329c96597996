#include "intelligence/history/shingles.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.h"

namespace expanse::intelligence::history {
namespace {

// The finaliser of SplitMix64: every bit of the input moves every bit of the output.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

bool IsWordByte(char c) {
  return base::IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::uint64_t HashToken(std::string_view token) {
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (const char c : token) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return Mix(hash);
}

std::vector<std::uint64_t> HashTokens(std::string_view text) {
  std::vector<std::uint64_t> tokens;
  for (std::size_t at = 0; at < text.size();) {
    if (base::IsSpace(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    if (IsWordByte(text[at])) {
      while (end < text.size() && IsWordByte(text[end])) ++end;
    }
    tokens.push_back(HashToken(text.substr(at, end - at)));
    at = end;
  }
  return tokens;
}

}  // namespace

void ShingleSet::Add(std::string_view text) {
  const std::vector<std::uint64_t> tokens = HashTokens(text);
  if (tokens.empty()) return;
  const std::size_t width = std::min(k_, tokens.size());
  for (std::size_t i = 0; i + width <= tokens.size(); ++i) {
    std::uint64_t hash = width;
    for (std::size_t j = 0; j < width; ++j) hash = Mix(hash ^ tokens[i + j]);
    hashes_.push_back(hash);
  }
}

std::vector<std::uint64_t> ShingleSet::Take() {
  std::sort(hashes_.begin(), hashes_.end());
  hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
  return std::move(hashes_);
}

Signature MinHash(const std::vector<std::uint64_t>& shingles, std::size_t permutations) {
  if (shingles.empty()) return {};
  // Multiply-add over 64 bits, of which the upper 32 are well mixed (Dietzfelbinger's scheme).
  std::vector<std::uint64_t> factors(permutations);
  std::vector<std::uint64_t> terms(permutations);
  for (std::size_t i = 0; i < permutations; ++i) {
    factors[i] = Mix(2 * i) | 1;
    terms[i] = Mix(2 * i + 1);
  }
  Signature signature(permutations, std::numeric_limits<std::uint32_t>::max());
  for (const std::uint64_t shingle : shingles) {
    for (std::size_t i = 0; i < permutations; ++i) {
      const auto hash = static_cast<std::uint32_t>((factors[i] * shingle + terms[i]) >> 32);
      signature[i] = std::min(signature[i], hash);
    }
  }
  return signature;
}

double Jaccard(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  std::size_t common = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j) {
      ++common;
      ++i;
      ++j;
    } else if (*i < *j) {
      ++i;
    } else {
      ++j;
    }
  }
  const std::size_t all = a.size() + b.size() - common;
  return all == 0 ? 0 : static_cast<double>(common) / static_cast<double>(all);
}

}  // namespace expanse::intelligence::history
