// Signing in and staying signed in: sessions, their refresh tokens and the access tokens that come
// with them.
#pragma once

#include <string_view>

#include "control/secrets.h"
#include "control/service_deps.h"
#include "expanse/control/v1/auth_service.pb.h"

namespace expanse::control {

// Thread-safe.
class Sessions {
 public:
  explicit Sessions(const ServiceDeps& deps) : deps_(deps) {}

  // Fail with unauthenticated auth.credentials for a key or link that does not work,
  // permission_denied auth.not_a_member, invalid_argument.
  base::Result<v1::LoginResponse> Login(const net::CallContext& context,
                                        const v1::LoginRequest& request);
  // Fails with unauthenticated session.ended or session.reused, permission_denied
  // auth.not_a_member.
  base::Result<v1::RefreshResponse> Refresh(const net::CallContext& context,
                                            const v1::RefreshRequest& request);
  base::Result<v1::LogoutResponse> Logout(const net::CallContext& context,
                                          const v1::LogoutRequest& request);
  base::Result<v1::WhoAmIResponse> WhoAmI(const net::CallContext& context,
                                          const v1::WhoAmIRequest& request);

 private:
  struct Proof {  // what a login showed
    std::string user_id;
    std::string key_id;
    std::string link_hash;
  };
  base::Result<Proof> Prove(const v1::LoginRequest& request, base::WallTime now);
  base::Result<store::Member> MemberIn(std::string_view user_id, std::string_view organisation_id);
  base::Result<net::SignedToken> Access(const store::Member& member, std::string_view session_id);

  const ServiceDeps& deps_;
};

}  // namespace expanse::control
