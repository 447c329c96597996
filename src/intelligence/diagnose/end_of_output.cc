#include "intelligence/diagnose/end_of_output.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"

namespace expanse::intelligence::diagnose {
namespace {

// What launchers, shells and runtimes print behind a failure.
const re2::RE2& MoreOfIt() {
  static const re2::RE2 pattern(
      "(?i)\\b(error|abort(ed|ing)?|exception|fail(ed|ure)?|fatal|kill(ed|ing)?|terminat(ed|ing)|"
      "signal|core dumped|exit(ed|s|ing)?|backtrace|segmentation fault|traceback|cancelled)\\b"
      "|^at \\S|^File \"|^[\\^~ ]+$|^Calls: "
      "|^(srun|slurmstepd|mpirun|mpiexec|prterun|torchrun)\\b|^(--|==|\\*\\*\\*)|^\\[[^\\]]+\\] "
      "\\[ ?\\d+\\]|^#\\d+ "
      "|^(real|user|sys)\\s|^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\\w* ",
      re2::RE2::Latin1);
  return pattern;
}

// What commands say that only keep house: whether there was something to remove or to list.
const re2::RE2& Housekeeping() {
  static const re2::RE2 pattern(
      "^(rm|rmdir|unlink|ls|grep|egrep|find|kill|pkill|mkdir|stat|which|tput|umount|touch): ",
      re2::RE2::Latin1);
  return pattern;
}

// What a program says that goes on or ends well.
const re2::RE2& GoodWords() {
  static const re2::RE2 pattern(
      "(?i)\\b(normal(ly)?|success\\w*|succeeded|completed?|finished|done|0 "
      "(errors?|failures?|failed)|"
      "no (errors?|failures?)|without errors?|exit (code|status):? 0|retry(ing)?|ignor(ed|ing)|"
      "recover(ed|ing)|continu(ed|ing))\\b",
      re2::RE2::Latin1);
  return pattern;
}

}  // namespace

// Whether the line begins as a text in the script does: an "echo done at $(date)".
bool EndOfOutput::IsPrintedByTheScript(std::string_view message) const {
  constexpr std::size_t kEnough = 16;
  constexpr std::size_t kLeast = 4;
  std::string_view start =
      message.substr(0, std::min(message.find_first_of("0123456789"), kEnough));
  while (!start.empty() && base::IsSpace(start.back())) start.remove_suffix(1);
  return start.size() >= kLeast && script_.find(start) != std::string_view::npos;
}

bool EndOfOutput::BelongsToFailure(const LogLine& line) const {
  if (re2::RE2::PartialMatch(line.message, GoodWords())) return false;
  return re2::RE2::PartialMatch(line.message, MoreOfIt()) || !runbooks_.Match(line.message).empty();
}

// The runbook with a strong signature in the line: of the likeliest kind, then of most priority.
std::optional<std::size_t> EndOfOutput::BestOf(std::string_view message) const {
  std::optional<std::size_t> best;
  for (const SignatureHit& hit : runbooks_.Match(message)) {
    const Runbook& runbook = runbooks_.runbooks()[hit.runbook];
    if (hit.strength < Strength::kStrong || runbook.owner == Owner::kNobody) continue;
    if (facts_.Exclude(runbook)) continue;
    const Runbook* known = best ? &runbooks_.runbooks()[*best] : nullptr;
    if (known == nullptr || runbook.kind < known->kind ||
        (runbook.kind == known->kind && runbook.priority > known->priority))
      best = hit.runbook;
  }
  return best;
}

const LogLine* EndOfOutput::Look(const Reduced& stream) {
  std::size_t last = 0;  // line that says something
  for (const LogLine& line : stream.lines) last = std::max(last, line.last);
  const LogLine* found = nullptr;
  std::size_t runbook = 0;
  for (const LogLine& line : stream.lines) {
    if (line.last + kEndLines <= last) continue;
    if (re2::RE2::PartialMatch(line.message, Housekeeping())) continue;
    const auto best = BestOf(line.message);
    if (!best) continue;
    const Kind kind = runbooks_.runbooks()[*best].kind;
    if (found != nullptr) {
      const Kind known = runbooks_.runbooks()[runbook].kind;
      if (kind > known || (kind == known && line.last < found->last)) continue;
    }
    found = &line;
    runbook = *best;
  }
  if (found == nullptr) return nullptr;
  for (const LogLine& line : stream.lines) {
    if (line.last <= found->last) continue;
    if (!BelongsToFailure(line) && !IsPrintedByTheScript(line.message)) return nullptr;
  }
  if (runbook_ && runbooks_.runbooks()[*runbook_].kind < runbooks_.runbooks()[runbook].kind)
    return nullptr;
  runbook_ = runbook;
  return found;
}

Fact EndOfOutput::AsFact() const {
  Fact fact{.words = {}, .number = 0, .origin = Origin::kText, .item = item_};
  if (!runbook_ || !item_) return fact;
  fact.number = 1;
  fact.words = {runbooks_.runbooks()[*runbook_].id};
  return fact;
}

}  // namespace expanse::intelligence::diagnose
