// Access tokens: JWTs (RFC 7519) signed with ES256, carrying a Caller. Claims: iss, aud, sub, iat,
// nbf, exp, jti, and ours: kind ("user", "compute", "plane"), org, sid, perms.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "net/caller.h"
#include "net/key_ring.h"
#include "net/token_keys.h"

namespace expanse::net {

struct TokenPolicy {
  std::string issuer = "expanse-control";
  std::string audience = "expanse";
  std::chrono::seconds clock_skew{30};  // between the machines of a deployment
};

struct SignedToken {
  std::string token;
  base::WallTime expires_at{};
};

// Thread-safe. The ring and the clock outlive it.
class TokenSigner {
 public:
  TokenSigner(TokenPolicy policy, const KeyRing& keys, base::Clock& clock)
      : policy_(std::move(policy)), keys_(keys), clock_(clock) {}
  // A token that says what `caller` says and lives for `life`; caller.expires_at is not read. Fails
  // with token.sign if the library does.
  base::Result<SignedToken> Sign(const Caller& caller, std::chrono::seconds life) const;

 private:
  const TokenPolicy policy_;
  const KeyRing& keys_;
  base::Clock& clock_;
};

// Thread-safe and without state: keys and time are arguments.
class TokenVerifier {
 public:
  explicit TokenVerifier(TokenPolicy policy) : policy_(std::move(policy)) {}
  // Fails with unauthenticated: token.malformed (not a JWT of ours; any algorithm but ES256),
  // token.unknown_key, token.signature, token.foreign (issuer or audience), token.not_yet_valid,
  // token.expired. Costs about half a millisecond
  // of CPU; see token_cache.h.
  base::Result<Caller> Verify(std::string_view token, const PublicKeySet& keys,
                              base::WallTime now) const;

 private:
  const TokenPolicy policy_;
};

}  // namespace expanse::net
