// Bytes as the error body of whatever answers in a server's place: status class, content type,
// body.
#include <cstdint>
#include <string_view>

#include "net/connect_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace expanse;
  if (size < 2) return 0;
  const int status = 300 + data[0] * 2;
  const std::string_view type = data[1] % 4 == 0 ? "text/html" : "application/json; charset=utf-8";
  const std::string_view body(reinterpret_cast<const char*>(data) + 2, size - 2);
  const net::DecodedError decoded = net::DecodeError(status, type, body);
  EXPANSE_CHECK(!base::CodeName(decoded.error.code).empty());
  // What we decode we can send on, and it comes back the same.
  const net::HttpResponse again = net::ErrorResponse(decoded.error, decoded.details);
  const net::DecodedError twice =
      net::DecodeError(again.status, again.headers.Get("Content-Type"), again.body);
  EXPANSE_CHECK(twice.error.code == decoded.error.code);
  EXPANSE_CHECK(twice.error.reason == decoded.error.reason);
  return 0;
}
