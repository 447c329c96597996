// The sentences of a runbook with the numbers of a case in them.
//
// A template's {name} becomes a value; what stands between [[ and ]] is left out where one of its
// values is unknown, and an unknown value elsewhere reads "unknown". Names: memory_limit,
// memory_peak, memory_share, memory_limit_hit and memory_peak_at_limit (where a decisive mark or
// the peak says that the limit was reached), else memory_peak_below, runtime, walltime, exit_code,
// signal, signal_name, state, reason, nodes, node, rank, quote (the line that shows it best),
// gpu_type, gpu_count, gpu_memory, gpu_memory_peak, gpu_utilisation, cpus, oom_kills, restarts,
// similar_peak, similar_runtime, similar_successes, idle, scheduler, queue, and capture1 to
// capture3: what the groups of the signature that matched caught.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/findings.h"

namespace expanse::intelligence::diagnose {

using Values = std::map<std::string, std::string, std::less<>>;

// Known values only.
Values ValuesOf(const Case& of, const Finding& finding, const RunbookSet& runbooks,
                const Ledger& ledger);
std::string Fill(std::string_view text, const Values& values);

// "SIGSEGV" for 11; "signal 64" for what has no name.
std::string SignalName(int signal);

}  // namespace expanse::intelligence::diagnose
