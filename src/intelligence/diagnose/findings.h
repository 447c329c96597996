// What the runbooks found in a case: one finding per class that anything speaks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/facts.h"
#include "intelligence/diagnose/ledger.h"
#include "intelligence/diagnose/runbook_set.h"

namespace expanse::intelligence::diagnose {

struct Mark {
  std::size_t item = 0;  // in the ledger
  Origin origin = Origin::kText;
  Strength strength = Strength::kWeak;
};

struct Finding {
  std::size_t runbook = 0;
  std::vector<Mark> marks;           // in order of the evidence
  std::vector<std::size_t> against;  // ledger items of conditions that speak against it
  // The line of its first mark, counted over all streams; absent without text.
  std::optional<std::size_t> first_line;
  double score = 0;
  Strength best = Strength::kWeak;
  std::vector<Origin> kinds;  // of evidence that is independent of each other
  // Only events of an orchestrator speak for it, none of them decisive: what went on around the
  // run.
  bool around_only = false;
  std::vector<std::size_t> absorbed;  // findings (their runbooks) that it explains
};

struct LogSummary {
  std::size_t lines = 0;
  std::size_t distinct = 0;
  std::size_t streams = 0;
};

// Matches logs, events and facts against all runbooks; every line that matched is added to the
// ledger. Linear in the logs. Sets the fact `ends_in_failure` (end_of_output.h).
std::vector<Finding> FindAll(const Case& of, const RunbookSet& runbooks, Facts* facts,
                             Ledger* ledger, LogSummary* summary);

}  // namespace expanse::intelligence::diagnose
