#include "server/plane_server.h"

#include <utility>

namespace expanse::server {

PlaneServer::PlaneServer(net::HttpServerOptions http, net::ConnectOptions connect,
                         net::Authenticator& authenticator, base::MetricRegistry& metrics,
                         std::function<base::Status()> ready)
    : http_(std::move(http)),
      metrics_(metrics),
      operations_(metrics, std::move(ready)),
      router_(std::move(connect), authenticator, metrics) {}

void PlaneServer::AddDocument(std::string path, std::function<Document()> make) {
  documents_.emplace(std::move(path), std::move(make));
}

base::Status PlaneServer::Start() {
  EXPANSE_ASSIGN_OR_RETURN(
      server_,
      net::HttpServer::Start(
          http_, [this](const net::HttpRequest& request) { return Handle(request); }, metrics_));
  return {};
}

void PlaneServer::Drain(std::chrono::milliseconds deadline) {
  if (server_) server_->Drain(deadline);
}

net::HttpResponse PlaneServer::Handle(const net::HttpRequest& request) {
  if (auto response = operations_.Handle(request)) return *std::move(response);
  if (router_.Owns(request.path)) return router_.Handle(request);
  net::HttpResponse response;
  const auto document = documents_.find(request.path);
  if (document == documents_.end() || (request.method != "GET" && request.method != "HEAD")) {
    response.status = document == documents_.end() ? 404 : 405;
    response.headers.Add("Content-Type", "text/plain; charset=utf-8");
    response.body = document == documents_.end() ? "not found\n" : "method not allowed\n";
    return response;
  }
  auto [content_type, body] = document->second();
  response.route = request.path;
  response.headers.Add("Content-Type", std::move(content_type));
  response.headers.Add("X-Content-Type-Options", "nosniff");
  response.headers.Add("Content-Security-Policy", "default-src 'none'; style-src 'self'");
  if (request.method == "GET") response.body = std::move(body);
  return response;
}

}  // namespace expanse::server
