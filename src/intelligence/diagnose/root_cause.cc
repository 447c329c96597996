#include "intelligence/diagnose/root_cause.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "intelligence/diagnose/attribution.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr std::size_t kMaxCited = 8;
constexpr std::size_t kMaxStepsNamed = 4;

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

std::string Count(std::size_t number, std::string_view one, std::string_view many) {
  return std::to_string(number) + " " + std::string(number == 1 ? one : many);
}

// Similar executions that were diagnosed with the same class; the newest is named.
void CiteSameFailures(const Case& of, Diagnosis* diagnosis) {
  std::size_t same = 0;
  CitedEvidence cited;
  for (const SimilarRun& similar : of.similar) {  // oldest first
    if (similar.failure_class != diagnosis->failure_class) continue;
    ++same;
    cited.execution_id = similar.run.execution_id;
  }
  if (same == 0) return;
  cited.origin = Name(Origin::kSimilar);
  cited.summary = std::to_string(same) + " of " +
                  Count(of.similar.size(), "similar execution", "similar executions") +
                  " failed the same way";
  diagnosis->evidence.push_back(std::move(cited));
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

// Other work on the same node speaks for the node only where it is not one user's habit.
std::string NodeSentence(const Case& of, const std::string& failure_class) {
  const NodeRecord* record = NodePointedTo(of, failure_class);
  if (record == nullptr) return {};
  return "Node " + record->node + " showed the same failure in " +
         Count(record->executions, "execution", "executions") + " of other workloads of " +
         Count(record->users, "user", "users") + ", and all other nodes together in " +
         std::to_string(record->elsewhere) + ", which points to the node.";
}

// The line that asks for what was not enough: what its owner would change.
void CiteRequest(const Known& known, const Runbook& runbook, Diagnosis* diagnosis) {
  if (!runbook.request) return;
  const auto line = known.facts.requests().find(*runbook.request);
  if (line == known.facts.requests().end()) return;
  const Item& item = known.ledger[line->second.item];
  const bool cited = std::any_of(diagnosis->evidence.begin(), diagnosis->evidence.end(),
                                 [&](const CitedEvidence& other) { return other.id == item.id; });
  if (!cited) diagnosis->evidence.push_back(Cite(known.of, item));
}

// A script may go on after a step that failed, and often that is meant.
std::string SuccessSentence(const evidence::Execution& run) {
  std::vector<std::string> failed;
  for (const evidence::Step& step : run.steps) {
    const int signal = step.signal.value_or(0);
    const int code = step.exit_code.value_or(0);
    if (signal != 0) {
      failed.push_back("step " + step.id + " (" + SignalName(signal) + ")");
    } else if (code != 0) {
      failed.push_back("step " + step.id + " (exit code " + std::to_string(code) + ")");
    }
  }
  if (failed.empty()) return "The execution succeeded; there is no failure to explain.";
  std::string text = "The execution succeeded as a whole, but not ";
  for (std::size_t index = 0; index < failed.size() && index < kMaxStepsNamed; ++index)
    text += (index == 0 ? "" : ", ") + failed[index];
  if (failed.size() > kMaxStepsNamed)
    text += " and " + std::to_string(failed.size() - kMaxStepsNamed) + " more";
  return text + ": its script went on.";
}

std::string RootCause(const Case& of, const Runbook& runbook, const Values& values) {
  std::string text = "What happened: " + Fill(runbook.what, values);
  std::string why(base::Trim(Fill(runbook.why, values)));  // its first sentence may be left out
  if (const auto shown = values.find("shown"); why.empty() && shown != values.end())
    why = "the record of the run shows " + shown->second + ".";
  if (why.starts_with("The ")) why[0] = 't';
  if (!why.empty()) Append(&text, "Why: " + why);
  Append(&text, Fill(runbook.not_this, values));
  for (const std::string& sentence : runbook.unknown) Append(&text, Fill(sentence, values));
  Append(&text, NodeSentence(of, runbook.id));
  return text;
}

}  // namespace

void Explain(const Known& known, const Verdict& verdict, Diagnosis* diagnosis) {
  const Finding& best = *verdict.best;
  const Runbook& runbook = known.runbooks.runbooks()[best.runbook];
  Values values = ValuesOf(known, best, verdict.alternatives);
  // The gate: what is not in the evidence is not quoted.
  for (const char* name : {"quote", "hidden_line"}) {
    if (const auto quote = values.find(name);
        quote != values.end() && !known.ledger.Holds(quote->second))
      values.erase(quote);
  }
  diagnosis->failure_class = runbook.id;
  diagnosis->title = runbook.title;
  diagnosis->kind = Name(runbook.kind);
  diagnosis->owner = Name(runbook.owner);
  diagnosis->confidence = verdict.confidence;
  diagnosis->doubts = verdict.doubts;
  diagnosis->root_cause = RootCause(known.of, runbook, values);
  diagnosis->advice = Fill(runbook.advice, values);
  diagnosis->retry = runbook.retry;
  diagnosis->verify = Fill(runbook.verify, values);
  for (const std::string& sentence : runbook.collect)
    diagnosis->collect.push_back(Fill(sentence, values));
  for (const std::size_t absorbed : best.absorbed)
    diagnosis->explained.push_back(known.runbooks.runbooks()[absorbed].id);
  for (const Mark& mark : MarksToCite(best))
    diagnosis->evidence.push_back(Cite(known.of, known.ledger[mark.item]));
  CiteRequest(known, runbook, diagnosis);
  CiteSimilar(known.of, values, diagnosis);
  CiteSameFailures(known.of, diagnosis);
  AddAlternatives(verdict, known.runbooks, known.ledger, diagnosis);
  MarkFields(runbook, best, diagnosis);
}

void ExplainNothingFound(const Case& of, const Verdict& verdict, Diagnosis* diagnosis) {
  switch (verdict.state) {
    case State::kSucceeded:
      diagnosis->root_cause = SuccessSentence(of.execution);
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
