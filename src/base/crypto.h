// Random bytes, digests, text encodings of bytes, ids and secrets. Thread-safe free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace expanse::base {

std::string RandomBytes(std::size_t count);    // from the operating system's CSPRNG
std::string Sha256(std::string_view data);     // 32 raw bytes
std::string Sha256Hex(std::string_view data);  // 64 lower-case digits
std::uint32_t Crc32c(std::string_view data, std::uint32_t seed = 0);  // Castagnoli, RFC 3720
bool ConstantTimeEqual(std::string_view a, std::string_view b);

std::string HexEncode(std::string_view data);
std::optional<std::string> HexDecode(std::string_view text);
std::string Base64UrlEncode(std::string_view data);  // RFC 4648 section 5, no padding
std::optional<std::string> Base64UrlDecode(std::string_view text);

// UUID version 7 (RFC 9562): 48 bits of milliseconds, then random; sorts by creation time.
std::string NewUuid(WallTime now);
// True for the canonical 36-character form of any UUID.
bool IsUuid(std::string_view text);

// A secret of 256 random bits behind a readable prefix: NewSecret("exp_user_") -> "exp_user_" + 43
// characters of base64url.
std::string NewSecret(std::string_view prefix);
// True if `text` has the form that NewSecret gives for `prefix`.
bool IsSecret(std::string_view text, std::string_view prefix);

}  // namespace expanse::base
