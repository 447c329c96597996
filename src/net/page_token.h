// Page tokens of lists that are sorted by (time, id): opaque to callers, checked when they come
// back. Not secret and not signed: a forged one only names a place in a list that its holder may
// read anyway.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::net {

struct PagePlace {
  std::int64_t sort_micros = 0;
  std::string id;  // a UUID
};

// base64url of: version (1 byte), sort time (8 bytes, big-endian), first 8 bytes of SHA-256 over
// `filter`, id (the rest). `filter` is any text that differs between lists.
std::string EncodePageToken(const PagePlace& place, std::string_view filter);
// Fails with page_token.malformed, or page_token.filter when it was made for another filter.
base::Result<PagePlace> DecodePageToken(std::string_view token, std::string_view filter);

}  // namespace expanse::net
