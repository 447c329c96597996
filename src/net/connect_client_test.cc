#include "net/connect_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/compress.h"
#include "expanse/control/v1/auth_service.pb.h"
#include "net/connect_error.h"
#include "net/connect_server.h"
#include "net/http_server.h"
#include "net/net_testing.h"

namespace expanse::net {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
namespace control = control::v1;

constexpr const char* kLogin = "expanse.control.v1.AuthService.Login";    // has side effects
constexpr const char* kWhoAmI = "expanse.control.v1.AuthService.WhoAmI";  // has none

// Sets a variable for one scope. The tests of this program run one after the other.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

class ConnectClientTest : public testing::Test {
 protected:
  ConnectClientTest() {
    for (const char* name : {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy",
                             "NO_PROXY", "all_proxy", "ALL_PROXY", "SSL_CERT_FILE"}) {
      ::unsetenv(name);
    }
  }

  // A server whose every answer is `handler`'s.
  std::string Serve(HttpHandler handler, std::optional<TlsFiles> tls = std::nullopt) {
    HttpServerOptions options;
    options.name = "test";
    options.address = "127.0.0.1";
    options.tls = std::move(tls);
    const char* scheme = options.tls ? "https" : "http";
    server_ = std::move(*HttpServer::Start(std::move(options), std::move(handler), metrics_));
    return std::string(scheme) + "://127.0.0.1:" + std::to_string(server_->port());
  }

  // A server with a real Login and WhoAmI behind ConnectRouter.
  std::string ServeRouter(std::optional<TlsFiles> tls = std::nullopt) {
    Caller caller;
    caller.kind = CallerKind::kUser;
    caller.subject = "ada";
    authenticator_.Add("token", caller);
    router_ = std::make_unique<ConnectRouter>(ConnectOptions{}, authenticator_, metrics_);
    router_->Add<control::LoginRequest, control::LoginResponse>(
        kLogin,
        [](const CallContext&,
           const control::LoginRequest& request) -> base::Result<control::LoginResponse> {
          control::LoginResponse response;
          response.set_refresh_token(request.api_key());
          return response;
        });
    router_->Add<control::WhoAmIRequest, control::WhoAmIResponse>(
        kWhoAmI,
        [](const CallContext& context,
           const control::WhoAmIRequest&) -> base::Result<control::WhoAmIResponse> {
          control::WhoAmIResponse response;
          response.mutable_identity()->set_user_id(context.caller.subject);
          return response;
        });
    return Serve(
        [this](const HttpRequest& request) {
          last_ = request;
          return router_->Handle(request);
        },
        std::move(tls));
  }

  static std::unique_ptr<ConnectClient> Connect(std::string url,
                                                ConnectClientOptions options = {}) {
    options.base_url = std::move(url);
    options.backoff = {milliseconds(1), milliseconds(2)};
    auto client = ConnectClient::Create(std::move(options));
    EXPECT_TRUE(client.has_value()) << (client ? "" : client.error().message);
    return std::move(*client);
  }

  static base::Result<control::WhoAmIResponse> WhoAmI(ConnectClient& client,
                                                      CallOptions options = {}) {
    return client.Call<control::WhoAmIResponse>(kWhoAmI, control::WhoAmIRequest(), options);
  }
  static base::Result<control::LoginResponse> Login(ConnectClient& client, std::string key = "k") {
    control::LoginRequest request;
    request.set_api_key(std::move(key));
    return client.Call<control::LoginResponse>(kLogin, request);
  }

