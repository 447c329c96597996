#include "data/control_client.h"

#include <utility>

#include "expanse/control/v1/compute_service.pb.h"
#include "net/control_trust_source.h"

namespace expanse::data {
namespace {

namespace control = ::expanse::control::v1;

class ConnectControlClient final : public ControlClient {
 public:
  ConnectControlClient(std::unique_ptr<net::ConnectClient> client, std::string secret,
                       base::Clock& clock)
      : client_(std::move(client)),
        trust_({.control_url = "", .plane = "data", .plane_secret = std::move(secret), .fetch = {}},
               *client_, clock) {}

  base::Result<InstalledCompute> BurnInstallToken(std::string_view token,
                                                  evidence::SourceType type) override {
    control::BurnInstallTokenRequest request;
    request.set_install_token(std::string(token));
    request.set_type(static_cast<common::v1::SourceType>(type));
    auto response = Burn(request);
    // The key that signed our own token may have been taken out of use before the token ended.
    if (!response && response.error().reason.starts_with("token.")) {
      trust_.DropPlaneToken();
      response = Burn(request);
    }
    if (!response) return std::unexpected(std::move(response).error());
    return InstalledCompute{.compute_id = response->compute_id(),
                            .compute_name = response->compute_name(),
                            .organisation_id = response->organisation_id(),
                            .type = static_cast<evidence::SourceType>(response->type()),
                            .credential = response->credential()};
  }

 private:
  base::Result<control::BurnInstallTokenResponse> Burn(
      const control::BurnInstallTokenRequest& request) {
    net::CallOptions options;
    EXPANSE_ASSIGN_OR_RETURN(options.bearer, trust_.PlaneToken());
    return client_->Call<control::BurnInstallTokenResponse>(
        "expanse.control.v1.ComputeService.BurnInstallToken", request, options);
  }

  const std::unique_ptr<net::ConnectClient> client_;
  net::ControlTrustSource trust_;  // for the plane's own access token
};

}  // namespace

std::unique_ptr<ControlClient> CreateControlClient(std::unique_ptr<net::ConnectClient> client,
                                                   std::string plane_secret, base::Clock& clock) {
  return std::make_unique<ConnectControlClient>(std::move(client), std::move(plane_secret), clock);
}

}  // namespace expanse::data
