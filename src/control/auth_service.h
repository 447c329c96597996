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

  base::Result<pb::LoginResponse> Login(const net::CallContext& context,
                                        const pb::LoginRequest& request);
  base::Result<pb::RefreshResponse> Refresh(const net::CallContext& context,
                                            const pb::RefreshRequest& request);
  base::Result<pb::MintComputeTokenResponse> MintComputeToken(
      const net::CallContext& context, const pb::MintComputeTokenRequest& request);
  base::Result<pb::MintPlaneTokenResponse> MintPlaneToken(const net::CallContext& context,
                                                          const pb::MintPlaneTokenRequest& request);
  base::Result<pb::ListRevocationsResponse> ListRevocations(
      const net::CallContext& context, const pb::ListRevocationsRequest& request);

 private:
  base::Result<pb::MintComputeTokenResponse> MintForCompute(
      const pb::MintComputeTokenRequest& request);
  base::Result<pb::MintPlaneTokenResponse> MintForPlane(const pb::MintPlaneTokenRequest& request);
  // Runs `attempt` unless `key` failed too often, and notes if it fails to authenticate.
  template <typename Attempt>
  auto Limited(const std::string& key, Attempt&& attempt) -> decltype(attempt());

  const ServiceDeps& deps_;
  Sessions sessions_;
  base::Counter& failures_;
  base::Counter& limited_;
};

}  // namespace expanse::control
