#include "base/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <array>
#include <vector>

namespace expanse::base {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kBase64Url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kSecretChars = 43;

// Slicing-by-8 tables for the reflected Castagnoli polynomial.
constexpr auto MakeCrcTables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78U : 0);
    tables[0][i] = crc;
  }
  for (std::size_t t = 1; t < 8; ++t) {
    for (std::size_t i = 0; i < 256; ++i) {
      tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xFF];
    }
  }
  return tables;
}
constexpr auto kCrcTables = MakeCrcTables();

int Base64Value(char c) {
  const auto at = kBase64Url.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

std::string RandomBytes(std::size_t count) {
  std::string bytes(count, '\0');
  EXPANSE_CHECK(
      RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1);
  return bytes;
}

std::string Sha256(std::string_view data) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(data.data()), data.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string Sha256Hex(std::string_view data) { return HexEncode(Sha256(data)); }

std::uint32_t Crc32c(std::string_view data, std::uint32_t seed) {
  std::uint32_t crc = ~seed;
  const auto* p = reinterpret_cast<const unsigned char*>(data.data());
  std::size_t left = data.size();
  for (; left >= 8; p += 8, left -= 8) {
    crc ^= std::uint32_t(p[0]) | std::uint32_t(p[1]) << 8 | std::uint32_t(p[2]) << 16 |
           std::uint32_t(p[3]) << 24;
    crc = kCrcTables[7][crc & 0xFF] ^ kCrcTables[6][(crc >> 8) & 0xFF] ^
          kCrcTables[5][(crc >> 16) & 0xFF] ^ kCrcTables[4][crc >> 24] ^ kCrcTables[3][p[4]] ^
          kCrcTables[2][p[5]] ^ kCrcTables[1][p[6]] ^ kCrcTables[0][p[7]];
  }
  for (; left > 0; ++p, --left) crc = (crc >> 8) ^ kCrcTables[0][(crc ^ *p) & 0xFF];
  return ~crc;
}

bool ConstantTimeEqual(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string HexEncode(std::string_view data) {
  std::string text;
  text.reserve(data.size() * 2);
  for (char c : data) {
    const auto byte = static_cast<unsigned char>(c);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::optional<std::string> HexDecode(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string data;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    int byte = 0;
    for (char c : text.substr(i, 2)) {
      if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
      const auto digit = kHex.find(c);
      if (digit == std::string_view::npos) return std::nullopt;
      byte = byte * 16 + static_cast<int>(digit);
    }
    data += static_cast<char>(byte);
  }
  return data;
}

std::string Base64UrlEncode(std::string_view data) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (char c : data) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    count += 8;
    while (count >= 6) {
      count -= 6;
      text += kBase64Url[(bits >> count) & 63];
    }
  }
  if (count > 0) text += kBase64Url[(bits << (6 - count)) & 63];
  return text;
}

std::optional<std::string> Base64UrlDecode(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string data;
  std::uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    const int value = Base64Value(c);
    if (value < 0) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      data += static_cast<char>((bits >> count) & 0xFF);
    }
  }
  if ((bits & ((1U << count) - 1)) != 0) return std::nullopt;  // not the canonical spelling
  return data;
}

std::string NewUuid(WallTime now) {
  std::string raw = RandomBytes(16);
  const auto ms = static_cast<std::uint64_t>(ToMicros(now) / 1000);
  for (int i = 0; i < 6; ++i) raw[i] = static_cast<char>(ms >> (8 * (5 - i)));
  raw[6] = static_cast<char>(0x70 | (raw[6] & 0x0F));
  raw[8] = static_cast<char>(0x80 | (raw[8] & 0x3F));
  std::string text = HexEncode(raw);
  for (std::size_t dash : {20U, 16U, 12U, 8U}) text.insert(dash, 1, '-');
  return text;
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : kHex.find(text[i]) == std::string_view::npos) return false;
  }
  return true;
}

std::string NewSecret(std::string_view prefix) {
  return std::string(prefix) + Base64UrlEncode(RandomBytes(kSecretBytes));
}

bool IsSecret(std::string_view text, std::string_view prefix) {
  return text.size() == prefix.size() + kSecretChars && text.substr(0, prefix.size()) == prefix &&
         Base64UrlDecode(text.substr(prefix.size())).has_value();
}

}  // namespace expanse::base
