#include "cli/planes.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/version.h"
#include "cli/render.h"
#include "expanse/control/v1/auth_service.pb.h"
#include "expanse/control/v1/compute_service.pb.h"

namespace expanse::cli {
namespace {

// A token that ends within this is renewed first: it has to last for the call and some clock skew.
constexpr std::chrono::seconds kRenewBefore{30};
constexpr std::chrono::milliseconds kLockDeadline{15'000};

template <typename Response>  // LoginResponse or RefreshResponse
void TakeTokens(const Response& response, Session* session) {
  session->refresh_token = response.refresh_token();
  session->refresh_expires_at = FromTimestamp(response.refresh_expires_at());
  session->access_token = response.access().token();
  session->access_expires_at = FromTimestamp(response.access().expires_at());
  const auto& identity = response.identity();
  session->user_name = identity.user_name();
  session->organisation_id = identity.organisation_id();
  session->organisation_name = identity.organisation_name();
  session->submit_users.assign(identity.submit_users().begin(), identity.submit_users().end());
}

base::Status Discover(net::ConnectClient& client, Session* session) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto endpoints,
      client.Call<control::v1::GetEndpointsResponse>(
          "expanse.control.v1.DiscoveryService.GetEndpoints", control::v1::GetEndpointsRequest()));
  session->data_plane_url = NormaliseUrl(endpoints.data_plane_url());
  session->intelligence_plane_url = NormaliseUrl(endpoints.intelligence_plane_url());
  session->console_url = NormaliseUrl(endpoints.console_url());
  return {};
}

}  // namespace

std::string NormaliseUrl(std::string_view url) {
  url = base::Trim(url);
  while (url.ends_with('/')) url.remove_suffix(1);
  return std::string(url);
}

SessionStore StoreOf(const App& app) { return SessionStore(app.StatePath("session.json")); }

base::Result<std::unique_ptr<net::ConnectClient>> OpenClient(const App& app,
                                                             const std::string& url) {
  net::ConnectClientOptions options;
  options.base_url = url;
  options.timeout = app.timeout;
  options.connect_timeout = app.connect_timeout;
  options.user_agent = fmt::format("expanse-cli/{}", base::Version());
  return net::ConnectClient::Create(std::move(options));
}

base::Result<Session> SignIn(App& app, const std::string& control_plane_url,
                             const control::v1::LoginRequest& request) {
  const SessionStore store = StoreOf(app);
  EXPANSE_ASSIGN_OR_RETURN(const SessionLock lock, store.Lock(app.clock, kLockDeadline));
  EXPANSE_ASSIGN_OR_RETURN(const auto client, OpenClient(app, control_plane_url));
  EXPANSE_ASSIGN_OR_RETURN(
      const auto response,
      client->Call<control::v1::LoginResponse>("expanse.control.v1.AuthService.Login", request));
  Session session;
  session.control_plane_url = control_plane_url;
  TakeTokens(response, &session);
  // A one-time link is spent by now: whatever else fails, the session is kept.
  EXPANSE_RETURN_IF_ERROR(store.Save(session));
  EXPANSE_RETURN_IF_ERROR(Discover(*client, &session));
  EXPANSE_RETURN_IF_ERROR(store.Save(session));
  return session;
}

base::Result<Planes> Planes::Open(App& app) {
  const SessionStore store = StoreOf(app);
  EXPANSE_ASSIGN_OR_RETURN(auto session, store.Load());
  if (!session) {
    return base::Fail(base::Code::kUnauthenticated, "session.none", "nobody is signed in");
  }
  std::string url = NormaliseUrl(app.Variable("EXPANSE_API_URL"));
  if (url.empty()) url = session->control_plane_url;
  return Planes(app, std::move(*session), std::move(url));
}

bool Planes::AccessTokenIsFresh() const {
  return !session_.access_token.empty() &&
         app_->clock.Now() + kRenewBefore < session_.access_expires_at;
}

