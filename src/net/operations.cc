#include "net/operations.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/log.h"

namespace expanse::net {
namespace {

HttpResponse Text(int status, std::string body, std::string type = "text/plain; charset=utf-8") {
  HttpResponse response;
  response.status = status;
  response.headers.Add("Content-Type", std::move(type));
  response.headers.Add("Cache-Control", "no-store");
  response.body = std::move(body);
  return response;
}

}  // namespace

Operations::Operations(const base::MetricRegistry& metrics, std::function<base::Status()> ready)
    : metrics_(metrics), ready_(std::move(ready)) {}

std::optional<HttpResponse> Operations::Handle(const HttpRequest& request) const {
  if (request.path != "/healthz" && request.path != "/readyz" && request.path != "/metrics")
    return std::nullopt;
  HttpResponse response;
  if (request.method != "GET" && request.method != "HEAD") {
    response = Text(405, "use GET\n");
    response.headers.Add("Allow", "GET, HEAD");
  } else if (request.path == "/healthz") {
    response = Text(200, "ok\n");
  } else if (request.path == "/metrics") {
    response = Text(200, metrics_.Render(), "text/plain; version=0.0.4; charset=utf-8");
  } else if (const base::Status status = ready_()) {
    response = Text(200, "ready\n");
  } else {
    // Anybody may ask: the message, which may name a file, goes to the log.
    static base::RateLimit limit{std::chrono::seconds(10)};
    if (limit.Allow()) {
      base::LogWarn("not ready",
                    {{"reason", status.error().reason}, {"message", status.error().message}});
    }
    response = Text(503, fmt::format("not ready: {}\n", status.error().reason));
    response.headers.Add("Retry-After", "1");
  }
  response.route = request.path.substr(1);
  return response;
}

}  // namespace expanse::net