  base::MetricRegistry metrics_;
  FakeAuthenticator authenticator_;
  std::unique_ptr<ConnectRouter> router_;
  HttpRequest last_;
  std::unique_ptr<HttpServer> server_;
};

HttpResponse Answer(int status, std::string type, std::string body) {
  HttpResponse response;
  response.status = status;
  response.headers.Add("Content-Type", std::move(type));
  response.body = std::move(body);
  return response;
}

TEST_F(ConnectClientTest, CallsInEveryFormatAndCompression) {
  const std::string url = ServeRouter();
  const std::string key(20'000, 'k');
  for (const WireFormat format : {WireFormat::kProto, WireFormat::kJson}) {
    for (const Compression compression :
         {Compression::kIdentity, Compression::kGzip, Compression::kZstd}) {
      ConnectClientOptions options;
      options.format = format;
      options.compression = compression;
      auto client = Connect(url + "/", options);
      const auto response = Login(*client, key);
      ASSERT_TRUE(response.has_value()) << response.error().message;
      EXPECT_EQ(response->refresh_token(), key);
      EXPECT_EQ(last_.body.size() < 2000, compression != Compression::kIdentity);
    }
  }
}

TEST_F(ConnectClientTest, KeepsItsConnection) {
  auto client = Connect(ServeRouter());
  ASSERT_TRUE(Login(*client).has_value());
  const std::string peer = last_.peer;
  ASSERT_TRUE(Login(*client).has_value());
  EXPECT_EQ(last_.peer, peer);
}

TEST_F(ConnectClientTest, ServesManyThreads) {
  auto client = Connect(ServeRouter());
  server_->Drain(seconds(1));
  server_.reset();
  HttpServerOptions options;
  options.name = "many";
  options.address = "127.0.0.1";
  options.io_threads = 2;
  server_ = std::move(*HttpServer::Start(
      options, [this](const HttpRequest& r) { return router_->Handle(r); }, metrics_));
  client = Connect("http://127.0.0.1:" + std::to_string(server_->port()));
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 25; ++i) {
          const std::string key = std::to_string(t * 1000 + i);
          const auto response = Login(*client, key);
          if (response && response->refresh_token() == key) ++good;
        }
      });
    }
  }
  EXPECT_EQ(good, 200);
}

TEST_F(ConnectClientTest, SendsTheTokenAndReadsReasons) {
  auto client = Connect(ServeRouter());
  EXPECT_EQ(WhoAmI(*client, {.bearer = "token"})->identity().user_id(), "ada");
  const auto refused = WhoAmI(*client);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kUnauthenticated);
  EXPECT_EQ(refused.error().reason, "token.missing");
}

TEST_F(ConnectClientTest, UsesGetWhenAskedToAndTheUrlIsShort) {
  const std::string url = ServeRouter();
  for (const WireFormat format : {WireFormat::kProto, WireFormat::kJson}) {
    ConnectClientOptions options;
    options.get = true;
    options.format = format;
    auto client = Connect(url, options);
    EXPECT_TRUE(WhoAmI(*client, {.bearer = "token"}).has_value());
    EXPECT_EQ(last_.method, "GET");
    EXPECT_TRUE(Login(*client).has_value());
    EXPECT_EQ(last_.method, "POST") << "Login has side effects";
  }
}

TEST_F(ConnectClientTest, TrustsOnlyTheGivenAuthority) {
  const TestCertificate files = MakeTestCertificate();
  const std::string url = ServeRouter(TlsFiles{files.certificate, files.key});
  const auto refused = Login(*Connect(url));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, "client.tls");
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  ConnectClientOptions options;
  options.ca_file = files.certificate;
  EXPECT_TRUE(Login(*Connect(url, options)).has_value());
  const ScopedVariable variable("SSL_CERT_FILE", files.certificate);
  EXPECT_TRUE(Login(*Connect(url)).has_value());
}

TEST_F(ConnectClientTest, TellsFailuresApart) {
  std::uint16_t free_port = 0;
  {
    Serve([](const HttpRequest&) { return HttpResponse(); });
    free_port = server_->port();
    server_.reset();
  }
  const auto refused = Login(*Connect("http://127.0.0.1:" + std::to_string(free_port)));
  EXPECT_EQ(refused.error().reason, "client.unreachable");
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  const auto unknown = Login(*Connect("http://no-such-host.invalid"));
  EXPECT_EQ(unknown.error().reason, "client.unreachable");
  for (const char* bad :
       {"", "expanse.example.org:x", "ftp://h", "https://", "https://u:p@h", "https://h/?q=1"}) {
    ConnectClientOptions options;
    options.base_url = bad;
    const auto client = ConnectClient::Create(options);
    ASSERT_FALSE(client.has_value()) << bad;
    EXPECT_EQ(client.error().reason, "client.url") << bad;
  }
}

TEST_F(ConnectClientTest, ReportsAPageInsteadOfAnAnswer) {
  int status = 200;
  auto client = Connect(Serve([&](const HttpRequest&) {
    return Answer(status, "text/html", "<h1>Sign in to the WiFi</h1>");
  }));
  EXPECT_EQ(Login(*client).error().reason, "client.protocol");
  EXPECT_EQ(Login(*client).error().code, Code::kUnknown);
  const std::pair<int, Code> statuses[] = {
      {400, Code::kInternal},      {401, Code::kUnauthenticated}, {403, Code::kPermissionDenied},
      {404, Code::kUnimplemented}, {429, Code::kUnavailable},     {502, Code::kUnavailable},
      {504, Code::kUnavailable},   {302, Code::kUnknown}};
  for (const auto& [code, expected] : statuses) {
    status = code;
    EXPECT_EQ(Login(*client).error().code, expected) << code;
    EXPECT_EQ(Login(*client).error().reason, "client.protocol") << code;
  }
}

