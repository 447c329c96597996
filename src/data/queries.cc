#include "data/queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/crypto.h"
#include "base/log.h"
#include "base/text.h"
#include "data/callers.h"
#include "data/page_token.h"
#include "evidence/wire.h"
#include "expanse/data/v1/query_service.pb.h"
#include "net/proto_time.h"

namespace expanse::data {
namespace {

using base::Code;

constexpr std::uint32_t kDefaultPage = 25;
constexpr std::uint32_t kLargestPage = 1000;
constexpr int kMostUsers = 100;
constexpr std::size_t kLongestText = 4096;

std::unexpected<base::Error> Invalid(std::string reason, std::string message) {
  return base::Fail(Code::kInvalidArgument, std::move(reason), std::move(message));
}

base::Status CheckFilterText(std::string_view text, std::string_view field) {
  if (text.size() <= kLongestText) return {};
  return Invalid("filter.too_long", fmt::format("{} has more than {} bytes", field, kLongestText));
}

base::Status TakeTime(bool has, const google::protobuf::Timestamp& in, std::string_view field,
                      std::optional<base::WallTime>* out) {
  if (!has) return {};
  auto time = net::ReadTime(in, field);
  if (!time) return std::unexpected(std::move(time).error());
  *out = *time;
  return {};
}

base::Status TakeSourceType(common::v1::SourceType in, std::optional<evidence::SourceType>* out) {
  if (in == common::v1::SOURCE_TYPE_UNSPECIFIED) return {};
  if (!common::v1::SourceType_IsValid(in))
    return Invalid("filter.source_type", "source_type is not known");
  *out = static_cast<evidence::SourceType>(in);
  return {};
}

base::Result<store::ExecutionFilter> TakeFilter(const std::string& organisation_id,
                                                const v1::ListExecutionsRequest& in) {
  store::ExecutionFilter filter{.organisation_id = organisation_id};
  if (!v1::ExecutionStatus_IsValid(in.status()))
    return Invalid("filter.status", "status is not known");
  if (!v1::ExecutionOutcome_IsValid(in.outcome()))
    return Invalid("filter.outcome", "outcome is not known");
  if (in.status() != v1::EXECUTION_STATUS_UNSPECIFIED)
    filter.status = static_cast<evidence::ExecutionStatus>(in.status());
  if (in.outcome() != v1::EXECUTION_OUTCOME_UNSPECIFIED)
    filter.outcome = static_cast<evidence::Outcome>(in.outcome());
  EXPANSE_RETURN_IF_ERROR(TakeSourceType(in.source_type(), &filter.source_type));
  if (in.users_size() > kMostUsers)
    return Invalid("filter.users", fmt::format("at most {} users", kMostUsers));
  for (const std::string& user : in.users()) {
    EXPANSE_RETURN_IF_ERROR(CheckFilterText(user, "users"));
    // The empty user is "not known", which no filter by user matches.
    if (user.empty()) return Invalid("filter.users", "users must not be empty names");
    filter.users.push_back(user);
  }
  EXPANSE_RETURN_IF_ERROR(CheckFilterText(in.compute_id(), "compute_id"));
  EXPANSE_RETURN_IF_ERROR(CheckFilterText(in.native_id(), "native_id"));
  filter.compute_id = in.compute_id();
  filter.native_id = in.native_id();
  EXPANSE_RETURN_IF_ERROR(
      TakeTime(in.has_started_after(), in.started_after(), "started_after", &filter.started_after));
  EXPANSE_RETURN_IF_ERROR(TakeTime(in.has_started_before(), in.started_before(), "started_before",
                                   &filter.started_before));
  return filter;
}

}  // namespace

base::Result<evidence::Execution> FindExecution(store::EvidenceStore& records,
                                                const net::CallContext& context,
                                                std::string_view execution_id) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (!base::IsUuid(execution_id)) {
    return Invalid("execution.id",
                   "execution_id is a UUID; a scheduler's own id goes into native_id");
  }
  auto found = records.Get(context.caller.organisation_id, execution_id);
  if (!found && found.error().code == Code::kNotFound) {
    return base::Fail(Code::kNotFound, "execution.not_found",
                      fmt::format("no execution {} in this organisation", execution_id));
  }
  return found;
}

