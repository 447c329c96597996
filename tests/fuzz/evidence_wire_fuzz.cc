// evidence::Decode on any bytes: no crash, and what it takes goes round the wire unchanged.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/result.h"
#include "evidence/wire.h"

namespace {

using namespace expanse;

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto first = evidence::Decode({reinterpret_cast<const char*>(data), size}, kNow);
  if (!first) {
    EXPANSE_CHECK(first.error().reason.starts_with("evidence."));
    return 0;
  }
  // Through bytes, since NaN is not equal to itself.
  const std::string bytes = evidence::Encode(*first);
  const auto second = evidence::Decode(bytes, kNow);
  EXPANSE_CHECK(second.has_value());
  EXPANSE_CHECK(evidence::Encode(*second) == bytes);
  return 0;
}
