#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "net/net_testing.h"
#include "net/operations.h"

namespace expanse::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

HttpResponse Text(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

HttpServerOptions Loopback() {
  HttpServerOptions options;
  options.name = "test";
  options.address = "127.0.0.1";
  return options;
}

// Handlers wait here until the test lets them go.
class Gate {
 public:
  void Wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait_for(lock, seconds(10), [this] { return open_; });
  }
  void Open() {
    std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void AwaitWaiting(int count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(10), [&] { return waiting_ >= count; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

class HttpServerTest : public testing::Test {
 protected:
  HttpServer& Start(HttpServerOptions options, HttpHandler handler) {
    auto server = HttpServer::Start(std::move(options), std::move(handler), metrics_);
    EXPECT_TRUE(server.has_value()) << (server ? "" : server.error().message);
    server_ = std::move(*server);
    return *server_;
  }
  HttpServer& StartEcho(HttpServerOptions options = Loopback()) {
    return Start(std::move(options), [](const HttpRequest& request) {
      return Text(request.method + " " + request.path + "?" + request.query + " " + request.body);
    });
  }

  base::MetricRegistry metrics_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersSeveralRequestsOnOneConnection) {
  RawPeer peer(StartEcho().port());
  peer.Send("GET /a?x=1 HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string first = peer.ReadResponse();
  EXPECT_EQ(StatusOf(first), 200);
  EXPECT_THAT(first, HasSubstr("\r\n\r\nGET /a?x=1 "));
  peer.Send("POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(peer.ReadResponse(), HasSubstr("POST /b? abc"));
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  RawPeer peer(StartEcho().port());
  peer.Send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(peer.ReadResponse(), HasSubstr("GET /1"));
  EXPECT_THAT(peer.ReadResponse(), HasSubstr("GET /2"));
}

TEST_F(HttpServerTest, ReadsChunkedBodies) {
  RawPeer peer(StartEcho().port());
  peer.Send(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_THAT(peer.ReadResponse(), HasSubstr("POST /? abcde"));
}

TEST_F(HttpServerTest, SendsContinueBeforeTheBody) {
  RawPeer peer(StartEcho().port());
  peer.Send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(peer.ReadResponse(), "HTTP/1.1 100 Continue\r\n\r\n");
  peer.Send("ok");
  EXPECT_THAT(peer.ReadResponse(), HasSubstr("POST /? ok"));
}

TEST_F(HttpServerTest, RefusesABodyThatIsTooLargeInsteadOfContinuing) {
  auto options = Loopback();
  options.max_body = 100;
  RawPeer peer(StartEcho(options).port());
  peer.Send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n");
  const std::string response = peer.ReadResponse();
  EXPECT_EQ(StatusOf(response), 413);
  EXPECT_THAT(response, HasSubstr("http.body_too_large"));
}

TEST_F(HttpServerTest, RefusesAChunkedBodyThatGrowsTooLarge) {
  auto options = Loopback();
  options.max_body = 100;
  RawPeer peer(StartEcho(options).port());
  peer.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" +
            std::string(255, 'x') + "\r\n");
  EXPECT_EQ(StatusOf(peer.ReadResponse()), 413);
}

TEST_F(HttpServerTest, ShedsLargeBodiesBeyondItsRoomForThem) {
  auto options = Loopback();
  options.max_body = 1'000'000;
  options.max_body_memory = 1'000'000;
  const auto& server = StartEcho(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ";
  RawPeer slow(server.port());
  slow.Send(head + "900000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(slow.ReadResponse(), HasSubstr("100 Continue"));
  RawPeer large(server.port());
  large.Send(head + "200000\r\n\r\n" + std::string(200'000, 'x'));
  const std::string refused = large.ReadResponse();
  EXPECT_EQ(StatusOf(refused), 503);
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1"));
  RawPeer chunked(server.port());
  chunked.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(StatusOf(chunked.ReadResponse()), 503);
  RawPeer small(server.port());
  small.Send(head + "60000\r\n\r\n" + std::string(60'000, 'x'));
  EXPECT_EQ(StatusOf(small.ReadResponse()), 200);
  slow.Send(std::string(900'000, 'x'));
  EXPECT_EQ(StatusOf(slow.ReadResponse()), 200);
  // Room is given back a moment after the answer is out.
  int status = 503;
  for (int i = 0; i < 100 && status == 503; ++i) {
    RawPeer again(server.port());
    again.Send(head + "200000\r\n\r\n" + std::string(200'000, 'x'));
    status = StatusOf(again.ReadResponse());
  }
  EXPECT_EQ(status, 200);
}

TEST_F(HttpServerTest, RefusesAHeaderThatIsTooLarge) {
  auto options = Loopback();
  options.max_header = 1024;
  RawPeer peer(StartEcho(options).port());
  peer.Send("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(2000, 'x') + "\r\n\r\n");
  EXPECT_EQ(StatusOf(peer.ReadResponse()), 431);
}

TEST_F(HttpServerTest, RefusesGarbageAndCloses) {
  RawPeer peer(StartEcho().port());
  peer.Send("\x16\x03\x01 this is not HTTP\r\n\r\n");
  std::string all;
  EXPECT_TRUE(peer.ReadToEnd(&all));
  EXPECT_EQ(StatusOf(all), 400);
}

TEST_F(HttpServerTest, RefusesAmbiguousFraming) {
  RawPeer peer(StartEcho().port());
  peer.Send(
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n");
  EXPECT_EQ(StatusOf(peer.ReadResponse()), 400);
}

TEST_F(HttpServerTest, ClosesWhenTheHeaderTricklesTooSlowly) {
  auto options = Loopback();
  options.header_timeout = milliseconds(150);
  RawPeer peer(StartEcho(options).port());
  peer.Send("GET / HT");
  std::string all;
  EXPECT_TRUE(peer.ReadToEnd(&all));
  EXPECT_EQ(all, "");
}

TEST_F(HttpServerTest, ClosesWhenTheBodyNeverComes) {
  auto options = Loopback();
  options.body_timeout = milliseconds(150);
  RawPeer peer(StartEcho(options).port());
  peer.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  std::string all;
  EXPECT_TRUE(peer.ReadToEnd(&all));
}

TEST_F(HttpServerTest, ClosesIdleConnections) {
  auto options = Loopback();
  options.idle_timeout = milliseconds(150);
  RawPeer peer(StartEcho(options).port());
  peer.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(StatusOf(peer.ReadResponse()), 200);
  std::string all;
  EXPECT_TRUE(peer.ReadToEnd(&all));
}

TEST_F(HttpServerTest, HonoursConnectionCloseAndOldClients) {
  auto& server = StartEcho();
  for (const char* request :
       {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawPeer peer(server.port());
    peer.Send(request);
    std::string all;
    EXPECT_TRUE(peer.ReadToEnd(&all));
    EXPECT_EQ(StatusOf(all), 200);
  }
}

TEST_F(HttpServerTest, SendsNoBodyForHead) {
  RawPeer peer(StartEcho().port());
  peer.Send("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  std::string all;
  EXPECT_TRUE(peer.ReadToEnd(&all));
  EXPECT_THAT(all, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_TRUE(all.ends_with("\r\n\r\n"));
}

TEST_F(HttpServerTest, EchoesASaneRequestIdAndReplacesAnyOther) {
  RawPeer peer(StartEcho().port());
  peer.Send("GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: job-7.a\r\n\r\n");
  EXPECT_THAT(peer.ReadResponse(), HasSubstr("X-Request-Id: job-7.a\r\n"));
  peer.Send("GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: a\"b <script>\r\n\r\n");
  const std::string response = peer.ReadResponse();
  EXPECT_THAT(response, Not(HasSubstr("script")));
  EXPECT_THAT(response, HasSubstr("X-Request-Id: "));
}

TEST_F(HttpServerTest, DropsResponseHeadersThatWouldSplit) {
  RawPeer peer(Start(Loopback(), [](const HttpRequest&) {
                 HttpResponse response = Text("x");
                 response.headers.Add("X-Good", "1");
                 response.headers.Add("X-Bad", "1\r\nX-Injected: 2");
                 return response;
               }).port());
  peer.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string response = peer.ReadResponse();
  EXPECT_THAT(response, HasSubstr("X-Good: 1"));
  EXPECT_THAT(response, Not(HasSubstr("Injected")));
}

TEST_F(HttpServerTest, AnswersInternalErrorWhenAHandlerThrows) {
  RawPeer peer(Start(Loopback(), [](const HttpRequest&) -> HttpResponse {
                 throw std::runtime_error("/secret/path");
               }).port());
  peer.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string response = peer.ReadResponse();
  EXPECT_EQ(StatusOf(response), 500);
  EXPECT_THAT(response, Not(HasSubstr("/secret/path")));
}

TEST_F(HttpServerTest, ShedsLoadWhenWorkersAndQueueAreFull) {
  Gate gate;
  auto options = Loopback();
  options.worker_threads = 1;
  options.queue_limit = 1;
  auto& server = Start(options, [&](const HttpRequest& request) {
    if (request.path == "/slow") gate.Wait();
    return Text("done");
  });
  RawPeer working(server.port());
  working.Send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  gate.AwaitWaiting(1);
  RawPeer queued(server.port());
  queued.Send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  auto& in_flight = metrics_.GetGauge("expanse_http_requests_in_flight", "", {{"server", "test"}});
  while (in_flight.value() < 2) std::this_thread::yield();
  RawPeer shed(server.port());
  shed.Send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string response = shed.ReadResponse();
  EXPECT_EQ(StatusOf(response), 503);
  EXPECT_THAT(response, HasSubstr("Retry-After: 1\r\n"));
  RawPeer probe(server.port());
  probe.Send("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(StatusOf(probe.ReadResponse()), 200) << "probes must not wait behind work";
  gate.Open();
  EXPECT_EQ(StatusOf(working.ReadResponse()), 200);
  EXPECT_EQ(StatusOf(queued.ReadResponse()), 200);
  EXPECT_THAT(metrics_.Render(), HasSubstr("expanse_http_requests_shed_total{server=\"test\"} 1"));
}

TEST_F(HttpServerTest, ClosesConnectionsAboveTheCap) {
  auto options = Loopback();
  options.max_connections = 1;
  auto& server = StartEcho(options);
  RawPeer first(server.port());
  first.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(StatusOf(first.ReadResponse()), 200);
  RawPeer second(server.port());
  std::string all;
  EXPECT_TRUE(second.ReadToEnd(&all));
  EXPECT_EQ(all, "");
  first.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(StatusOf(first.ReadResponse()), 200);
}

TEST_F(HttpServerTest, DrainLetsRequestsFinishAndClosesIdleConnections) {
  Gate gate;
  auto& server = Start(Loopback(), [&](const HttpRequest& request) {
    if (request.path == "/slow") gate.Wait();
    return Text("finished");
  });
  RawPeer idle(server.port());
  idle.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(StatusOf(idle.ReadResponse()), 200);
  RawPeer busy(server.port());
  busy.Send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  gate.AwaitWaiting(1);
  std::jthread drain([&] { server.Drain(seconds(10)); });
  std::string all;
  EXPECT_TRUE(idle.ReadToEnd(&all));
  gate.Open();
  EXPECT_TRUE(busy.ReadToEnd(&all));
  EXPECT_EQ(StatusOf(all), 200);
  EXPECT_THAT(all, HasSubstr("Connection: close"));
  EXPECT_THAT(all, HasSubstr("finished"));
}

TEST_F(HttpServerTest, DrainGivesUpOnSlowPeersAtItsDeadline) {
  auto& server = StartEcho();
  RawPeer slow(server.port());
  slow.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc");
  auto& connections = metrics_.GetGauge("expanse_http_connections", "", {{"server", "test"}});
  while (connections.value() < 1) std::this_thread::yield();
  const auto before = std::chrono::steady_clock::now();
  server.Drain(milliseconds(100));
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(3));
  std::string all;
  EXPECT_TRUE(slow.ReadToEnd(&all));
  server.Drain(seconds(1));  // idempotent
}

TEST_F(HttpServerTest, RefusesPlainTextBeyondLoopback) {
  auto options = Loopback();
  options.address = "0.0.0.0";
  auto server = HttpServer::Start(options, [](const HttpRequest&) { return Text(""); }, metrics_);
  ASSERT_FALSE(server.has_value());
  EXPECT_EQ(server.error().reason, "http.address");
  options.allow_plain_remote = true;
  EXPECT_TRUE(HttpServer::Start(
                  options, [](const HttpRequest&) { return Text(""); }, metrics_)
                  .has_value());
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  auto options = Loopback();
  options.address = "localhost";
  EXPECT_EQ(HttpServer::Start(options, nullptr, metrics_).error().reason, "http.address");
  options.address = "127.0.0.1";
  options.port = StartEcho().port();
  EXPECT_EQ(HttpServer::Start(options, nullptr, metrics_).error().reason, "os.EADDRINUSE");
}

TEST_F(HttpServerTest, ChecksTlsFiles) {
  const TestCertificate files = MakeTestCertificate();
  const TestCertificate others = MakeTestCertificate();
  auto options = Loopback();
  const auto reason = [&](std::string certificate, std::string key) {
    options.tls = TlsFiles{std::move(certificate), std::move(key)};
    auto server = HttpServer::Start(options, [](const HttpRequest&) { return Text(""); }, metrics_);
    return server ? std::string("ok") : server.error().reason + ": " + server.error().message;
  };
  EXPECT_EQ(reason(files.certificate, files.key), "ok");
  EXPECT_THAT(reason(files.certificate, others.key),
              HasSubstr("is not a PEM key of the certificate"));
  EXPECT_THAT(reason("/nonexistent.pem", files.key), HasSubstr("http.tls_files"));
  EXPECT_THAT(reason(files.certificate, "/nonexistent.key"), HasSubstr("cannot be read"));
  ASSERT_EQ(::chmod(files.key.c_str(), 0640), 0);
  EXPECT_THAT(reason(files.certificate, files.key), HasSubstr("chmod 600"));
}

TEST_F(HttpServerTest, CountsRequestsByRouteAndStatus) {
  RawPeer peer(Start(Loopback(), [](const HttpRequest&) {
                 HttpResponse response = Text("x");
                 response.status = 404;
                 response.route = "known";
                 return response;
               }).port());
  peer.Send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  std::string all;
  EXPECT_TRUE(peer.ReadToEnd(&all));
  EXPECT_THAT(
      metrics_.Render(),
      HasSubstr("expanse_http_requests_total{route=\"known\",server=\"test\",status=\"4xx\"} 1"));
}

TEST_F(HttpServerTest, LogsOneLinePerRequestWithoutSecrets) {
  auto& server = Start(Loopback(), [](const HttpRequest&) {
    HttpResponse response = Text("four");
    response.caller = "user ada";
    return response;
  });
  testing::internal::CaptureStderr();
  RawPeer peer(server.port());
  peer.Send(
      "GET /path?token=query-secret HTTP/1.1\r\nHost: h\r\nX-Request-Id: r-1\r\n"
      "Authorization: Bearer header-secret\r\nConnection: close\r\n\r\n");
  std::string all;
  EXPECT_TRUE(peer.ReadToEnd(&all));
  server.Drain(seconds(1));
  const std::string log = testing::internal::GetCapturedStderr();
  for (const char* part : {"http.request", "server=test", "method=GET", "path=/path", "status=200",
                           "bytes=4", "request_id=r-1", "peer=", "user ada"}) {
    EXPECT_THAT(log, HasSubstr(part));
  }
  EXPECT_THAT(log, Not(HasSubstr("secret")));
}

TEST(Operations, AnswersProbes) {
  base::MetricRegistry metrics;
  metrics.GetCounter("x_total", "An x.").Add(3);
  base::Status ready;
  const Operations operations(metrics, [&] { return ready; });
  const auto get = [&](std::string path, std::string method = "GET") {
    HttpRequest request;
    request.method = std::move(method);
    request.path = std::move(path);
    return operations.Handle(request);
  };
  EXPECT_EQ(get("/healthz")->status, 200);
  EXPECT_EQ(get("/readyz")->status, 200);
  EXPECT_THAT(get("/metrics")->body, HasSubstr("x_total 3"));
  EXPECT_EQ(get("/metrics", "POST")->status, 405);
  EXPECT_FALSE(get("/other").has_value());
  ready = base::Fail(base::Code::kUnavailable, "store.closed", "the store is being opened");
  EXPECT_EQ(get("/readyz")->status, 503);
  EXPECT_THAT(get("/readyz")->body, "not ready: store.closed\n");
  EXPECT_EQ(get("/healthz")->status, 200);
}

}  // namespace
}  // namespace expanse::net
