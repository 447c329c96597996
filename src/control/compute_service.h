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
  base::Result<pb::RegisterComputeResponse> RegisterCompute(
      const net::CallContext& context, const pb::RegisterComputeRequest& request);
  base::Result<pb::ListComputesResponse> ListComputes(const net::CallContext& context,
                                                      const pb::ListComputesRequest& request);
  base::Result<pb::GetComputeResponse> GetCompute(const net::CallContext& context,
                                                  const pb::GetComputeRequest& request);
  base::Result<pb::RevokeComputeResponse> RevokeCompute(const net::CallContext& context,
                                                        const pb::RevokeComputeRequest& request);
  base::Result<pb::ReissueInstallTokenResponse> ReissueInstallToken(
      const net::CallContext& context, const pb::ReissueInstallTokenRequest& request);
  // For the data plane alone. Fails with install_token.unknown, .used, .expired, .type.
  base::Result<pb::BurnInstallTokenResponse> BurnInstallToken(
      const net::CallContext& context, const pb::BurnInstallTokenRequest& request);
  base::Result<pb::HeartbeatResponse> Heartbeat(const net::CallContext& context,
                                                const pb::HeartbeatRequest& request);

 private:
  struct IssuedToken {
    std::string secret;
    store::NewInstallToken row;
  };
  IssuedToken NewToken(base::WallTime now) const;
  void Fill(const store::Compute& compute, base::WallTime now, pb::Compute* out) const;
  // compute, install_token and the two URLs of a response.
  template <typename Response>
  Response Answer(const store::Compute& compute, const IssuedToken& token,
                  base::WallTime now) const;

  const ServiceDeps& deps_;
  base::Counter& heartbeats_;
};

}  // namespace expanse::control
