// What an operator or an orchestrator asks a server: /healthz, /readyz, /metrics. Plain text, no
// token.
#pragma once

#include <functional>
#include <optional>

#include "base/metrics.h"
#include "base/result.h"
#include "net/http.h"

namespace expanse::net {

// Thread-safe if `ready` is; the registry outlives it. Wire it in front of the other routes:
//   if (auto response = operations.Handle(request)) return *response;
class Operations {
 public:
  // `ready` says whether the server can do its work now, or why not; it must not block for long.
  Operations(const base::MetricRegistry& metrics, std::function<base::Status()> ready);

  // The answer for one of the three paths (GET and HEAD), nothing for any other path.
  //   /healthz  200 as long as the process answers
  //   /readyz   200, or 503 with the reason
  //   /metrics  the registry in the Prometheus text format
  std::optional<HttpResponse> Handle(const HttpRequest& request) const;

 private:
  const base::MetricRegistry& metrics_;
  std::function<base::Status()> ready_;
};

}  // namespace expanse::net
