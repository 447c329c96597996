#include "intelligence/diagnose/diagnose.h"

#include <string>

#include "intelligence/diagnose/agent_prompt.h"
#include "intelligence/diagnose/attribution.h"
#include "intelligence/diagnose/facts.h"
#include "intelligence/diagnose/findings.h"
#include "intelligence/diagnose/root_cause.h"
#include "intelligence/predict/probability.h"

namespace expanse::intelligence::diagnose {
namespace {

std::string Count(std::size_t number, std::string_view one, std::string_view many) {
  return std::to_string(number) + " " + std::string(number == 1 ? one : many);
}

Stage EvidenceStage(const Case& of) {
  std::string summary = "execution record";
  if (!of.execution.native_state.empty()) summary += ", scheduler status";
  if (!of.logs.empty()) summary += ", " + Count(of.logs.size(), "output stream", "output streams");
  if (!of.events.empty()) summary += ", " + Count(of.events.size(), "event", "events");
  return {.name = "evidence",
          .status = of.logs.empty() ? StageStatus::kDegraded : StageStatus::kOk,
          .summary = of.logs.empty() ? summary + "; no output captured" : summary};
}

Stage SimilarStage(const Case& of) {
  if (of.similar.empty())
    return {.name = "similar", .status = StageStatus::kSkipped, .summary = "no similar executions"};
  return {.name = "similar",
          .status = StageStatus::kOk,
          .summary = Count(of.similar.size(), "similar execution", "similar executions")};
}

Stage SourcesStage(const Case& of) {
  if (of.sources.empty())
    return {.name = "sources", .status = StageStatus::kSkipped, .summary = "no sources captured"};
  std::string summary = Count(of.sources.size(), "captured file", "captured files");
  if (of.sources_skipped > 0) summary += ", " + std::to_string(of.sources_skipped) + " left out";
  return {.name = "sources",
          .status = of.sources_skipped > 0 ? StageStatus::kDegraded : StageStatus::kOk,
          .summary = summary};
}

Stage MetricsStage(const Case& of) {
  if (of.series_count == 0 && !of.snapshot.host_ram_observed_peak_bytes)
    return {.name = "metrics", .status = StageStatus::kSkipped, .summary = "no metrics captured"};
  if (of.series_count == 0)
    return {
        .name = "metrics", .status = StageStatus::kDegraded, .summary = "totals at the end only"};
  return {.name = "metrics",
          .status = StageStatus::kOk,
          .summary = Count(of.series_count, "series", "series") + ", snapshot"};
}

Stage RunbooksStage(const Verdict& verdict, const Diagnosis& diagnosis, const LogSummary& log) {
  if (verdict.best)
    return {.name = "runbooks", .status = StageStatus::kOk, .summary = diagnosis.failure_class};
  return {.name = "runbooks",
          .status = StageStatus::kOk,
          .summary = "none matched " + Count(log.lines, "line", "lines")};
}

std::optional<predict::Probability> Recurrence(const Case& of) {
  std::vector<predict::Run> runs;
  for (const SimilarRun& similar : of.similar) runs.push_back(similar.run);
  return predict::RecurrenceProbability(runs, of.similar_basis);
}

}  // namespace

Diagnosis Diagnose(const Case& of, const RunbookSet& runbooks) {
  Diagnosis diagnosis;
  diagnosis.snapshot = of.snapshot;
  Ledger ledger;
  Facts facts = Facts::Of(of, &ledger);
  LogSummary log;
  const Verdict verdict = Judge(FindAll(of, runbooks, &facts, &ledger, &log), runbooks, of);
  diagnosis.state = verdict.state;
  if (verdict.best) {
    Explain({.of = of, .runbooks = runbooks, .facts = facts, .ledger = ledger}, verdict,
            &diagnosis);
  } else {
    ExplainNothingFound(of, verdict, &diagnosis);
  }
  const bool failed = !diagnosis.failure_class.empty();
  if (failed) diagnosis.recurrence = Recurrence(of);
  diagnosis.pipeline = {EvidenceStage(of), SimilarStage(of), SourcesStage(of)};
  diagnosis.pipeline.push_back(AttributionStage(of, diagnosis));
  diagnosis.pipeline.push_back(MetricsStage(of));
  diagnosis.pipeline.push_back(RunbooksStage(verdict, diagnosis, log));
  diagnosis.pipeline.push_back(
      {.name = "synthesis", .status = StageStatus::kOk, .summary = "deterministic"});
  if (failed) {
    diagnosis.agent_prompt = AgentPrompt(of, diagnosis);
    diagnosis.pipeline.push_back(
        {.name = "agent-prompt",
         .status = StageStatus::kOk,
         .summary = std::to_string((diagnosis.agent_prompt.size() + 500) / 1000) + "k chars"});
  } else {
    diagnosis.pipeline.push_back(
        {.name = "agent-prompt", .status = StageStatus::kSkipped, .summary = "nothing failed"});
  }
  return diagnosis;
}

}  // namespace expanse::intelligence::diagnose
