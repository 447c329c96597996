#include "intelligence/analyse_work.h"

#include <fmt/format.h>

#include <utility>

#include "expanse/intelligence/v1/analyse.pb.h"
#include "intelligence/analyse/analyse.h"
#include "intelligence/analyse_proto.h"

namespace expanse::intelligence {

base::Result<std::string> AnalyseWork::JobName(const analyse::Question& question) {
  EXPANSE_ASSIGN_OR_RETURN(const analyse::Target target, analyse::ReadTarget(question));
  return analyse::JobNameOf(question, target);
}

base::Result<AnalyseOutcome> AnalyseWork::Do(const AnalyseTask& task) {
  EXPANSE_ASSIGN_OR_RETURN(const analyse::Target target, analyse::ReadTarget(task.question));
  history::Query query = analyse::QueryFor(task.question, target);
  query.organisation_id = task.organisation_id;
  query.compute_id = task.compute_id;
  if (!task.reads_executions) query.visible_computes.emplace();
  EXPANSE_ASSIGN_OR_RETURN(const history::Found found, history_.Find(query));

  AnalyseOutcome outcome;
  outcome.cache_key =
      CacheKey(task.question, task.compute_id, fmt::format("{}|{}", found.version, target_chance_));
  if (task.use_cache) {
    EXPANSE_ASSIGN_OR_RETURN(
        outcome.cached, runs_.FindCached(task.organisation_id, task.user_id, outcome.cache_key));
    // One that cannot be read any more is answered anew.
    if (outcome.cached && v1::AnalyseResult().ParseFromString(outcome.cached->answer))
      return outcome;
    outcome.cached.reset();
  }
  const analyse::Answer answer =
      analyse::Compose(task.question, target, found, {.target_chance = target_chance_});
  const auto artifact = ArtifactOf(answer, clock_.Now());
  outcome.job_name = answer.job_name;
  outcome.answer = ResultOf(answer, artifact).SerializeAsString();
  if (artifact) outcome.artifacts.push_back(*artifact);
  return outcome;
}

}  // namespace expanse::intelligence
