#include "net/connect_server.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "base/compress.h"
#include "base/crypto.h"
#include "expanse/control/v1/auth_service.pb.h"
#include "expanse/data/v1/query_service.pb.h"
#include "net/access.h"
#include "net/connect_error.h"
#include "net/net_testing.h"

namespace expanse::net {
namespace {

using base::Code;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;
namespace control = control::v1;
namespace data = data::v1;

constexpr const char* kLogin = "/expanse.control.v1.AuthService/Login";
constexpr const char* kWhoAmI = "/expanse.control.v1.AuthService/WhoAmI";
constexpr const char* kRevocations = "/expanse.control.v1.AuthService/ListRevocations";
constexpr const char* kExecutions = "/expanse.data.v1.QueryService/ListExecutions";

Caller Make(CallerKind kind, std::vector<std::string> permissions = {}) {
  Caller caller;
  caller.kind = kind;
  caller.subject = "someone";
  caller.permissions = std::move(permissions);
  return caller;
}

class ConnectRouterTest : public testing::Test {
 protected:
  ConnectRouterTest() {
    authenticator_.Add("user", Make(CallerKind::kUser));
    authenticator_.Add("reader", Make(CallerKind::kUser, {"executions.read"}));
    authenticator_.Add("compute", Make(CallerKind::kCompute, {"executions.read"}));
    authenticator_.Add("plane", Make(CallerKind::kPlane));
    Rebuild({});
  }

  void Rebuild(ConnectOptions options) {
    router_ = std::make_unique<ConnectRouter>(std::move(options), authenticator_, metrics_);
    router_->Add<control::LoginRequest, control::LoginResponse>(
        "expanse.control.v1.AuthService.Login",
        [this](const CallContext& context, const control::LoginRequest& request) {
          return login_(context, request);
        });
    router_->Add<control::WhoAmIRequest, control::WhoAmIResponse>(
        "expanse.control.v1.AuthService.WhoAmI",
        [](const CallContext& context,
           const control::WhoAmIRequest&) -> base::Result<control::WhoAmIResponse> {
          control::WhoAmIResponse response;
          response.mutable_identity()->set_user_id(context.caller.subject);
          return response;
        });
    router_->Add<control::ListRevocationsRequest, control::ListRevocationsResponse>(
        "expanse.control.v1.AuthService.ListRevocations",
        [](const CallContext&, const control::ListRevocationsRequest&)
            -> base::Result<control::ListRevocationsResponse> {
          return control::ListRevocationsResponse();
        });
    router_->Add<data::ListExecutionsRequest, data::ListExecutionsResponse>(
        "expanse.data.v1.QueryService.ListExecutions",
        [](const CallContext&,
           const data::ListExecutionsRequest&) -> base::Result<data::ListExecutionsResponse> {
          return data::ListExecutionsResponse();
        });
  }

  static HttpRequest Post(std::string path, std::string body, std::string token = {}) {
    HttpRequest request;
    request.method = "POST";
    request.path = std::move(path);
    request.body = std::move(body);
    request.request_id = "req-1";
    request.received = std::chrono::steady_clock::now();
    request.headers.Add("Content-Type", "application/json");
    if (!token.empty()) request.headers.Add("Authorization", "Bearer " + token);
    return request;
  }

  // "<status> <code> <reason>" of an error, "200" of an answer.
  std::string Outcome(const HttpRequest& request) {
    const HttpResponse response = router_->Handle(request);
    if (response.status == 200) return "200";
    const DecodedError decoded =
        DecodeError(response.status, response.headers.Get("Content-Type"), response.body);
    return std::to_string(response.status) + " " + std::string(base::CodeName(decoded.error.code)) +
           " " + decoded.error.reason;
  }

