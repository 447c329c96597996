// Who calls: what a verified access token says.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace expanse::net {

enum class CallerKind : std::uint8_t { kAnonymous, kUser, kCompute, kPlane };

struct Caller {
  CallerKind kind = CallerKind::kAnonymous;
  std::string subject;          // user id, compute id or plane name
  std::string organisation_id;  // empty for planes
  std::string session_id;       // the `sid` claim: what a revocation names (a session or a credential)
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

struct CallContext {
  Caller caller;
  std::string request_id;
  std::string peer;
  std::chrono::steady_clock::time_point deadline;
};

}  // namespace expanse::net
