// Who calls, and what goes with a call besides its message.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"

namespace expanse::net {

enum class CallerKind : std::uint8_t { kAnonymous, kUser, kCompute, kPlane };

struct Caller {
  CallerKind kind = CallerKind::kAnonymous;
  std::string subject;          // user id, compute id or plane name
  std::string organisation_id;  // empty for planes
  std::string session_id;  // the `sid` claim: what a revocation names (a session or a credential)
  std::vector<std::string> permissions;
  base::WallTime expires_at{};
};

// Turns a bearer token into a Caller. Thread-safe.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // Fails with unauthenticated: token.malformed, token.expired, token.signature, token.revoked.
  virtual base::Result<Caller> Authenticate(std::string_view bearer_token) = 0;
};

// A message attached to an error (https://connectrpc.com/docs/protocol#error-end-stream).
struct ErrorDetail {
  std::string type;   // full name, "expanse.common.v1.ErrorReason"
  std::string value;  // serialized
};

// What travels with a response or an error besides the message.
struct CallMetadata {
  Headers headers;
  Headers trailers;  // on the wire as "trailer-" headers
  std::vector<ErrorDetail> error_details;
};

// What a handler knows of its call. Valid during the call.
struct CallContext {
  Caller caller;
  std::string request_id;
  std::string peer;
  std::chrono::steady_clock::time_point deadline;
  const HttpRequest* request =
      nullptr;                       // the raw request; null in tests that call a handler directly
  CallMetadata* response = nullptr;  // what to send besides the message; may be null as well
};

}  // namespace expanse::net
