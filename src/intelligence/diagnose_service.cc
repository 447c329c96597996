#include "intelligence/diagnose_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/crypto.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/callers.h"
#include "intelligence/diagnose_proto.h"
#include "intelligence/failure_labels.h"

namespace expanse::intelligence {
namespace {

using base::Code;

base::Result<v1::DiagnoseResponse> ResponseOf(const std::string& run_id, const std::string& answer,
                                              bool cached) {
  v1::DiagnoseResponse response;
  if (!response.mutable_result()->ParseFromString(answer))
    return base::Fail(Code::kDataLoss, "run.answer", "the answer can no longer be read");
  response.set_run_id(run_id);
  response.set_status(v1::RUN_STATUS_SUCCEEDED);
  response.set_cached(cached);
  return response;
}

}  // namespace

base::Result<v1::DiagnoseResponse> DiagnoseService::Diagnose(const net::CallContext& context,
                                                             const v1::DiagnoseRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (!ReadsExecutions(context))
    return base::Fail(Code::kPermissionDenied, "diagnose.executions",
                      "diagnoses are for those who may read executions");
  EXPANSE_ASSIGN_OR_RETURN(const ExecutionName name, NameOf(request));
  EXPANSE_ASSIGN_OR_RETURN(auto files, ExtraSourcesOf(request));
  const std::string user = context.caller.subject;
  if (!slots_.Enter(user)) {
    metrics_.Ended(store::RunKind::kDiagnose, "shed", {});
    return base::Fail(Code::kResourceExhausted, "run.user_busy",
                      "you have too many questions open; wait for an answer");
  }
  auto response = [&]() -> base::Result<v1::DiagnoseResponse> {
    auto execution = diagnoser_.Find(context.caller.organisation_id, name);
    if (!execution) {
      metrics_.Ended(store::RunKind::kDiagnose, StatusOf(execution.error()), {});
      return std::unexpected(std::move(execution).error());
    }
    return Answer(context, {.execution = *std::move(execution),
                            .organisation_id = context.caller.organisation_id,
                            .user_id = user,
                            .extra_sources = std::move(files),
                            .use_cache = !request.no_cache()});
  }();
  slots_.Leave(user);
  return response;
}

base::Result<v1::DiagnoseResponse> DiagnoseService::Answer(const net::CallContext& context,
                                                           DiagnoseTask task) {
  const Running running(metrics_.running());
  const base::WallTime now = clock_.Now();
  store::RunRow run{.run_id = base::NewUuid(now),
                    .organisation_id = task.organisation_id,
                    .user_id = task.user_id,
                    .kind = store::RunKind::kDiagnose,
                    .target = task.execution.execution_id,
                    .job_name = task.execution.name,
                    .compute_id = task.execution.compute_id,
                    .created_at = now};
  const auto deadline =
      std::min(context.deadline, std::chrono::steady_clock::now() + options_.run_timeout);
  const auto shared = std::make_shared<const DiagnoseTask>(std::move(task));
  auto outcome = executor_.Within<DiagnoseOutcome>(
      deadline, {}, [this, shared] { return diagnoser_.Do(*shared); });
  run.finished_at = clock_.Now();
  if (!outcome) {
    metrics_.Ended(run.kind, StatusOf(outcome.error()), running.took());
    if (StatusOf(outcome.error()) == "failed") KeepFailure(runs_, run, outcome.error());
    return std::unexpected(std::move(outcome).error());
  }
  run.status = store::RunStatus::kSucceeded;
  if (outcome->cached) {
    EXPANSE_RETURN_IF_ERROR(
        KeepLabel(runs_.labels(), *shared, *outcome, *outcome->cached, clock_.Now()));
    metrics_.Ended(run.kind, "cached", running.took());
    return ResponseOf(outcome->cached->run_id, outcome->cached->answer, /*cached=*/true);
  }
  run.cache_key = outcome->cache_key;
  run.answer = outcome->answer;
  EXPANSE_RETURN_IF_ERROR(runs_.Add(run, {}));
  EXPANSE_RETURN_IF_ERROR(KeepLabel(runs_.labels(), *shared, *outcome, run, clock_.Now()));
  metrics_.Ended(run.kind, "succeeded", running.took());
  return ResponseOf(run.run_id, run.answer, /*cached=*/false);
}

}  // namespace expanse::intelligence
