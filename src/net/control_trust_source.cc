#include "net/control_trust_source.h"

#include "expanse/control/v1/auth_service.pb.h"

namespace expanse::net {
namespace {

using base::Result;
namespace pb = expanse::control::v1;

constexpr std::chrono::seconds kRenewBefore{60};

base::WallTime FromProto(const google::protobuf::Timestamp& time) {
  return base::WallTime(std::chrono::seconds(time.seconds()) +
                        std::chrono::microseconds(time.nanos() / 1000));
}

}  // namespace

Result<std::string> ControlTrustSource::FetchJwks() {
  return FetchText(options_.control_url + "/.well-known/jwks.json", options_.fetch);
}

Result<std::string> ControlTrustSource::PlaneToken() {
  {
    const std::lock_guard lock(mutex_);
    if (!token_.empty() && clock_.Now() + kRenewBefore < token_expires_) return token_;
  }
  pb::MintPlaneTokenRequest request;
  request.set_plane(options_.plane);
  request.set_secret(options_.plane_secret);
  EXPANSE_ASSIGN_OR_RETURN(const auto response,
                           client_.Call<pb::MintPlaneTokenResponse>(
                               "expanse.control.v1.AuthService.MintPlaneToken", request));
  const std::lock_guard lock(mutex_);
  token_ = response.access().token();
  token_expires_ = FromProto(response.access().expires_at());
  return token_;
}

void ControlTrustSource::DropPlaneToken() {
  const std::lock_guard lock(mutex_);
  token_.clear();
}

Result<std::vector<std::string>> ControlTrustSource::FetchRevocations() {
  EXPANSE_ASSIGN_OR_RETURN(std::string token, PlaneToken());
  auto subjects = ListRevocations(token);
  if (subjects || subjects.error().code != base::Code::kUnauthenticated) return subjects;
  // Control has other keys now (restored from a backup, say): one more try with a new token.
  DropPlaneToken();
  EXPANSE_ASSIGN_OR_RETURN(token, PlaneToken());
  return ListRevocations(token);
}

Result<std::vector<std::string>> ControlTrustSource::ListRevocations(const std::string& token) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto response,
      client_.Call<pb::ListRevocationsResponse>("expanse.control.v1.AuthService.ListRevocations",
                                                pb::ListRevocationsRequest(), {.bearer = token}));
  std::vector<std::string> subjects;
  subjects.reserve(static_cast<std::size_t>(response.revocations_size()));
  for (const auto& revocation : response.revocations()) subjects.push_back(revocation.subject());
  return subjects;
}

}  // namespace expanse::net
