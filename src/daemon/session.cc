#include "daemon/session.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kAskAgainAfter = 5min;

base::WallTime FromProtoTime(const google::protobuf::Timestamp& time) {
  return base::FromMicros(time.seconds() * 1'000'000 + time.nanos() / 1000);
}

bool IsRefusal(base::Code code) {
  return code == base::Code::kUnauthenticated || code == base::Code::kPermissionDenied;
}

}  // namespace

Session::Session(Planes& planes, net::ComputeIdentity identity, base::Clock& clock,
                 std::function<base::Result<net::ComputeIdentity>()> reload)
    : planes_(planes), clock_(clock), reload_(std::move(reload)), identity_(std::move(identity)) {}

bool Session::revoked() const {
  std::scoped_lock lock(mutex_);
  return refused_at_.has_value();
}

std::string Session::compute_id() const {
  std::scoped_lock lock(mutex_);
  return identity_.compute_id;
}

void Session::Forget(const std::string& token) {
  std::scoped_lock lock(mutex_);
  if (token_ == token) token_.clear();
}

void Session::Refused(const base::Error& error) {
  bool first = false;
  {
    std::scoped_lock lock(mutex_);
    first = !refused_at_;
    refused_at_ = clock_.Mono();
    token_.clear();
  }
  if (first) {
    base::LogError(
        "session.revoked",
        {{"reason", error.reason},
         {"message", error.message},
         {"next", "evidence is kept; register the compute again or re-issue its install token"}});
  }
  // Both planes must stay the same: those are read once, at start.
  auto fresh = reload_();
  if (!fresh) return;
  std::scoped_lock lock(mutex_);
  if (fresh->compute_id == identity_.compute_id && fresh->credential != identity_.credential) {
    identity_.credential = fresh->credential;
    refused_at_.reset();
    base::LogInfo("session.new_credential");
  }
}

base::Result<std::string> Session::Mint(std::chrono::milliseconds timeout) {
  control::v1::MintComputeTokenRequest request;
  {
    std::scoped_lock lock(mutex_);
    request.set_compute_id(identity_.compute_id);
    request.set_credential(identity_.credential);
  }
  auto response = planes_.MintComputeToken(request, timeout);
  if (!response) {
    if (IsRefusal(response.error().code) || response.error().code == base::Code::kNotFound) {
      Refused(response.error());
      return base::Fail(
          base::Code::kPermissionDenied, "session.revoked",
          "the control plane refused the compute's credential: " + response.error().message);
    }
    return std::unexpected(std::move(response.error()).With("access token"));
  }
  // Our wall clock may be wrong: what it makes of the expiry is only believed within bounds, and a
  // token that turns out to be over is renewed when a plane says so.
  const auto life = std::chrono::duration_cast<base::Duration>(
      FromProtoTime(response->access().expires_at()) - clock_.Now());
  const auto good_for = std::clamp<base::Duration>(life * 4 / 5, 30s, 1h);
  std::scoped_lock lock(mutex_);
  token_ = response->access().token();
  renew_at_ = clock_.Mono() + good_for;
  refused_at_.reset();
  return token_;
}

base::Result<std::string> Session::Token(std::chrono::milliseconds timeout) {
  {
    std::scoped_lock lock(mutex_);
    if (refused_at_ && clock_.Mono() - *refused_at_ < kAskAgainAfter) {
      return base::Fail(base::Code::kPermissionDenied, "session.revoked",
                        "the control plane refused the compute's credential");
    }
    if (!token_.empty() && clock_.Mono() < renew_at_) return token_;
  }
  return Mint(timeout);
}

template <typename Response, typename Call>
base::Result<Response> Session::WithToken(std::chrono::milliseconds timeout, const Call& call) {
  EXPANSE_ASSIGN_OR_RETURN(std::string token, Token(timeout));
  auto response = call(token);
  if (response || !IsRefusal(response.error().code)) return response;
  // Over, or revoked: only minting tells.
  Forget(token);
  EXPANSE_ASSIGN_OR_RETURN(token, Token(timeout));
  return call(token);
}

base::Result<data::v1::IngestResponse> Session::Ingest(const data::v1::IngestRequest& request,
                                                       std::chrono::milliseconds timeout) {
  return WithToken<data::v1::IngestResponse>(
      timeout, [&](const std::string& token) { return planes_.Ingest(token, request, timeout); });
}

base::Result<control::v1::HeartbeatResponse> Session::Heartbeat(
    const control::v1::HeartbeatRequest& request, std::chrono::milliseconds timeout) {
  return WithToken<control::v1::HeartbeatResponse>(timeout, [&](const std::string& token) {
    return planes_.Heartbeat(token, request, timeout);
  });
}

base::Result<data::v1::ReportHealthResponse> Session::ReportHealth(
    const data::v1::ReportHealthRequest& request, std::chrono::milliseconds timeout) {
  return WithToken<data::v1::ReportHealthResponse>(timeout, [&](const std::string& token) {
    return planes_.ReportHealth(token, request, timeout);
  });
}

base::Result<data::v1::ReportClusterStateResponse> Session::ReportClusterState(
    const data::v1::ReportClusterStateRequest& request, std::chrono::milliseconds timeout) {
  return WithToken<data::v1::ReportClusterStateResponse>(timeout, [&](const std::string& token) {
    return planes_.ReportClusterState(token, request, timeout);
  });
}

}  // namespace expanse::daemon
