// The sentences of a runbook with the numbers of a case in them.
//
// A template's {name} becomes a value; what stands between [[ and ]] is left out where one of its
// values is unknown, and an unknown value elsewhere reads "unknown". {?name} and {!name} become
// nothing, but count as unknown where the value is not known, or is. Brackets nest: what is left
// out within does not take what is around it along. Names:
//
//   memory_limit, memory_peak, memory_share   of the run; the peak also as memory_peak_exact (the
//                   cgroup's own) or memory_peak_sampled, and memory_peak_low where it is at most
//                   half of the limit; memory_limit_hit and memory_peak_at_limit where a decisive
//                   mark or the peak says that the limit was reached, else memory_peak_below
//   runtime, walltime, idle (since the last activity), cpus, gpu_type, gpu_count, gpu_memory,
//   gpu_memory_peak, gpu_utilisation, oom_kills, restarts
//   memory_option, walltime_option, gpu_option, cpu_option, tasks_option   such as "--mem"
//   exit_code, signal, signal_name, state, reason, scheduler, queue, nodes
//   cancelled_by    "its own user (uid 1000)", "another user (root)"
//   similar_successes, similar_peak, similar_runtime   the largest of similar runs that completed;
//                   also similar_peak_above, similar_peak_below (this run's limit), and likewise
//                   similar_runtime_above, similar_runtime_below
//   quote           the line that shows it best; quoted_from ("output", "kernel's record"), node
//   and
//                   rank of it, path that it names, capture1 to capture3: what the groups of the
//                   signature that matched caught
//   shown           what shows it beside the output: "state OUT_OF_MEMORY; signal 9"
//   decisive, strong, weak   one of them, by the best mark of it; decisive: whoever ended the run
//                   says so
//   also_CLASS      that class is another answer that the evidence allows
//   hidden_how, hidden_line, hidden_where   what hides the exit of the script's commands
//   end_class, end_title   what the end of the output is a sign of
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/findings.h"

namespace expanse::intelligence::diagnose {

using Values = std::map<std::string, std::string, std::less<>>;

// What an answer is worded from. All outlive the call.
struct Known {
  const Case& of;
  const RunbookSet& runbooks;
  const Facts& facts;
  const Ledger& ledger;
};

// Known values only.
Values ValuesOf(const Known& known, const Finding& finding,
                const std::vector<Finding>& alternatives = {});
std::string Fill(std::string_view text, const Values& values);

// "SIGSEGV" for 11; "signal 64" for what has no name.
std::string SignalName(int signal);

}  // namespace expanse::intelligence::diagnose