  base::MetricRegistry metrics_;
  FakeAuthenticator authenticator_;
  std::function<base::Result<control::LoginResponse>(const CallContext&,
                                                     const control::LoginRequest&)>
      login_ = [](const CallContext&,
                  const control::LoginRequest& request) -> base::Result<control::LoginResponse> {
    control::LoginResponse response;
    response.set_refresh_token("for " + request.api_key());
    return response;
  };
  std::unique_ptr<ConnectRouter> router_;
};

TEST_F(ConnectRouterTest, AnswersJsonWithProtoFieldNames) {
  const HttpResponse response =
      router_->Handle(Post(kLogin, R"({"api_key": "k", "unknown_field": [1, {}]})"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.Get("Content-Type"), "application/json");
  EXPECT_EQ(response.headers.Get("Cache-Control"), "no-store");
  EXPECT_EQ(response.body, R"({"refresh_token":"for k"})");
  EXPECT_EQ(response.route, "expanse.control.v1.AuthService.Login");
}

TEST_F(ConnectRouterTest, AnswersProto) {
  control::LoginRequest login;
  login.set_api_key("k");
  HttpRequest request = Post(kLogin, login.SerializeAsString());
  request.headers.Set("Content-Type", "application/proto");
  const HttpResponse response = router_->Handle(request);
  EXPECT_EQ(response.headers.Get("Content-Type"), "application/proto");
  control::LoginResponse answer;
  ASSERT_TRUE(answer.ParseFromString(response.body));
  EXPECT_EQ(answer.refresh_token(), "for k");
}

TEST_F(ConnectRouterTest, ReadsCompressedBodiesWithinTheLimit) {
  const std::string json = R"({"api_key": ")" + std::string(5000, 'k') + "\"}";
  for (const std::string encoding : {"gzip", "zstd"}) {
    HttpRequest request =
        Post(kLogin, encoding == "gzip" ? base::GzipCompress(json) : base::ZstdCompress(json));
    request.headers.Add("Content-Encoding", encoding);
    Rebuild({});
    EXPECT_EQ(Outcome(request), "200") << encoding;
    ConnectOptions small;
    small.max_message = 4000;
    Rebuild(small);
    EXPECT_EQ(Outcome(request), "429 resource_exhausted compress.too_large") << encoding;
    request.body.resize(request.body.size() / 2);
    Rebuild({});
    EXPECT_EQ(Outcome(request), "400 invalid_argument compress.corrupt") << encoding;
  }
  ConnectOptions small;
  small.max_message = 4000;
  Rebuild(small);
  EXPECT_EQ(Outcome(Post(kLogin, json)), "429 resource_exhausted rpc.message_too_large");
}

TEST_F(ConnectRouterTest, ReadsShortMessagesOnlyFromCallersWithoutAToken) {
  ConnectOptions options;
  options.max_open_message = 4000;
  Rebuild(options);
  const std::string json = R"({"api_key": ")" + std::string(5000, 'k') + "\"}";
  EXPECT_EQ(Outcome(Post(kLogin, json)), "429 resource_exhausted rpc.message_too_large");
  HttpRequest packed = Post(kLogin, base::GzipCompress(json));
  packed.headers.Add("Content-Encoding", "gzip");
  EXPECT_EQ(Outcome(packed), "429 resource_exhausted compress.too_large");
  HttpRequest known = Post(kExecutions, R"({"native_id": ")" + std::string(5000, 'k') + "\"}");
  known.headers.Add("Authorization", "Bearer reader");
  EXPECT_EQ(Outcome(known), "200");
}

TEST_F(ConnectRouterTest, CompressesLargeAnswersAsThePeerLikes) {
  const struct {
    const char* accept;
    const char* expected;
  } cases[] = {{"", ""},
               {"gzip", "gzip"},
               {"br, zstd", "zstd"},
               {"gzip, zstd", "gzip"},
               {"gzip;q=0.5, zstd", "zstd"},
               {"gzip;q=0", ""},
               {"identity", ""},
               {"gzip;q=x", ""}};
  for (const auto& one : cases) {
    HttpRequest request = Post(kLogin, R"({"api_key": ")" + std::string(5000, 'k') + "\"}");
    request.headers.Add("Accept-Encoding", one.accept);
    EXPECT_EQ(router_->Handle(request).headers.Get("Content-Encoding"), one.expected) << one.accept;
  }
  HttpRequest small = Post(kLogin, "{}");
  small.headers.Add("Accept-Encoding", "gzip");
  EXPECT_FALSE(router_->Handle(small).headers.Has("Content-Encoding"));
}

