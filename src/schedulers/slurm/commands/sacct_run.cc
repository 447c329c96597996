#include "schedulers/slurm/commands/sacct_run.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "base/text.h"
#include "collect/logs/redact.h"
#include "schedulers/slurm/commands/sacct.h"
#include "schedulers/slurm/text/hostlist.h"
#include "schedulers/slurm/text/job_id.h"
#include "schedulers/slurm/text/state.h"
#include "schedulers/slurm/text/tres.h"
#include "schedulers/slurm/text/values.h"

namespace expanse::schedulers::slurm {
namespace {

// Older than any Slurm: damage, or a zero in disguise. No plane takes such a time.
constexpr base::WallTime kEarliest{std::chrono::seconds(631'152'000)};  // 1990

std::optional<base::WallTime> Moment(std::string_view text) {
  const auto time = ParseTimestamp(text);
  return time && *time >= kEarliest ? time : std::nullopt;
}

void Label(evidence::Execution& execution, std::string_view name, std::string_view value) {
  if (!IsAbsent(value)) execution.labels.emplace(name, value);
}

std::string Present(std::string_view value) {
  return IsAbsent(value) ? std::string() : std::string(value);
}

std::optional<std::uint32_t> Count32(std::string_view text) {
  const auto count = ParseCount(text);
  if (!count || *count >= std::numeric_limits<std::uint32_t>::max() - 1) return std::nullopt;
  return static_cast<std::uint32_t>(*count);
}

void TakeIds(const SacctRow& row, Job& job) {
  evidence::Execution& execution = job.execution;
  execution.native_id = row[SacctField::kJobId];
  if (execution.native_id.empty()) execution.native_id = std::to_string(job.job_id);
  const auto id = ParseJobId(execution.native_id);
  if (!id) return;
  if (id->array_task || id->pending_tasks || id->het_offset)
    execution.parent_native_id = std::to_string(id->job_id);
  if (id->pending_tasks) {
    Label(execution, kLabelArrayTasks, id->pending_expression);
    Label(execution, kLabelArrayTaskCount, std::to_string(id->pending_tasks->count));
  }
}

// slurmdbd of 22.05 writes 0 as the uid of a job of which it hears the end first. The job's files
// are read with this uid's rights, so that one which is not root's must not count.
bool IsUid(std::uint32_t uid, std::string_view user) {
  return uid < kNoUid && (uid != 0 || user == "root");
}

void TakeOwner(const SacctRow& row, Job& job) {
  const auto uid = base::ParseInt<std::uint32_t>(row[SacctField::kUid]);
  if (uid && IsUid(*uid, row[SacctField::kUser])) {
    job.uid = *uid;
    Label(job.execution, kLabelUid, std::to_string(*uid));
  }
  job.execution.user = row[SacctField::kUser];
  // A user who was removed has no name any more, but is somebody all the same.
  if (job.execution.user.empty() && job.uid) job.execution.user = std::to_string(*job.uid);
}

void TakeExit(std::string_view text, std::optional<std::int32_t>& exit_code,
              std::optional<std::int32_t>& signal) {
  const auto status = ParseExitCode(text);
  if (!status) return;
  exit_code = status->exit_code;
  if (status->signal != 0) signal = status->signal;
}

// Slurm 22.05 and before give a job that was cancelled while it waited its end as its start.
bool NeverStarted(const SacctRow& row, const evidence::Execution& execution) {
  return execution.started_at && execution.started_at == execution.ended_at &&
         IsAbsent(row[SacctField::kNodeList]) && row[SacctField::kAllocTres].empty();
}

void TakeState(const SacctRow& row, Job& job) {
  evidence::Execution& execution = job.execution;
  const JobState state = ParseJobState(row[SacctField::kState]);
  execution.native_state = state.name;
  execution.status = state.status;
  execution.outcome = state.outcome;
  std::string flags;
  for (const std::string& flag : state.flags) flags += (flags.empty() ? "" : ",") + flag;
  Label(execution, kLabelStateFlags, flags);
  if (state.cancelled_by) Label(execution, kLabelCancelledBy, std::to_string(*state.cancelled_by));

  execution.started_at = Moment(row[SacctField::kStart]);
  execution.ended_at = Moment(row[SacctField::kEnd]);
  execution.eligible_at = Moment(row[SacctField::kEligible]);
  if (NeverStarted(row, execution)) execution.started_at.reset();
  if (execution.ended_at && execution.started_at && execution.ended_at < execution.started_at)
    execution.ended_at = execution.started_at;  // seconds were cut at different times
  // A state of a later version; that the run is over shows all the same.
  if (execution.status == evidence::ExecutionStatus::kUnspecified && execution.ended_at)
    execution.status = evidence::ExecutionStatus::kUnknown;
  job.final = state.final && execution.ended_at.has_value();

  const std::string_view reason = row[SacctField::kReason];
  if (execution.status == evidence::ExecutionStatus::kQueued) {
    execution.native_reason = Present(reason);
  } else {
    Label(execution, kLabelWaitReason, reason);  // of why it waited, not of how it ended
  }
  if (evidence::IsTerminal(execution.status)) {
    TakeExit(row[SacctField::kExitCode], execution.exit_code, execution.signal);
    const std::string_view derived = row[SacctField::kDerivedExitCode];
    if (derived != "0:0" && derived != row[SacctField::kExitCode])
      Label(execution, kLabelDerivedExitCode, derived);
    if (IsOutOfMemory(row)) execution.outcome = evidence::Outcome::kOutOfMemory;
  }
  const auto suspended = ParseElapsed(row[SacctField::kSuspended]);
  if (suspended && suspended->count() > 0)
    execution.suspended_s = std::chrono::floor<std::chrono::seconds>(*suspended).count();
}

void TakeTimeLimit(std::string_view text, evidence::Execution& execution) {
  // TimelimitRaw is in minutes, without a unit.
  if (const auto minutes = base::ParseUnsignedDigits(text)) {
    if (*minutes < 0xFFFFFFFE)
      execution.requested.walltime_s = static_cast<std::int64_t>(*minutes) * 60;
    return;
  }
  const auto limit = ParseTimeLimit(text);
  if (!limit) return;
  switch (limit->kind) {
    case TimeLimit::Kind::kLimited:
      execution.requested.walltime_s = limit->limit.count();
      break;
    case TimeLimit::Kind::kUnlimited:
      Label(execution, kLabelTimeLimit, "unlimited");
      break;
    case TimeLimit::Kind::kPartition:
      Label(execution, kLabelPartitionLimit, "true");
      break;
  }
}

void TakeResources(const SacctRow& row, evidence::Execution& execution) {
  evidence::Resources& requested = execution.requested;
  requested = ResourcesFromTres(row[SacctField::kReqTres]);
  if (!requested.cpu_cores) {
    if (const auto cpus = ParseCount(row[SacctField::kReqCpus]); cpus.value_or(0) > 0)
      requested.cpu_cores = static_cast<double>(*cpus);
  }
  if (!requested.node_count) {
    if (const auto nodes = Count32(row[SacctField::kReqNodes]); nodes.value_or(0) > 0)
      requested.node_count = nodes;
  }
  if (!requested.memory_bytes) {
    if (const auto memory = ParseMemory(row[SacctField::kReqMem], kMebibyte)) {
      const auto cpus = requested.cpu_cores
                            ? std::optional(static_cast<std::uint64_t>(*requested.cpu_cores))
                            : std::nullopt;
      requested.memory_bytes = TotalBytes(*memory, cpus, requested.node_count);
    }
  }
  TakeTimeLimit(row[SacctField::kTimelimitRaw], execution);

  evidence::Resources& allocated = execution.allocated;
  allocated = ResourcesFromTres(row[SacctField::kAllocTres]);
  if (!execution.started_at) return;  // sacct fills in what was asked for
  if (!allocated.cpu_cores) {
    if (const auto cpus = ParseCount(row[SacctField::kAllocCpus]); cpus.value_or(0) > 0)
      allocated.cpu_cores = static_cast<double>(*cpus);
  }
  if (!allocated.node_count) {
    if (const auto nodes = Count32(row[SacctField::kNodeCount]); nodes.value_or(0) > 0)
      allocated.node_count = nodes;
  }
  if (auto nodes = ExpandHostlist(row[SacctField::kNodeList])) execution.nodes = std::move(*nodes);
}

void TakeText(const SacctRow& row, evidence::Execution& execution) {
  execution.name = row[SacctField::kJobName];
  execution.account = row[SacctField::kAccount];
  execution.queue = row[SacctField::kPartition];
  execution.qos = Present(row[SacctField::kQos]);
  execution.comment = row[SacctField::kComment];
  execution.working_directory = row[SacctField::kWorkDir];
  execution.stdout_path = Present(row[SacctField::kStdOut]);
  execution.stderr_path = Present(row[SacctField::kStdErr]);
  // Slurm joins the words with blanks and keeps no quotes, so that they cannot be told apart again.
  if (const std::string_view line = row[SacctField::kSubmitLine]; !line.empty())
    execution.command = {collect::Redact(line).text};
  Label(execution, kLabelFeatures, row[SacctField::kConstraints]);
  Label(execution, kLabelReservation, row[SacctField::kReservation]);
  Label(execution, kLabelWcKey, row[SacctField::kWcKey]);
  Label(execution, kLabelContainer, row[SacctField::kContainer]);
  Label(execution, kLabelFailedNode, row[SacctField::kFailedNode]);
  const auto energy = base::ParseUnsignedDigits(row[SacctField::kConsumedEnergyRaw]);
  // Without a plugin that measures it, it is 0; NO_VAL64 has too many digits.
  if (energy.value_or(0) > 0) Label(execution, kLabelEnergy, std::to_string(*energy));
}

}  // namespace

double ElapsedSeconds(const SacctRow& row) {
  const auto seconds = base::ParseUnsignedDigits(row[SacctField::kElapsedRaw]);
  return seconds && *seconds < 0xFFFFFFFE ? static_cast<double>(*seconds) : -1;
}

bool IsOutOfMemory(const SacctRow& row) {
  if (row[SacctField::kState].starts_with("OUT_OF_ME")) return true;
  const auto status = ParseExitCode(row[SacctField::kExitCode]);
  return status && status->out_of_memory;
}

std::optional<Job> JobFromRow(const SacctRow& row, std::string_view cluster) {
  const auto job_id = base::ParseInt<std::uint32_t>(row[SacctField::kJobIdRaw]);
  const auto submitted = Moment(row[SacctField::kSubmit]);
  if (!job_id || *job_id == 0 || !submitted || row[SacctField::kState].empty()) return std::nullopt;
  Job job;
  // sacct --local tells of our own cluster only.
  job.cluster = cluster.empty() ? row[SacctField::kCluster] : cluster;
  if (job.cluster.empty()) return std::nullopt;
  job.job_id = *job_id;
  job.submitted = submitted;
  job.execution.source_type = evidence::SourceType::kSlurm;
  job.execution.submitted_at = submitted;
  job.execution.lossy_text = true;  // the database knows no double quotes and no bytes beyond UTF-8
  if (const std::string_view sluid = row[SacctField::kSluid]; IsSluid(sluid)) {
    job.sluid = sluid;
    Label(job.execution, kLabelSluid, sluid);
  }
  if (const auto restarts = base::ParseInt<std::uint16_t>(row[SacctField::kRestarts]))
    job.execution.restart_count = *restarts;
  TakeIds(row, job);
  TakeOwner(row, job);
  TakeState(row, job);
  TakeResources(row, job.execution);
  TakeText(row, job.execution);
  return job;
}

evidence::Step StepFromRow(const SacctRow& row, std::string_view id) {
  evidence::Step step;
  step.id = id;
  step.name = row[SacctField::kJobName];
  const JobState state = ParseJobState(row[SacctField::kState]);
  step.native_state = state.name;
  step.status = state.status;
  if (evidence::IsTerminal(step.status))
    TakeExit(row[SacctField::kExitCode], step.exit_code, step.signal);
  step.started_at = Moment(row[SacctField::kStart]);
  step.ended_at = Moment(row[SacctField::kEnd]);
  if (const auto nodes = Count32(row[SacctField::kNodeCount]); nodes.value_or(0) > 0)
    step.node_count = nodes;
  if (const auto tasks = Count32(row[SacctField::kTaskCount]); tasks.value_or(0) > 0)
    step.task_count = tasks;
  step.memory_peak_task_bytes = SacctUsage::TaskPeak(row);
  step.tres_used = row[SacctField::kTresUsageInTot];
  return step;
}

}  // namespace expanse::schedulers::slurm
