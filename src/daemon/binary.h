// Numbers and UUIDs in the daemon's binary files: little-endian, unaligned. Readers check the
// length before they Get.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/crypto.h"

namespace expanse::daemon {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

template <typename T>
void Put(std::string* out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

// At `at` there must be sizeof(T) bytes.
template <typename T>
T Get(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The 16 bytes of "0123abcd-…", zeros for what is no UUID; and back.
inline std::string UuidBytes(std::string_view text) {
  std::string hex;
  for (char c : text) {
    if (c != '-') hex += c;
  }
  return base::HexDecode(hex).value_or(std::string(16, '\0'));
}

inline std::string UuidText(std::string_view bytes) {
  std::string hex = base::HexEncode(bytes);
  for (std::size_t at : {8U, 13U, 18U, 23U}) hex.insert(at, 1, '-');
  return hex;
}

}  // namespace expanse::daemon
