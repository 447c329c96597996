// Checks of a site's runbooks before a server reads them, and what they make of cases and logs:
// `expanse runbook test`. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "intelligence/diagnose/runbook_set.h"

namespace expanse::cli {

struct NamedText {
  std::string path;  // as it is to be named
  std::string text;
};

struct Findings {
  std::string text;          // lines for people, safe on a terminal
  std::size_t problems = 0;  // what has to be mended
};

struct RunbookCheck {
  Findings found;
  // The files' runbooks over the program's own, as a server uses them. Null where they cannot be
  // used; runbooks whose samples fail can.
  std::shared_ptr<const intelligence::diagnose::RunbookSet> set;
};

// Problems one a line, "FILE:LINE: CLASS: what", then a line for each file with what it holds.
RunbookCheck CheckRunbooks(const std::vector<NamedText>& files);

// What the runbooks say of the cases of a file (intelligence/diagnose/case_file.h). One that says
// its class and gets another is a problem, and so is a file that holds none.
Findings CheckCases(const NamedText& file, const intelligence::diagnose::RunbookSet& set);

// What they say of a failed run of which nothing but the output is known.
Findings ExplainLog(const NamedText& log, const intelligence::diagnose::RunbookSet& set);

}  // namespace expanse::cli
