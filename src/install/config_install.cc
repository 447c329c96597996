#include "install/config_install.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/files.h"
#include "expanse/control/v1/auth_service.pb.h"
#include "expanse/control/v1/compute_service.pb.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::install {
namespace {

base::Status CheckNothingIsThere(const std::string& path) {
  const auto existing = net::ReadComputeIdentity(path);
  if (existing) {
    return base::Fail(
        base::Code::kAlreadyExists, "install.existing",
        fmt::format("existing daemon config found: {} is compute {}", path, existing->compute_id));
  }
  if (existing.error().reason == "identity.missing") return {};
  return base::Fail(base::Code::kFailedPrecondition, "install.unreadable",
                    fmt::format("existing daemon config found, but it cannot be used: {}",
                                existing.error().message));
}

// The nearest directory that exists must let us write; what is missing below it will be made.
base::Status CheckDirectory(const std::string& path) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  std::error_code ignored;
  while (!std::filesystem::exists(directory, ignored) && directory.has_relative_path()) {
    directory = directory.parent_path();
    if (directory.empty()) directory = ".";
  }
  if (!std::filesystem::is_directory(directory, ignored)) {
    return base::Fail(base::Code::kFailedPrecondition, "install.directory",
                      fmt::format("{} is not a directory", directory.string()));
  }
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    return base::Fail(base::Code::kPermissionDenied, "install.directory",
                      base::ErrnoError(errno, "writing to " + directory.string()).message);
  }
  return {};
}

common::v1::SourceType ToProto(evidence::SourceType type) {
  switch (type) {
    case evidence::SourceType::kUnspecified:
      return common::v1::SOURCE_TYPE_UNSPECIFIED;
    case evidence::SourceType::kSlurm:
      return common::v1::SOURCE_TYPE_SLURM;
    case evidence::SourceType::kKubernetes:
      return common::v1::SOURCE_TYPE_KUBERNETES;
    case evidence::SourceType::kNomad:
      return common::v1::SOURCE_TYPE_NOMAD;
    case evidence::SourceType::kHost:
      return common::v1::SOURCE_TYPE_HOST;
  }
  return common::v1::SOURCE_TYPE_UNSPECIFIED;
}

// Empty for a type that this version does not know.
std::string TypeName(common::v1::SourceType type) {
  for (const auto known : {evidence::SourceType::kSlurm, evidence::SourceType::kKubernetes,
                           evidence::SourceType::kNomad, evidence::SourceType::kHost}) {
    if (ToProto(known) == type) return std::string(evidence::Name(known));
  }
  return {};
}

}  // namespace

base::Result<ConfigInstallPlan> PlanConfigInstall(const ConfigInstallRequest& request,
                                                  const OpenPlane& open_plane) {
  EXPANSE_RETURN_IF_ERROR(CheckNothingIsThere(request.config_path));
  EXPANSE_RETURN_IF_ERROR(CheckDirectory(request.config_path));
  ConfigInstallPlan plan{.control_plane_url = request.control_plane_url,
                         .data_plane_url = request.data_plane_url,
                         .config_path = request.config_path,
                         .type = request.type};
  if (!plan.data_plane_url.empty()) return plan;
  EXPANSE_ASSIGN_OR_RETURN(const auto control, open_plane(plan.control_plane_url));
  auto endpoints = control->Call<control::v1::GetEndpointsResponse>(
      "expanse.control.v1.DiscoveryService.GetEndpoints", control::v1::GetEndpointsRequest());
  if (!endpoints) {
    return std::unexpected(
        std::move(endpoints).error().With("asking the control plane for the data plane"));
  }
  plan.data_plane_url = endpoints->data_plane_url();
  if (plan.data_plane_url.empty()) {
    return base::Fail(base::Code::kFailedPrecondition, "install.no_data_plane",
                      fmt::format("{} names no data plane", plan.control_plane_url));
  }
  return plan;
}

base::Result<net::ComputeIdentity> ApplyConfigInstall(const ConfigInstallPlan& plan,
                                                      const std::string& install_token,
                                                      const OpenPlane& open_plane) {
  EXPANSE_ASSIGN_OR_RETURN(const auto data, open_plane(plan.data_plane_url));
  data::v1::ExchangeInstallTokenRequest request;
  request.set_install_token(install_token);
  request.set_type(ToProto(plan.type));
  auto response = data->Call<data::v1::ExchangeInstallTokenResponse>(
      "expanse.data.v1.IngestService.ExchangeInstallToken", request);
  if (!response)
    return std::unexpected(std::move(response).error().With("exchanging the install token"));
  net::ComputeIdentity identity{.compute_id = response->compute_id(),
                                .compute_name = response->compute_name(),
                                .organisation_id = response->organisation_id(),
                                .type = TypeName(response->type()),
                                .credential = response->credential(),
                                .control_plane_url = plan.control_plane_url,
                                .data_plane_url = plan.data_plane_url};
  // What was sent is checked as it will be read, before it replaces anything.
  if (auto readable = net::DecodeComputeIdentity(net::EncodeComputeIdentity(identity)); !readable) {
    return std::unexpected(std::move(readable).error().With("the data plane's answer"));
  }
  EXPANSE_RETURN_IF_ERROR(net::WriteComputeIdentity(plan.config_path, identity));
  return identity;
}

base::Status VerifyConfigInstall(const std::string& config_path, const OpenPlane& open_plane) {
  EXPANSE_ASSIGN_OR_RETURN(const net::ComputeIdentity identity,
                           net::ReadComputeIdentity(config_path));
  EXPANSE_ASSIGN_OR_RETURN(const auto control, open_plane(identity.control_plane_url));
  control::v1::MintComputeTokenRequest request;
  request.set_compute_id(identity.compute_id);
  request.set_credential(identity.credential);
  auto token = control->Call<control::v1::MintComputeTokenResponse>(
      "expanse.control.v1.AuthService.MintComputeToken", request);
  if (!token) return std::unexpected(std::move(token).error().With("checking the credential"));
  return {};
}

}  // namespace expanse::install
