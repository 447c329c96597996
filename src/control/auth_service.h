// expanse.control.v1.AuthService: sessions (sessions.h), tokens of computes and planes,
// revocations.
#pragma once

#include <string>

#include "control/service_deps.h"
#include "control/sessions.h"
#include "expanse/control/v1/auth_service.pb.h"

namespace expanse::control {

// Thread-safe.
class AuthService {
 public:
  explicit AuthService(const ServiceDeps& deps);
  void AddTo(net::ConnectRouter& router);

  base::Result<v1::LoginResponse> Login(const net::CallContext& context,
                                        const v1::LoginRequest& request);
  base::Result<v1::RefreshResponse> Refresh(const net::CallContext& context,
                                            const v1::RefreshRequest& request);
  base::Result<v1::MintComputeTokenResponse> MintComputeToken(
      const net::CallContext& context, const v1::MintComputeTokenRequest& request);
  base::Result<v1::MintPlaneTokenResponse> MintPlaneToken(const net::CallContext& context,
                                                          const v1::MintPlaneTokenRequest& request);
  base::Result<v1::ListRevocationsResponse> ListRevocations(
      const net::CallContext& context, const v1::ListRevocationsRequest& request);

 private:
  base::Result<v1::MintComputeTokenResponse> MintForCompute(
      const v1::MintComputeTokenRequest& request);
  base::Result<v1::MintPlaneTokenResponse> MintForPlane(const v1::MintPlaneTokenRequest& request);
  // Runs `attempt` unless `key` failed too often, and notes if it fails to authenticate.
  template <typename Attempt>
  auto Limited(const std::string& key, Attempt&& attempt) -> decltype(attempt());

  const ServiceDeps& deps_;
  Sessions sessions_;
  base::Counter& failures_;
  base::Counter& limited_;
};

}  // namespace expanse::control
