#include "intelligence/diagnose/verdict.h"

#include <algorithm>
#include <cmath>

namespace expanse::intelligence::diagnose {
namespace {

using evidence::ExecutionStatus;
using predict::Confidence;

// Scores nearer than this are no difference (a strong mark weighs 3, a weak one 1).
constexpr double kClose = 1.0;

bool IsCandidate(const Finding& finding) {
  return finding.best >= Strength::kFair || finding.kinds.size() >= 2;
}

int Rank(Kind kind) {
  switch (kind) {
    case Kind::kCause:
      return 0;
    case Kind::kSymptom:
      return 1;
    case Kind::kOutcome:
      return 2;
  }
  return 3;
}

class Ranking {
 public:
  Ranking(const RunbookSet& runbooks, std::vector<Finding> findings)
      : runbooks_(runbooks), findings_(std::move(findings)) {}

  void KeepWhatHoldsWithoutFailure(State state) {
    std::erase_if(findings_, [&](const Finding& finding) {
      const Runbook& runbook = Of(finding);
      const bool holds = state == State::kWaiting ? runbook.in_waiting : runbook.in_success;
      return !holds || finding.best < Strength::kDecisive;
    });
  }

  // Weak marks alone are only worth a word where there is nothing better: no other finding, or only
  // an outcome that they would explain and that nothing before them does.
  void DropWeak() {
    const bool explained = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& f) {
      return IsCandidate(f) && Of(f).kind != Kind::kOutcome;
    });
    if (std::any_of(findings_.begin(), findings_.end(), IsCandidate)) {
      std::vector<Finding> left;
      for (Finding& finding : findings_) {
        if (IsCandidate(finding) || (!explained && MayExplainTheOutcome(finding)))
          left.push_back(finding);
      }
      findings_ = std::move(left);
    }
    std::erase_if(findings_, [](const Finding& finding) { return finding.score <= 0; });
  }

  void Absorb() {
    std::vector<bool> gone(findings_.size(), false);
    for (std::size_t a = 0; a < findings_.size(); ++a) {
      if (!IsCandidate(findings_[a]) && Of(findings_[a]).kind != Kind::kCause) continue;
      for (std::size_t b = 0; b < findings_.size(); ++b) {
        if (a == b || !runbooks_.Explains(findings_[a].runbook, findings_[b].runbook)) continue;
        if (IsTooWeakFor(findings_[a], findings_[b])) continue;
        if (IsOutweighed(findings_[a], findings_[b])) continue;
        gone[b] = true;
        findings_[a].absorbed.push_back(findings_[b].runbook);
      }
    }
    std::vector<Finding> left;
    for (std::size_t index = 0; index < findings_.size(); ++index) {
      if (!gone[index]) left.push_back(std::move(findings_[index]));
    }
    findings_ = std::move(left);
  }

  void Sort() {
    std::stable_sort(findings_.begin(), findings_.end(), [&](const Finding& a, const Finding& b) {
      const Runbook& left = Of(a);
      const Runbook& right = Of(b);
      if (RankOf(a) != RankOf(b)) return RankOf(a) < RankOf(b);
      // A program that ran and says why it failed is believed before what went on around it.
      if (a.around_only != b.around_only && (HasText(a) || HasText(b))) return b.around_only;
      if (std::abs(a.score - b.score) > kClose) return a.score > b.score;
      if (left.priority != right.priority) return left.priority > right.priority;
      const std::size_t none = static_cast<std::size_t>(-1);
      const std::size_t first = a.first_line.value_or(none);
      const std::size_t second = b.first_line.value_or(none);
      if (first != second) return first < second;
      return a.score > b.score;
    });
  }

  Verdict Decide(State state) {
    Verdict verdict;
    verdict.state = state;
    if (findings_.empty()) return verdict;
    verdict.confidence = ConfidenceOf(findings_.front(), &verdict.doubts);
    if (state == State::kSucceeded && verdict.confidence == Confidence::kHigh) {
      verdict.confidence = Confidence::kMedium;
      verdict.doubts.emplace_back("the scheduler reports success");
    }
    for (std::size_t index = 1; index < findings_.size() && verdict.alternatives.size() < 2;
         ++index)
      verdict.alternatives.push_back(std::move(findings_[index]));
    verdict.best = std::move(findings_.front());
    return verdict;
  }

 private:
  static bool Has(const Finding& finding, Origin kind) {
    return std::find(finding.kinds.begin(), finding.kinds.end(), kind) != finding.kinds.end();
  }
  static bool HasText(const Finding& finding) { return Has(finding, Origin::kText); }

  // What the scheduler itself names as the cause is not explained away by text that may mean
  // something else.
  bool IsTooWeakFor(const Finding& explains, const Finding& other) const {
    const bool named = Of(other).kind == Kind::kCause && other.best == Strength::kDecisive &&
                       Has(other, Origin::kScheduler);
    if (!named || explains.best == Strength::kDecisive) return false;
    return explains.best == Strength::kWeak || (explains.kinds.size() == 1 && HasText(explains));
  }

