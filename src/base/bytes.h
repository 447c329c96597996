// Amounts of memory and storage.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::base {

struct Bytes {
  std::uint64_t count = 0;
  auto operator<=>(const Bytes&) const = default;
};

constexpr Bytes KiB(std::uint64_t n) { return {n << 10}; }
constexpr Bytes MiB(std::uint64_t n) { return {n << 20}; }
constexpr Bytes GiB(std::uint64_t n) { return {n << 30}; }

// "16G", "16GiB", "16GB" (all 2^30, as schedulers read them), "1.5T", "512m", "4096" (bytes),
// "10K". Fails with bytes.syntax or bytes.range.
Result<Bytes> ParseBytes(std::string_view text);
// For people, three significant digits at most: "512 B", "1.5 GiB", "300 MiB".
std::string FormatBytes(Bytes bytes);

}  // namespace expanse::base
