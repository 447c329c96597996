// What a node tells of a job, as an evidence record: how a sampler's reports travel through the
// spool, and what the controller's observer makes of those of its own host. A report's key is
// node-local; its execution has what the node knows and nothing else.
//
// Reports are for the observer: they are never stored as they are. A job on several nodes has a
// usage on each, and it ends when the scheduler says so, not when the first of its nodes does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "evidence/execution.h"
#include "evidence/records.h"
#include "schedulers/slurm/node/hook_event.h"

namespace expanse::schedulers::slurm {

// A job as a node knows it: by its raw id or, where cgroups are named so, by its SLUID.
struct LocalJob {
  std::uint32_t job_id = 0;  // 0: only the SLUID is known
  std::string sluid;
  auto operator<=>(const LocalJob&) const = default;
};

// "job:41982", or "sluid:s5K1KKYAYG5D00" when the id is not known.
evidence::ExecutionKey LocalKey(const LocalJob& job);
std::optional<LocalJob> ParseLocalKey(const evidence::ExecutionKey& key);

enum class ReportKind : std::uint8_t {
  kBegan,     // its Prolog ran on the node
  kEnded,     // its Epilog ran on the node: it is over there, elsewhere maybe not
  kUsage,     // Execution::used: what it has used on the node so far
  kLastUsage  // the same, when it was gone from the node
};

// Began or ended. Ids, user, partition, restart count, start (slurmctld's) and exit code as far as
// the hook told them; status running for a beginning, else unspecified.
evidence::ExecutionObservation MakeReport(const HookEvent& event);
// kUsage or kLastUsage. `node` in the scheduler's words; empty: the host's own name.
evidence::ExecutionObservation MakeUsageReport(const LocalJob& job, std::string_view node,
                                               const evidence::Usage& usage, bool last);

struct NodeReport {
  ReportKind kind = ReportKind::kBegan;
  LocalJob job;
  std::string node;  // empty: the host that it came from
};
// What kind of report it is; nothing when it is none.
std::optional<NodeReport> ReadReport(const evidence::ExecutionObservation& seen);

}  // namespace expanse::schedulers::slurm
