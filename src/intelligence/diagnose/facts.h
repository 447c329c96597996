// The facts of a case under fixed names, for the conditions of runbooks. Each fact knows the ledger
// item that shows it.
//
//   scheduler   slurm, kubernetes, nomad, host          status   succeeded, failed, cancelled, …
//   outcome     success, failure, timeout, …            state    as the scheduler writes it, first
//   word reason      the scheduler's reason                  exit_code, signal   of the run
//   step_exit_code, step_signal  of any step (words)    cancelled_by   user, other
//   oom_kills   processes killed by the memory limit    restart_count
//   memory_ratio      peak / limit                      runtime_ratio   run time / time limit
//   gpu_memory_ratio  peak / available, per device      gpu_utilisation_pct
//   gpu_requested     devices asked for                 runtime_s
//   idle_tail_s       without activity before the end   memory_growth  limit-shares gained per hour
//   log_lines         lines of output captured          has_source   1 where sources are known
//   source_crlf       1 where a script among them has carriage returns at its line ends
//   masks_exit        how the job script hides that a command of it failed: or_true, set_plus_e,
//                     pipe, last_command (hidden_exit.h), none; only where the script is known
//   ends_in_failure   1 where the output ends with a strong sign of failure and no word of success
//                     after it (end_of_output.h), else 0; as a word: the class that it is a sign of
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/ledger.h"
#include "intelligence/diagnose/runbook.h"
#include "workload/submission.h"

namespace expanse::intelligence::diagnose {

struct Fact {
  std::vector<std::string> words;  // of a fact that is text: any of them
  std::optional<double> number;
  Origin origin = Origin::kScheduler;
  std::optional<std::size_t> item = {};  // in the ledger
  std::vector<std::size_t> items = {};   // of each word, where they differ
};

// The job's script: the first source that is marked as one, or else the first. Null: no sources.
const SourceText* ScriptOf(const Case& of);

// The line of a source that asks for a resource (request_lines.h), as an item.
struct RequestItem {
  std::string option;
  std::size_t item = 0;  // in the ledger
};

class Facts {
 public:
  // Adds the items that show facts to the ledger. `ends_in_failure` is for whoever reads the output
  // to set.
  static Facts Of(const Case& of, Ledger* ledger);
  void Set(std::string name, Fact fact) {
    facts_.insert_or_assign(std::move(name), std::move(fact));
  }

  const Fact* Find(std::string_view name) const;
  // Unknown facts satisfy nothing.
  bool Holds(const Condition& condition) const;
  // The ledger's item that shows that it holds.
  std::optional<std::size_t> ItemOf(const Condition& condition) const;
  // Whether a known fact rules the runbook out.
  bool Exclude(const Runbook& runbook) const;
  // Every name there can be: conditions are checked against it when runbooks are read.
  static const std::vector<std::string_view>& Names();
  const std::map<workload::Quantity, RequestItem>& requests() const { return requests_; }

 private:
  std::map<std::string, Fact, std::less<>> facts_;
  std::map<workload::Quantity, RequestItem> requests_;
};

}  // namespace expanse::intelligence::diagnose