bool MayReadExecutions(const net::CallContext& context) {
  const auto& held = context.caller.permissions;
  return std::find(held.begin(), held.end(), "executions.read") != held.end();
}

base::Result<v1::ListExecutionsResponse> Queries::ListExecutions(
    const net::CallContext& context, const v1::ListExecutionsRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (request.page_size() > kLargestPage) {
    return Invalid("page_size.range", fmt::format("page_size is from 1 to {}", kLargestPage));
  }
  EXPANSE_ASSIGN_OR_RETURN(const store::ExecutionFilter filter,
                           TakeFilter(context.caller.organisation_id, request));
  std::optional<store::ExecutionCursor> after;
  if (!request.page_token().empty()) {
    EXPANSE_ASSIGN_OR_RETURN(after, DecodePageToken(request.page_token(), filter));
  }
  // Where executions are large (thousands of nodes each), a shorter page is read again.
  for (std::size_t limit = request.page_size() == 0 ? kDefaultPage : request.page_size();;
       limit = (limit + 3) / 4) {
    EXPANSE_ASSIGN_OR_RETURN(const store::ExecutionPage page, records_.List(filter, after, limit));
    v1::ListExecutionsResponse response;
    for (const evidence::Execution& execution : page.executions)
      evidence::ToProto(execution, response.add_executions());
    if (limit > 1 && response.ByteSizeLong() > options_.max_response_bytes) continue;
    if (page.next) response.set_next_page_token(EncodePageToken(*page.next, filter));
    return response;
  }
}

base::Result<v1::GetExecutionResponse> Queries::GetExecution(
    const net::CallContext& context, const v1::GetExecutionRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (request.execution_id().empty() == request.native_id().empty()) {
    return Invalid("execution.which", "give either execution_id or native_id");
  }
  v1::GetExecutionResponse response;
  if (!request.execution_id().empty()) {
    EXPANSE_ASSIGN_OR_RETURN(const evidence::Execution found,
                             FindExecution(records_, context, request.execution_id()));
    evidence::ToProto(found, response.mutable_execution());
    return response;
  }
  store::ExecutionFilter filter{.organisation_id = context.caller.organisation_id};
  EXPANSE_RETURN_IF_ERROR(CheckFilterText(request.native_id(), "native_id"));
  EXPANSE_RETURN_IF_ERROR(CheckFilterText(request.compute_id(), "compute_id"));
  EXPANSE_RETURN_IF_ERROR(TakeSourceType(request.source_type(), &filter.source_type));
  filter.native_id = request.native_id();
  filter.compute_id = request.compute_id();
  EXPANSE_ASSIGN_OR_RETURN(const store::ExecutionPage page, records_.List(filter, std::nullopt, 1));
  if (page.executions.empty()) {
    const std::string_view source =
        filter.source_type ? evidence::Name(*filter.source_type) : "scheduler";
    return base::Fail(Code::kNotFound, "execution.not_found",
                      fmt::format("no execution with the {} id {} in this organisation", source,
                                  base::EscapeForDisplay(request.native_id())));
  }
  evidence::ToProto(page.executions.front(), response.mutable_execution());
  return response;
}

base::Result<std::string> Queries::Blob(const std::string& name, std::string_view what) {
  if (name.empty()) return std::string();
  auto data = blobs_.Get(name);
  if (data) return data;
  if (data.error().code != Code::kNotFound && data.error().code != Code::kDataLoss) return data;
  base::LogError("data.blob_lost", {{"blob", name}, {"reason", data.error().reason}});
  return base::Fail(
      Code::kDataLoss, "blob.lost",
      fmt::format("{} was stored but can no longer be read ({})", what, data.error().reason));
}

