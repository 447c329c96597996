#include "intelligence/failure_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/text.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/callers.h"
#include "intelligence/confidence_proto.h"
#include "intelligence/diagnose/attribution.h"
#include "intelligence/history/execution_run.h"

namespace expanse::intelligence {
namespace {

using base::Code;

constexpr int kMostExecutions = 1000;

store::FailureLabel LabelOf(const DiagnoseTask& task, const DiagnoseOutcome& outcome,
                            const store::RunRow& run, base::WallTime now) {
  const evidence::Execution& execution = task.execution;
  return {.organisation_id = task.organisation_id,
          .execution_id = execution.execution_id,
          .compute_id = execution.compute_id,
          .failure_class = outcome.failure_class,
          .title = outcome.title,
          .confidence = static_cast<std::uint8_t>(outcome.confidence),
          .run_id = run.run_id,
          .asked_by = run.user_id,
          .user = execution.user,
          .workload = WorkloadOf(execution),
          .nodes = execution.nodes,
          .ended_at = execution.ended_at.value_or(now),
          .diagnosed_at = now};
}

bool SaysTheSame(const store::FailureLabel& known, const store::FailureLabel& now) {
  return known.failure_class == now.failure_class && known.confidence == now.confidence &&
         known.title == now.title && known.ended_at == now.ended_at &&
         known.nodes.empty() == now.nodes.empty() && !known.run_id.empty() &&
         (known.asked_by == store::kSystemUser || known.run_id == now.run_id);
}

// Runs of others are not shown to everybody.
bool MaySeeRun(const net::CallContext& context, const store::FailureLabel& label) {
  return label.asked_by == context.caller.subject || label.asked_by == store::kSystemUser ||
         ReadsAllRuns(context);
}

}  // namespace

std::string WorkloadOf(const evidence::Execution& execution) {
  const std::string owner = history::OwnerOf(execution);
  return base::Sha256Hex(owner.empty() ? "job:" + execution.user + '\0' + execution.name
                                       : "owner:" + owner);
}

base::Status KeepLabel(store::LabelStore& labels, const DiagnoseTask& task,
                       const DiagnoseOutcome& outcome, const store::RunRow& run,
                       base::WallTime now) {
  const std::string& id = task.execution.execution_id;
  EXPANSE_ASSIGN_OR_RETURN(const auto known, labels.Get(task.organisation_id, {id}));
  if (outcome.failure_class.empty())
    return known.empty() ? base::Status() : labels.Drop(task.organisation_id, id);
  const store::FailureLabel label = LabelOf(task, outcome, run, now);
  if (!known.empty() && SaysTheSame(known.front(), label)) return {};
  return labels.Put(label);
}

base::Status AddKnownFailures(store::LabelStore& labels, const DiagnoseTask& task,
                              diagnose::Case* of) {
  std::vector<std::string> ids;
  for (const diagnose::SimilarRun& similar : of->similar) ids.push_back(similar.run.execution_id);
  EXPANSE_ASSIGN_OR_RETURN(const auto known, labels.Get(task.organisation_id, ids));
  for (diagnose::SimilarRun& similar : of->similar) {
    const auto label = std::ranges::lower_bound(known, similar.run.execution_id, {},
                                                &store::FailureLabel::execution_id);
    if (label == known.end() || label->execution_id != similar.run.execution_id) continue;
    similar.failure_class = label->failure_class;
    similar.nodes = label->nodes;
  }
  const evidence::Execution& execution = task.execution;
  if (!execution.ended_at || execution.nodes.empty()) return {};
  EXPANSE_ASSIGN_OR_RETURN(const auto others,
                           labels.NodeHistory({.organisation_id = task.organisation_id,
                                               .compute_id = execution.compute_id,
                                               .nodes = execution.nodes,
                                               .without_workload = WorkloadOf(execution),
                                               .ended_from = *execution.ended_at - kNodeLookBack,
                                               .ended_to = *execution.ended_at + kNodeLookAhead,
                                               .least_executions = diagnose::kLeastOnNode,
                                               .least_users = diagnose::kLeastUsers}));
  for (const store::NodeFailures& node : others) {
    const diagnose::NodeRecord record{.node = node.node,
                                      .failure_class = node.failure_class,
                                      .executions = node.executions,
                                      .users = node.users,
                                      .elsewhere = node.elsewhere,
                                      .other_nodes = node.other_nodes};
    if (diagnose::PointsToNode(record)) of->node_records.push_back(record);
  }
  return {};
}

base::Result<v1::ListFailureClassesResponse> FailureClassService::ListFailureClasses(
    const net::CallContext& context, const v1::ListFailureClassesRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (request.execution_ids_size() > kMostExecutions) {
    return base::Fail(Code::kInvalidArgument, "classes.too_many",
                      fmt::format("at most {} executions are asked about", kMostExecutions));
  }
  for (const std::string& id : request.execution_ids()) {
    if (!base::IsUuid(id))
      return base::Fail(Code::kInvalidArgument, "classes.id", "execution_ids are UUIDs");
  }
  v1::ListFailureClassesResponse response;
  if (!ReadsExecutions(context)) return response;
  EXPANSE_ASSIGN_OR_RETURN(const auto labels, labels_.Get(context.caller.organisation_id,
                                                          {request.execution_ids().begin(),
                                                           request.execution_ids().end()}));
  for (const store::FailureLabel& label : labels) {
    v1::FailureClass* put = response.add_classes();
    put->set_execution_id(label.execution_id);
    put->set_failure_class(label.failure_class);
    put->set_title(base::ToValidUtf8(label.title));
    put->set_confidence(LabelOf(static_cast<predict::Confidence>(label.confidence)));
    if (MaySeeRun(context, label)) put->set_run_id(label.run_id);
  }
  return response;
}

}  // namespace expanse::intelligence