TEST_F(ConnectClientTest, RefusesBrokenAnswers) {
  HttpResponse answer;
  auto client = Connect(Serve([&](const HttpRequest&) { return answer; }));
  answer = Answer(200, "application/proto", "\xff\xff\xff");
  EXPECT_EQ(Login(*client).error().reason, "client.protocol");
  answer = Answer(200, "application/json", "{}");
  EXPECT_EQ(Login(*client).error().code, Code::kInternal);
  answer = Answer(200, "application/proto", "junk");
  answer.headers.Add("Content-Encoding", "gzip");
  EXPECT_EQ(Login(*client).error().reason, "client.protocol");
  ConnectClientOptions options;
  options.max_response = 1000;
  client = Connect("http://127.0.0.1:" + std::to_string(server_->port()), options);
  answer = Answer(200, "application/proto", std::string(1001, 'x'));
  EXPECT_EQ(Login(*client).error().reason, "client.response_too_large");
  answer = Answer(200, "application/proto", base::GzipCompress(std::string(5000, 'x')));
  answer.headers.Add("Content-Encoding", "gzip");
  EXPECT_EQ(Login(*client).error().reason, "client.response_too_large");
}

TEST_F(ConnectClientTest, RetriesOnlyWhatIsIdempotentAndPassing) {
  std::atomic<int> calls = 0;
  int failing = 2;
  base::Error error{Code::kUnavailable, "x.busy", "busy"};
  auto client = Connect(Serve([&](const HttpRequest&) {
    if (++calls <= failing) return ErrorResponse(error);
    return Answer(200, "application/proto", "");
  }));
  EXPECT_TRUE(WhoAmI(*client).has_value());
  EXPECT_EQ(calls, 3);
  calls = 0;
  EXPECT_EQ(Login(*client).error().reason, "x.busy");
  EXPECT_EQ(calls, 1);
  calls = 0;
  failing = 100;
  EXPECT_EQ(WhoAmI(*client).error().reason, "x.busy");
  EXPECT_EQ(calls, 3);
  calls = 0;
  error = {Code::kPermissionDenied, "x.no", "no"};
  EXPECT_FALSE(WhoAmI(*client).has_value());
  EXPECT_EQ(calls, 1);
}

// A kept connection that breaks after the request was read: the server may have done what it says.
TEST_F(ConnectClientTest, NeverRepeatsARequestWithSideEffectsByItself) {
  const std::string ok =
      "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n";
  const ScriptedServer server({ok, ""});
  auto client = Connect("http://127.0.0.1:" + std::to_string(server.port()));
  EXPECT_TRUE(Login(*client).has_value());
  EXPECT_EQ(Login(*client).error().reason, "client.unreachable");
  EXPECT_EQ(server.requests(), 2);
  // The first try finds a new connection, the second breaks, and is made again.
  EXPECT_TRUE(WhoAmI(*client).has_value());
  EXPECT_TRUE(WhoAmI(*client).has_value());
  EXPECT_EQ(server.requests(), 5);
}

TEST_F(ConnectClientTest, GivesUpWhenRetryAfterIsBeyondTheDeadline) {
  std::atomic<int> calls = 0;
  auto client = Connect(Serve([&](const HttpRequest&) {
    ++calls;
    HttpResponse response = ErrorResponse(base::Error{Code::kUnavailable, "x.busy", "busy"});
    response.headers.Add("Retry-After", "60");
    return response;
  }));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(WhoAmI(*client, {.timeout = seconds(5)}).error().reason, "x.busy");
  EXPECT_EQ(calls, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(4));
}

TEST_F(ConnectClientTest, StopsAtItsDeadlineAndWhenAsked) {
  std::stop_source release;
  base::SystemClock clock;
  auto client = Connect(Serve([&](const HttpRequest&) {
    clock.WaitFor(release.get_token(), seconds(10));
    return HttpResponse();
  }));
  const auto late = WhoAmI(*client, {.timeout = milliseconds(100)});
  EXPECT_EQ(late.error().reason, "client.timeout");
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  CallOptions options;
  options.stop = stop.get_token();
  const auto stopped = WhoAmI(*client, options);
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  release.request_stop();
  server_.reset();  // its handlers, which nobody waits for any more, use what stands above
}

