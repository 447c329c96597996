// net::PublicKeySet on any document: no crash, and what it takes are usable keys under their own
// names.
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "net/token_keys.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using expanse::net::PublicKeySet;
  const auto set = PublicKeySet::FromJwks({reinterpret_cast<const char*>(data), size});
  if (!set) {
    EXPANSE_CHECK(set.error().reason == "token_keys.jwks");
    return 0;
  }
  EXPANSE_CHECK(set->size() > 0 && set->size() <= 64);
  EXPANSE_CHECK(set->Find("") == nullptr);
  return 0;
}
