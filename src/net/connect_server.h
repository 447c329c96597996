// Unary calls of the Connect protocol (https://connectrpc.com/docs/protocol) over HttpServer:
// POST /<package>.<Service>/<Method>, application/json or application/proto, identity, gzip or
// zstd. This is the one place where permissions are enforced: what a method's `access` option does
// not let in is refused before the body is parsed; a method without the option is refused to
// everybody.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "net/caller.h"
#include "net/http.h"

namespace google::protobuf {
class Message;
class MethodDescriptor;
}  // namespace google::protobuf

namespace expanse::net {

// Who may call a method; see expanse/common/v1/access.proto.
struct AccessRule {
  std::vector<CallerKind> callers;
  std::string permission;  // that users must hold besides; empty: none
};

struct ConnectOptions {
  std::size_t max_message = 32U << 20;  // after decompression
  // The same for callers without a token: keys and links are short, and reading megabytes of JSON
  // costs many times their size.
  std::size_t max_open_message = 64U << 10;
  std::chrono::milliseconds default_timeout{30'000};
  std::chrono::milliseconds max_timeout{120'000};
  std::size_t compress_above = 1024;  // smaller responses are sent as they are
  std::string cors_origins;           // comma-separated; empty: none
  // Errors with code internal, unknown or data_loss are logged and go out without their message.
  bool hide_internal_errors = true;
  bool send_reasons = true;  // as ErrorReason details; off for suites that count the details
  // Where access rules come from; empty: the methods' (expanse.common.v1.access) option. No rule
  // means that nobody is let in.
  std::function<std::optional<AccessRule>(const google::protobuf::MethodDescriptor&)> access_rule;
};

// Not thread-safe while methods are added; Handle is thread-safe afterwards.
class ConnectRouter {
 public:
  ConnectRouter(ConnectOptions options, Authenticator& authenticator,
                base::MetricRegistry& metrics);
  ~ConnectRouter();

  // Adds a method by its full name, "expanse.control.v1.AuthService.Login". A name that is not in
  // the contract, or types that are not the method's own, abort: that is a bug of ours.
  template <typename Request, typename Response>
  void Add(std::string_view method,
           std::function<base::Result<Response>(const CallContext&, const Request&)> handler) {
    AddErased(method, Request::default_instance(), Response::default_instance(),
              [handler = std::move(handler)](const CallContext& context,
                                             const google::protobuf::Message& in,
                                             google::protobuf::Message* out) -> base::Status {
                auto response = handler(context, static_cast<const Request&>(in));
                if (!response) return std::unexpected(std::move(response).error());
                *static_cast<Response*>(out) = std::move(*response);
                return {};
              });
  }

  // True if the path names a service that was added (so the caller can route the rest elsewhere).
  bool Owns(std::string_view path) const;
  HttpResponse Handle(const HttpRequest& request);

 private:
  using Erased = std::function<base::Status(const CallContext&, const google::protobuf::Message&,
                                            google::protobuf::Message*)>;
  void AddErased(std::string_view method, const google::protobuf::Message& request,
                 const google::protobuf::Message& response, Erased handler);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::net
