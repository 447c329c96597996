#include "intelligence/diagnose/findings.h"

#include <algorithm>
#include <map>

#include "intelligence/diagnose/end_of_output.h"
#include "intelligence/diagnose/log_lines.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr std::size_t kMaxMarks = 12;  // of one finding and stream; the rest says nothing new

double WeightOf(Strength strength) {
  switch (strength) {
    case Strength::kWeak:
      return 1;
    case Strength::kFair:  // less than a strong mark by more than verdict.cc's kClose
      return 1.9;
    case Strength::kStrong:
      return 3;
    case Strength::kDecisive:
      return 5;
  }
  return 0;
}

class Matcher {
 public:
  Matcher(const RunbookSet& runbooks, Ledger* ledger) : runbooks_(runbooks), ledger_(ledger) {}

  void Text(const std::string& stream, const Reduced& reduced, bool is_excerpt) {
    lines_ += reduced.total_lines;
    distinct_ += reduced.lines.size();
    for (const LogLine& line : reduced.lines) {
      const std::vector<SignatureHit> hits = runbooks_.Match(line.message);
      if (hits.empty()) continue;
      std::optional<std::size_t> item;
      for (const SignatureHit& hit : hits) {
        Finding& finding = Of(hit.runbook);
        if (finding.marks.size() >= kMaxMarks && hit.strength <= finding.best) continue;
        if (!item) item = AddLine(stream, line, is_excerpt);
        if (!item) return;  // the ledger is full
        Put(&finding, {.item = *item, .origin = Origin::kText, .strength = hit.strength});
        const std::size_t place = position_ + line.number;
        finding.first_line = std::min(finding.first_line.value_or(place), place);
      }
    }
    position_ += reduced.total_lines;
  }

  std::optional<std::size_t> AddLine(const std::string& stream, const LogLine& line,
                                     bool is_excerpt) {
    return ledger_->Add({.id = {},
                         .origin = Origin::kText,
                         .where = stream + (is_excerpt ? " (first error) line " : " line ") +
                                  std::to_string(line.number),
                         .at = {},
                         .node = line.node,
                         .rank = line.rank,
                         .text = std::string(Excerpt(line.raw)),
                         .count = line.count,
                         .order = line.number});
  }

  void EventLine(const Event& event) {
    for (const SignatureHit& hit : runbooks_.Match(event.text)) {
      const auto item = ledger_->Add({.id = {},
                                      .origin = Origin::kEvent,
                                      .where = event.source,
                                      .at = event.at,
                                      .node = event.node,
                                      .rank = {},
                                      .text = event.text,
                                      .count = 1,
                                      .order = 0});
      if (!item) return;
      Put(&Of(hit.runbook), {.item = *item, .origin = Origin::kEvent, .strength = hit.strength});
    }
  }

  void Conditions(const Facts& facts) {
    for (std::size_t index = 0; index < runbooks_.runbooks().size(); ++index) {
      const Runbook& runbook = runbooks_.runbooks()[index];
      for (const Condition& condition : runbook.when) {
        if (!facts.Holds(condition)) continue;
        const Fact* fact = facts.Find(condition.fact);
        const auto item = facts.ItemOf(condition);
        if (!item) continue;
        Put(&Of(index), {.item = *item, .origin = fact->origin, .strength = condition.strength});
      }
    }
    for (auto& [index, finding] : findings_) {
      for (const Condition& condition : runbooks_.runbooks()[index].unless) {
        if (!facts.Holds(condition)) continue;
        const Fact* fact = facts.Find(condition.fact);
        // What whoever ended the run says is not refuted by samples, which miss what is short.
        if (finding.best == Strength::kDecisive && fact->origin == Origin::kMetric) continue;
        if (const auto item = facts.ItemOf(condition)) finding.against.push_back(*item);
      }
    }
  }

  // Candidates that a known fact rules out are none.
  void Exclude(const Facts& facts) {
    std::erase_if(findings_, [&](const auto& entry) {
      return facts.Exclude(runbooks_.runbooks()[entry.first]);
    });
  }

  std::vector<Finding> Take() {
    std::vector<Finding> result;
    for (auto& [index, finding] : findings_) {
      Score(&finding);
      result.push_back(std::move(finding));
    }
    return result;
  }

  std::size_t lines() const { return lines_; }
  std::size_t distinct() const { return distinct_; }

 private:
  // Of a line that is too long to quote the end that a signature matches.
  std::string_view Excerpt(std::string_view raw) const {
    if (raw.size() <= kMaxItemText) return raw;
    const std::string_view front = raw.substr(0, kMaxItemText);
    LogLine line;
    StripLine(front, &line);
    return runbooks_.Match(line.message).empty() ? raw.substr(raw.size() - kMaxItemText) : front;
  }

  Finding& Of(std::size_t runbook) {
    Finding& finding = findings_[runbook];
    finding.runbook = runbook;
    return finding;
  }

  static void Put(Finding* finding, Mark mark) {
    finding->best = std::max(finding->best, mark.strength);
    finding->marks.push_back(mark);
  }

  // The strongest mark of each kind of evidence counts, others of the kind add little: ten lines
  // that say the same are no ten reasons.
  void Score(Finding* finding) const {
    std::map<Origin, Strength> best;
    std::map<Origin, std::size_t> count;
    for (const Mark& mark : finding->marks) {
      const auto [known, is_new] = best.emplace(mark.origin, mark.strength);
      if (!is_new) known->second = std::max(known->second, mark.strength);
      ++count[mark.origin];
    }
    for (const auto& [origin, strength] : best) {
      finding->score += WeightOf(strength);
      finding->score += 0.1 * static_cast<double>(std::min<std::size_t>(count[origin] - 1, 5));
      finding->kinds.push_back(origin);
    }
    finding->score -= 2.0 * static_cast<double>(finding->against.size());
    finding->around_only =
        (finding->best < Strength::kDecisive ||
         runbooks_.runbooks()[finding->runbook].in_waiting) &&
        std::all_of(finding->marks.begin(), finding->marks.end(), [this](const Mark& mark) {
          const std::string& source = (*ledger_)[mark.item].where;
          return mark.origin == Origin::kEvent && (source == "kubernetes" || source == "nomad");
        });
  }

  const RunbookSet& runbooks_;
  Ledger* ledger_;
  std::map<std::size_t, Finding> findings_;
  std::size_t position_ = 0;
  std::size_t lines_ = 0;
  std::size_t distinct_ = 0;
};

}  // namespace

std::vector<Finding> FindAll(const Case& of, const RunbookSet& runbooks, Facts* facts,
                             Ledger* ledger, LogSummary* summary) {
  Matcher matcher(runbooks, ledger);
  const SourceText* script = ScriptOf(of);
  EndOfOutput end(runbooks, *facts, script == nullptr ? std::string_view() : script->data);
  for (const LogText& log : of.logs) {
    if (!log.first_error.empty())
      matcher.Text(log.stream, ReduceLog(log.first_error), /*is_excerpt=*/true);
    const Reduced reduced = ReduceLog(log.data);
    matcher.Text(log.stream, reduced, /*is_excerpt=*/false);
    if (const LogLine* line = end.Look(reduced))
      end.Found(matcher.AddLine(log.stream, *line, /*is_excerpt=*/false));
  }
  facts->Set("ends_in_failure", end.AsFact());
  for (const Event& event : of.events) matcher.EventLine(event);
  matcher.Conditions(*facts);
  matcher.Exclude(*facts);
  *summary = {.lines = matcher.lines(), .distinct = matcher.distinct(), .streams = of.logs.size()};
  return matcher.Take();
}

}  // namespace expanse::intelligence::diagnose
