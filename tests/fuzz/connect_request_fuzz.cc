// Bytes as a request to ConnectRouter: "METHOD PATH[?QUERY]", header lines, an empty line, the
// body.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "expanse/control/v1/auth_service.pb.h"
#include "expanse/data/v1/query_service.pb.h"
#include "net/connect_error.h"
#include "net/connect_server.h"

namespace {

using namespace expanse;

class OneToken final : public net::Authenticator {
 public:
  base::Result<net::Caller> Authenticate(std::string_view token) override {
    if (token != "t")
      return base::Fail(base::Code::kUnauthenticated, "token.signature", "not ours");
    net::Caller caller;
    caller.kind = net::CallerKind::kUser;
    caller.permissions = {"executions.read"};
    return caller;
  }
};

template <typename Request, typename Response>
void Add(net::ConnectRouter& router, std::string_view name) {
  router.Add<Request, Response>(name, [](const net::CallContext&, const Request&) {
    return base::Result<Response>(Response());
  });
}

struct Fixture {
  Fixture() {
    base::ConfigureLog(base::LogLevel::kOff, base::LogFormat::kText);
    google::protobuf::SetLogHandler(nullptr);
    Add<control::v1::LoginRequest, control::v1::LoginResponse>(
        router, "expanse.control.v1.AuthService.Login");
    Add<data::v1::ListExecutionsRequest, data::v1::ListExecutionsResponse>(
        router, "expanse.data.v1.QueryService.ListExecutions");
    Add<data::v1::QueryMetricRequest, data::v1::QueryMetricResponse>(
        router, "expanse.data.v1.QueryService.QueryMetric");
  }
  static net::ConnectOptions Options() {
    net::ConnectOptions options;
    options.max_message = 1U << 20;
    options.cors_origins = "https://console.example.org";
    return options;
  }
  OneToken authenticator;
  base::MetricRegistry metrics;
  net::ConnectRouter router{Options(), authenticator, metrics};
};

net::HttpRequest Read(std::string_view text) {
  net::HttpRequest request;
  request.received = std::chrono::steady_clock::now();
  request.request_id = "fuzz";
  bool first = true;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) break;
    if (first) {
      const auto space = line.find(' ');
      const std::string_view target =
          space == std::string_view::npos ? std::string_view{} : line.substr(space + 1);
      request.method = line.substr(0, space);
      request.path = target.substr(0, target.find('?'));
      if (const auto question = target.find('?'); question != std::string_view::npos) {
        request.query = target.substr(question + 1);
      }
      first = false;
    } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
      request.headers.Add(std::string(line.substr(0, colon)),
                          std::string(base::Trim(line.substr(colon + 1))));
    }
  }
  request.body = text;
  return request;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Fixture fixture;
  const net::HttpRequest request = Read({reinterpret_cast<const char*>(data), size});
  const net::HttpResponse response = fixture.router.Handle(request);
  EXPANSE_CHECK(response.status >= 200 && response.status < 600);
  if (response.status >= 400) {  // what we refuse with must be an error that a client understands
    const auto decoded =
        net::DecodeError(response.status, response.headers.Get("Content-Type"), response.body);
    EXPANSE_CHECK(!decoded.error.reason.empty() && decoded.error.reason != "client.protocol");
    EXPANSE_CHECK(decoded.error.code != base::Code::kInternal);
  }
  return 0;
}
