#include "intelligence/diagnose/facts.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/text.h"
#include "intelligence/diagnose/hidden_exit.h"
#include "intelligence/diagnose/request_lines.h"

namespace expanse::intelligence::diagnose {
namespace {

using evidence::Execution;

std::string FirstWord(std::string_view text) {
  const std::size_t end = text.find(' ');
  return std::string(text.substr(0, end));
}

std::string Digits(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  std::string text = std::to_string(std::llround(value * scale));
  if (decimals == 0) return text;
  const bool negative = text.starts_with('-');
  if (negative) text.erase(0, 1);
  const auto width = static_cast<std::size_t>(decimals) + 1;
  if (text.size() < width) text.insert(0, width - text.size(), '0');
  text.insert(text.size() - static_cast<std::size_t>(decimals), ".");
  return (negative ? "-" : "") + text;
}

std::string Amount(double bytes) {
  return base::FormatBytes({static_cast<std::uint64_t>(std::llround(std::max(0.0, bytes)))});
}

bool WordMatches(std::string_view pattern, std::string_view word) {
  if (pattern.ends_with('*')) return word.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == word;
}

bool AnyMatches(const Condition& condition, std::string_view word) {
  return std::any_of(condition.words.begin(), condition.words.end(),
                     [&](const std::string& pattern) { return WordMatches(pattern, word); });
}

// Slurm gives the reason of failed launches to every batch script that a signal ended.
bool IsReasonOfASignal(const Execution& run) {
  return run.native_reason == "JobLaunchFailure" && run.signal && *run.signal != 0;
}

// A program whose line ends the kernel or a shell would read: a script, or what names an
// interpreter in its first line.
bool HasCarriageReturns(const SourceText& source) {
  if (source.role != "script" && !source.path.ends_with(".sh") && !source.data.starts_with("#!"))
    return false;
  const std::size_t end = source.data.find('\n');
  return end != std::string::npos && end > 0 && source.data[end - 1] == '\r';
}

class Collector {
 public:
  Collector(Ledger* ledger, std::map<std::string, Fact, std::less<>>* facts)
      : ledger_(ledger), facts_(facts) {}

  void Text(std::string name, std::string word, Origin origin, std::string shown) {
    if (word.empty()) return;
    const auto item = Cite(name, origin, std::move(shown));
    facts_->insert_or_assign(
        std::move(name),
        Fact{.words = {std::move(word)}, .number = {}, .origin = origin, .item = item});
  }
  void Number(std::string name, std::optional<double> value, Origin origin, std::string shown) {
    if (!value || !std::isfinite(*value)) return;
    const auto item = shown.empty() ? std::nullopt : Cite(name, origin, std::move(shown));
    facts_->insert_or_assign(std::move(name),
                             Fact{.words = {}, .number = value, .origin = origin, .item = item});
  }
  void Words(std::string name, std::vector<std::string> words, Origin origin,
             std::optional<std::size_t> item) {
    if (words.empty()) return;
    facts_->insert_or_assign(
        std::move(name),
        Fact{.words = std::move(words), .number = {}, .origin = origin, .item = item});
  }
  void Put(std::string name, Fact fact) {
    if (!fact.words.empty()) facts_->insert_or_assign(std::move(name), std::move(fact));
  }
  void SourceLine(std::string name, std::string where, std::string line) {
    const auto item = Cite(std::move(where), Origin::kSource, std::move(line));
    facts_->insert_or_assign(
        std::move(name), Fact{.words = {}, .number = 1.0, .origin = Origin::kSource, .item = item});
  }
  std::optional<std::size_t> Cite(std::string where, Origin origin, std::string shown) {
    Item item;
    item.origin = origin;
    item.where = std::move(where);
    item.text = std::move(shown);
    return ledger_->Add(std::move(item));
  }

