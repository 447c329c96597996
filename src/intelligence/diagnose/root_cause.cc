#include "intelligence/diagnose/root_cause.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "intelligence/diagnose/wording.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr std::size_t kMaxCited = 8;

void Append(std::string* text, const std::string& sentence) {
  if (sentence.empty()) return;
  if (!text->empty()) *text += ' ';
  *text += sentence;
}

CitedEvidence Cite(const Case& of, const Item& item) {
  CitedEvidence cited;
  cited.id = item.id;
  cited.origin = Name(item.origin);
  cited.where = item.where;
  cited.quote = item.text;
  cited.execution_id = of.execution.execution_id;
  cited.summary = item.where;
  if (!item.node.empty()) cited.summary += ", node " + item.node;
  if (item.rank) cited.summary += ", rank " + std::to_string(*item.rank);
  if (item.count > 1) cited.summary += ", " + std::to_string(item.count) + " times";
  return cited;
}

// The strongest marks first, each item once, in the order of the evidence among equals.
std::vector<Mark> MarksToCite(const Finding& finding) {
  std::vector<Mark> marks = finding.marks;
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return a.strength > b.strength; });
  std::set<std::size_t> seen;
  std::erase_if(marks, [&](const Mark& mark) { return !seen.insert(mark.item).second; });
  if (marks.size() > kMaxCited) marks.resize(kMaxCited);
  return marks;
}

void CiteSimilar(const Case& of, const Values& values, Diagnosis* diagnosis) {
  const auto successes = values.find("similar_successes");
  if (successes == values.end()) return;
  const auto with = std::find_if(of.similar.begin(), of.similar.end(), [](const SimilarRun& run) {
    return run.run.ending == predict::Ending::kSuccess;
  });
  CitedEvidence cited;
  cited.origin = Name(Origin::kSimilar);
  cited.execution_id = with->run.execution_id;
  cited.summary = successes->second + " similar executions succeeded";
  if (const auto peak = values.find("similar_peak"); peak != values.end())
    cited.summary += ", the largest with a memory peak of " + peak->second;
  diagnosis->evidence.push_back(std::move(cited));
}

void AddAlternatives(const Verdict& verdict, const RunbookSet& runbooks, const Ledger& ledger,
                     Diagnosis* diagnosis) {
  for (const Finding& finding : verdict.alternatives) {
    const Runbook& runbook = runbooks.runbooks()[finding.runbook];
    Alternative alternative{
        .failure_class = runbook.id, .title = runbook.title, .supporting = {}, .against = {}};
    for (const Mark& mark : MarksToCite(finding))
      alternative.supporting.push_back(ledger[mark.item].id);
    for (const std::size_t item : finding.against) alternative.against.push_back(ledger[item].id);
    diagnosis->alternatives.push_back(std::move(alternative));
  }
}

void MarkFields(const Runbook& runbook, const Finding& finding, Diagnosis* diagnosis) {
  auto& fields = diagnosis->fields;
  const Snapshot& seen = diagnosis->snapshot;
  fields["failure_class"] = FieldStatus::kError;
  const auto put = [&](const char* name, bool known, bool bad) {
    if (known) fields[name] = bad ? FieldStatus::kError : FieldStatus::kOk;
  };
  const bool host_memory =
      runbook.family == "memory" &&
      std::find(finding.kinds.begin(), finding.kinds.end(), Origin::kText) != finding.kinds.end();
  const bool host =
      host_memory || runbook.id == "host_out_of_memory" || runbook.id == "memory_leak";
  const bool gpu = runbook.id == "gpu_out_of_memory";
  const bool time = runbook.id == "walltime_exceeded" || runbook.id == "hang_no_progress";
  put("runtime_s", seen.runtime_s.has_value(), time);
  put("gpu_utilisation_pct", seen.gpu_utilisation_pct.has_value(),
      runbook.id == "gpu_idle_underused");
  put("gpu_memory_available_gb", seen.gpu_memory_available_bytes.has_value(), gpu);
  put("gpu_memory_observed_gb", seen.gpu_memory_observed_bytes.has_value(), gpu);
  put("host_ram_observed_peak_gb", seen.host_ram_observed_peak_bytes.has_value(), host);
  put("host_ram_requested_gb", seen.host_ram_requested_bytes.has_value(), host);
}

