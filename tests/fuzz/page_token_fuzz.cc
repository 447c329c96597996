// data::DecodePageToken on any text: no crash, and what it takes reads back the same.
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "data/page_token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace expanse;
  const store::ExecutionFilter filter{.organisation_id = "org-1"};
  const auto cursor = data::DecodePageToken({reinterpret_cast<const char*>(data), size}, filter);
  if (!cursor) {
    EXPANSE_CHECK(cursor.error().reason.starts_with("page_token."));
    return 0;
  }
  const auto again = data::DecodePageToken(data::EncodePageToken(*cursor, filter), filter);
  EXPANSE_CHECK(again.has_value());
  EXPANSE_CHECK(again->sort_micros == cursor->sort_micros);
  EXPANSE_CHECK(again->execution_id == cursor->execution_id);
  return 0;
}