TEST_F(ConnectClientTest, SendsHeadersAndReturnsMetadata) {
  auto client = Connect(Serve([&](const HttpRequest& request) {
    HttpResponse response = ErrorResponse({Code::kAborted, "x.y", "z"}, {{"some.Type", "abc"}});
    response.headers.Add("X-Echo", std::string(request.headers.Get("X-Mine")));
    response.headers.Add("Trailer-X-Last", "1");
    return response;
  }));
  CallMetadata metadata;
  CallOptions options;
  options.headers.Add("X-Mine", "here");
  options.response = &metadata;
  EXPECT_FALSE(WhoAmI(*client, options).has_value());
  EXPECT_EQ(metadata.headers.Get("X-Echo"), "here");
  EXPECT_EQ(metadata.trailers.Get("X-Last"), "1");
  ASSERT_EQ(metadata.error_details.size(), 1U);
  EXPECT_EQ(metadata.error_details[0].type, "some.Type");
  EXPECT_EQ(metadata.error_details[0].value, "abc");
  options.headers.Add("X-Bad", "a\r\nX-Injected: b");
  EXPECT_EQ(WhoAmI(*client, options).error().reason, "client.header");
}

// The proxy is an HTTP server that answers absolute-form requests itself: enough to see who was
// asked.
TEST_F(ConnectClientTest, GoesThroughTheProxyOfEitherSpellingButNotToNoProxyHosts) {
  std::atomic<int> proxied = 0;
  const std::string proxy = Serve([&](const HttpRequest& request) {
    if (request.path.starts_with("http://platform.test/")) ++proxied;
    return Answer(200, "application/proto", "");
  });
  for (const char* name : {"http_proxy", "HTTP_PROXY"}) {
    const ScopedVariable variable(name, proxy);
    EXPECT_TRUE(Login(*Connect("http://platform.test")).has_value()) << name;
  }
  EXPECT_EQ(proxied, 2);
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    const ScopedVariable variable("HTTP_PROXY", proxy);
    const ScopedVariable except(name, "other.test,platform.test");
    // Asked directly, the name does not resolve.
    EXPECT_EQ(Login(*Connect("http://platform.test")).error().reason, "client.unreachable") << name;
  }
  EXPECT_EQ(proxied, 2);
}

TEST_F(ConnectClientTest, AsksTheProxyForATunnelToHttpsServers) {
  std::string asked;
  const std::string proxy = Serve([&](const HttpRequest& request) {
    asked = request.method + " " + request.path;
    return Answer(403, "text/plain", "not allowed");
  });
  for (const char* name : {"https_proxy", "HTTPS_PROXY"}) {
    asked.clear();
    const ScopedVariable variable(name, proxy);
    const auto refused = Login(*Connect("https://platform.test"));
    EXPECT_EQ(refused.error().reason, "client.unreachable") << name;
    EXPECT_THAT(refused.error().message, HasSubstr("403")) << name;
    EXPECT_EQ(asked, "CONNECT platform.test:443") << name;
  }
}

TEST(DecodeError, TakesAnyBody) {
  EXPECT_EQ(DecodeError(503, "application/json", R"({"code":"aborted","message":"m"})").error.code,
            Code::kAborted);
  EXPECT_EQ(
      DecodeError(503, "application/json", R"({"code":"unheard_of","message":"m"})").error.code,
      Code::kUnavailable);
  EXPECT_EQ(DecodeError(403, "application/json", R"({"code":7})").error.code,
            Code::kPermissionDenied);
  EXPECT_EQ(DecodeError(403, "application/json", "[]").error.reason, "client.protocol");
  EXPECT_EQ(DecodeError(403, "application/json", std::string(1'000'000, '[')).error.reason,
            "client.protocol");
  EXPECT_EQ(DecodeError(404, "text/html", "<html>").error.code, Code::kUnimplemented);
  EXPECT_EQ(
      DecodeError(500, "application/json",
                  R"({"code":"internal","details":[1,{"type":"t"},{"type":"t","value":"!"}]})")
          .details.size(),
      1U);
}

}  // namespace
}  // namespace expanse::net
