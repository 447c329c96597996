// Which of the findings is the answer, and how sure we are. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/findings.h"
#include "intelligence/predict/run.h"

namespace expanse::intelligence::diagnose {

// How the execution stands; only a failed one has a failure to find.
enum class State : std::uint8_t { kWaiting, kRunning, kSucceeded, kFailed, kCancelled, kUnknown };
std::string_view Name(State state);  // "queued", "running", "succeeded", …
State StateOf(const evidence::Execution& execution);

struct Verdict {
  State state = State::kUnknown;
  // Absent: nothing failed, or nothing that we know explains it (`unknown` is an answer).
  std::optional<Finding> best;
  // Others that the evidence allows, likeliest first; at most two.
  std::vector<Finding> alternatives;
  predict::Confidence confidence = predict::Confidence::kLow;
  std::vector<std::string> doubts;  // why it is no higher: one clause each
};

// Causes beat symptoms, symptoms beat outcomes; what a cause explains is absorbed by it; then the
// weight of independent kinds of evidence decides, then a runbook's priority, then who comes first
// in the output. Confidence is high with decisive evidence or with two kinds of strong evidence,
// where nothing speaks against it and no other cause is as likely; medium with strong evidence of
// one kind; low otherwise, and always for outcomes. Of a run that has not failed only runbooks
// marked in_success (of one that waits: in_waiting) are considered, with decisive marks, and of one
// that succeeded never with high confidence.
Verdict Judge(std::vector<Finding> findings, const RunbookSet& runbooks, const Case& of);

}  // namespace expanse::intelligence::diagnose
