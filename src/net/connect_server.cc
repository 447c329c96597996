#include "net/connect_server.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "net/access.h"
#include "net/connect_error.h"
#include "net/cors.h"
#include "net/json_enums.h"
#include "net/wire_body.h"

namespace expanse::net {
namespace {

using base::Code;
using std::chrono::steady_clock;

constexpr std::string_view kAcceptedTypes = "application/json, application/proto";
constexpr std::string_view kAcceptedEncodings = "gzip, zstd";
constexpr std::size_t kMaxTimeoutDigits = 10;  // of the protocol

struct Method {
  std::string name;  // "package.Service.Method"
  const google::protobuf::MethodDescriptor* descriptor = nullptr;
  const google::protobuf::Message* request = nullptr;  // prototypes
  const google::protobuf::Message* response = nullptr;
  std::optional<AccessRule> access;
  std::function<base::Status(const CallContext&, const google::protobuf::Message&,
                             google::protobuf::Message*)>
      handler;
  base::Counter* ok = nullptr;

  bool side_effect_free() const {
    return descriptor->options().idempotency_level() ==
           google::protobuf::MethodOptions::NO_SIDE_EFFECTS;
  }
};

// How the caller wrote its message, from headers (POST) or query parameters (GET).
struct Envelope {
  WireFormat format = WireFormat::kProto;
  Compression compression = Compression::kIdentity;
  std::string query_message;  // of a GET; the body of a POST stays where it is
};

struct Timeout {
  std::chrono::milliseconds value;
  bool asked_for = false;  // by the caller, who has given up when it is over
};

std::unexpected<base::Error> Invalid(std::string_view reason, std::string message) {
  return base::Fail(Code::kInvalidArgument, std::string(reason), std::move(message));
}

base::Result<Compression> ReadCompression(std::string_view name) {
  const auto compression = CompressionFromName(name);
  if (compression) return *compression;
  return base::Fail(Code::kUnimplemented, "rpc.compression",
                    fmt::format("unknown compression \"{}\"; supported are {}",
                                base::EscapeForDisplay(name), kAcceptedEncodings));
}

base::Status CheckVersion(std::string_view version, std::string_view expected) {
  if (version.empty() || version == expected) return {};
  return Invalid("rpc.version",
                 fmt::format("unsupported protocol version \"{}\"; this server speaks \"{}\"",
                             base::EscapeForDisplay(version), expected));
}

base::Result<Envelope> ReadGet(const HttpRequest& request) {
  Envelope envelope;
  bool base64 = false;
  bool has_message = false;
  std::optional<WireFormat> format;
  for (QueryParameter& parameter : ParseQuery(request.query)) {
    if (parameter.name == "connect") {
      EXPANSE_RETURN_IF_ERROR(CheckVersion(parameter.value, "v1"));
    } else if (parameter.name == "encoding") {
      format = FormatOfContentType("application/" + parameter.value);
    } else if (parameter.name == "base64") {
      base64 = parameter.value == "1";
    } else if (parameter.name == "compression") {
      EXPANSE_ASSIGN_OR_RETURN(envelope.compression, ReadCompression(parameter.value));
    } else if (parameter.name == "message") {
      envelope.query_message = std::move(parameter.value);
      has_message = true;
    }
  }
  if (!format) return Invalid("rpc.query", "the query needs encoding=json or encoding=proto");
  if (!has_message) return Invalid("rpc.query", "the query has no message parameter");
  envelope.format = *format;
  if (base64) {
    auto decoded = Base64Decode(envelope.query_message);
    if (!decoded) return Invalid("rpc.query", "the message parameter is not base64");
    envelope.query_message = std::move(*decoded);
  }
  return envelope;
}

base::Result<Timeout> ReadTimeout(const HttpRequest& request, const ConnectOptions& options) {
  if (!request.headers.Has("Connect-Timeout-Ms")) return Timeout{options.default_timeout};
  const std::string_view text = request.headers.Get("Connect-Timeout-Ms");
  const auto value = base::ParseUnsignedDigits(text);
  if (!value || text.size() > kMaxTimeoutDigits) {
    return Invalid("rpc.timeout",
                   fmt::format("Connect-Timeout-Ms \"{}\" is not a number of milliseconds",
                               base::EscapeForDisplay(text)));
  }
  const std::chrono::milliseconds asked(static_cast<std::int64_t>(*value));
  return Timeout{std::min(asked, options.max_timeout), /*asked_for=*/asked <= options.max_timeout};
}

std::unexpected<base::Error> DeadlinePassed() {
  return base::Fail(Code::kDeadlineExceeded, "rpc.deadline",
                    "the call's deadline passed before it was done");
}

bool IsInternal(Code code) {
  return code == Code::kInternal || code == Code::kUnknown || code == Code::kDataLoss;
}

}  // namespace

struct ConnectRouter::Impl {
  Impl(ConnectOptions given, Authenticator& authenticator_in, base::MetricRegistry& metrics_in)
      : options(std::move(given)),
        authenticator(authenticator_in),
        metrics(metrics_in),
        cors(options.cors_origins) {}

