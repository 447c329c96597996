#include "intelligence/diagnose_work.h"

#include <utility>

#include "expanse/intelligence/v1/diagnose.pb.h"
#include "intelligence/confidence_proto.h"
#include "intelligence/diagnose/diagnose.h"
#include "intelligence/diagnose_proto.h"
#include "intelligence/failure_labels.h"

namespace expanse::intelligence {

base::Result<evidence::Execution> DiagnoseWork::Find(const std::string& organisation_id,
                                                     const ExecutionName& name) {
  if (!name.execution_id.empty()) return stores_.records.Get(organisation_id, name.execution_id);
  store::ExecutionFilter filter{.organisation_id = organisation_id,
                                .status = {},
                                .outcome = {},
                                .users = {},
                                .compute_id = name.compute_id,
                                .source_type = {},
                                .native_id = name.native_id,
                                .started_after = {},
                                .started_before = {}};
  if (name.source_type != evidence::SourceType::kUnspecified) filter.source_type = name.source_type;
  EXPANSE_ASSIGN_OR_RETURN(auto page, stores_.records.List(filter, {}, /*limit=*/1));
  if (page.executions.empty())
    return base::Fail(base::Code::kNotFound, "execution.not_found",
                      "no execution with the native id " + name.native_id);
  return std::move(page.executions.front());
}

base::Result<bool> DiagnoseWork::FindCached(const DiagnoseTask& task, const std::string& key,
                                            DiagnoseOutcome* outcome) {
  for (const std::string_view user : {std::string_view(task.user_id), store::kSystemUser}) {
    EXPANSE_ASSIGN_OR_RETURN(auto run, runs_.FindCached(task.organisation_id, user, key));
    v1::DiagnoseResult answer;
    // One that cannot be read any more is answered anew.
    if (!run || !answer.ParseFromString(run->answer)) continue;
    outcome->cached = std::move(run);
    outcome->failure_class = answer.display().failure_class();
    outcome->title = answer.title();
    outcome->confidence = ConfidenceOf(answer.confidence());
    return true;
  }
  return false;
}

base::Result<DiagnoseOutcome> DiagnoseWork::Do(const DiagnoseTask& task) {
  EXPANSE_ASSIGN_OR_RETURN(
      diagnose::Case of, diagnose_case::Assemble(stores_, {.organisation_id = task.organisation_id,
                                                           .execution = task.execution,
                                                           .visible_computes = {},
                                                           .extra_sources = task.extra_sources}));
  EXPANSE_RETURN_IF_ERROR(AddKnownFailures(runs_.labels(), task, &of));
  const Runbooks runbooks = runbooks_.Current();
  DiagnoseOutcome outcome;
  outcome.cache_key = CacheKey(of, runbooks.version);
  if (task.use_cache) {
    EXPANSE_ASSIGN_OR_RETURN(const bool found, FindCached(task, outcome.cache_key, &outcome));
    if (found) return outcome;
  }
  const diagnose::Diagnosis diagnosis = diagnose::Diagnose(of, *runbooks.set);
  outcome.answer = ResultOf(of, diagnosis).SerializeAsString();
  outcome.failure_class = diagnosis.failure_class;
  outcome.title = diagnosis.title;
  outcome.confidence = diagnosis.confidence;
  return outcome;
}

}  // namespace expanse::intelligence
