// Page tokens of ListExecutions (net/page_token.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/records/evidence_store.h"

namespace expanse::data {

std::string EncodePageToken(const store::ExecutionCursor& cursor,
                            const store::ExecutionFilter& filter);
// Fails with page_token.malformed, or page_token.filter when it was made for another filter.
base::Result<store::ExecutionCursor> DecodePageToken(std::string_view token,
                                                     const store::ExecutionFilter& filter);

}  // namespace expanse::data
