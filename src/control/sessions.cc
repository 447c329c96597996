#include "control/sessions.h"

#include "base/crypto.h"
#include "control/permissions.h"

namespace expanse::control {
namespace {

using base::Code;
using base::Fail;
using base::Result;

std::unexpected<base::Error> BadCredentials() {
  return Fail(Code::kUnauthenticated, "auth.credentials",
              "this key or sign-in link is not valid; it may have been used, revoked or expired");
}
std::unexpected<base::Error> SessionEnded() {
  return Fail(Code::kUnauthenticated, "session.ended", "the session has ended; sign in again");
}

void Fill(const store::Member& member, v1::Identity* out) {
  out->set_user_id(member.user.id);
  out->set_user_name(member.user.name);
  out->set_organisation_id(member.organisation.id);
  out->set_organisation_name(member.organisation.name);
  out->set_role(member.role.name);
  for (const std::string& permission : PermissionsOf(member.role)) out->add_permissions(permission);
  for (const std::string& name : member.user.submit_users) out->add_submit_users(name);
}

// LoginResponse and RefreshResponse have the same members.
template <typename Response>
Response Answer(const store::Member& member, const store::Session& session,
                const RefreshToken& refresh, const net::SignedToken& access) {
  Response response;
  response.set_refresh_token(refresh.Text());
  ToProto(session.expires_at, response.mutable_refresh_expires_at());
  response.mutable_access()->set_token(access.token);
  ToProto(access.expires_at, response.mutable_access()->mutable_expires_at());
  Fill(member, response.mutable_identity());
  return response;
}

base::Status CheckOrganisation(const std::string& id) {
  return id.empty() ? base::Status() : CheckId(id, "organisation_id");
}

}  // namespace

Result<Sessions::Proof> Sessions::Prove(const v1::LoginRequest& request, base::WallTime now) {
  switch (request.credential_case()) {
    case v1::LoginRequest::kApiKey: {
      if (!base::IsSecret(request.api_key(), kUserKeyPrefix)) return BadCredentials();
      EXPANSE_ASSIGN_OR_RETURN(const auto key,
                               deps_.store.FindKey(base::Sha256Hex(request.api_key())));
      if (!key) return BadCredentials();
      return Proof{.user_id = key->user_id, .key_id = key->id, .link_hash = {}};
    }
    case v1::LoginRequest::kSignInToken: {
      if (!base::IsSecret(request.sign_in_token(), kSignInLinkPrefix)) return BadCredentials();
      EXPANSE_ASSIGN_OR_RETURN(const auto link, deps_.store.FindSignInLink(
                                                    base::Sha256Hex(request.sign_in_token()), now));
      if (!link) return BadCredentials();
      return Proof{.user_id = link->user_id, .key_id = {}, .link_hash = link->hash};
    }
    case v1::LoginRequest::CREDENTIAL_NOT_SET:
      break;
  }
  return Fail(Code::kInvalidArgument, "auth.no_credential", "give an api_key or a sign_in_token");
}

Result<store::Member> Sessions::MemberIn(std::string_view user_id,
                                         std::string_view organisation_id) {
  EXPANSE_ASSIGN_OR_RETURN(auto member, deps_.store.FindMember(user_id, organisation_id));
  if (!member) {
    return Fail(Code::kPermissionDenied, "auth.not_a_member",
                "you are not a member of that organisation");
  }
  return std::move(*member);
}

Result<net::SignedToken> Sessions::Access(const store::Member& member,
                                          std::string_view session_id) {
  net::Caller caller;
  caller.kind = net::CallerKind::kUser;
  caller.subject = member.user.id;
  caller.organisation_id = member.organisation.id;
  caller.session_id = session_id;
  caller.permissions = PermissionsOf(member.role);
  return deps_.signer.Sign(caller, deps_.options.access_token_life);
}

Result<v1::LoginResponse> Sessions::Login(const net::CallContext& context,
                                          const v1::LoginRequest& request) {
  EXPANSE_RETURN_IF_ERROR(CheckOrganisation(request.organisation_id()));
  const base::WallTime now = deps_.clock.Now();
  EXPANSE_ASSIGN_OR_RETURN(const Proof proof, Prove(request, now));
  EXPANSE_ASSIGN_OR_RETURN(const store::Member member,
                           MemberIn(proof.user_id, request.organisation_id()));
  const store::Session session{.id = base::NewUuid(now),
                               .user_id = member.user.id,
                               .organisation_id = member.organisation.id,
                               .key_id = proof.key_id,
                               .created_at = now,
                               .expires_at = now + deps_.options.session_life};
  const RefreshToken refresh = RefreshToken::New();
  EXPANSE_ASSIGN_OR_RETURN(const net::SignedToken access, Access(member, session.id));
  store::AuditEntry audit = AuditOf(context, now, "session.start", session.id,
                                    proof.key_id.empty() ? "sign-in link" : "key " + proof.key_id);
  audit.organisation_id = member.organisation.id;
  audit.actor_kind = "user";
  audit.actor_id = member.user.id;
  const auto started = deps_.store.StartSession(session, refresh.Hashes(), proof.link_hash, audit);
  if (!started && started.error().reason == "session.credential") return BadCredentials();
  EXPANSE_RETURN_IF_ERROR(started);
  return Answer<v1::LoginResponse>(member, session, refresh, access);
}

Result<v1::RefreshResponse> Sessions::Refresh(const net::CallContext& context,
                                              const v1::RefreshRequest& request) {
  EXPANSE_RETURN_IF_ERROR(CheckOrganisation(request.organisation_id()));
  const auto presented = RefreshToken::Parse(request.refresh_token());
  if (!presented) return SessionEnded();
  const base::WallTime now = deps_.clock.Now();
  EXPANSE_ASSIGN_OR_RETURN(auto session,
                           deps_.store.FindSession(presented->Hashes().selector, now));
  if (!session) return SessionEnded();
  const std::string organisation =
      request.organisation_id().empty() ? session->organisation_id : request.organisation_id();
  EXPANSE_ASSIGN_OR_RETURN(const store::Member member, MemberIn(session->user_id, organisation));
  // Signed before the rotation: a failure here must not cost the caller the session.
  EXPANSE_ASSIGN_OR_RETURN(const net::SignedToken access, Access(member, session->id));
  const RefreshToken next = presented->Next();
  store::AuditEntry audit = AuditOf(context, now, "session.refresh", session->id);
  audit.organisation_id = organisation;
  audit.actor_kind = "user";
  audit.actor_id = session->user_id;
  session->organisation_id = organisation;
  session->expires_at = now + deps_.options.session_life;
  EXPANSE_ASSIGN_OR_RETURN(
      const store::Rotation rotation,
      deps_.store.RotateSession(*session, presented->Hashes(), next.Hashes().secret, audit));
  switch (rotation) {
    case store::Rotation::kDone:
      return Answer<v1::RefreshResponse>(member, *session, next, access);
    case store::Rotation::kReused:
      deps_.revocations.Add(session->id, now);
      return Fail(Code::kUnauthenticated, "session.reused",
                  "this refresh token was used before, so the session was ended; sign in again");
    case store::Rotation::kUnknown:
      break;
  }
  return SessionEnded();
}

Result<v1::LogoutResponse> Sessions::Logout(const net::CallContext& context,
                                            const v1::LogoutRequest& request) {
  const auto presented = RefreshToken::Parse(request.refresh_token());
  if (!presented) {
    return Fail(Code::kInvalidArgument, "session.refresh_token", "that is not a refresh token");
  }
  const base::WallTime now = deps_.clock.Now();
  EXPANSE_ASSIGN_OR_RETURN(const auto session,
                           deps_.store.FindSession(presented->Hashes().selector, now));
  if (!session) return v1::LogoutResponse();  // has ended: what the caller wants
  store::AuditEntry audit = AuditOf(context, now, "session.end", session->id);
  audit.organisation_id = session->organisation_id;
  audit.actor_kind = "user";
  audit.actor_id = session->user_id;
  EXPANSE_RETURN_IF_ERROR(deps_.store.EndSession(session->id, audit));
  deps_.revocations.Add(session->id, now);
  return v1::LogoutResponse();
}

Result<v1::WhoAmIResponse> Sessions::WhoAmI(const net::CallContext& context,
                                            const v1::WhoAmIRequest&) {
  EXPANSE_ASSIGN_OR_RETURN(const store::Member member,
                           MemberIn(context.caller.subject, context.caller.organisation_id));
  v1::WhoAmIResponse response;
  Fill(member, response.mutable_identity());
  ToProto(context.caller.expires_at, response.mutable_access_expires_at());
  return response;
}

}  // namespace expanse::control