  base::Counter& CallCounter(const std::string& method, std::string_view code) {
    return metrics.GetCounter("expanse_rpc_calls_total",
                              "Calls by method and the code they ended with.",
                              {{"method", method}, {"code", std::string(code)}});
  }

  // "/package.Service/Method" -> the method; null: unknown.
  const Method* Find(std::string_view path) const {
    const auto it = methods.find(path);
    return it == methods.end() ? nullptr : &it->second;
  }

  HttpResponse Answer(const HttpRequest& request);
  HttpResponse Refuse(int status, base::Error error) const;
  HttpResponse UnknownMethod(std::string_view path) const;
  std::optional<HttpResponse> WrongHttp(const Method& method, const HttpRequest& request) const;
  base::Result<Envelope> ReadEnvelope(const HttpRequest& request) const;
  base::Result<Caller> Authenticate(const Method& method, const HttpRequest& request);
  base::Status Call(const Method& method, const HttpRequest& request, CallContext& context,
                    HttpResponse& response);
  HttpResponse Failure(const Method& method, const HttpRequest& request, base::Error error,
                       const CallMetadata& metadata);

  const ConnectOptions options;
  Authenticator& authenticator;
  base::MetricRegistry& metrics;
  const Cors cors;
  std::map<std::string, Method, std::less<>> methods;  // by path
  std::set<std::string, std::less<>> services;         // "package.Service"
};

ConnectRouter::ConnectRouter(ConnectOptions options, Authenticator& authenticator,
                             base::MetricRegistry& metrics)
    : impl_(std::make_unique<Impl>(std::move(options), authenticator, metrics)) {}

ConnectRouter::~ConnectRouter() = default;

void ConnectRouter::AddErased(std::string_view name, const google::protobuf::Message& request,
                              const google::protobuf::Message& response, Erased handler) {
  const auto* pool = request.GetDescriptor()->file()->pool();
  const auto* descriptor = pool->FindMethodByName(std::string(name));
  EXPANSE_CHECK(descriptor != nullptr);
  EXPANSE_CHECK(descriptor->input_type() == request.GetDescriptor());
  EXPANSE_CHECK(descriptor->output_type() == response.GetDescriptor());
  Method method;
  method.name = name;
  method.descriptor = descriptor;
  method.request = &request;
  method.response = &response;
  method.access = impl_->options.access_rule ? impl_->options.access_rule(*descriptor)
                                             : DeclaredAccess(*descriptor);
  method.handler = std::move(handler);
  method.ok = &impl_->CallCounter(method.name, "ok");
  const std::string& service = descriptor->service()->full_name();
  impl_->services.insert(service);
  const bool added =
      impl_->methods.emplace(fmt::format("/{}/{}", service, descriptor->name()), std::move(method))
          .second;
  EXPANSE_CHECK(added);
}

bool ConnectRouter::Owns(std::string_view path) const {
  if (!path.starts_with('/')) return false;
  path.remove_prefix(1);
  return impl_->services.contains(path.substr(0, path.find('/')));
}

HttpResponse ConnectRouter::Handle(const HttpRequest& request) {
  HttpResponse response = impl_->Answer(request);
  response.headers.Set("Cache-Control", "no-store");
  impl_->cors.Annotate(request, response);
  return response;
}

HttpResponse ConnectRouter::Impl::Answer(const HttpRequest& request) {
  const Method* method = Find(request.path);
  if (method == nullptr) return UnknownMethod(request.path);
  if (Cors::IsPreflight(request)) {
    HttpResponse response = cors.Preflight(request);
    response.route = method->name;
    return response;
  }
  if (auto response = WrongHttp(*method, request)) {
    response->route = method->name;
    return std::move(*response);
  }
  CallMetadata metadata;
  CallContext context;
  context.request_id = request.request_id;
  context.peer = request.peer;
  context.request = &request;
  context.response = &metadata;
  HttpResponse response;
  if (auto status = Call(*method, request, context, response); !status) {
    response = Failure(*method, request, std::move(status).error(), metadata);
  } else {
    method->ok->Add();
  }
  for (const auto& [name, value] : metadata.headers.fields()) response.headers.Add(name, value);
  for (const auto& [name, value] : metadata.trailers.fields())
    response.headers.Add("Trailer-" + name, value);
  response.route = method->name;
  if (context.caller.kind != CallerKind::kAnonymous) {
    response.caller =
        fmt::format("{} {}", CallerKindName(context.caller.kind), context.caller.subject);
  }
  return response;
}

HttpResponse ConnectRouter::Impl::Refuse(int status, base::Error error) const {
  if (!options.send_reasons) error.reason.clear();
  return ErrorResponse(status, error);
}

HttpResponse ConnectRouter::Impl::UnknownMethod(std::string_view path) const {
  return Refuse(
      404, {Code::kUnimplemented, "rpc.unknown_method",
            fmt::format("there is no method at {}", base::EscapeForDisplay(path.substr(0, 256)))});
}

// Refusals below the level of RPC, which the protocol gives no code: 405 and 415.
std::optional<HttpResponse> ConnectRouter::Impl::WrongHttp(const Method& method,
                                                           const HttpRequest& request) const {
  const bool get = request.method == "GET" && method.side_effect_free();
  if (!get && request.method != "POST") {
    HttpResponse response = Refuse(405, {Code::kUnknown, "rpc.http_method",
                                         fmt::format("{} is not called by {}", method.name,
                                                     base::EscapeForDisplay(request.method))});
    response.headers.Add("Allow", method.side_effect_free() ? "GET, POST" : "POST");
    return response;
  }
  if (!get && !FormatOfContentType(request.headers.Get("Content-Type"))) {
    HttpResponse response =
        Refuse(415, {Code::kUnknown, "rpc.content_type",
                     fmt::format("the content type must be one of {}", kAcceptedTypes)});
    response.headers.Add("Accept-Post", std::string(kAcceptedTypes));
    return response;
  }
  return std::nullopt;
}

base::Result<Envelope> ConnectRouter::Impl::ReadEnvelope(const HttpRequest& request) const {
  if (request.method == "GET") {
    EXPANSE_ASSIGN_OR_RETURN(Envelope envelope, ReadGet(request));
    return envelope;
  }
  EXPANSE_RETURN_IF_ERROR(CheckVersion(request.headers.Get("Connect-Protocol-Version"), "1"));
  Envelope envelope;
  envelope.format = *FormatOfContentType(request.headers.Get("Content-Type"));
  EXPANSE_ASSIGN_OR_RETURN(envelope.compression,
                           ReadCompression(request.headers.Get("Content-Encoding")));
  return envelope;
}

// Who calls, if the method lets them in. Methods open to anybody take no notice of tokens, unless
// they list other kinds too.
base::Result<Caller> ConnectRouter::Impl::Authenticate(const Method& method,
                                                       const HttpRequest& request) {
  Caller caller;
  if (!method.access) {
    EXPANSE_RETURN_IF_ERROR(CheckAccess(method.access, caller));
  }
  const std::string_view authorization = request.headers.Get("Authorization");
  const bool open = LetsIn(*method.access, CallerKind::kAnonymous);
  if (open && (method.access->callers.size() == 1 || authorization.empty())) return caller;
  EXPANSE_ASSIGN_OR_RETURN(const std::string_view token, BearerToken(authorization));
  EXPANSE_ASSIGN_OR_RETURN(caller, authenticator.Authenticate(token));
  EXPANSE_RETURN_IF_ERROR(CheckAccess(method.access, caller));
  return caller;
}

base::Status ConnectRouter::Impl::Call(const Method& method, const HttpRequest& request,
                                       CallContext& context, HttpResponse& response) {
  EXPANSE_ASSIGN_OR_RETURN(const Timeout timeout, ReadTimeout(request, options));
  context.deadline = request.received + timeout.value;
  EXPANSE_ASSIGN_OR_RETURN(context.caller, Authenticate(method, request));
  EXPANSE_ASSIGN_OR_RETURN(Envelope envelope, ReadEnvelope(request));
  std::string_view body = request.method == "GET" ? envelope.query_message : request.body;
  std::string plain;
  const std::size_t most = context.caller.kind == CallerKind::kAnonymous
                               ? std::min(options.max_message, options.max_open_message)
                               : options.max_message;
  if (envelope.compression != Compression::kIdentity && !body.empty()) {
    EXPANSE_ASSIGN_OR_RETURN(plain, Decompress(envelope.compression, body, most));
    body = plain;
  } else if (body.size() > most) {
    return base::Fail(Code::kResourceExhausted, "rpc.message_too_large",
                      fmt::format("the message is larger than {} bytes", most));
  }
  const std::unique_ptr<google::protobuf::Message> in(method.request->New());
  const std::unique_ptr<google::protobuf::Message> out(method.response->New());
  EXPANSE_RETURN_IF_ERROR(ParseMessage(envelope.format, body, in.get()));
  if (envelope.format == WireFormat::kJson) {
    EXPANSE_RETURN_IF_ERROR(CheckEnumNames(body, *in->GetDescriptor()));
  }
  if (steady_clock::now() >= context.deadline) return DeadlinePassed();
  EXPANSE_RETURN_IF_ERROR(method.handler(context, *in, out.get()));
  if (timeout.asked_for && steady_clock::now() >= context.deadline) return DeadlinePassed();
  EXPANSE_ASSIGN_OR_RETURN(response.body, SerializeMessage(envelope.format, *out));
  response.headers.Add("Content-Type", fmt::format("application/{}", FormatName(envelope.format)));
  const Compression wanted = Negotiate(request.headers.Get("Accept-Encoding"));
  if (request.method == "GET") response.headers.Add("Vary", "Accept-Encoding");
  if (wanted != Compression::kIdentity && response.body.size() > options.compress_above) {
    response.body = Compress(wanted, response.body);
    response.headers.Add("Content-Encoding", std::string(CompressionName(wanted)));
  }
  return {};
}

HttpResponse ConnectRouter::Impl::Failure(const Method& method, const HttpRequest& request,
                                          base::Error error, const CallMetadata& metadata) {
  CallCounter(method.name, base::CodeName(error.code)).Add();
  if (IsInternal(error.code)) {
    base::LogError("rpc.failed", {{"method", method.name},
                                  {"request_id", request.request_id},
                                  {"code", base::CodeName(error.code)},
                                  {"reason", error.reason},
                                  {"error", error.message}});
    if (options.hide_internal_errors) {
      error.message = fmt::format("internal error, request id {}", request.request_id);
    }
  }
  const bool bad_compression = error.reason == "rpc.compression";
  if (!options.send_reasons) error.reason.clear();
  HttpResponse response = ErrorResponse(error, metadata.error_details);
  if (error.code == Code::kUnauthenticated) response.headers.Add("WWW-Authenticate", "Bearer");
  if (bad_compression) response.headers.Add("Accept-Encoding", std::string(kAcceptedEncodings));
  return response;
}

}  // namespace expanse::net