base::Status Planes::RenewUnlessDone(std::string spent, const std::string& organisation_id,
                                     bool force) {
  EXPANSE_ASSIGN_OR_RETURN(const SessionLock lock, store_.Lock(app_->clock, kLockDeadline));
  EXPANSE_ASSIGN_OR_RETURN(auto current, store_.Load());
  if (!current) {
    return base::Fail(base::Code::kUnauthenticated, "session.none",
                      "the session was ended by a logout");
  }
  session_ = std::move(*current);
  if (!force && session_.access_token != spent && AccessTokenIsFresh()) return {};
  EXPANSE_ASSIGN_OR_RETURN(const auto client, OpenClient(*app_, control_plane_url_));
  control::v1::RefreshRequest request;
  request.set_refresh_token(session_.refresh_token);
  request.set_organisation_id(organisation_id);
  auto response =
      client->Call<control::v1::RefreshResponse>("expanse.control.v1.AuthService.Refresh", request);
  if (!response) {
    if (response.error().code == base::Code::kUnauthenticated) {
      return std::unexpected(std::move(response).error().With("the session has ended"));
    }
    return std::unexpected(std::move(response).error().With("renewing the access token"));
  }
  TakeTokens(*response, &session_);
  EXPANSE_RETURN_IF_ERROR(
      store_.Save(session_));  // before anything else can fail: the old one is spent
  // Planes may have moved; if the question fails, what was known may still be right.
  if (Discover(*client, &session_)) EXPANSE_RETURN_IF_ERROR(store_.Save(session_));
  return {};
}

base::Status Planes::Renew(const std::string& organisation_id) {
  return RenewUnlessDone(session_.access_token, organisation_id, /*force=*/true);
}

base::Status Planes::SignOut() {
  EXPANSE_ASSIGN_OR_RETURN(const SessionLock lock, store_.Lock(app_->clock, kLockDeadline));
  if (auto current = store_.Load(); current && *current) session_ = std::move(**current);
  EXPANSE_RETURN_IF_ERROR(store_.Remove());
  EXPANSE_ASSIGN_OR_RETURN(const auto client, OpenClient(*app_, control_plane_url_));
  control::v1::LogoutRequest request;
  request.set_refresh_token(session_.refresh_token);
  auto response =
      client->Call<control::v1::LogoutResponse>("expanse.control.v1.AuthService.Logout", request);
  if (!response && response.error().code != base::Code::kUnauthenticated) {
    return std::unexpected(std::move(response).error());
  }
  return {};
}

base::Status Planes::Call(const std::string& url, std::string_view method,
                          const google::protobuf::Message& request,
                          google::protobuf::Message* response, std::chrono::milliseconds timeout) {
  // Renewing replaces the session that `url` may be a part of.
  const std::string target = url;  // NOLINT(performance-unnecessary-copy-initialization)
  if (!AccessTokenIsFresh()) {
    EXPANSE_RETURN_IF_ERROR(RenewUnlessDone(session_.access_token, {}, /*force=*/false));
  }
  if (client_ == nullptr || client_url_ != target) {
    EXPANSE_ASSIGN_OR_RETURN(client_, OpenClient(*app_, target));
    client_url_ = target;
  }
  auto status = client_->CallErased(method, request, response,
                                    {.bearer = session_.access_token, .timeout = timeout});
  if (status || status.error().code != base::Code::kUnauthenticated) return status;
  // Refused although it looked fresh: this host's clock is behind, or the signing key was replaced.
  EXPANSE_RETURN_IF_ERROR(RenewUnlessDone(session_.access_token, {}, /*force=*/false));
  return client_->CallErased(method, request, response,
                             {.bearer = session_.access_token, .timeout = timeout});
}

base::Status Planes::CallDiscovered(std::string Session::* url, std::string_view plane,
                                    std::string_view method,
                                    const google::protobuf::Message& request,
                                    google::protobuf::Message* response,
                                    std::chrono::milliseconds timeout) {
  if ((session_.*url).empty()) {
    EXPANSE_RETURN_IF_ERROR(Renew({}));
    if ((session_.*url).empty()) {
      return base::Fail(base::Code::kFailedPrecondition, fmt::format("session.no_{}_plane", plane),
                        fmt::format("{} names no {} plane", control_plane_url_, plane));
    }
  }
  return Call(session_.*url, method, request, response, timeout);
}

}  // namespace expanse::cli
