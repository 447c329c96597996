#include "data/control_client.h"

#include <mutex>
#include <utility>

#include "expanse/control/v1/auth_service.pb.h"
#include "expanse/control/v1/compute_service.pb.h"

namespace expanse::data {
namespace {

namespace control = ::expanse::control::v1;

class ConnectControlClient final : public ControlClient {
 public:
  ConnectControlClient(std::unique_ptr<net::ConnectClient> client, std::string secret,
                       base::Clock& clock)
      : client_(std::move(client)), secret_(std::move(secret)), clock_(clock) {}

  base::Result<InstalledCompute> BurnInstallToken(std::string_view token,
                                                  evidence::SourceType type) override {
    control::BurnInstallTokenRequest request;
    request.set_install_token(std::string(token));
    request.set_type(static_cast<common::v1::SourceType>(type));
    auto response = Burn(request, /*fresh_token=*/false);
    // The key that signed our token may have been taken out of use before the token ended.
    if (!response && response.error().code == base::Code::kUnauthenticated &&
        response.error().reason.starts_with("token.")) {
      response = Burn(request, /*fresh_token=*/true);
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
      const control::BurnInstallTokenRequest& request, bool fresh_token) {
    net::CallOptions options;
    EXPANSE_ASSIGN_OR_RETURN(options.bearer, Bearer(fresh_token));
    return client_->Call<control::BurnInstallTokenResponse>(
        "expanse.control.v1.ComputeService.BurnInstallToken", request, options);
  }

  base::Result<std::string> Bearer(bool fresh) {
    const base::WallTime now = clock_.Now();
    {
      const std::lock_guard lock(mutex_);
      if (!fresh && now < renew_at_) return bearer_;
    }
    control::MintPlaneTokenRequest request;
    request.set_plane("data");
    request.set_secret(secret_);
    auto response = client_->Call<control::MintPlaneTokenResponse>(
        "expanse.control.v1.AuthService.MintPlaneToken", request);
    if (!response) {
      // Not the installer's fault, whatever the code was.
      return base::Fail(
          base::Code::kUnavailable, "control.plane_token",
          "the data plane cannot sign in to the control plane: " + response.error().message);
    }
    const std::lock_guard lock(mutex_);
    bearer_ = response->access().token();
    renew_at_ = base::WallTime(std::chrono::seconds(response->access().expires_at().seconds())) -
                std::chrono::minutes(1);
    return bearer_;
  }

  const std::unique_ptr<net::ConnectClient> client_;
  const std::string secret_;
  base::Clock& clock_;
  std::mutex mutex_;  // guards the two below
  std::string bearer_;
  base::WallTime renew_at_{};
};

}  // namespace

std::unique_ptr<ControlClient> CreateControlClient(std::unique_ptr<net::ConnectClient> client,
                                                   std::string plane_secret, base::Clock& clock) {
  return std::make_unique<ConnectControlClient>(std::move(client), std::move(plane_secret), clock);
}

}  // namespace expanse::data
