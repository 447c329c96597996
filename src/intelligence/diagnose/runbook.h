// A runbook: what a class of failure looks like and what there is to say about it. Data (YAML, see
// docs/formats/runbook.md) that is compiled into the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/submission.h"

namespace expanse::intelligence::diagnose {

// Causes beat symptoms, symptoms beat outcomes (that say that it failed, not why).
enum class Kind : std::uint8_t { kCause, kSymptom, kOutcome };
enum class Owner : std::uint8_t { kUser, kInfrastructure, kEither, kPolicy, kNobody };
std::string_view Name(Kind kind);
std::string_view Name(Owner owner);

// How much a match says: decisive lines are written by whoever ended the run and mean one thing;
// fair ones are plain words that may mean it, and count where nothing stronger is there; weak ones
// occur in healthy runs or in other classes too.
enum class Strength : std::uint8_t { kWeak, kFair, kStrong, kDecisive };

struct Signature {
  std::string pattern;  // RE2, unanchored, on one stripped line
  Strength strength = Strength::kStrong;
  std::size_t line = 0;  // of the file, from 1
};

// A statement about one fact (facts.h): a word among `words` (compared whole, case-sensitive;
// "prefix*" allowed), or a number within [at_least, at_most].
struct Condition {
  std::string fact;
  std::vector<std::string> words;
  std::optional<double> at_least;
  std::optional<double> at_most;
  Strength strength = Strength::kStrong;
};

struct Runbook {
  std::string id;  // the failure class: "host_out_of_memory"
  std::string family;
  Kind kind = Kind::kCause;
  Owner owner = Owner::kUser;
  std::string title;
  std::vector<Signature> signatures;
  std::vector<Condition> when;             // each that holds is evidence for it
  std::vector<Condition> unless;           // each that holds speaks against it
  std::vector<Condition> only;             // all must hold where known; else it is no candidate
  std::vector<std::string> explains;       // classes whose marks it produces
  std::vector<std::string> confused_with;  // classes to tell it apart from
  // False for classes that only name what is seen (a signal): never more than medium.
  bool may_be_high = true;
  // What of the request its owner would change: the line that asks for it is cited.
  std::optional<workload::Quantity> request;
  int priority = 0;  // between causes with equal evidence
  // May be found in a run that the scheduler does not call failed: the state can lie.
  bool in_success = false;
  // May be found in a run that waits to start.
  bool in_waiting = false;
  // Sentences with {variables} (wording.h). `what` and `why` make the root cause.
  std::string what;
  std::string why;
  std::string not_this;
  std::vector<std::string> unknown;  // what the evidence cannot tell
  std::vector<std::string> collect;  // what to collect where only this is known
  std::string advice;
  std::string retry;                        // "after_fix", "yes", "other_node", "no"
  std::string verify;                       // how to see that it is fixed
  std::vector<std::string> must_match;      // lines: some signature matches each
  std::vector<std::string> must_not_match;  // lines: no signature matches any
  std::vector<std::size_t> must_match_at;   // where each of them stands in the file, from 1
  std::vector<std::size_t> must_not_match_at;
  std::string file;       // where it was read, for messages
  std::size_t line = 0;   // of the file, from 1
  std::string text;       // as it was written there
  bool embedded = false;  // is part of the program
};

// Reads the runbooks of one YAML file. Fails with runbook.syntax or runbook.field, naming file,
// line and what was expected; unknown keys are errors.
base::Result<std::vector<Runbook>> ParseRunbooks(std::string_view yaml, std::string_view file);

}  // namespace expanse::intelligence::diagnose
