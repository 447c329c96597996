// The control plane's own authenticator: the keys and revocations are in this process.
#pragma once

#include <string_view>

#include "base/time.h"
#include "control/revocation_list.h"
#include "net/caller.h"
#include "net/key_ring.h"
#include "net/token.h"
#include "net/token_cache.h"

namespace expanse::control {

// Thread-safe; what it refers to outlives it.
class LocalAuthenticator final : public net::Authenticator {
 public:
  LocalAuthenticator(net::TokenPolicy policy, const net::KeyRing& keys,
                     const RevocationList& revocations, base::Clock& clock)
      : verifier_(std::move(policy)), keys_(keys), revocations_(revocations), clock_(clock) {}

  base::Result<net::Caller> Authenticate(std::string_view bearer_token) override {
    EXPANSE_ASSIGN_OR_RETURN(net::Caller caller,
                             verifier_.Verify(bearer_token, keys_.Public(), clock_.Now()));
    if (revocations_.Contains(caller.session_id) || revocations_.Contains(caller.subject)) {
      return base::Fail(base::Code::kUnauthenticated, "token.revoked", "this access was revoked");
    }
    return caller;
  }

 private:
  net::CachingVerifier verifier_;
  const net::KeyRing& keys_;
  const RevocationList& revocations_;
  base::Clock& clock_;
};

}  // namespace expanse::control
