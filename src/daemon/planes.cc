#include "daemon/planes.h"

#include <utility>

#include "net/connect_client.h"

namespace expanse::daemon {
namespace {

class ConnectPlanes final : public Planes {
 public:
  ConnectPlanes(std::unique_ptr<net::ConnectClient> control,
                std::unique_ptr<net::ConnectClient> data)
      : control_(std::move(control)), data_(std::move(data)) {}

  base::Result<control::v1::MintComputeTokenResponse> MintComputeToken(
      const control::v1::MintComputeTokenRequest& request,
      std::chrono::milliseconds timeout) override {
    return control_->Call<control::v1::MintComputeTokenResponse>(
        "expanse.control.v1.AuthService.MintComputeToken", request, {.timeout = timeout});
  }
  base::Result<control::v1::HeartbeatResponse> Heartbeat(
      const std::string& token, const control::v1::HeartbeatRequest& request,
      std::chrono::milliseconds timeout) override {
    return control_->Call<control::v1::HeartbeatResponse>(
        "expanse.control.v1.ComputeService.Heartbeat", request,
        {.bearer = token, .timeout = timeout});
  }
  base::Result<data::v1::IngestResponse> Ingest(const std::string& token,
                                                const data::v1::IngestRequest& request,
                                                std::chrono::milliseconds timeout) override {
    return data_->Call<data::v1::IngestResponse>("expanse.data.v1.IngestService.Ingest", request,
                                                 {.bearer = token, .timeout = timeout});
  }
  base::Result<data::v1::ReportHealthResponse> ReportHealth(
      const std::string& token, const data::v1::ReportHealthRequest& request,
      std::chrono::milliseconds timeout) override {
    return data_->Call<data::v1::ReportHealthResponse>("expanse.data.v1.IngestService.ReportHealth",
                                                       request,
                                                       {.bearer = token, .timeout = timeout});
  }
  base::Result<data::v1::ReportClusterStateResponse> ReportClusterState(
      const std::string& token, const data::v1::ReportClusterStateRequest& request,
      std::chrono::milliseconds timeout) override {
    return data_->Call<data::v1::ReportClusterStateResponse>(
        "expanse.data.v1.IngestService.ReportClusterState", request,
        {.bearer = token, .timeout = timeout});
  }

 private:
  std::unique_ptr<net::ConnectClient> control_;
  std::unique_ptr<net::ConnectClient> data_;
};

}  // namespace

base::Result<std::unique_ptr<Planes>> ConnectToPlanes(const std::string& control_plane_url,
                                                      const std::string& data_plane_url,
                                                      const std::string& user_agent) {
  net::ConnectClientOptions options;
  options.compression = net::Compression::kZstd;
  options.user_agent = user_agent;
  // The uploader and the heartbeats have a back-off of their own.
  options.max_attempts = 1;
  options.max_response = 4U << 20;
  options.max_idle_connections = 2;
  options.base_url = control_plane_url;
  EXPANSE_ASSIGN_OR_RETURN(auto control, net::ConnectClient::Create(options));
  options.base_url = data_plane_url;
  EXPANSE_ASSIGN_OR_RETURN(auto data, net::ConnectClient::Create(options));
  return std::make_unique<ConnectPlanes>(std::move(control), std::move(data));
}

}  // namespace expanse::daemon