  // A cause with weak marks that stand where the first outcome shows, or before.
  bool MayExplainTheOutcome(const Finding& finding) const {
    if (Of(finding).kind != Kind::kCause || !finding.first_line) return false;
    bool any = false;
    for (const Finding& other : findings_) {
      if (!IsCandidate(other) || !other.first_line || IsConsequence(other)) continue;
      any = true;
      if (!runbooks_.Explains(finding.runbook, other.runbook)) return false;
      if (*other.first_line < *finding.first_line) return false;
    }
    return any;
  }

  // Weak marks do not explain away what the scheduler states, nor an outcome a plainer one.
  bool IsOutweighed(const Finding& explaining, const Finding& explained) const {
    if (explaining.best >= explained.best) return false;
    if (Of(explaining).kind == Kind::kOutcome) return true;
    return explaining.best == Strength::kWeak &&
           std::ranges::any_of(explained.marks, [](const Mark& mark) {
             return mark.origin == Origin::kScheduler && mark.strength > Strength::kWeak;
           });
  }

  // An outcome that another outcome explains.
  bool IsConsequence(const Finding& finding) const {
    return std::any_of(findings_.begin(), findings_.end(), [&](const Finding& other) {
      return IsCandidate(other) && runbooks_.Explains(other.runbook, finding.runbook);
    });
  }

  // A cause in plain words that does not explain a symptom stands beside it.
  int RankOf(const Finding& finding) const {
    const Kind kind = Of(finding).kind;
    const bool plain = kind == Kind::kCause && finding.best == Strength::kFair;
    return Rank(plain ? Kind::kSymptom : kind);
  }

  const Runbook& Of(const Finding& finding) const { return runbooks_.runbooks()[finding.runbook]; }

  bool HasRival(const Finding& best) const {
    return std::any_of(findings_.begin() + 1, findings_.end(), [&](const Finding& other) {
      return Of(other).kind == Of(best).kind && other.best >= Strength::kStrong &&
             best.score - other.score <= kClose;
    });
  }

  Confidence ConfidenceOf(const Finding& best, std::vector<std::string>* doubts) const {
    const Runbook& runbook = Of(best);
    if (runbook.kind == Kind::kOutcome) {
      doubts->emplace_back("it says that the run failed, not why");
      return Confidence::kLow;
    }
    if (best.best < Strength::kStrong) {
      doubts->emplace_back("each sign of it occurs in other failures too");
      return Confidence::kLow;
    }
    Confidence confidence = Confidence::kMedium;
    const bool decisive = best.best == Strength::kDecisive;
    if (decisive || best.kinds.size() >= 2) {
      confidence = Confidence::kHigh;
    } else {
      doubts->emplace_back("only one kind of evidence shows it");
    }
    if (!runbook.may_be_high && confidence == Confidence::kHigh) {
      confidence = Confidence::kMedium;
      doubts->emplace_back("it names what was seen; why it came to that is not in the evidence");
    }
    if (runbook.kind == Kind::kSymptom && confidence == Confidence::kHigh) {
      confidence = Confidence::kMedium;
      doubts->emplace_back("it is what happened, and may have a cause that is not in the evidence");
    }
    if (!best.against.empty()) {
      confidence = confidence == Confidence::kHigh ? Confidence::kMedium : Confidence::kLow;
      doubts->emplace_back("something in the evidence speaks against it");
    }
    if (HasRival(best)) {
      confidence = confidence == Confidence::kHigh ? Confidence::kMedium : confidence;
      doubts->emplace_back("another cause is as likely");
    }
    return confidence;
  }

  const RunbookSet& runbooks_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view Name(State state) {
  switch (state) {
    case State::kWaiting:
      return "queued";
    case State::kRunning:
      return "running";
    case State::kSucceeded:
      return "succeeded";
    case State::kFailed:
      return "failed";
    case State::kCancelled:
      return "cancelled";
    case State::kUnknown:
      return "unknown";
  }
  return "";
}

State StateOf(const evidence::Execution& execution) {
  switch (execution.status) {
    case ExecutionStatus::kQueued:
      return State::kWaiting;
    case ExecutionStatus::kRunning:
      return State::kRunning;
    case ExecutionStatus::kSucceeded:
      return State::kSucceeded;
    case ExecutionStatus::kFailed:
      return State::kFailed;
    case ExecutionStatus::kCancelled:
      return State::kCancelled;
    case ExecutionStatus::kUnknown:
    case ExecutionStatus::kUnspecified:
      break;
  }
  return State::kUnknown;
}

Verdict Judge(std::vector<Finding> findings, const RunbookSet& runbooks, const Case& of) {
  const State state = StateOf(of.execution);
  Ranking ranking(runbooks, std::move(findings));
  if (state != State::kFailed && state != State::kCancelled && state != State::kUnknown)
    ranking.KeepWhatHoldsWithoutFailure(state);
  ranking.DropWeak();
  ranking.Absorb();
  ranking.Sort();
  return ranking.Decide(state);
}

}  // namespace expanse::intelligence::diagnose
