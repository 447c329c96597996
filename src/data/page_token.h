// Page tokens of ListExecutions: opaque to callers, checked when they come back. Not secret and not
// signed: a forged one only names a place in a list that its holder may read anyway.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/records/evidence_store.h"

namespace expanse::data {

// base64url of: version (1 byte), sort time (8 bytes, big-endian), first 8 bytes of SHA-256 over
// the filter, execution id (the rest).
std::string EncodePageToken(const store::ExecutionCursor& cursor,
                            const store::ExecutionFilter& filter);
// Fails with page_token.malformed, or page_token.filter when it was made for another filter.
base::Result<store::ExecutionCursor> DecodePageToken(std::string_view token,
                                                     const store::ExecutionFilter& filter);

}  // namespace expanse::data
