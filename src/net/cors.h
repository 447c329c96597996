// Which web origins may call (https://fetch.spec.whatwg.org/#http-cors-protocol). Internal to net/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace expanse::net {

// Immutable, thread-safe.
class Cors {
 public:
  // Comma-separated origins, "https://console.example.org"; empty: none. There is no wildcard.
  explicit Cors(std::string_view origins);

  static bool IsPreflight(const HttpRequest& request);
  // The answer to a preflight: permission for a configured origin, 403 for any other.
  HttpResponse Preflight(const HttpRequest& request) const;
  // Adds what a browser needs to hand the response to a page of a configured origin.
  void Annotate(const HttpRequest& request, HttpResponse& response) const;

 private:
  bool Allows(std::string_view origin) const;
  std::vector<std::string> origins_;
};

}  // namespace expanse::net