base::Result<v1::GetLogTailResponse> Queries::GetLogTail(const net::CallContext& context,
                                                         const v1::GetLogTailRequest& request) {
  EXPANSE_ASSIGN_OR_RETURN(const evidence::Execution found,
                           FindExecution(records_, context, request.execution_id()));
  const std::string& stream = request.stream();
  if (!stream.empty() && stream != "stdout" && stream != "stderr" && stream != "combined") {
    return Invalid("log.stream", "stream is stdout, stderr or combined");
  }
  EXPANSE_ASSIGN_OR_RETURN(const std::vector<store::LogTailRow> rows,
                           records_.LogTails(found.execution_id));
  v1::GetLogTailResponse response;
  for (const store::LogTailRow& row : rows) {
    if (!stream.empty() && row.stream != stream) continue;
    v1::LogTailView* view = response.add_streams();
    view->set_stream(row.stream);
    EXPANSE_ASSIGN_OR_RETURN(*view->mutable_data(), Blob(row.data_blob, "the log tail"));
    view->set_offset(row.offset);
    view->set_total_bytes(row.total_bytes);
    EXPANSE_ASSIGN_OR_RETURN(*view->mutable_first_error(),
                             Blob(row.first_error_blob, "the first error"));
    view->set_first_error_offset(row.first_error_offset);
    view->set_redactions(row.redactions);
  }
  return response;
}

base::Result<v1::GetSourceBundleResponse> Queries::GetSourceBundle(
    const net::CallContext& context, const v1::GetSourceBundleRequest& request) {
  EXPANSE_ASSIGN_OR_RETURN(const evidence::Execution found,
                           FindExecution(records_, context, request.execution_id()));
  EXPANSE_ASSIGN_OR_RETURN(const std::optional<store::BundleRow> bundle,
                           records_.Bundle(found.execution_id));
  v1::GetSourceBundleResponse response;
  if (!bundle) return response;
  response.set_bundle_hash(bundle->bundle_hash);
  for (const store::BundleFileRow& file : bundle->files) {
    v1::SourceFileView* view = response.add_files();
    view->set_path(base::ToValidUtf8(file.path));
    view->set_role(file.role);
    view->set_content_hash(file.content_hash);
    view->set_size_bytes(file.size_bytes);
    view->set_redactions(file.redactions);
    if (!request.include_data()) continue;
    EXPANSE_ASSIGN_OR_RETURN(*view->mutable_data(), Blob(file.blob, "a source file"));
  }
  for (const evidence::SkippedFile& file : bundle->skipped) {
    v1::SkippedFileView* view = response.add_skipped();
    view->set_path(base::ToValidUtf8(file.path));
    view->set_reason(file.reason);
  }
  return response;
}

base::Result<v1::GetComputeHealthResponse> Queries::GetComputeHealth(
    const net::CallContext& context, const v1::GetComputeHealthRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (request.compute_id().empty()) return Invalid("compute.id", "compute_id is missing");
  EXPANSE_ASSIGN_OR_RETURN(const std::vector<store::NodeHealth> nodes,
                           records_.Health(context.caller.organisation_id, request.compute_id()));
  v1::GetComputeHealthResponse response;
  for (const store::NodeHealth& node : nodes) {
    v1::ReportHealthRequest report;
    evidence::ToProto(node.report, &report);
    v1::NodeHealth* view = response.add_nodes();
    view->set_node(report.node());
    view->set_daemon_version(report.daemon_version());
    net::PutTime(node.reported_at, view->mutable_reported_at());
    view->mutable_rows()->Swap(report.mutable_rows());
  }
  return response;
}

base::Result<v1::GetClusterStateResponse> Queries::GetClusterState(
    const net::CallContext& context, const v1::GetClusterStateRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (request.compute_id().empty()) return Invalid("compute.id", "compute_id is missing");
  EXPANSE_ASSIGN_OR_RETURN(
      std::optional<store::ReportedClusterState> reported,
      records_.ClusterState(context.caller.organisation_id, request.compute_id()));
  v1::GetClusterStateResponse response;
  if (!reported) return response;
  if (!MayReadExecutions(context)) {
    response.set_pending_withheld(!reported->state.pending.empty());
    reported->state.pending.clear();
  }
  evidence::ToProto(reported->state, response.mutable_state(), options_.wire);
  for (v1::PendingJob& job : *response.mutable_state()->mutable_pending()) {
    if (!job.has_key()) continue;
    const evidence::ExecutionKey key{static_cast<evidence::SourceType>(job.key().source_type()),
                                     job.key().identity()};
    job.set_execution_id(evidence::ExecutionId(request.compute_id(), key));
  }
  net::PutTime(reported->reported_at, response.mutable_reported_at());
  return response;
}

}  // namespace expanse::data
