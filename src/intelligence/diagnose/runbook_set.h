// All runbooks of a server, compiled: one RE2::Set over every signature. Immutable once made, so
// any number of threads may use one.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "intelligence/diagnose/runbook.h"

namespace re2 {
class RE2;
}  // namespace re2

namespace expanse::intelligence::diagnose {

struct SignatureHit {
  std::size_t runbook = 0;  // index into runbooks()
  Strength strength = Strength::kWeak;
};

// A line that looks like trouble and is none: it is left out before matching. With `weakens` it is
// trouble that the line itself says was dealt with ("retrying", "falling back"): what it matches is
// weak evidence.
struct Decoy {
  std::string pattern;
  std::string why;
  bool weakens = false;
};

// A line of must_match or must_not_match that does not hold.
struct SampleFailure {
  std::size_t runbook = 0;  // index into runbooks()
  std::size_t line = 0;     // of its file, from 1
  std::string message;      // "no signature matches 'x'"
};

class RunbookSet {
 public:
  // Fails with runbook.pattern (RE2 refuses it), runbook.duplicate, runbook.unknown_class (explains
  // or confused_with name none), runbook.cycle (explains goes round), runbook.sample (a must_match
  // line does not, or a must_not_match line does), each naming file and runbook. A later runbook
  // replaces an earlier one of the same id when `replace` is set.
  static base::Result<std::shared_ptr<const RunbookSet>> Create(std::vector<Runbook> runbooks,
                                                                std::vector<Decoy> decoys,
                                                                bool replace = false);
  // The same, whatever the samples say.
  static base::Result<std::shared_ptr<const RunbookSet>> CreateUnchecked(
      std::vector<Runbook> runbooks, std::vector<Decoy> decoys, bool replace = false);
  ~RunbookSet();

  // All of them, in the order of runbooks and files.
  std::vector<SampleFailure> FailingSamples() const;

  const std::vector<Runbook>& runbooks() const { return runbooks_; }
  const Runbook* Find(std::string_view id) const;
  std::size_t IndexOf(std::string_view id) const;  // of one that is there

  // The runbooks with a signature in this line, each once with its strongest; none for a decoy.
  // One pass; thread-safe.
  std::vector<SignatureHit> Match(std::string_view message) const;
  // Whether `a` explains the marks of `b`, directly or through others.
  bool Explains(std::size_t a, std::size_t b) const { return explains_[a][b]; }

  // The runbooks and decoys that are part of the program.
  static const std::vector<Runbook>& Embedded();
  static const std::vector<Decoy>& EmbeddedDecoys();

 private:
  struct Compiled;
  RunbookSet();
  base::Status Index(bool replace);
  base::Status Compile();
  // Match without the decoys' say; `decoy` becomes true where one matches.
  std::vector<SignatureHit> MatchAll(std::string_view message, bool* decoy) const;
  // Of one runbook: its must_match lines, or those of must_not_match.
  void CheckSamples(std::size_t runbook, bool must_match, std::vector<SampleFailure>* to) const;

  std::vector<Runbook> runbooks_;
  std::vector<Decoy> decoys_;
  std::map<std::string, std::size_t, std::less<>> by_id_;
  std::vector<std::vector<bool>> explains_;
  std::unique_ptr<Compiled> compiled_;
};

// Reads a list of decoys: [{re, why, weakens}]. Fails as ParseRunbooks.
base::Result<std::vector<Decoy>> ParseDecoys(std::string_view yaml, std::string_view file);

}  // namespace expanse::intelligence::diagnose
