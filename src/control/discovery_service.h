// expanse.control.v1.DiscoveryService: where the planes are, for anybody who asks.
#pragma once

#include "control/service_deps.h"
#include "expanse/control/v1/compute_service.pb.h"

namespace expanse::control {

// Thread-safe.
class DiscoveryService {
 public:
  explicit DiscoveryService(const ServiceDeps& deps) : deps_(deps) {}
  void AddTo(net::ConnectRouter& router);
  base::Result<v1::GetEndpointsResponse> GetEndpoints(const net::CallContext& context,
                                                      const v1::GetEndpointsRequest& request);

 private:
  const ServiceDeps& deps_;
};

}  // namespace expanse::control
