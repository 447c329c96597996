// The evidence that one `expanse run` leaves: pure functions from what was seen to records.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "collect/cgroup/reader.h"
#include "collect/logs/tail_ring.h"
#include "evidence/records.h"
#include "schedulers/host/outcome.h"
#include "schedulers/host/run.h"
#include "schedulers/host/spool_event.h"
#include "schedulers/host/streams.h"

namespace expanse::schedulers::host {

// What people type for a run: "run-" and eight letters and digits made from its id. 40 bits: among
// 10,000 runs of a host two are alike with a chance of 1 in 20,000.
std::string NativeId(std::string_view run_id);

// The run as it begins, not redacted yet.
evidence::Execution DescribeRun(const RunOptions& options, std::string_view run_id,
                                base::WallTime started_at, const std::vector<FileTail>& files);

struct RunEnd {
  base::WallTime ended_at{};
  struct rusage usage{};                       // of the command and the children it waited for
  std::optional<collect::CgroupUsage> cgroup;  // the last reading, if it had a cgroup
  std::uint64_t need_peak_bytes = 0;           // the most that was sampled there
  std::uint64_t cache_peak_bytes = 0;          // likewise, of page cache
  Verdict verdict;
};

// Fills in state, times and usage; verdict notes are appended to capture_notes.
void DescribeEnd(const RunEnd& end, evidence::Execution& execution);

// What it used: of its cgroup where there is one (every process counts, waited for or not), else
// what wait4 said. The memory peak is the cgroup's where page cache is no part of it, else the most
// that was needed in any sample; `memory_peak_basis` says which.
evidence::Usage UsageOf(const RunEnd& end);

evidence::Record ExecutionRecord(evidence::Execution execution, base::WallTime at);
// Takes secrets out of command, name and comment of the executions in `event`, and cuts what is too
// long.
void RedactExecution(SpoolEvent& event);

struct NamedTail {
  std::string name;
  collect::TailRing ring;
};
// Redacted tails as records of `event`; empty streams are left out.
void AddTails(const std::vector<NamedTail>& tails, std::string_view run_id, base::WallTime at,
              bool final, SpoolEvent& event);

}  // namespace expanse::schedulers::host
