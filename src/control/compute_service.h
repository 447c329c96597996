// expanse.control.v1.ComputeService: computes from registration to revocation, the exchange of
// install tokens, and heartbeats. Carries no workload data.
#pragma once

#include "control/service_deps.h"
#include "expanse/control/v1/compute_service.pb.h"

namespace expanse::control {

// Thread-safe. A compute of another organisation is answered like one that does not exist.
class ComputeService {
 public:
  explicit ComputeService(const ServiceDeps& deps);
  void AddTo(net::ConnectRouter& router);

  // Fails with compute.name, compute.name_taken, compute.type, team.not_found.
  base::Result<v1::RegisterComputeResponse> RegisterCompute(
      const net::CallContext& context, const v1::RegisterComputeRequest& request);
  base::Result<v1::ListComputesResponse> ListComputes(const net::CallContext& context,
                                                      const v1::ListComputesRequest& request);
  base::Result<v1::GetComputeResponse> GetCompute(const net::CallContext& context,
                                                  const v1::GetComputeRequest& request);
  base::Result<v1::RevokeComputeResponse> RevokeCompute(const net::CallContext& context,
                                                        const v1::RevokeComputeRequest& request);
  base::Result<v1::ReissueInstallTokenResponse> ReissueInstallToken(
      const net::CallContext& context, const v1::ReissueInstallTokenRequest& request);
  // For the data plane alone. Fails with install_token.unknown, .used, .expired, .type.
  base::Result<v1::BurnInstallTokenResponse> BurnInstallToken(
      const net::CallContext& context, const v1::BurnInstallTokenRequest& request);
  base::Result<v1::HeartbeatResponse> Heartbeat(const net::CallContext& context,
                                                const v1::HeartbeatRequest& request);

 private:
  struct IssuedToken {
    std::string secret;
    store::NewInstallToken row;
  };
  IssuedToken NewToken(base::WallTime now) const;
  void Fill(const store::Compute& compute, base::WallTime now, v1::Compute* out) const;
  // compute, install_token and the two URLs of a response.
  template <typename Response>
  Response Answer(const store::Compute& compute, const IssuedToken& token,
                  base::WallTime now) const;

  const ServiceDeps& deps_;
  base::Counter& heartbeats_;
};

}  // namespace expanse::control
