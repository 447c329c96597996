#include "cli/lookup.h"

#include <fmt/format.h>

#include <vector>

#include "base/crypto.h"
#include "base/text.h"
#include "expanse/control/v1/compute_service.pb.h"
#include "expanse/data/v1/query_service.pb.h"

namespace expanse::cli {

base::Result<std::string> ResolveCompute(Planes& planes, const std::string& id_or_name) {
  if (base::IsUuid(id_or_name)) return id_or_name;
  control::v1::ListComputesRequest request;
  request.set_include_revoked(true);  // history of a revoked compute stays readable
  EXPANSE_ASSIGN_OR_RETURN(const auto response,
                           planes.Control<control::v1::ListComputesResponse>(
                               "expanse.control.v1.ComputeService.ListComputes", request));
  std::vector<std::string> ids;
  for (const auto& compute : response.computes()) {
    if (compute.name() == id_or_name) ids.push_back(compute.compute_id());
  }
  if (ids.size() == 1) return ids.front();
  const std::string shown = base::EscapeForDisplay(id_or_name);
  if (ids.empty()) {
    return base::Fail(base::Code::kNotFound, "cli.compute",
                      fmt::format("no compute is called '{}'", shown));
  }
  return base::Fail(
      base::Code::kAlreadyExists, "cli.compute",
      fmt::format("several computes are called '{}': {}", shown, fmt::join(ids, ", ")));
}

std::string NameOfCompute(Planes& planes, const std::string& compute_id) {
  control::v1::ListComputesRequest request;
  request.set_include_revoked(true);
  const auto response = planes.Control<control::v1::ListComputesResponse>(
      "expanse.control.v1.ComputeService.ListComputes", request);
  if (!response) return {};
  for (const auto& compute : response->computes()) {
    if (compute.compute_id() == compute_id) return compute.name();
  }
  return {};
}

base::Result<std::string> ResolveCluster(Planes& planes, const std::string& id_or_name) {
  if (!id_or_name.empty()) return ResolveCompute(planes, id_or_name);
  EXPANSE_ASSIGN_OR_RETURN(
      const auto response,
      planes.Control<control::v1::ListComputesResponse>(
          "expanse.control.v1.ComputeService.ListComputes", control::v1::ListComputesRequest()));
  std::vector<const control::v1::Compute*> clusters;
  std::vector<std::string> names;
  for (const auto& compute : response.computes()) {
    if (compute.type() == common::v1::SOURCE_TYPE_HOST) continue;
    clusters.push_back(&compute);
    names.push_back(base::EscapeForDisplay(compute.name()));
  }
  if (clusters.size() == 1) return clusters.front()->compute_id();
  if (clusters.empty())
    return base::Fail(base::Code::kNotFound, "cli.cluster", "none of your computes is a cluster");
  return base::Fail(base::Code::kAlreadyExists, "cli.cluster",
                    fmt::format("which cluster? There are {}", fmt::join(names, ", ")));
}

std::string WithoutStep(std::string_view native_id) {
  const std::size_t dot = native_id.find('.');
  if (dot == std::string_view::npos || dot == 0) return std::string(native_id);
  const std::string_view job = native_id.substr(0, dot);
  if (job.find_first_not_of("0123456789_+") != std::string_view::npos)
    return std::string(native_id);
  return std::string(job);
}

base::Result<std::string> ResolveExecution(Planes& planes, const ExecutionChoice& choice) {
  if (base::IsUuid(choice.id_or_native) &&
      choice.source_type == common::v1::SOURCE_TYPE_UNSPECIFIED) {
    return choice.id_or_native;
  }
  data::v1::GetExecutionRequest request;
  request.set_native_id(WithoutStep(choice.id_or_native));
  request.set_source_type(choice.source_type);
  request.set_compute_id(choice.compute_id);
  auto response = planes.Data<data::v1::GetExecutionResponse>(
      "expanse.data.v1.QueryService.GetExecution", request);
  if (!response) {
    return std::unexpected(std::move(response).error().With(
        fmt::format("looking for job '{}'", base::EscapeForDisplay(choice.id_or_native))));
  }
  return response->execution().execution_id();
}

}  // namespace expanse::cli