TEST_F(ConnectRouterTest, RefusesWhatIsNotACall) {
  HttpRequest request = Post(kLogin, "{}");
  request.headers.Set("Content-Type", "text/plain");
  EXPECT_EQ(router_->Handle(request).status, 415);
  EXPECT_EQ(router_->Handle(request).headers.Get("Accept-Post"),
            "application/json, application/proto");
  request = Post(kLogin, "{}");
  request.method = "DELETE";
  EXPECT_EQ(router_->Handle(request).status, 405);
  EXPECT_EQ(router_->Handle(request).headers.Get("Allow"), "POST");
  request.method = "GET";
  EXPECT_EQ(router_->Handle(request).status, 405) << "Login has side effects";
  for (const char* path :
       {"/expanse.control.v1.AuthService/Nothing", "//expanse.control.v1.AuthService/Login",
        "/expanse.control.v1.AuthService//Login", "/", "",
        "/expanse.control.v1.AuthService/Login/"}) {
    EXPECT_EQ(Outcome(Post(path, "{}")), "404 unimplemented rpc.unknown_method") << path;
  }
  request = Post(kLogin, "{}");
  request.headers.Add("Content-Encoding", "br");
  EXPECT_EQ(Outcome(request), "501 unimplemented rpc.compression");
  request = Post(kLogin, "{}");
  request.headers.Add("Connect-Protocol-Version", "2");
  EXPECT_EQ(Outcome(request), "400 invalid_argument rpc.version");
  request.headers.Set("Connect-Protocol-Version", "1");
  EXPECT_EQ(Outcome(request), "200");
}

TEST_F(ConnectRouterTest, OwnsThePathsOfItsServices) {
  EXPECT_TRUE(router_->Owns(kLogin));
  EXPECT_TRUE(router_->Owns("/expanse.control.v1.AuthService/Nothing"));
  for (const char* path : {"", "/", "/index.html", "//expanse.control.v1.AuthService/Login",
                           "expanse.control.v1.AuthService"}) {
    EXPECT_FALSE(router_->Owns(path)) << path;
  }
}

