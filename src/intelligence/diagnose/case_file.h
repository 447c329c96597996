// Cases from JSON files: what `expanse runbook test --case`, tests and tests/bench/diagnose_bench
// read. One object a file, or a list of them:
//   id, scheduler, state, exit_code, signal (each may be null), log (one text or a list of lines),
//   true_class, tags;
//   and, in our own, besides: outcome, status, streams {name: text}, events [{source, node, text}],
//   snapshot {memory_peak_bytes, memory_limit_bytes, runtime_s, walltime_s, idle_tail_s, …},
//   steps [{id, exit_code, signal}], labels {…}, sources {path: text}, memory_peak_basis,
//   accept [classes that are right as well].
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "intelligence/diagnose/case.h"

namespace expanse::intelligence::diagnose {

struct LabelledCase {
  std::string id;
  Case what;
  std::string true_class;           // "none": nothing failed; empty: not said
  std::vector<std::string> accept;  // others that are right
  std::vector<std::string> tags;
};

// Whether the class that was said ("" where none was) is the case's, or right as well.
bool IsRight(const LabelledCase& of, std::string_view said);

// Fails with case.syntax (this is not JSON, or no mapping) or case.field; unknown keys are ignored.
base::Result<std::vector<LabelledCase>> ParseCases(std::string_view json, std::string_view file);
// Every *.json below `folder` (or one file), in order of name; fails on the first that is no case
// or does not say its class.
base::Result<std::vector<LabelledCase>> ReadCases(const std::filesystem::path& folder);

}  // namespace expanse::intelligence::diagnose
