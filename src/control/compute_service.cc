#include "control/compute_service.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/crypto.h"
#include "base/text.h"
#include "control/compute_state.h"
#include "control/secrets.h"

namespace expanse::control {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using evidence::SourceType;
namespace common = expanse::common::v1;

constexpr std::size_t kMaxVersion = 64;
constexpr int kNameTries = 100;  // computes of one type that are registered within a second

common::SourceType ToProto(SourceType type) {
  switch (type) {
    case SourceType::kUnspecified:
      return common::SOURCE_TYPE_UNSPECIFIED;
    case SourceType::kSlurm:
      return common::SOURCE_TYPE_SLURM;
    case SourceType::kKubernetes:
      return common::SOURCE_TYPE_KUBERNETES;
    case SourceType::kNomad:
      return common::SOURCE_TYPE_NOMAD;
    case SourceType::kHost:
      return common::SOURCE_TYPE_HOST;
  }
  return common::SOURCE_TYPE_UNSPECIFIED;
}

common::ComputeState ToProto(ComputeState state) {
  switch (state) {
    case ComputeState::kPending:
      return common::COMPUTE_STATE_PENDING;
    case ComputeState::kActive:
      return common::COMPUTE_STATE_ACTIVE;
    case ComputeState::kDegraded:
      return common::COMPUTE_STATE_DEGRADED;
    case ComputeState::kOffline:
      return common::COMPUTE_STATE_OFFLINE;
    case ComputeState::kRevoked:
      return common::COMPUTE_STATE_REVOKED;
  }
  return common::COMPUTE_STATE_UNSPECIFIED;
}

// Nothing for a number that the contract does not know (proto3 enums are open).
std::optional<SourceType> FromProto(common::SourceType type) {
  for (SourceType known : {SourceType::kUnspecified, SourceType::kSlurm, SourceType::kKubernetes,
                           SourceType::kNomad, SourceType::kHost}) {
    if (ToProto(known) == type) return known;
  }
  return std::nullopt;
}

std::unexpected<base::Error> BadType(std::string_view what) {
  return Fail(Code::kInvalidArgument, "compute.type", std::string(what));
}

std::string DefaultName(SourceType type, base::WallTime now) {
  return fmt::format("{}-{:%Y%m%d-%H%M%S}", evidence::Name(type),
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

base::Status CheckVersion(std::string_view version) {
  if (version.size() <= kMaxVersion && base::EscapeForDisplay(version) == version) return {};
  return Fail(Code::kInvalidArgument, "compute.daemon_version",
              "daemon_version must be at most 64 bytes of printable text");
}

}  // namespace

ComputeService::ComputeService(const ServiceDeps& deps)
    : deps_(deps),
      heartbeats_(
          deps.metrics.GetCounter("expanse_control_heartbeats_total", "Heartbeats of computes")) {}

void ComputeService::AddTo(net::ConnectRouter& router) {
  const std::string prefix = "expanse.control.v1.ComputeService.";
  AddMethod(router, prefix + "RegisterCompute", *this, &ComputeService::RegisterCompute);
  AddMethod(router, prefix + "ListComputes", *this, &ComputeService::ListComputes);
  AddMethod(router, prefix + "GetCompute", *this, &ComputeService::GetCompute);
  AddMethod(router, prefix + "RevokeCompute", *this, &ComputeService::RevokeCompute);
  AddMethod(router, prefix + "ReissueInstallToken", *this, &ComputeService::ReissueInstallToken);
  AddMethod(router, prefix + "BurnInstallToken", *this, &ComputeService::BurnInstallToken);
  AddMethod(router, prefix + "Heartbeat", *this, &ComputeService::Heartbeat);
}

ComputeService::IssuedToken ComputeService::NewToken(base::WallTime now) const {
  IssuedToken token;
  token.secret = base::NewSecret(kInstallTokenPrefix);
  token.row = {base::NewUuid(now), base::Sha256Hex(token.secret),
               now + deps_.options.install_token_life};
  return token;
}

void ComputeService::Fill(const store::Compute& compute, base::WallTime now,
                          v1::Compute* out) const {
  out->set_compute_id(compute.id);
  out->set_name(compute.name);
  out->set_type(ToProto(compute.type));
  out->set_state(ToProto(StateOf(compute, now, deps_.options.thresholds)));
  out->set_team_id(compute.team_id);
  out->set_daemon_version(compute.daemon_version);
  ToProto(compute.created_at, out->mutable_created_at());
  if (compute.last_heartbeat_at)
    ToProto(*compute.last_heartbeat_at, out->mutable_last_heartbeat_at());
  if (compute.revoked_at) ToProto(*compute.revoked_at, out->mutable_revoked_at());
}

template <typename Response>
Response ComputeService::Answer(const store::Compute& compute, const IssuedToken& token,
                                base::WallTime now) const {
  Response response;
  Fill(compute, now, response.mutable_compute());
  response.mutable_install_token()->set_token(token.secret);
  ToProto(token.row.expires_at, response.mutable_install_token()->mutable_expires_at());
  response.set_control_plane_url(deps_.options.public_url);
  response.set_data_plane_url(deps_.options.data_public_url);
  return response;
}

Result<v1::RegisterComputeResponse> ComputeService::RegisterCompute(
    const net::CallContext& context, const v1::RegisterComputeRequest& request) {
  const auto type = FromProto(request.type());
  if (!type || *type == SourceType::kUnspecified) {
    return BadType("a compute needs a type: slurm, kubernetes, nomad or host");
  }
  if (!request.team_id().empty()) {
    return Fail(Code::kNotFound, "team.not_found", "there is no such team in this organisation");
  }
  if (!request.name().empty()) {
    EXPANSE_RETURN_IF_ERROR(CheckName(request.name(), "the name of a compute", "compute.name"));
  }
  const base::WallTime now = deps_.clock.Now();
  store::Compute compute;
  compute.id = base::NewUuid(now);
  compute.organisation_id = context.caller.organisation_id;
  compute.name = request.name().empty() ? DefaultName(*type, now) : request.name();
  compute.type = *type;
  compute.created_at = now;
  const std::string wanted = compute.name;
  const IssuedToken token = NewToken(now);
  const auto enter = [&] {
    return deps_.store.RegisterCompute(
        compute, token.row, AuditOf(context, now, "compute.register", compute.id, compute.name));
  };
  base::Status entered = enter();
  for (int i = 2; request.name().empty() && i <= kNameTries && !entered; ++i) {
    if (entered.error().reason != "compute.name_taken") break;
    compute.name = fmt::format("{}-{}", wanted, i);
    entered = enter();
  }
  EXPANSE_RETURN_IF_ERROR(entered);
  return Answer<v1::RegisterComputeResponse>(compute, token, now);
}

Result<v1::ListComputesResponse> ComputeService::ListComputes(
    const net::CallContext& context, const v1::ListComputesRequest& request) {
  EXPANSE_ASSIGN_OR_RETURN(const auto computes, deps_.store.Computes(context.caller.organisation_id,
                                                                     request.include_revoked()));
  const base::WallTime now = deps_.clock.Now();
  v1::ListComputesResponse response;
  for (const store::Compute& compute : computes) Fill(compute, now, response.add_computes());
  return response;
}

Result<v1::GetComputeResponse> ComputeService::GetCompute(const net::CallContext& context,
                                                          const v1::GetComputeRequest& request) {
  EXPANSE_RETURN_IF_ERROR(CheckId(request.compute_id(), "compute_id"));
  EXPANSE_ASSIGN_OR_RETURN(
      const store::Compute compute,
      deps_.store.GetCompute(context.caller.organisation_id, request.compute_id()));
  v1::GetComputeResponse response;
  Fill(compute, deps_.clock.Now(), response.mutable_compute());
  return response;
}

Result<v1::RevokeComputeResponse> ComputeService::RevokeCompute(
    const net::CallContext& context, const v1::RevokeComputeRequest& request) {
  EXPANSE_RETURN_IF_ERROR(CheckId(request.compute_id(), "compute_id"));
  const base::WallTime now = deps_.clock.Now();
  EXPANSE_ASSIGN_OR_RETURN(
      const store::Compute compute,
      deps_.store.RevokeCompute(context.caller.organisation_id, request.compute_id(),
                                AuditOf(context, now, "compute.revoke", request.compute_id())));
  deps_.revocations.Add(compute.id, now);
  v1::RevokeComputeResponse response;
  Fill(compute, now, response.mutable_compute());
  return response;
}

Result<v1::ReissueInstallTokenResponse> ComputeService::ReissueInstallToken(
    const net::CallContext& context, const v1::ReissueInstallTokenRequest& request) {
  EXPANSE_RETURN_IF_ERROR(CheckId(request.compute_id(), "compute_id"));
  const base::WallTime now = deps_.clock.Now();
  const IssuedToken token = NewToken(now);
  EXPANSE_ASSIGN_OR_RETURN(const store::Compute compute,
                           deps_.store.ReissueInstallToken(
                               context.caller.organisation_id, request.compute_id(), token.row,
                               AuditOf(context, now, "compute.reissue", request.compute_id())));
  return Answer<v1::ReissueInstallTokenResponse>(compute, token, now);
}

Result<v1::BurnInstallTokenResponse> ComputeService::BurnInstallToken(
    const net::CallContext& context, const v1::BurnInstallTokenRequest& request) {
  if (context.caller.subject != "data") {
    return Fail(Code::kPermissionDenied, "plane.not_data",
                "only the data plane exchanges install tokens");
  }
  const auto type = FromProto(request.type());
  if (!type) return BadType("no such type of compute");
  if (!base::IsSecret(request.install_token(), kInstallTokenPrefix)) {
    return Fail(Code::kUnauthenticated, "install_token.unknown", "that is not an install token");
  }
  const base::WallTime now = deps_.clock.Now();
  const std::string credential = base::NewSecret(kComputeCredentialPrefix);
  const store::InstallExchange exchange{.token_hash = base::Sha256Hex(request.install_token()),
                                        .type = *type,
                                        .credential_id = base::NewUuid(now),
                                        .credential_hash = base::Sha256Hex(credential)};
  EXPANSE_ASSIGN_OR_RETURN(
      const store::ExchangedInstall exchanged,
      deps_.store.ExchangeInstallToken(exchange, AuditOf(context, now, "compute.install", "")));
  for (const std::string& id : exchanged.replaced_credentials) deps_.revocations.Add(id, now);
  v1::BurnInstallTokenResponse response;
  response.set_compute_id(exchanged.compute.id);
  response.set_compute_name(exchanged.compute.name);
  response.set_organisation_id(exchanged.compute.organisation_id);
  response.set_type(ToProto(exchanged.compute.type));
  response.set_credential(credential);
  return response;
}

Result<v1::HeartbeatResponse> ComputeService::Heartbeat(const net::CallContext& context,
                                                        const v1::HeartbeatRequest& request) {
  EXPANSE_RETURN_IF_ERROR(CheckVersion(request.daemon_version()));
  const base::WallTime now = deps_.clock.Now();
  const store::ComputeSign sign{.compute_id = context.caller.subject,
                                .credential_id = context.caller.session_id,
                                .daemon_version = request.daemon_version()};
  EXPANSE_RETURN_IF_ERROR(
      deps_.store.NoteHeartbeat(sign, AuditOf(context, now, "compute.activate", sign.compute_id)));
  heartbeats_.Add();
  v1::HeartbeatResponse response;
  const auto interval = deps_.options.heartbeat_interval;
  response.mutable_interval()->set_seconds(interval.count() / 1000);
  response.mutable_interval()->set_nanos(
      static_cast<std::int32_t>(interval.count() % 1000 * 1'000'000));
  ToProto(now, response.mutable_server_time());
  return response;
}

}  // namespace expanse::control
