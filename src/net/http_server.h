// The HTTP/1.1 server of every plane: Boost.Beast on a few I/O threads, handlers on a bounded
// worker pool. A full pool answers 503 with Retry-After; a slow or silent peer meets a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "net/http.h"

namespace expanse::net {

struct TlsFiles {
  std::string certificate_chain;  // PEM
  std::string private_key;        // PEM, not readable by others
};

struct HttpServerOptions {
  std::string name;        // label of metrics and access log: "control"
  std::string address;     // an IP address
  std::uint16_t port = 0;  // 0: any free one; see port()
  std::optional<TlsFiles> tls;
  // Without TLS only loopback addresses are accepted, unless this says otherwise (and is warned
  // of).
  bool allow_plain_remote = false;
  int io_threads = 1;
  int worker_threads = 4;
  std::size_t queue_limit = 256;       // requests waiting for a worker; beyond: 503
  std::size_t max_connections = 4096;  // beyond: accepted and closed
  std::size_t max_header = 32U << 10;
  std::size_t max_body = 16U << 20;  // as sent; 413 beyond
  // Request bodies above 64 KiB that are read or handled at the same time, all together; beyond:
  // 503. Without it, connections that nobody has signed in on could fill the memory.
  std::size_t max_body_memory = 512U << 20;
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{75'000};
  // Paths answered at once on an I/O thread, never shed: for handlers that do not block, so that an
  // overloaded server still shows that it lives.
  std::vector<std::string> unqueued_paths = {"/healthz", "/metrics"};
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// Thread-safe. Handlers run concurrently and must not throw. The destructor drains without
// patience.
class HttpServer {
 public:
  // Binds and listens. Fails with http.address, http.tls_files or os.* (port taken).
  static base::Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options,
                                                         HttpHandler handler,
                                                         base::MetricRegistry& metrics);
  virtual ~HttpServer() = default;
  virtual std::uint16_t port() const = 0;
  // Stops accepting, lets requests in flight finish until `deadline`, then closes. Handlers that
  // still run then are waited for (they have deadlines of their own). Idempotent.
  virtual void Drain(std::chrono::milliseconds deadline) = 0;
};

}  // namespace expanse::net