TEST_F(ConnectRouterTest, NamesTheFieldThatIsWrong) {
  const struct {
    std::string body;
    const char* says;
  } cases[] = {
      {R"({"api_key": 7})", "api_key"},
      {R"({"api_key": ["k"]})", "api_key"},
      {"{\"api_key\": \"\xff\xfe\"}", "expanse.control.v1.LoginRequest"},
      {R"({"api_key": "k")", "expanse.control.v1.LoginRequest"},
      {"[]", "expanse.control.v1.LoginRequest"},
      {"", "expanse.control.v1.LoginRequest"},
      {std::string(60'000, '['), "expanse.control.v1.LoginRequest"},
      {"{\"x\":" + std::string(60'000, '['), "expanse.control.v1.LoginRequest"},
  };
  for (const auto& one : cases) {
    const HttpResponse response = router_->Handle(Post(kLogin, one.body));
    EXPECT_EQ(response.status, 400) << one.body.substr(0, 40);
    EXPECT_THAT(response.body, HasSubstr(one.says)) << one.body.substr(0, 40);
    EXPECT_LT(response.body.size(), 2000U);
  }
  HttpRequest request =
      Post(kLogin, "\x0a\x02\xff\xfe");  // a string field with bytes that are not UTF-8
  request.headers.Set("Content-Type", "application/proto");
  EXPECT_EQ(Outcome(request), "400 invalid_argument message.malformed");
}

TEST_F(ConnectRouterTest, LetsInOnlyWhomTheContractNames) {
  const struct {
    const char* path;
    const char* token;
    const char* outcome;
  } cases[] = {
      {kLogin, "", "200"},
      {kLogin, "nonsense", "200"},  // anonymous methods look at no token
      {kWhoAmI, "", "401 unauthenticated token.missing"},
      {kWhoAmI, "nonsense", "401 unauthenticated token.signature"},
      {kWhoAmI, "user", "200"},
      {kWhoAmI, "compute", "403 permission_denied access.caller"},
      {kWhoAmI, "plane", "403 permission_denied access.caller"},
      {kRevocations, "user", "403 permission_denied access.caller"},
      {kRevocations, "plane", "200"},
      {kExecutions, "user", "403 permission_denied access.permission"},
      {kExecutions, "reader", "200"},
      {kExecutions, "compute", "403 permission_denied access.caller"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(Outcome(Post(one.path, "{}", one.token)), one.outcome)
        << one.path << " " << one.token;
  }
}

TEST_F(ConnectRouterTest, RefusesBeforeItReadsTheBody) {
  EXPECT_EQ(Outcome(Post(kWhoAmI, "not json")), "401 unauthenticated token.missing");
  EXPECT_EQ(router_->Handle(Post(kWhoAmI, "{}")).headers.Get("WWW-Authenticate"), "Bearer");
}

TEST_F(ConnectRouterTest, RefusesMethodsWithoutARuleToEverybody) {
  ConnectOptions options;
  options.access_rule = [](const auto&) { return std::nullopt; };
  Rebuild(options);
  for (const char* token : {"", "user", "plane"}) {
    EXPECT_EQ(Outcome(Post(kLogin, "{}", token)), "403 permission_denied access.undeclared")
        << token;
  }
}

TEST_F(ConnectRouterTest, ReadsBearerTokensStrictly) {
  for (const char* bad : {"user", "Basic dXNlcg==", "Bearer", "Bearer ", "Bearer a b"}) {
    HttpRequest request = Post(kWhoAmI, "{}");
    request.headers.Add("Authorization", bad);
    EXPECT_EQ(Outcome(request), "401 unauthenticated token.malformed") << bad;
  }
  HttpRequest request = Post(kWhoAmI, "{}");
  request.headers.Add("Authorization", "bearer user");
  EXPECT_EQ(Outcome(request), "200");
}

TEST_F(ConnectRouterTest, GivesHandlersTheirDeadline) {
  std::chrono::steady_clock::time_point seen;
  login_ = [&](const CallContext& context,
               const control::LoginRequest&) -> base::Result<control::LoginResponse> {
    seen = context.deadline;
    return control::LoginResponse();
  };
  ConnectOptions options;
  options.default_timeout = milliseconds(20'000);
  options.max_timeout = milliseconds(60'000);
  Rebuild(options);
  HttpRequest request = Post(kLogin, "{}");
  EXPECT_EQ(Outcome(request), "200");
  EXPECT_EQ(seen - request.received, milliseconds(20'000));
  request.headers.Set("Connect-Timeout-Ms", "5000");
  EXPECT_EQ(Outcome(request), "200");
  EXPECT_EQ(seen - request.received, milliseconds(5000));
  request.headers.Set("Connect-Timeout-Ms", "9999999999");
  EXPECT_EQ(Outcome(request), "200");
  EXPECT_EQ(seen - request.received, milliseconds(60'000));
  for (const char* bad : {"-1", "1.5", "x", "99999999999", ""}) {
    request.headers.Set("Connect-Timeout-Ms", bad);
    EXPECT_EQ(Outcome(request), "400 invalid_argument rpc.timeout") << bad;
  }
}

TEST_F(ConnectRouterTest, DoesNotCallHandlersWhoseDeadlinePassed) {
  bool called = false;
  login_ = [&](const CallContext&,
               const control::LoginRequest&) -> base::Result<control::LoginResponse> {
    called = true;
    return control::LoginResponse();
  };
  HttpRequest request = Post(kLogin, "{}");
  request.received -= milliseconds(100);  // it waited for a worker
  request.headers.Add("Connect-Timeout-Ms", "50");
  EXPECT_EQ(Outcome(request), "504 deadline_exceeded rpc.deadline");
  EXPECT_FALSE(called);
}

TEST_F(ConnectRouterTest, SendsReasonAndMessageOfErrors) {
  login_ = [](const CallContext&,
              const control::LoginRequest&) -> base::Result<control::LoginResponse> {
    return base::Fail(Code::kNotFound, "login.no_such_key", "there is no such key");
  };
  const HttpResponse response = router_->Handle(Post(kLogin, "{}"));
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, HasSubstr(R"("code":"not_found")"));
  EXPECT_THAT(response.body, HasSubstr(R"("message":"there is no such key")"));
  const DecodedError decoded = DecodeError(404, "application/json", response.body);
  EXPECT_EQ(decoded.error.reason, "login.no_such_key");
}

TEST_F(ConnectRouterTest, HidesWhatInternalErrorsSay) {
  for (const Code code : {Code::kInternal, Code::kUnknown, Code::kDataLoss}) {
    login_ = [&](const CallContext&,
                 const control::LoginRequest&) -> base::Result<control::LoginResponse> {
      return base::Fail(code, "store.sql", "SELECT secret FROM /var/lib/x.db");
    };
    const HttpResponse response = router_->Handle(Post(kLogin, "{}"));
    EXPECT_EQ(response.status, 500);
    EXPECT_THAT(response.body, HasSubstr("internal error, request id req-1"));
    EXPECT_THAT(response.body, Not(HasSubstr("SELECT")));
  }
}

TEST_F(ConnectRouterTest, MapsEveryCodeToItsStatus) {
  const std::pair<Code, int> statuses[] = {
      {Code::kCancelled, 499},          {Code::kUnknown, 500},
      {Code::kInvalidArgument, 400},    {Code::kDeadlineExceeded, 504},
      {Code::kNotFound, 404},           {Code::kAlreadyExists, 409},
      {Code::kPermissionDenied, 403},   {Code::kResourceExhausted, 429},
      {Code::kFailedPrecondition, 400}, {Code::kAborted, 409},
      {Code::kOutOfRange, 400},         {Code::kUnimplemented, 501},
      {Code::kInternal, 500},           {Code::kUnavailable, 503},
      {Code::kDataLoss, 500},           {Code::kUnauthenticated, 401}};
  for (const auto& [code, status] : statuses) {
    login_ = [&](const CallContext&,
                 const control::LoginRequest&) -> base::Result<control::LoginResponse> {
      return base::Fail(code, "x.y", "z");
    };
    EXPECT_EQ(Outcome(Post(kLogin, "{}")),
              std::to_string(status) + " " + std::string(base::CodeName(code)) + " x.y");
  }
}

TEST_F(ConnectRouterTest, SendsHeadersAndTrailersOfHandlers) {
  login_ = [](const CallContext& context,
              const control::LoginRequest&) -> base::Result<control::LoginResponse> {
    EXPECT_EQ(context.request->headers.Get("X-Mine"), "here");
    context.response->headers.Add("Retry-After", "7");
    context.response->trailers.Add("X-Last", "z");
    return control::LoginResponse();
  };
  HttpRequest request = Post(kLogin, "{}");
  request.headers.Add("X-Mine", "here");
  const HttpResponse response = router_->Handle(request);
  EXPECT_EQ(response.headers.Get("Retry-After"), "7");
  EXPECT_EQ(response.headers.Get("Trailer-X-Last"), "z");
}

TEST_F(ConnectRouterTest, AnswersSideEffectFreeCallsByGet) {
  const auto get = [](std::string query) {
    HttpRequest request = Post(kWhoAmI, "", "user");
    request.method = "GET";
    request.query = std::move(query);
    return request;
  };
  EXPECT_EQ(Outcome(get("connect=v1&encoding=json&message=%7B%7D")), "200");
  EXPECT_EQ(Outcome(get("encoding=json&message=e30&base64=1")), "200");
  EXPECT_EQ(Outcome(get("encoding=proto&message=&base64=1")), "200");
  EXPECT_EQ(Outcome(get("encoding=json&compression=gzip&base64=1&message=" +
                        base::Base64UrlEncode(base::GzipCompress("{}")))),
            "200");
  EXPECT_EQ(Outcome(get("")), "400 invalid_argument rpc.query");
  EXPECT_EQ(Outcome(get("encoding=json")), "400 invalid_argument rpc.query");
  EXPECT_EQ(Outcome(get("encoding=xml&message=%7B%7D")), "400 invalid_argument rpc.query");
  EXPECT_EQ(Outcome(get("encoding=json&message=%%%&base64=1")), "400 invalid_argument rpc.query");
  EXPECT_EQ(Outcome(get("connect=v2&encoding=json&message=%7B%7D")),
            "400 invalid_argument rpc.version");
  HttpRequest anonymous = get("encoding=json&message=%7B%7D");
  anonymous.headers.Set("Authorization", "");
  EXPECT_EQ(Outcome(anonymous), "401 unauthenticated token.missing");
}

TEST_F(ConnectRouterTest, AnswersConfiguredOriginsOnly) {
  ConnectOptions options;
  options.cors_origins = "https://console.example.org, http://localhost:5173/";
  Rebuild(options);
  HttpRequest preflight = Post(kLogin, "");
  preflight.method = "OPTIONS";
  preflight.headers.Add("Access-Control-Request-Method", "POST");
  preflight.headers.Add("Origin", "http://localhost:5173");
  HttpResponse response = router_->Handle(preflight);
  EXPECT_EQ(response.status, 204);
  EXPECT_EQ(response.headers.Get("Access-Control-Allow-Origin"), "http://localhost:5173");
  EXPECT_THAT(std::string(response.headers.Get("Access-Control-Allow-Headers")),
              HasSubstr("Authorization"));
  preflight.headers.Set("Origin", "https://evil.example.org");
  response = router_->Handle(preflight);
  EXPECT_EQ(response.status, 403);
  EXPECT_FALSE(response.headers.Has("Access-Control-Allow-Origin"));
  HttpRequest call = Post(kLogin, "{}");
  call.headers.Add("Origin", "https://console.example.org");
  response = router_->Handle(call);
  EXPECT_EQ(response.headers.Get("Access-Control-Allow-Origin"), "https://console.example.org");
  EXPECT_EQ(response.headers.Get("Vary"), "Origin");
}

TEST_F(ConnectRouterTest, SaysWhoCalledForTheAccessLog) {
  EXPECT_EQ(router_->Handle(Post(kWhoAmI, "{}", "user")).caller, "user someone");
  EXPECT_EQ(router_->Handle(Post(kLogin, "{}")).caller, "");
}

TEST(Access, DecidesByKindThenPermission) {
  const AccessRule rule{{CallerKind::kUser, CallerKind::kCompute}, "executions.read"};
  const struct {
    std::optional<AccessRule> rule;
    Caller caller;
    const char* reason;
  } cases[] = {
      {std::nullopt, Make(CallerKind::kPlane), "access.undeclared"},
      {AccessRule{}, Make(CallerKind::kUser), "access.undeclared"},
      {rule, Make(CallerKind::kAnonymous), "access.caller"},
      {rule, Make(CallerKind::kPlane), "access.caller"},
      {rule, Make(CallerKind::kUser), "access.permission"},
      {rule, Make(CallerKind::kUser, {"executions.reader", "executions"}), "access.permission"},
      {rule, Make(CallerKind::kUser, {"executions.read"}), ""},
      {rule, Make(CallerKind::kCompute), ""},
      {AccessRule{{CallerKind::kUser}, ""}, Make(CallerKind::kUser), ""},
  };
  for (const auto& one : cases) {
    const auto status = CheckAccess(one.rule, one.caller);
    EXPECT_EQ(status ? "" : status.error().reason, one.reason);
  }
}

TEST(Access, EveryMethodOfTheContractNamesItsCallers) {
  for (const auto* file : {control::LoginRequest::descriptor()->file(),
                           data::ListExecutionsRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        EXPECT_TRUE(DeclaredAccess(*file->service(s)->method(m)).has_value())
            << file->service(s)->method(m)->full_name();
      }
    }
  }
}

}  // namespace
}  // namespace expanse::net
