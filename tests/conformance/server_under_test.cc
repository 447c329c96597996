// Our HttpServer and ConnectRouter as a server for Connect's conformance suite: its service answers
// as each request asks it to.
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "conformance/framing.h"
#include "connectrpc/conformance/v1/server_compat.pb.h"
#include "connectrpc/conformance/v1/service.pb.h"
#include "net/connect_server.h"
#include "net/http_server.h"

namespace {

namespace suite = connectrpc::conformance::v1;
using namespace expanse;

class NoTokens final : public net::Authenticator {
 public:
  base::Result<net::Caller> Authenticate(std::string_view) override {
    return base::Fail(base::Code::kUnauthenticated, "token.malformed", "the suite has no tokens");
  }
};

suite::ConformancePayload::RequestInfo Observe(const net::CallContext& context,
                                               const google::protobuf::Message& request) {
  suite::ConformancePayload::RequestInfo info;
  *info.mutable_request_headers() = conformance::ToProto(context.request->headers);
  const auto timeout =
      base::ParseInt<std::int64_t>(context.request->headers.Get("Connect-Timeout-Ms"));
  if (timeout) info.set_timeout_ms(*timeout);
  info.add_requests()->PackFrom(request);
  if (context.request->method == "GET") {
    for (const auto& parameter : net::ParseQuery(context.request->query)) {
      auto* header = info.mutable_connect_get_info()->add_query_params();
      header->set_name(parameter.name);
      header->add_value(parameter.value);
    }
  }
  return info;
}

template <typename Request, typename Response>
base::Result<Response> Answer(const net::CallContext& context, const Request& request) {
  const suite::UnaryResponseDefinition& wanted = request.response_definition();
  conformance::AddAll(wanted.response_headers(), context.response->headers);
  conformance::AddAll(wanted.response_trailers(), context.response->trailers);
  // The delay is what the suite asks for; it tests deadlines with it.
  std::this_thread::sleep_for(std::chrono::milliseconds(wanted.response_delay_ms()));
  const auto info = Observe(context, request);
  if (wanted.has_error()) {
    for (const auto& detail : wanted.error().details()) {
      context.response->error_details.push_back(conformance::FromAny(detail));
    }
    context.response->error_details.push_back({info.GetTypeName(), info.SerializeAsString()});
    return base::Fail(static_cast<base::Code>(wanted.error().code()), "", wanted.error().message());
  }
  Response response;
  response.mutable_payload()->set_data(wanted.response_data());
  *response.mutable_payload()->mutable_request_info() = info;
  return response;
}

base::Result<net::TlsFiles> WriteTls(const suite::TLSCreds& given, const base::TempDir& directory) {
  net::TlsFiles files{base::JoinPath(directory.path(), "cert.pem"),
                      base::JoinPath(directory.path(), "key.pem")};
  EXPANSE_RETURN_IF_ERROR(base::WriteFileAtomically(files.certificate_chain, given.cert(), 0644));
  EXPANSE_RETURN_IF_ERROR(base::WriteFileAtomically(files.private_key, given.key(), 0600));
  return files;
}

base::Status Serve(const sigset_t& signals) {
  suite::ServerCompatRequest wanted;
  if (!conformance::ReadMessage(&wanted)) {
    return base::Fail(base::Code::kInvalidArgument, "suite.request",
                      "no request on standard input");
  }
  net::ConnectOptions options;
  options.hide_internal_errors = false;  // the suite compares messages
  options.send_reasons = false;          // and counts details
  options.compress_above = 0;
  if (wanted.message_receive_limit() > 0) options.max_message = wanted.message_receive_limit();
  options.max_open_message = options.max_message;  // the suite calls without a token
  options.access_rule = [](const auto&) {
    return net::AccessRule{{net::CallerKind::kAnonymous}, ""};
  };
  NoTokens authenticator;
  base::MetricRegistry metrics;
  net::ConnectRouter router(options, authenticator, metrics);
  const std::string service = "connectrpc.conformance.v1.ConformanceService.";
  router.Add<suite::UnaryRequest, suite::UnaryResponse>(
      service + "Unary", Answer<suite::UnaryRequest, suite::UnaryResponse>);
  router.Add<suite::IdempotentUnaryRequest, suite::IdempotentUnaryResponse>(
      service + "IdempotentUnary",
      Answer<suite::IdempotentUnaryRequest, suite::IdempotentUnaryResponse>);
  EXPANSE_ASSIGN_OR_RETURN(const base::TempDir directory, base::TempDir::Create("conformance"));
  net::HttpServerOptions http;
  http.name = "conformance";
  http.address = "127.0.0.1";
  http.worker_threads = 16;  // handlers sleep as asked
  if (wanted.use_tls()) {
    EXPANSE_ASSIGN_OR_RETURN(http.tls, WriteTls(wanted.server_creds(), directory));
  }
  EXPANSE_ASSIGN_OR_RETURN(
      const auto server,
      net::HttpServer::Start(
          http, [&](const net::HttpRequest& request) { return router.Handle(request); }, metrics));
  suite::ServerCompatResponse ready;
  ready.set_host("127.0.0.1");
  ready.set_port(server->port());
  if (wanted.use_tls()) ready.set_pem_cert(wanted.server_creds().cert());
  conformance::WriteMessage(ready);
  int signal = 0;
  sigwait(&signals, &signal);
  return {};
}

}  // namespace

int main() {
  base::ConfigureLog(base::LogLevel::kWarn, base::LogFormat::kText);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const base::Status status = Serve(signals);
  if (!status) std::fprintf(stderr, "conformance server: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
