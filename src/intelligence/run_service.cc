#include "intelligence/run_service.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/crypto.h"
#include "base/text.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/callers.h"
#include "net/page_token.h"
#include "net/proto_time.h"

namespace expanse::intelligence {
namespace {

using base::Code;

constexpr std::uint32_t kDefaultPage = 25;
constexpr std::uint32_t kLargestPage = 1000;
constexpr std::size_t kLongestComputeId = 1024;

static_assert(static_cast<int>(store::RunKind::kAnalyse) == v1::RUN_KIND_ANALYSE);
static_assert(static_cast<int>(store::RunKind::kDiagnose) == v1::RUN_KIND_DIAGNOSE);
static_assert(static_cast<int>(store::RunStatus::kQueued) == v1::RUN_STATUS_QUEUED);
static_assert(static_cast<int>(store::RunStatus::kRunning) == v1::RUN_STATUS_RUNNING);
static_assert(static_cast<int>(store::RunStatus::kSucceeded) == v1::RUN_STATUS_SUCCEEDED);
static_assert(static_cast<int>(store::RunStatus::kFailed) == v1::RUN_STATUS_FAILED);

std::unexpected<base::Error> Invalid(std::string reason, std::string message) {
  return base::Fail(Code::kInvalidArgument, std::move(reason), std::move(message));
}

void PutRun(const store::RunRow& in, v1::Run* out) {
  out->set_run_id(in.run_id);
  out->set_kind(static_cast<v1::RunKind>(in.kind));
  out->set_status(static_cast<v1::RunStatus>(in.status));
  out->set_target(base::ToValidUtf8(in.target));
  out->set_job_name(base::ToValidUtf8(in.job_name));
  out->set_compute_id(in.compute_id);
  out->set_user_id(in.user_id);
  net::PutTime(in.created_at, out->mutable_created_at());
  if (in.finished_at) net::PutTime(*in.finished_at, out->mutable_finished_at());
  out->set_error(base::ToValidUtf8(in.error));
  out->set_error_reason(in.error_reason);
}

base::Status PutAnswer(const store::RunRow& in, v1::Run* out) {
  if (in.answer.empty()) return {};
  switch (in.kind) {
    case store::RunKind::kAnalyse:
      if (out->mutable_analyse()->ParseFromString(in.answer)) return {};
      break;
    case store::RunKind::kDiagnose:
      if (out->mutable_diagnose()->ParseFromString(in.answer)) return {};
      break;
  }
  return base::Fail(Code::kDataLoss, "run.answer", "the answer can no longer be read");
}

base::Result<store::RunFilter> TakeFilter(const net::CallContext& context,
                                          const v1::ListRunsRequest& in) {
  store::RunFilter filter{.scope = ScopeOf(context)};
  if (in.all_users() && filter.scope.user_id) {
    return base::Fail(Code::kPermissionDenied, "run.all_users",
                      "runs of everybody are shown to those who may read all executions");
  }
  if (!in.all_users()) filter.scope.user_id = context.caller.subject;
  if (!v1::RunKind_IsValid(in.kind())) return Invalid("filter.kind", "kind is not known");
  if (in.kind() != v1::RUN_KIND_UNSPECIFIED) filter.kind = static_cast<store::RunKind>(in.kind());
  if (in.compute_id().size() > kLongestComputeId) {
    return Invalid("filter.too_long",
                   fmt::format("compute_id has more than {} bytes", kLongestComputeId));
  }
  filter.compute_id = in.compute_id();
  return filter;
}

// What a page token belongs to.
std::string FilterText(const store::RunFilter& filter) {
  return fmt::format("runs|{}|{}|{}|{}", filter.scope.organisation_id,
                     filter.scope.user_id.value_or("*"),
                     filter.kind ? static_cast<int>(*filter.kind) : 0, filter.compute_id);
}

}  // namespace

base::Result<v1::GetRunResponse> RunService::GetRun(const net::CallContext& context,
                                                    const v1::GetRunRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (!base::IsUuid(request.run_id())) return Invalid("run.id", "run_id is a UUID");
  auto run = runs_.Get(ScopeOf(context), request.run_id());
  if (!run && run.error().code == Code::kNotFound && ReadsExecutions(context))
    run = runs_.Get(SystemScopeOf(context), request.run_id());
  if (!run) return std::unexpected(std::move(run).error());
  v1::GetRunResponse response;
  PutRun(*run, response.mutable_run());
  EXPANSE_RETURN_IF_ERROR(PutAnswer(*run, response.mutable_run()));
  return response;
}

base::Result<v1::ListRunsResponse> RunService::ListRuns(const net::CallContext& context,
                                                        const v1::ListRunsRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (request.page_size() > kLargestPage)
    return Invalid("page_size.range", fmt::format("page_size is from 1 to {}", kLargestPage));
  EXPANSE_ASSIGN_OR_RETURN(const store::RunFilter filter, TakeFilter(context, request));
  std::optional<store::RunCursor> after;
  if (!request.page_token().empty()) {
    EXPANSE_ASSIGN_OR_RETURN(auto place,
                             net::DecodePageToken(request.page_token(), FilterText(filter)));
    after = store::RunCursor{place.sort_micros, std::move(place.id)};
  }
  EXPANSE_ASSIGN_OR_RETURN(
      const store::RunPage page,
      runs_.List(filter, after, request.page_size() == 0 ? kDefaultPage : request.page_size()));
  v1::ListRunsResponse response;
  for (const store::RunRow& run : page.runs) PutRun(run, response.add_runs());
  if (page.next) {
    response.set_next_page_token(
        net::EncodePageToken({page.next->created_micros, page.next->run_id}, FilterText(filter)));
  }
  return response;
}

base::Result<v1::GetArtifactResponse> RunService::GetArtifact(
    const net::CallContext& context, const v1::GetArtifactRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (!base::IsUuid(request.artifact_id())) return Invalid("artifact.id", "artifact_id is a UUID");
  EXPANSE_ASSIGN_OR_RETURN(const store::RunArtifactRow row,
                           runs_.GetArtifact(ScopeOf(context), request.artifact_id()));
  v1::GetArtifactResponse response;
  v1::Artifact* artifact = response.mutable_artifact();
  artifact->set_artifact_id(row.artifact_id);
  artifact->set_artifact_type(static_cast<v1::ArtifactType>(row.type));
  artifact->set_content_hash(row.content_hash);
  artifact->set_source_file(base::ToValidUtf8(row.source_file));
  artifact->set_source_hash(row.source_hash);
  artifact->set_data(row.data);
  net::PutTime(row.created_at, artifact->mutable_created_at());
  return response;
}

}  // namespace expanse::intelligence
