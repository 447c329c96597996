// Round trips of unary calls: a server process of ours, N client threads that keep their
// connections. The server runs in a process of its own, so that its CPU time can be told from the
// clients'.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/bench_report.h"
#include "expanse/control/v1/auth_service.pb.h"
#include "net/connect_client.h"
#include "net/connect_server.h"
#include "net/http_server.h"

namespace {

using namespace expanse;
using std::chrono::steady_clock;
constexpr const char* kMethod = "expanse.control.v1.AuthService.Login";

struct Options {
  int clients = 4;
  double seconds = 3;
  std::size_t payload = 256;
  int io_threads = 1;
  int workers = 2;
  std::string format = "both";
};

class NoTokens final : public net::Authenticator {
 public:
  base::Result<net::Caller> Authenticate(std::string_view) override {
    return base::Fail(base::Code::kUnauthenticated, "token.malformed", "no tokens here");
  }
};

// Runs in the child until its input closes; writes its port first.
int RunServer(const Options& options, int report_fd, int until_fd) {
  NoTokens authenticator;
  base::MetricRegistry metrics;
  net::ConnectOptions connect;
  connect.max_open_message = connect.max_message;  // --payload may be large, and nobody signs in
  net::ConnectRouter router(connect, authenticator, metrics);
  router.Add<control::v1::LoginRequest, control::v1::LoginResponse>(
      kMethod, [](const net::CallContext&, const control::v1::LoginRequest& request) {
        control::v1::LoginResponse response;
        response.set_refresh_token(request.api_key());
        return base::Result<control::v1::LoginResponse>(std::move(response));
      });
  net::HttpServerOptions http;
  http.name = "bench";
  http.address = "127.0.0.1";
  http.io_threads = options.io_threads;
  http.worker_threads = options.workers;
  auto server = net::HttpServer::Start(
      http, [&](const net::HttpRequest& request) { return router.Handle(request); }, metrics);
  if (!server) return 1;
  if (!base::WriteFd(report_fd, std::to_string((*server)->port()))) return 1;
  ::close(report_fd);
  char byte = 0;
  while (::read(until_fd, &byte, 1) > 0) {
  }
  (*server)->Drain(std::chrono::seconds(1));
  return 0;
}

struct ServerProcess {
  pid_t pid = -1;
  int stop_fd = -1;
  std::uint16_t port = 0;
};

base::Result<ServerProcess> StartServer(const Options& options) {
  int report[2];
  int until[2];
  if (::pipe2(report, O_CLOEXEC) != 0 || ::pipe2(until, O_CLOEXEC) != 0)
    return base::FailErrno(errno, "pipe");
  ServerProcess server;
  server.pid = ::fork();
  if (server.pid == 0) {
    ::close(report[0]);
    ::close(until[1]);
    ::_exit(RunServer(options, report[1], until[0]));
  }
  ::close(report[1]);
  ::close(until[0]);
  server.stop_fd = until[1];
  EXPANSE_ASSIGN_OR_RETURN(const std::string port, base::ReadFd(report[0], 16));
  ::close(report[0]);
  server.port = base::ParseInt<std::uint16_t>(port).value_or(0);
  if (server.port == 0)
    return base::Fail(base::Code::kInternal, "bench.server", "the server did not start");
  return server;
}

// CPU seconds that the server took in all.
double StopServer(const ServerProcess& server) {
  ::close(server.stop_fd);
  rusage usage{};
  ::wait4(server.pid, nullptr, 0, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Outcome {
  std::vector<double> micros;
  std::size_t failed = 0;
};

Outcome RunClients(const Options& options, net::ConnectClient& client) {
  const auto until = steady_clock::now() + std::chrono::duration<double>(options.seconds);
  Outcome all;
  std::mutex mutex;  // guards all
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.clients; ++i) {
      threads.emplace_back([&] {
        control::v1::LoginRequest request;
        request.set_api_key(std::string(options.payload, 'p'));
        Outcome mine;
        while (steady_clock::now() < until) {
          const auto before = steady_clock::now();
          const auto response = client.Call<control::v1::LoginResponse>(kMethod, request);
          mine.micros.push_back(
              std::chrono::duration<double, std::micro>(steady_clock::now() - before).count());
          if (!response || response->refresh_token().size() != options.payload) ++mine.failed;
        }
        std::scoped_lock lock(mutex);
        all.micros.insert(all.micros.end(), mine.micros.begin(), mine.micros.end());
        all.failed += mine.failed;
      });
    }
  }
  return all;
}

base::Status Measure(const Options& options, net::WireFormat format, const std::string& name,
                     bench::Report& report) {
  EXPANSE_ASSIGN_OR_RETURN(const ServerProcess server, StartServer(options));
  net::ConnectClientOptions client_options;
  client_options.base_url = "http://127.0.0.1:" + std::to_string(server.port);
  client_options.format = format;
  client_options.max_idle_connections = static_cast<std::size_t>(options.clients);
  EXPANSE_ASSIGN_OR_RETURN(const auto client, net::ConnectClient::Create(client_options));
  Outcome outcome = RunClients(options, *client);
  const double server_cpu = StopServer(server);
  if (outcome.failed > 0)
    return base::Fail(base::Code::kInternal, "bench.calls",
                      fmt::format("{} calls failed", outcome.failed));
  const auto calls = static_cast<double>(outcome.micros.size());
  report.Add(name + " round trips", calls / options.seconds, "1/s");
  report.Add(name + " round trips per server core", calls / server_cpu, "1/s");
  for (const double q : {0.5, 0.9, 0.99}) {
    report.Add(fmt::format("{} latency p{:g}", name, q * 100), bench::Quantile(outcome.micros, q),
               "us");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Round trips of unary calls over loopback");
  app.add_option("--clients", options.clients, "client threads, one connection each")
      ->check(CLI::Range(1, 1024));
  app.add_option("--seconds", options.seconds, "how long each format is measured")
      ->check(CLI::Range(0.1, 600.0));
  app.add_option("--payload", options.payload, "bytes in each request and response")
      ->check(CLI::Range(0, 8 << 20));
  app.add_option("--io-threads", options.io_threads)->check(CLI::Range(1, 64));
  app.add_option("--workers", options.workers)->check(CLI::Range(1, 256));
  app.add_option("--format", options.format)->check(CLI::IsMember({"proto", "json", "both"}));
  CLI11_PARSE(app, argc, argv);
  base::ConfigureLog(base::LogLevel::kWarn, base::LogFormat::kText);
  bench::Report report(fmt::format("rpc clients={} payload={}", options.clients, options.payload));
  for (const auto format : {net::WireFormat::kProto, net::WireFormat::kJson}) {
    const std::string name = format == net::WireFormat::kProto ? "proto" : "json";
    if (options.format != "both" && options.format != name) continue;
    if (const auto status = Measure(options, format, name, report); !status) {
      std::fprintf(stderr, "rpc_bench: %s\n", status.error().message.c_str());
      return 1;
    }
  }
  report.Print();
  return 0;
}
