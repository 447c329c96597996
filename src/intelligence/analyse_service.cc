#include "intelligence/analyse_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/crypto.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/analyse_proto.h"
#include "intelligence/callers.h"

namespace expanse::intelligence {
namespace {

using base::Code;
using std::chrono::steady_clock;

// What the queue keeps of a question: whether its asker might read executions, then the request.
constexpr char kReadsExecutions = 'r';
constexpr char kReadsNothing = '-';

std::string KeepRequest(const v1::AnalyseRequest& request, bool reads_executions) {
  return std::string(1, reads_executions ? kReadsExecutions : kReadsNothing) +
         request.SerializeAsString();
}

base::Result<AnalyseTask> ReadKept(const store::RunRow& run) {
  v1::AnalyseRequest request;
  if (run.request.empty() || !request.ParseFromString(run.request.substr(1))) {
    return base::Fail(Code::kDataLoss, "run.request",
                      "what was asked can no longer be read; ask again");
  }
  EXPANSE_ASSIGN_OR_RETURN(auto question, QuestionOf(request));
  return AnalyseTask{.question = std::move(question),
                     .organisation_id = run.organisation_id,
                     .user_id = run.user_id,
                     .compute_id = run.compute_id,
                     .reads_executions = run.request.front() == kReadsExecutions,
                     .use_cache = false};
}

base::Result<v1::AnalyseResponse> ResponseOf(const std::string& run_id, const std::string& answer,
                                             bool cached) {
  v1::AnalyseResponse response;
  if (!response.mutable_result()->ParseFromString(answer))
    return base::Fail(Code::kDataLoss, "run.answer", "the answer can no longer be read");
  response.set_run_id(run_id);
  response.set_status(v1::RUN_STATUS_SUCCEEDED);
  response.set_cached(cached);
  return response;
}

}  // namespace

RunExecutor::Deadline AnalyseService::DeadlineOf(const net::CallContext& context) const {
  return std::min(context.deadline, steady_clock::now() + options_.run_timeout);
}

base::Result<AnalyseOutcome> AnalyseService::Do(RunExecutor::Deadline deadline,
                                                const std::stop_token& stop,
                                                std::shared_ptr<const AnalyseTask> task) {
  return executor_.Within<AnalyseOutcome>(
      deadline, stop, [this, task = std::move(task)] { return analyser_.Do(*task); });
}

base::Result<v1::AnalyseResponse> AnalyseService::Analyse(const net::CallContext& context,
                                                          const v1::AnalyseRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  auto question = QuestionOf(request);
  if (!question) {
    metrics_.Ended(store::RunKind::kAnalyse, "refused", {});
    return std::unexpected(std::move(question).error());
  }
  const base::WallTime now = clock_.Now();
  AnalyseTask task{.question = *std::move(question),
                   .organisation_id = context.caller.organisation_id,
                   .user_id = context.caller.subject,
                   .compute_id = request.compute_id(),
                   .reads_executions = ReadsExecutions(context),
                   .use_cache = !request.no_cache()};
  store::RunRow run{.run_id = base::NewUuid(now),
                    .organisation_id = task.organisation_id,
                    .user_id = task.user_id,
                    .kind = store::RunKind::kAnalyse,
                    .target = task.question.target.path,
                    .compute_id = task.compute_id,
                    .created_at = now};
  const std::string user = task.user_id;
  if (!slots_.Enter(user)) {
    metrics_.Ended(store::RunKind::kAnalyse, "shed", {});
    return base::Fail(Code::kResourceExhausted, "run.user_busy",
                      "you have too many questions open; wait for an answer, or use --queue");
  }
  auto response = request.queue() ? Enqueue(context, request, std::move(task), std::move(run))
                                  : Answer(context, std::move(task), std::move(run));
  slots_.Leave(user);
  return response;
}

base::Result<v1::AnalyseResponse> AnalyseService::Answer(const net::CallContext& context,
                                                         AnalyseTask task, store::RunRow run) {
  const Running running(metrics_.running());
  auto outcome = Do(DeadlineOf(context), {}, std::make_shared<const AnalyseTask>(std::move(task)));
  run.finished_at = clock_.Now();
  if (!outcome) {
    metrics_.Ended(run.kind, StatusOf(outcome.error()), running.took());
    if (StatusOf(outcome.error()) == "failed") KeepFailure(runs_, run, outcome.error());
    return std::unexpected(std::move(outcome).error());
  }
  if (outcome->cached) {
    metrics_.Ended(run.kind, "cached", running.took());
    return ResponseOf(outcome->cached->run_id, outcome->cached->answer, /*cached=*/true);
  }
  run.status = store::RunStatus::kSucceeded;
  run.job_name = outcome->job_name;
  run.cache_key = outcome->cache_key;
  run.answer = outcome->answer;
  EXPANSE_RETURN_IF_ERROR(runs_.Add(run, outcome->artifacts));
  metrics_.Ended(run.kind, "succeeded", running.took());
  return ResponseOf(run.run_id, run.answer, /*cached=*/false);
}

base::Result<v1::AnalyseResponse> AnalyseService::Enqueue(const net::CallContext& context,
                                                          const v1::AnalyseRequest& request,
                                                          AnalyseTask task, store::RunRow run) {
  // What cannot be read is refused now, not when nobody looks any more.
  const bool reads_executions = task.reads_executions;
  auto readable = executor_.Within<std::string>(
      DeadlineOf(context), {},
      [this, question = std::make_shared<const analyse::Question>(std::move(task.question))] {
        return analyser_.JobName(*question);
      });
  if (!readable) {
    metrics_.Ended(run.kind, StatusOf(readable.error()), {});
    return std::unexpected(std::move(readable).error());
  }
  run.status = store::RunStatus::kQueued;
  run.job_name = *std::move(readable);
  run.request = KeepRequest(request, reads_executions);
  if (auto taken = queue_->Enqueue(run); !taken) {
    metrics_.Ended(run.kind, StatusOf(taken.error()), {});
    return std::unexpected(std::move(taken).error());
  }
  v1::AnalyseResponse response;
  response.set_run_id(run.run_id);
  response.set_status(v1::RUN_STATUS_QUEUED);
  return response;
}

store::RunOutcome AnalyseService::Work(const store::RunRow& run, const std::stop_token& stop) {
  const Running running(metrics_.running());
  const RunExecutor::Deadline deadline = steady_clock::now() + options_.run_timeout;
  auto outcome = [&]() -> base::Result<AnalyseOutcome> {
    EXPANSE_ASSIGN_OR_RETURN(AnalyseTask kept, ReadKept(run));
    const auto task = std::make_shared<const AnalyseTask>(std::move(kept));
    while (true) {
      auto done = Do(deadline, stop, task);
      if (done || done.error().reason != "run.overloaded") return done;
      // Those who wait for their answers go first.
      if (!clock_.WaitFor(stop, std::chrono::milliseconds(100)) || steady_clock::now() > deadline)
        return done;
    }
  }();
  store::RunOutcome ended{.finished_at = clock_.Now(), .job_name = run.job_name};
  if (outcome) {
    ended.job_name = outcome->job_name;
    ended.cache_key = std::move(outcome->cache_key);
    ended.answer = std::move(outcome->answer);
    ended.artifacts = std::move(outcome->artifacts);
  } else {
    ended.status = store::RunStatus::kFailed;
    ended.error = MessageOf(outcome.error());
    ended.error_reason = outcome.error().reason;
  }
  metrics_.Ended(run.kind, outcome ? "succeeded" : "failed", running.took());
  return ended;
}

}  // namespace expanse::intelligence
