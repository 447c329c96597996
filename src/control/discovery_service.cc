#include "control/discovery_service.h"

namespace expanse::control {

void DiscoveryService::AddTo(net::ConnectRouter& router) {
  AddMethod(router, "expanse.control.v1.DiscoveryService.GetEndpoints", *this,
            &DiscoveryService::GetEndpoints);
}

base::Result<v1::GetEndpointsResponse> DiscoveryService::GetEndpoints(
    const net::CallContext&, const v1::GetEndpointsRequest&) {
  v1::GetEndpointsResponse response;
  response.set_control_plane_url(deps_.options.public_url);
  response.set_data_plane_url(deps_.options.data_public_url);
  response.set_intelligence_plane_url(deps_.options.intelligence_public_url);
  response.set_console_url(deps_.options.console_url);
  return response;
}

}  // namespace expanse::control
