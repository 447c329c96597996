// Whether the output of a run ends with a sign of failure: what a run that the scheduler calls
// successful may show all the same.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "intelligence/diagnose/facts.h"
#include "intelligence/diagnose/log_lines.h"
#include "intelligence/diagnose/runbook_set.h"

namespace expanse::intelligence::diagnose {

inline constexpr std::size_t kEndLines = 6;

// Looks at the streams of one run, one after the other. Not thread-safe; what it is given must
// outlive it.
class EndOfOutput {
 public:
  // `script`: of the job; empty: not known.
  EndOfOutput(const RunbookSet& runbooks, const Facts& facts, std::string_view script)
      : runbooks_(runbooks), facts_(facts), script_(script) {}

  // The line among the last kEndLines of the stream that has a strong signature of a class that
  // can have happened, where nothing follows it but more of the failure (launchers, shells, stack
  // frames) and what the script prints by itself: a program that says something else went on. Of
  // several the one of the likelier kind, then the last. Null: none, or a stream before had a
  // better one. The caller tells with Found where it is cited.
  const LogLine* Look(const Reduced& stream);
  void Found(std::optional<std::size_t> item) { item_ = item; }

  // 1 with the class as a word, or 0.
  Fact AsFact() const;

 private:
  std::optional<std::size_t> BestOf(std::string_view message) const;
  bool IsPrintedByTheScript(std::string_view message) const;
  bool BelongsToFailure(const LogLine& line) const;

  const RunbookSet& runbooks_;
  const Facts& facts_;
  std::string_view script_;
  std::optional<std::size_t> runbook_;
  std::optional<std::size_t> item_;
};

}  // namespace expanse::intelligence::diagnose