 private:
  Ledger* ledger_;
  std::map<std::string, Fact, std::less<>>* facts_;
};

void AddSchedulerFacts(const Execution& run, Collector* to) {
  to->Text("scheduler", std::string(Name(run.source_type)), Origin::kScheduler,
           "scheduler " + std::string(Name(run.source_type)));
  to->Text("status", std::string(Name(run.status)), Origin::kScheduler,
           "status " + std::string(Name(run.status)));
  to->Text("outcome", std::string(Name(run.outcome)), Origin::kScheduler,
           "outcome " + std::string(Name(run.outcome)));
  if (!run.native_state.empty())
    to->Text("state", FirstWord(run.native_state), Origin::kScheduler, "state " + run.native_state);
  if (!run.native_reason.empty() && !IsReasonOfASignal(run))
    to->Text("reason", run.native_reason, Origin::kScheduler, "reason " + run.native_reason);
  if (run.exit_code)
    to->Number("exit_code", *run.exit_code, Origin::kExit,
               "exit code " + std::to_string(*run.exit_code));
  if (run.signal && *run.signal != 0)
    to->Number("signal", *run.signal, Origin::kExit, "signal " + std::to_string(*run.signal));
  if (run.restart_count > 0)
    to->Number("restart_count", run.restart_count, Origin::kScheduler,
               "restarted " + std::to_string(run.restart_count) + " times");
  // Who cancelled it, as Slurm's accounting says: a uid.
  const auto by = run.labels.find("slurm.cancelled_by");
  if (by == run.labels.end()) return;
  const auto uid = run.labels.find("slurm.uid");
  if (uid == run.labels.end() && by->second != "0") return;
  const bool own = uid != run.labels.end() && uid->second == by->second;
  to->Text("cancelled_by", own ? "user" : "other", Origin::kScheduler,
           "cancelled by uid " + by->second);
}

void AddStepFacts(const Execution& run, Collector* to) {
  Fact codes{.words = {}, .number = {}, .origin = Origin::kExit, .item = {}, .items = {}};
  Fact signals = codes;
  const auto add = [](Fact& fact, const std::string& word, std::size_t item) {
    fact.words.push_back(word);
    fact.items.push_back(item);
    if (!fact.item) fact.item = item;
  };
  for (const evidence::Step& step : run.steps) {
    const int code = step.exit_code.value_or(0);
    const int signal = step.signal.value_or(0);
    if (code == 0 && signal == 0) continue;
    std::string shown = "step " + step.id + " " + step.native_state;
    if (step.exit_code) shown += ", exit code " + std::to_string(code);
    if (signal != 0) shown += ", signal " + std::to_string(signal);
    const auto item = to->Cite("step " + step.id, Origin::kExit, shown);
    if (!item) break;  // the ledger is full
    if (code != 0) add(codes, std::to_string(code), *item);
    if (signal != 0) add(signals, std::to_string(signal), *item);
  }
  to->Put("step_exit_code", std::move(codes));
  to->Put("step_signal", std::move(signals));
}

std::optional<double> Ratio(std::optional<double> part, std::optional<double> whole) {
  if (!part || !whole || *whole <= 0) return std::nullopt;
  return *part / *whole;
}

void AddMeasuredFacts(const Case& of, Collector* to) {
  const Snapshot& seen = of.snapshot;
  const auto& used = of.execution.used;
  if (used.oom_kills)
    to->Number("oom_kills", static_cast<double>(*used.oom_kills), Origin::kEvent,
               "processes killed at the memory limit: " + std::to_string(*used.oom_kills));
  if (const auto ratio = Ratio(seen.host_ram_observed_peak_bytes, seen.host_ram_requested_bytes))
    to->Number("memory_ratio", ratio, Origin::kMetric,
               "peak memory " + Amount(*seen.host_ram_observed_peak_bytes) + " of " +
                   Amount(*seen.host_ram_requested_bytes));
  if (const auto ratio = Ratio(seen.runtime_s, seen.walltime_s))
    to->Number("runtime_ratio", ratio, Origin::kMetric,
               "ran " + Digits(*seen.runtime_s, 0) + " s of " + Digits(*seen.walltime_s, 0) + " s");
  if (const auto ratio = Ratio(seen.gpu_memory_observed_bytes, seen.gpu_memory_available_bytes))
    to->Number("gpu_memory_ratio", ratio, Origin::kMetric,
               "peak GPU memory " + Amount(*seen.gpu_memory_observed_bytes) + " of " +
                   Amount(*seen.gpu_memory_available_bytes));
  if (seen.gpu_utilisation_pct)
    to->Number("gpu_utilisation_pct", seen.gpu_utilisation_pct, Origin::kMetric,
               "GPU utilisation " + Digits(*seen.gpu_utilisation_pct, 0) + " %");
  if (seen.idle_tail_s)
    to->Number("idle_tail_s", seen.idle_tail_s, Origin::kMetric,
               "no activity in the last " + Digits(*seen.idle_tail_s, 0) + " s");
  if (seen.memory_growth_bytes_per_hour && seen.host_ram_requested_bytes &&
      *seen.host_ram_requested_bytes > 0)
    to->Number("memory_growth", *seen.memory_growth_bytes_per_hour / *seen.host_ram_requested_bytes,
               Origin::kMetric,
               "memory grew " + Amount(*seen.memory_growth_bytes_per_hour) + " an hour");
  to->Number("runtime_s", seen.runtime_s, Origin::kMetric, {});
  to->Number("gpu_requested", seen.gpu_count, Origin::kScheduler, {});
}

std::string LineOf(const std::string& path, std::uint32_t line) {
  return base::EscapeForDisplay(path) + " line " + std::to_string(line);
}

void AddHiddenExit(const SourceText& script, Collector* to) {
  const auto hidden = FindHiddenExit(script.data);
  if (!hidden) {
    to->Words("masks_exit", {"none"}, Origin::kSource, std::nullopt);
    return;
  }
  const auto item = to->Cite(LineOf(script.path, hidden->line), Origin::kSource, hidden->text);
  to->Words("masks_exit", {std::string(Name(hidden->how))}, Origin::kSource, item);
}

std::map<workload::Quantity, RequestItem> AddRequests(const Case& of, Collector* to) {
  std::map<workload::Quantity, RequestItem> requests;
  for (RequestLine& line : FindRequestLines(of.sources)) {
    const auto item = to->Cite(LineOf(line.path, line.line), Origin::kSource, std::move(line.text));
    if (item) requests[line.quantity] = {.option = std::move(line.option), .item = *item};
  }
  return requests;
}

}  // namespace

const SourceText* ScriptOf(const Case& of) {
  const auto marked =
      std::find_if(of.sources.begin(), of.sources.end(),
                   [](const SourceText& source) { return source.role == "script"; });
  if (marked != of.sources.end()) return &*marked;
  return of.sources.empty() ? nullptr : &of.sources.front();
}

Facts Facts::Of(const Case& of, Ledger* ledger) {
  Facts facts;
  Collector to(ledger, &facts.facts_);
  AddSchedulerFacts(of.execution, &to);
  AddStepFacts(of.execution, &to);
  AddMeasuredFacts(of, &to);
  if (!of.sources.empty()) {
    to.Number("has_source", 1.0, Origin::kSource, {});
    AddHiddenExit(*ScriptOf(of), &to);
    facts.requests_ = AddRequests(of, &to);
  }
  const auto returns = std::find_if(of.sources.begin(), of.sources.end(), HasCarriageReturns);
  if (returns != of.sources.end())
    to.SourceLine("source_crlf", LineOf(returns->path, 1),
                  returns->data.substr(0, returns->data.find('\n')));
  double lines = 0;
  for (const LogText& log : of.logs)
    lines += static_cast<double>(std::count(log.data.begin(), log.data.end(), '\n'));
  if (!of.logs.empty()) to.Number("log_lines", lines, Origin::kText, {});
  return facts;
}

const Fact* Facts::Find(std::string_view name) const {
  const auto found = facts_.find(name);
  return found == facts_.end() ? nullptr : &found->second;
}

bool Facts::Holds(const Condition& condition) const {
  const Fact* fact = Find(condition.fact);
  if (fact == nullptr) return false;
  if (!condition.words.empty()) {
    return std::any_of(fact->words.begin(), fact->words.end(),
                       [&](const std::string& word) { return AnyMatches(condition, word); }) ||
           (fact->number && *fact->number == std::floor(*fact->number) &&
            AnyMatches(condition, Digits(*fact->number, 0)));
  }
  if (!fact->number) return false;
  if (condition.at_least && *fact->number < *condition.at_least) return false;
  if (condition.at_most && *fact->number > *condition.at_most) return false;
  return condition.at_least || condition.at_most;
}

std::optional<std::size_t> Facts::ItemOf(const Condition& condition) const {
  const Fact* fact = Find(condition.fact);
  if (fact == nullptr) return std::nullopt;
  for (std::size_t index = 0; index < fact->items.size(); ++index)
    if (AnyMatches(condition, fact->words[index])) return fact->items[index];
  return fact->item;
}

bool Facts::Exclude(const Runbook& runbook) const {
  return std::any_of(runbook.only.begin(), runbook.only.end(), [&](const Condition& condition) {
    return Find(condition.fact) != nullptr && !Holds(condition);
  });
}

const std::vector<std::string_view>& Facts::Names() {
  static const std::vector<std::string_view> names = {"scheduler",      "status",
                                                      "outcome",        "state",
                                                      "reason",         "exit_code",
                                                      "signal",         "step_exit_code",
                                                      "step_signal",    "cancelled_by",
                                                      "oom_kills",      "restart_count",
                                                      "memory_ratio",   "runtime_ratio",
                                                      "runtime_s",      "gpu_memory_ratio",
                                                      "gpu_requested",  "gpu_utilisation_pct",
                                                      "idle_tail_s",    "memory_growth",
                                                      "log_lines",      "has_source",
                                                      "source_crlf",    "masks_exit",
                                                      "ends_in_failure"};
  return names;
}

}  // namespace expanse::intelligence::diagnose
