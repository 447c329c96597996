// One accepted connection of HttpServer: reads requests, hands them to the host, writes responses.
// Internal to net/ (brings in Asio).
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "net/http.h"

namespace expanse::net {

struct ConnectionLimits {
  std::size_t max_header;
  std::size_t max_body;
  std::chrono::milliseconds header_timeout;
  std::chrono::milliseconds body_timeout;
  std::chrono::milliseconds idle_timeout;
};

class Connection;

// What connections ask of the server that owns them. Thread-safe; outlives every connection.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  virtual const ConnectionLimits& limits() const = 0;
  // Answers the request, now or later, on whatever thread, by calling `respond` exactly once.
  virtual void Dispatch(HttpRequest request, std::function<void(HttpResponse)> respond) = 0;
  // A response was sent (or could not be): for the access log and metrics. `bytes` counts the body.
  virtual void OnResponse(const HttpRequest& request, const HttpResponse& response,
                          std::size_t bytes, bool sent) = 0;
  virtual bool draining() const = 0;
  // Whether there is room for a body of that size; if so it is taken until ReleaseBody.
  virtual bool ReserveBody(std::size_t bytes) = 0;
  virtual void ReleaseBody(std::size_t bytes) = 0;
  virtual void OnClosed(Connection* connection) = 0;
};

// Lives as long as an operation of it is pending; all its work runs on a strand of its own.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void Start() = 0;
  // Thread-safe. Closes at once if `abort`, else only if it waits for a request.
  virtual void Close(bool abort) = 0;
};

// The socket's executor must be a strand. `tls` null: plain text.
std::shared_ptr<Connection> MakeConnection(boost::asio::ip::tcp::socket socket,
                                           boost::asio::ssl::context* tls, ConnectionHost& host);

// "127.0.0.1:50412", "[::1]:50412".
std::string FormatEndpoint(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace expanse::net
