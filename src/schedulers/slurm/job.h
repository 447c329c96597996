// One run of a Slurm job as far as any of the sources (squeue, sacct, scontrol, hooks) knows it.
// Plain data; what several of them tell of one run is united by its key (evidence::Merge).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "evidence/execution.h"

namespace expanse::schedulers::slurm {

// Labels of an execution: what Slurm knows of it and no other scheduler has a field for.
inline constexpr std::string_view kLabelSluid = "slurm.sluid";
inline constexpr std::string_view kLabelDependency = "slurm.dependency";
inline constexpr std::string_view kLabelReservation = "slurm.reservation";
inline constexpr std::string_view kLabelFeatures = "slurm.features";
inline constexpr std::string_view kLabelPriority = "slurm.priority";
inline constexpr std::string_view kLabelTimeLimit = "slurm.time_limit";             // "unlimited"
inline constexpr std::string_view kLabelPartitionLimit = "slurm.partition_limit";   // "true"
inline constexpr std::string_view kLabelArrayTasks = "slurm.array_tasks";           // "0-99%5"
inline constexpr std::string_view kLabelArrayTaskCount = "slurm.array_task_count";  // "100"
inline constexpr std::string_view kLabelStateFlags = "slurm.state_flags";           // "COMPLETING"
inline constexpr std::string_view kLabelUid = "slurm.uid";                          // the job's
inline constexpr std::string_view kLabelCancelledBy = "slurm.cancelled_by";         // a uid
inline constexpr std::string_view kLabelDerivedExitCode = "slurm.derived_exit_code";  // "0:9"
inline constexpr std::string_view kLabelTresPerNode = "slurm.tres_per_node";
inline constexpr std::string_view kLabelLicenses = "slurm.licenses";
inline constexpr std::string_view kLabelAdminComment = "slurm.admin_comment";

// The native state of a run whose nodes clean up.
inline constexpr std::string_view kCompleting = "COMPLETING";

// uid_t of nobody known (NO_VAL of slurm.h), and its neighbour INFINITE.
inline constexpr std::uint32_t kNoUid = 0xFFFFFFFE;

struct Job {
  std::string cluster;
  std::uint32_t job_id = 0;  // raw: one of each array task and het component; recycled by Slurm
  std::optional<base::WallTime> submitted;  // a requeued job gets a new one with each run
  std::string sluid;                        // Slurm 26.05 and later; "" where there is none
  std::optional<uid_t> uid;
  std::string batch_host;
  // Of a row in state COMPLETING: squeue's EndTime. Past for a run that has ended; ahead where the
  // run was requeued and its nodes still clean up (22.05 then counts from now to the limit).
  std::optional<base::WallTime> completing_end;
  // The run is over and no source will tell other states or times of it.
  bool final = false;
  evidence::Execution execution;  // its execution_id and compute_id are the daemon's to fill in
};

// "<cluster>/<raw job id>@<submit time in epoch seconds>"; needs a cluster, an id and a submit
// time.
std::optional<evidence::ExecutionKey> KeyOf(const Job& job);
evidence::ExecutionKey MakeKey(std::string_view cluster, std::uint32_t job_id,
                               base::WallTime submitted);

// Takes secrets out of what a user may have written into a job: its command line, comment, name and
// the paths of its output. For what leaves this host; paths that are to be opened stay as they are.
void RedactTexts(evidence::Execution& execution);

// What such a key says. Nothing for text that MakeKey does not write.
struct RunIdentity {
  std::string cluster;
  std::uint32_t job_id = 0;
  base::WallTime submitted;
};
std::optional<RunIdentity> ParseIdentity(std::string_view identity);

}  // namespace expanse::schedulers::slurm
