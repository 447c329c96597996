#include "net/cors.h"

#include <algorithm>

#include "base/text.h"
#include "net/connect_error.h"

namespace expanse::net {
namespace {

constexpr const char* kRequestHeaders =
    "Authorization, Content-Type, Content-Encoding, Connect-Protocol-Version, Connect-Timeout-Ms, "
    "X-Request-Id";
constexpr const char* kResponseHeaders = "Content-Encoding, X-Request-Id, Retry-After";
constexpr const char* kMaxAgeSeconds = "7200";

}  // namespace

Cors::Cors(std::string_view origins) {
  for (std::string_view origin : base::Split(origins, ',')) {
    origin = base::Trim(origin);
    while (origin.ends_with('/')) origin.remove_suffix(1);
    if (!origin.empty()) origins_.emplace_back(origin);
  }
}

bool Cors::IsPreflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && request.headers.Has("Origin") &&
         request.headers.Has("Access-Control-Request-Method");
}

bool Cors::Allows(std::string_view origin) const {
  return std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

HttpResponse Cors::Preflight(const HttpRequest& request) const {
  if (!Allows(request.headers.Get("Origin"))) {
    HttpResponse response =
        ErrorResponse(base::Error{base::Code::kPermissionDenied, "cors.origin",
                                  "this origin is not among the configured ones"});
    response.headers.Add("Vary", "Origin");
    return response;
  }
  HttpResponse response;
  response.status = 204;
  Annotate(request, response);
  response.headers.Add("Access-Control-Allow-Methods", "GET, POST");
  response.headers.Add("Access-Control-Allow-Headers", kRequestHeaders);
  response.headers.Add("Access-Control-Max-Age", kMaxAgeSeconds);
  return response;
}

void Cors::Annotate(const HttpRequest& request, HttpResponse& response) const {
  if (origins_.empty()) return;
  response.headers.Add("Vary", "Origin");
  const std::string_view origin = request.headers.Get("Origin");
  if (!Allows(origin)) return;
  response.headers.Add("Access-Control-Allow-Origin", std::string(origin));
  response.headers.Add("Access-Control-Expose-Headers", kResponseHeaders);
}

}  // namespace expanse::net
