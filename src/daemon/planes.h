// What the daemon asks of the control and data planes. An interface, so that tests can be the
// planes.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "expanse/control/v1/auth_service.pb.h"
#include "expanse/control/v1/compute_service.pb.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::daemon {

// Thread-safe; every call ends within `timeout`. Errors carry the server's code and reason, or
// client.* when there was no answer.
class Planes {
 public:
  virtual ~Planes() = default;
  virtual base::Result<control::v1::MintComputeTokenResponse> MintComputeToken(
      const control::v1::MintComputeTokenRequest& request, std::chrono::milliseconds timeout) = 0;
  virtual base::Result<control::v1::HeartbeatResponse> Heartbeat(
      const std::string& token, const control::v1::HeartbeatRequest& request,
      std::chrono::milliseconds timeout) = 0;
  virtual base::Result<data::v1::IngestResponse> Ingest(const std::string& token,
                                                        const data::v1::IngestRequest& request,
                                                        std::chrono::milliseconds timeout) = 0;
  virtual base::Result<data::v1::ReportHealthResponse> ReportHealth(
      const std::string& token, const data::v1::ReportHealthRequest& request,
      std::chrono::milliseconds timeout) = 0;
  virtual base::Result<data::v1::ReportClusterStateResponse> ReportClusterState(
      const std::string& token, const data::v1::ReportClusterStateRequest& request,
      std::chrono::milliseconds timeout) = 0;
};

// Over Connect, with zstd bodies. Fails with client.url.
base::Result<std::unique_ptr<Planes>> ConnectToPlanes(const std::string& control_plane_url,
                                                      const std::string& data_plane_url,
                                                      const std::string& user_agent);

}  // namespace expanse::daemon
