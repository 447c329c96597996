#include "net/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/worker_pool.h"
#include "net/connect_error.h"
#include "net/http_connection.h"
#include "net/http_metrics.h"
#include "net/tls.h"

namespace expanse::net {
namespace {

namespace asio = boost::asio;
using base::Code;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAcceptPause{100};  // after EMFILE and the like
constexpr std::size_t kMaxLoggedPath = 256;
constexpr std::size_t kFreeBody = 64U << 10;  // so small that connections alone bound their sum

class Server final : public HttpServer, public ConnectionHost {
 public:
  Server(HttpServerOptions options, HttpHandler handler, base::MetricRegistry& metrics)
      : options_(std::move(options)),
        limits_{options_.max_header, options_.max_body, options_.header_timeout,
                options_.body_timeout, options_.idle_timeout},
        handler_(std::move(handler)),
        metrics_(metrics, options_.name),
        pool_(static_cast<std::size_t>(options_.worker_threads), options_.queue_limit) {}

  ~Server() override { Drain(std::chrono::milliseconds(0)); }

  base::Status Listen() {
    error_code error;
    const auto address = asio::ip::make_address(options_.address, error);
    if (error) {
      return base::Fail(Code::kInvalidArgument, "http.address",
                        fmt::format("\"{}\" is not an IP address to listen on", options_.address));
    }
    if (options_.tls) {
      EXPANSE_ASSIGN_OR_RETURN(tls_, LoadTls(*options_.tls));
    } else if (!address.is_loopback()) {
      if (!options_.allow_plain_remote) {
        return base::Fail(
            Code::kInvalidArgument, "http.address",
            fmt::format(
                "{} is reachable from other machines and no TLS certificate is set: set one, "
                "listen on 127.0.0.1, or allow plain HTTP explicitly",
                options_.address));
      }
      base::LogWarn("http.plain_remote",
                    {{"server", options_.name}, {"address", options_.address}});
    }
    return Bind(tcp::endpoint(address, options_.port));
  }

  void Run() {
    asio::post(acceptor_.get_executor(), [this] { Accept(); });
    for (int i = 0; i < options_.io_threads; ++i) threads_.emplace_back([this] { io_.run(); });
  }

  std::uint16_t port() const override { return port_; }

  void Drain(std::chrono::milliseconds deadline) override {
    std::scoped_lock only_one(drain_mutex_);
    if (drained_) return;
    drained_ = true;
    const auto until = steady_clock::now() + deadline;
    draining_ = true;
    asio::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
      accept_timer_.cancel();
    });
    CloseAll(/*abort=*/false);
    WaitUntilEmpty(until);
    abandoned_ = true;  // what is still queued is not started any more
    CloseAll(/*abort=*/true);
    pool_.Drain();
    work_.reset();  // with sockets closed, the threads run out of work
    for (std::thread& thread : threads_) thread.join();
  }

  // ConnectionHost
  const ConnectionLimits& limits() const override { return limits_; }
  bool draining() const override { return draining_; }

  bool ReserveBody(std::size_t bytes) override {
    if (bytes <= kFreeBody) return true;
    const std::size_t most = std::max(options_.max_body_memory, options_.max_body);
    std::size_t taken = body_memory_;
    do {
      if (bytes > most || taken > most - bytes) {
        metrics_.shed.Add();
        return false;
      }
    } while (!body_memory_.compare_exchange_weak(taken, taken + bytes));
    return true;
  }
  void ReleaseBody(std::size_t bytes) override {
    if (bytes > kFreeBody) body_memory_ -= bytes;
  }

  void Dispatch(HttpRequest request, std::function<void(HttpResponse)> respond) override {
    metrics_.in_flight.Add(1);
    if (IsUnqueued(request.path)) return respond(Handle(request));
    auto task = std::make_shared<std::pair<HttpRequest, std::function<void(HttpResponse)>>>(
        std::move(request), std::move(respond));
    const bool taken = pool_.TrySubmit([this, task] {
      if (abandoned_) return task->second(Unavailable("the server is shutting down"));
      task->second(Handle(task->first));
      task->second = nullptr;
    });
    if (taken) return;
    metrics_.shed.Add();
    task->second(Unavailable("the server is busy; try again shortly"));
  }

  void OnResponse(const HttpRequest& request, const HttpResponse& response, std::size_t bytes,
                  bool sent) override {
    const auto taken = steady_clock::now() - request.received;
    metrics_.Count(response.route, response.status, std::chrono::duration<double>(taken).count());
    // Probes come every few seconds; they would drown the rest.
    const bool probe = IsUnqueued(request.path) && response.status < 400;
    base::Log(probe ? base::LogLevel::kDebug : base::LogLevel::kInfo, "http.request",
              {{"server", options_.name},
               {"method", request.method},
               {"path", std::string_view(request.path).substr(0, kMaxLoggedPath)},
               {"status", response.status},
               {"ms", std::chrono::duration<double, std::milli>(taken).count()},
               {"bytes", bytes},
               {"request_id", request.request_id},
               {"peer", request.peer},
               {"caller", response.caller},
               {"sent", sent}});
  }

