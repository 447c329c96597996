// One plane's listener: operations paths, its Connect methods, whatever documents it serves
// besides.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "net/connect_server.h"
#include "net/http_server.h"
#include "net/operations.h"

namespace expanse::server {

// A document served to GET: {content type, body}.
struct Document {
  std::string content_type;
  std::string body;
};

// Owns router and HTTP server. Methods are added before Start.
class PlaneServer {
 public:
  PlaneServer(net::HttpServerOptions http, net::ConnectOptions connect,
              net::Authenticator& authenticator, base::MetricRegistry& metrics,
              std::function<base::Status()> ready);

  net::ConnectRouter& router() { return router_; }
  // Serves `make()` at `path`; it is called per request and must be thread-safe.
  void AddDocument(std::string path, std::function<Document()> make);
  base::Status Start();
  std::uint16_t port() const { return server_->port(); }
  void Drain(std::chrono::milliseconds deadline);

 private:
  net::HttpResponse Handle(const net::HttpRequest& request);

  const net::HttpServerOptions http_;
  base::MetricRegistry& metrics_;
  net::Operations operations_;
  net::ConnectRouter router_;
  std::map<std::string, std::function<Document()>, std::less<>> documents_;
  std::unique_ptr<net::HttpServer> server_;  // last: its handlers use all above
};

}  // namespace expanse::server
