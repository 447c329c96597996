#include "control/auth_service.h"

#include "base/crypto.h"
#include "control/secrets.h"

namespace expanse::control {

using base::Code;
using base::Fail;
using base::Result;

AuthService::AuthService(const ServiceDeps& deps)
    : deps_(deps),
      sessions_(deps),
      failures_(
          deps.metrics.GetCounter("expanse_control_authentication_failures_total",
                                  "Keys, links, credentials and refresh tokens that did not work")),
      limited_(deps.metrics.GetCounter("expanse_control_authentication_limited_total",
                                       "Attempts refused because the peer failed too often")) {}

void AuthService::AddTo(net::ConnectRouter& router) {
  const std::string prefix = "expanse.control.v1.AuthService.";
  AddMethod(router, prefix + "Login", *this, &AuthService::Login);
  AddMethod(router, prefix + "Refresh", *this, &AuthService::Refresh);
  AddMethod(router, prefix + "Logout", sessions_, &Sessions::Logout);
  AddMethod(router, prefix + "WhoAmI", sessions_, &Sessions::WhoAmI);
  AddMethod(router, prefix + "MintComputeToken", *this, &AuthService::MintComputeToken);
  AddMethod(router, prefix + "MintPlaneToken", *this, &AuthService::MintPlaneToken);
  AddMethod(router, prefix + "ListRevocations", *this, &AuthService::ListRevocations);
}

template <typename Attempt>
auto AuthService::Limited(const std::string& key, Attempt&& attempt) -> decltype(attempt()) {
  if (!deps_.limiter.Allows(key)) {
    limited_.Add();
    return Fail(Code::kResourceExhausted, "auth.too_many_failures",
                "too many failed attempts from this address; wait a few seconds");
  }
  auto result = attempt();
  if (!result && result.error().code == Code::kUnauthenticated) {
    failures_.Add();
    deps_.limiter.NoteFailure(key);
  }
  return result;
}

Result<v1::LoginResponse> AuthService::Login(const net::CallContext& context,
                                             const v1::LoginRequest& request) {
  return Limited("login " + PeerNetwork(context.peer),
                 [&] { return sessions_.Login(context, request); });
}

Result<v1::RefreshResponse> AuthService::Refresh(const net::CallContext& context,
                                                 const v1::RefreshRequest& request) {
  return Limited("refresh " + PeerNetwork(context.peer),
                 [&] { return sessions_.Refresh(context, request); });
}

Result<v1::MintComputeTokenResponse> AuthService::MintComputeToken(
    const net::CallContext& context, const v1::MintComputeTokenRequest& request) {
  EXPANSE_RETURN_IF_ERROR(CheckId(request.compute_id(), "compute_id"));
  // Per compute too: one revoked daemon must not lock out the others behind the same address.
  return Limited("compute " + request.compute_id() + " " + PeerNetwork(context.peer),
                 [&] { return MintForCompute(request); });
}

Result<v1::MintComputeTokenResponse> AuthService::MintForCompute(
    const v1::MintComputeTokenRequest& request) {
  EXPANSE_ASSIGN_OR_RETURN(const auto credential,
                           deps_.store.CurrentCredential(request.compute_id()));
  const std::string presented = base::Sha256Hex(request.credential());
  // One answer for unknown, revoked and wrong, after the same work.
  const bool same =
      base::ConstantTimeEqual(presented, credential ? credential->hash : std::string(64, '0'));
  if (!credential || !same) {
    return Fail(
        Code::kUnauthenticated, "compute.credential",
        "this compute credential is not valid; the compute was revoked or its credential replaced");
  }
  net::Caller caller;
  caller.kind = net::CallerKind::kCompute;
  caller.subject = credential->compute_id;
  caller.organisation_id = credential->organisation_id;
  caller.session_id = credential->id;
  EXPANSE_ASSIGN_OR_RETURN(const net::SignedToken token,
                           deps_.signer.Sign(caller, deps_.options.access_token_life));
  v1::MintComputeTokenResponse response;
  response.mutable_access()->set_token(token.token);
  ToProto(token.expires_at, response.mutable_access()->mutable_expires_at());
  return response;
}

Result<v1::MintPlaneTokenResponse> AuthService::MintPlaneToken(
    const net::CallContext&, const v1::MintPlaneTokenRequest& request) {
  // Not limited: a look costs one hash, and whoever shares a plane's address (a proxy in front)
  // could keep it from its tokens, and with them from the revocations.
  auto minted = MintForPlane(request);
  if (!minted) failures_.Add();
  return minted;
}

Result<v1::MintPlaneTokenResponse> AuthService::MintForPlane(
    const v1::MintPlaneTokenRequest& request) {
  const std::string presented = base::Sha256Hex(request.secret());
  bool matches = false;
  if (const auto plane = deps_.options.plane_secret_hashes.find(request.plane());
      plane != deps_.options.plane_secret_hashes.end()) {
    for (const std::string& hash : plane->second)
      matches |= base::ConstantTimeEqual(presented, hash);
  }
  if (!matches) {
    return Fail(Code::kUnauthenticated, "plane.secret",
                "the plane secret is not valid for this plane");
  }
  net::Caller caller;
  caller.kind = net::CallerKind::kPlane;
  caller.subject = request.plane();
  EXPANSE_ASSIGN_OR_RETURN(const net::SignedToken token,
                           deps_.signer.Sign(caller, deps_.options.access_token_life));
  v1::MintPlaneTokenResponse response;
  response.mutable_access()->set_token(token.token);
  ToProto(token.expires_at, response.mutable_access()->mutable_expires_at());
  return response;
}

Result<v1::ListRevocationsResponse> AuthService::ListRevocations(
    const net::CallContext&, const v1::ListRevocationsRequest&) {
  v1::ListRevocationsResponse response;
  for (const store::Revocation& revocation : deps_.revocations.List()) {
    auto* out = response.add_revocations();
    out->set_subject(revocation.subject);
    ToProto(revocation.revoked_at, out->mutable_revoked_at());
  }
  return response;
}

}  // namespace expanse::control
