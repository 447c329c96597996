#include "net/page_token.h"

#include <optional>

#include "base/crypto.h"

namespace expanse::net {
namespace {

constexpr char kVersion = 1;
constexpr std::size_t kHashBytes = 8;
constexpr std::size_t kHeaderBytes = 1 + 8 + kHashBytes;
constexpr std::size_t kMostBytes = kHeaderBytes + 64;

std::string FilterHash(std::string_view filter) {
  return base::Sha256(filter).substr(0, kHashBytes);
}

}  // namespace

std::string EncodePageToken(const PagePlace& place, std::string_view filter) {
  std::string raw(1, kVersion);
  const auto bits = static_cast<std::uint64_t>(place.sort_micros);
  for (int shift = 56; shift >= 0; shift -= 8) raw += static_cast<char>(bits >> shift & 0xFF);
  return base::Base64UrlEncode(raw + FilterHash(filter) + place.id);
}

base::Result<PagePlace> DecodePageToken(std::string_view token, std::string_view filter) {
  const auto malformed = [] {
    return base::Fail(base::Code::kInvalidArgument, "page_token.malformed",
                      "page_token is not one of next_page_token; start without it");
  };
  if (token.size() > kMostBytes * 2) return malformed();
  const std::optional<std::string> raw = base::Base64UrlDecode(token);
  if (!raw || raw->size() <= kHeaderBytes || raw->size() > kMostBytes || raw->front() != kVersion)
    return malformed();
  if (std::string_view(*raw).substr(9, kHashBytes) != FilterHash(filter)) {
    return base::Fail(base::Code::kInvalidArgument, "page_token.filter",
                      "page_token belongs to a list with other filters; start without it");
  }
  std::uint64_t bits = 0;
  for (std::size_t i = 1; i <= 8; ++i) bits = bits << 8 | static_cast<unsigned char>((*raw)[i]);
  PagePlace place{.sort_micros = static_cast<std::int64_t>(bits), .id = raw->substr(kHeaderBytes)};
  if (!base::IsUuid(place.id)) return malformed();
  return place;
}

}  // namespace expanse::net