std::string NodeSentence(const Case& of, const std::string& failure_class) {
  for (const NodeRecord& record : of.node_records) {
    if (record.failure_class != failure_class || record.executions == 0) continue;
    std::string text = "Node " + record.node + " showed the same failure in " +
                       std::to_string(record.executions) + " other executions";
    if (record.users > 1) text += " of " + std::to_string(record.users) + " users";
    return text + ", which points to the node.";
  }
  return {};
}

}  // namespace

void Explain(const Case& of, const Verdict& verdict, const RunbookSet& runbooks,
             const Ledger& ledger, Diagnosis* diagnosis) {
  const Finding& best = *verdict.best;
  const Runbook& runbook = runbooks.runbooks()[best.runbook];
  Values values = ValuesOf(of, best, runbooks, ledger);
  // The gate: what is not in the evidence is not quoted.
  if (const auto quote = values.find("quote");
      quote != values.end() && !ledger.Holds(quote->second))
    values.erase(quote);
  diagnosis->failure_class = runbook.id;
  diagnosis->title = runbook.title;
  diagnosis->kind = Name(runbook.kind);
  diagnosis->owner = Name(runbook.owner);
  diagnosis->confidence = verdict.confidence;
  diagnosis->doubts = verdict.doubts;
  std::string text = "What happened: " + Fill(runbook.what, values);
  if (!runbook.why.empty()) Append(&text, "Why: " + Fill(runbook.why, values));
  Append(&text, Fill(runbook.not_this, values));
  for (const std::string& sentence : runbook.unknown) Append(&text, Fill(sentence, values));
  Append(&text, NodeSentence(of, runbook.id));
  diagnosis->root_cause = std::move(text);
  diagnosis->advice = Fill(runbook.advice, values);
  diagnosis->retry = runbook.retry;
  diagnosis->verify = Fill(runbook.verify, values);
  for (const std::string& sentence : runbook.collect)
    diagnosis->collect.push_back(Fill(sentence, values));
  for (const std::size_t absorbed : best.absorbed)
    diagnosis->explained.push_back(runbooks.runbooks()[absorbed].id);
  for (const Mark& mark : MarksToCite(best))
    diagnosis->evidence.push_back(Cite(of, ledger[mark.item]));
  CiteSimilar(of, values, diagnosis);
  AddAlternatives(verdict, runbooks, ledger, diagnosis);
  MarkFields(runbook, best, diagnosis);
}

void ExplainNothingFound(const Case& of, const Verdict& verdict, Diagnosis* diagnosis) {
  switch (verdict.state) {
    case State::kSucceeded:
      diagnosis->root_cause = "The execution succeeded; there is no failure to explain.";
      return;
    case State::kRunning:
      diagnosis->root_cause = "The execution is still running; nothing has failed so far.";
      return;
    case State::kWaiting:
      diagnosis->root_cause = "The execution has not started";
      diagnosis->root_cause +=
          of.execution.native_reason.empty() || of.execution.native_reason == "None"
              ? "."
              : "; the scheduler gives the reason " + of.execution.native_reason + ".";
      return;
    case State::kCancelled:
    case State::kFailed:
    case State::kUnknown:
      break;
  }
  diagnosis->failure_class = "unknown";
  diagnosis->title = "Not known";
  diagnosis->confidence = predict::Confidence::kLow;
  std::string text = "What happened: the execution ended ";
  if (of.execution.exit_code) {
    text += "with exit code " + std::to_string(*of.execution.exit_code);
    if (of.execution.signal && *of.execution.signal != 0)
      text += " and " + SignalName(*of.execution.signal);
  } else {
    text += "in state " + (of.execution.native_state.empty() ? std::string(Name(verdict.state))
                                                             : of.execution.native_state);
  }
  text += ". Why: the evidence does not tell.";
  diagnosis->root_cause = std::move(text);
  if (of.logs.empty()) diagnosis->collect.emplace_back("the job's output: none was captured");
  if (of.series_count == 0)
    diagnosis->collect.emplace_back(
        "metrics: none were captured, so memory and activity at the end are not known");
  diagnosis->collect.emplace_back(
      "the full output around the first error, and logs that the program writes elsewhere");
}

}  // namespace expanse::intelligence::diagnose