  void OnClosed(Connection* connection) override {
    metrics_.connections.Add(-1);
    std::scoped_lock lock(mutex_);
    connections_.erase(connection);
    if (connections_.empty()) empty_.notify_all();
  }

 private:
  base::Status Bind(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return base::FailErrno(error.value(), fmt::format("{} server: listening on {}", options_.name,
                                                        FormatEndpoint(endpoint)));
    }
    const auto local = acceptor_.local_endpoint(error);
    if (error) return base::FailErrno(error.value(), "reading the address of the listening socket");
    port_ = local.port();
    return {};
  }

  void Accept() {
    if (draining_) return;
    acceptor_.async_accept(asio::make_strand(io_), [this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || draining_) return;
      if (error) return PauseAccepting(error);
      Admit(std::move(socket));
      Accept();
    });
  }

  void PauseAccepting(const error_code& error) {
    if (accept_warning_.Allow()) {
      base::LogWarn("http.accept", {{"server", options_.name}, {"error", error.message()}});
    }
    accept_timer_.expires_after(kAcceptPause);
    accept_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled) Accept();
    });
  }

  void Admit(tcp::socket socket) {
    {
      std::scoped_lock lock(mutex_);
      if (connections_.size() >= options_.max_connections) {
        metrics_.refused_connections.Add();
        return;  // the socket closes itself
      }
    }
    const auto connection = MakeConnection(std::move(socket), tls_.get(), *this);
    metrics_.connections.Add(1);
    {
      std::scoped_lock lock(mutex_);
      connections_.emplace(connection.get(), connection);
    }
    connection->Start();
    if (draining_) connection->Close(/*abort=*/false);
  }

  void CloseAll(bool abort) {
    std::vector<std::shared_ptr<Connection>> open;
    {
      std::scoped_lock lock(mutex_);
      for (const auto& [key, weak] : connections_) {
        if (auto connection = weak.lock()) open.push_back(std::move(connection));
      }
    }
    for (const auto& connection : open) connection->Close(abort);
  }

  void WaitUntilEmpty(steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    empty_.wait_until(lock, until, [this] { return connections_.empty(); });
  }

  bool IsUnqueued(std::string_view path) const {
    for (const std::string& one : options_.unqueued_paths) {
      if (one == path) return true;
    }
    return false;
  }

  HttpResponse Handle(const HttpRequest& request) {
    HttpResponse response = Guarded(request);
    metrics_.in_flight.Add(-1);
    return response;
  }

  // Handlers must not throw; one that does costs its request an answer, not everybody the server.
  HttpResponse Guarded(const HttpRequest& request) {
    try {
      return handler_(request);
    } catch (const std::exception& error) {
      base::LogError("http.handler_threw",
                     {{"request_id", request.request_id}, {"error", error.what()}});
    }
    return ErrorResponse(
        base::Error{Code::kInternal, "http.handler",
                    fmt::format("internal error, request id {}", request.request_id)});
  }

  HttpResponse Unavailable(std::string message) {
    metrics_.in_flight.Add(-1);
    HttpResponse response =
        ErrorResponse(base::Error{Code::kUnavailable, "http.overloaded", std::move(message)});
    response.headers.Add("Retry-After", "1");
    return response;
  }

  // Before the sockets and handlers that refer to it, so that it is destroyed after them.
  asio::io_context io_;
  const HttpServerOptions options_;
  const ConnectionLimits limits_;
  const HttpHandler handler_;
  HttpMetrics metrics_;
  std::unique_ptr<asio::ssl::context> tls_;
  std::mutex mutex_;  // guards connections_
  std::condition_variable empty_;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  base::WorkerPool pool_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  tcp::acceptor acceptor_{asio::make_strand(io_)};
  asio::steady_timer accept_timer_{acceptor_.get_executor()};
  base::RateLimit accept_warning_{std::chrono::seconds(10)};
  std::uint16_t port_ = 0;
  std::atomic<std::size_t> body_memory_{0};
  std::atomic<bool> draining_{false};
  std::atomic<bool> abandoned_{false};
  std::vector<std::thread> threads_;
  std::mutex drain_mutex_;  // guards drained_ and lets one caller drain while others wait for it
  bool drained_ = false;
};

}  // namespace

base::Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                            HttpHandler handler,
                                                            base::MetricRegistry& metrics) {
  auto server = std::make_unique<Server>(std::move(options), std::move(handler), metrics);
  EXPANSE_RETURN_IF_ERROR(server->Listen());
  server->Run();
  return server;
}

}  // namespace expanse::net
