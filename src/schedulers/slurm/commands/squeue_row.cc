// What one row of squeue says of a job.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "schedulers/slurm/commands/squeue.h"
#include "schedulers/slurm/text/hostlist.h"
#include "schedulers/slurm/text/job_id.h"
#include "schedulers/slurm/text/output_path.h"
#include "schedulers/slurm/text/state.h"
#include "schedulers/slurm/text/tres.h"
#include "schedulers/slurm/text/values.h"

namespace expanse::schedulers::slurm {
namespace {

using evidence::Execution;
using evidence::ExecutionStatus;

class Fields {
 public:
  // False if `bytes` is not a row of QueueReader's.
  bool Cut(std::string_view bytes) {
    for (std::string_view& field : fields_) {
      std::uint32_t length = 0;
      if (bytes.size() < sizeof(length)) return false;
      std::memcpy(&length, bytes.data(), sizeof(length));
      bytes.remove_prefix(sizeof(length));
      if (bytes.size() < length) return false;
      field = bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
    return bytes.empty();
  }
  std::string_view operator[](QueueField field) const {
    return fields_[static_cast<std::size_t>(field)];
  }
  // What the user or the administrator wrote, byte by byte; printf's "(null)" is nothing.
  std::string_view Text(QueueField field) const {
    const std::string_view text = (*this)[field];
    return text == "(null)" ? std::string_view() : text;
  }
  // A word of Slurm's.
  std::string_view Word(QueueField field) const {
    const std::string_view text = (*this)[field];
    return IsAbsent(text) ? std::string_view() : text;
  }
  std::optional<std::uint32_t> Count(QueueField field) const {
    const auto count = ParseCount((*this)[field]);
    if (!count || *count > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    return static_cast<std::uint32_t>(*count);
  }

 private:
  std::array<std::string_view, kQueueFields> fields_;
};

void Label(std::string_view name, std::string_view value, Execution& execution) {
  if (!value.empty()) execution.labels.emplace(name, value);
}

void TakeIds(const Fields& row, Job& job, std::optional<JobId>& shown) {
  shown = ParseJobId(row[QueueField::kJobArrayId]);
  Execution& execution = job.execution;
  execution.native_id = shown ? row[QueueField::kJobArrayId] : row[QueueField::kJobId];
  if (!shown) return;
  if (shown->array_task || shown->het_offset || shown->pending_tasks) {
    execution.parent_native_id = std::to_string(shown->job_id);
  }
  if (shown->pending_tasks) {
    Label(kLabelArrayTasks, shown->pending_expression, execution);
    Label(kLabelArrayTaskCount, std::to_string(shown->pending_tasks->count), execution);
  }
}

// The name of a user that this host does not know is "nobody" or a number in squeue: neither is
// one, and all those users would become one.
std::string_view UserName(const Fields& row, std::optional<uid_t> uid) {
  constexpr uid_t kNobody = 65534;
  const std::string_view name = row.Word(QueueField::kUserName);
  if (name == "nobody" && uid != kNobody) return {};
  if (base::ParseUnsignedDigits(name)) return {};
  return name;
}

void TakeOwner(const Fields& row, Job& job) {
  Execution& execution = job.execution;
  job.uid = base::ParseInt<uid_t>(row[QueueField::kUserId]);
  if (job.uid && *job.uid < kNoUid) Label(kLabelUid, std::to_string(*job.uid), execution);
  execution.user = UserName(row, job.uid);
  execution.account = row.Word(QueueField::kAccount);
  execution.queue = row.Word(QueueField::kPartition);
  execution.qos = row.Word(QueueField::kQos);
  execution.name = row.Text(QueueField::kName);
  execution.comment = row.Text(QueueField::kComment);
  execution.working_directory = row.Text(QueueField::kWorkDir);
  // One string: squeue joins the arguments with blanks and does not quote them.
  if (const auto command = row.Text(QueueField::kCommand); !command.empty()) {
    execution.command = {std::string(command)};
  }
  Label(kLabelReservation, row.Word(QueueField::kReservation), execution);
  Label(kLabelFeatures, row.Word(QueueField::kFeatures), execution);
  Label(kLabelDependency, row.Word(QueueField::kDependency), execution);
  Label(kLabelLicenses, row.Word(QueueField::kLicenses), execution);
  if (const auto sluid = row[QueueField::kSluid]; IsSluid(sluid)) {
    job.sluid = sluid;
    Label(kLabelSluid, sluid, execution);
  }
}

// A number of wait(2); NO_VAL, which some versions print as -2, for a job that has not ended.
std::optional<ExitStatus> ExitOf(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return ParseExitCode(text);
  const auto wait_status = base::ParseInt<std::uint32_t>(text);
  if (!wait_status || *wait_status > 0xFFFF) return std::nullopt;
  return ExitStatusFromWait(*wait_status);
}

void TakeExit(const Fields& row, Execution& execution) {
  const auto exit = ExitOf(row[QueueField::kExitCode]);
  if (exit) {
    execution.exit_code = exit->exit_code;
    if (exit->signal != 0) execution.signal = exit->signal;
  }
  const auto derived = ExitOf(row[QueueField::kDerivedExitCode]);
  if (derived && derived != exit && derived != ExitStatus{}) {
    Label(kLabelDerivedExitCode, fmt::format("{}:{}", derived->exit_code, derived->signal),
          execution);
  }
}

void TakeState(const Fields& row, Job& job) {
  Execution& execution = job.execution;
  const JobState state = ParseJobState(row[QueueField::kState]);
  execution.status = state.status;
  execution.outcome = state.outcome;
  execution.native_state = state.name;
  execution.native_reason = row.Word(QueueField::kReason);
  job.final = state.final;
  Label(kLabelStateFlags, fmt::format("{}", fmt::join(state.flags, ",")), execution);
  if (evidence::IsTerminal(state.status)) TakeExit(row, execution);
}

void TakeTimes(const Fields& row, Job& job) {
  Execution& execution = job.execution;
  execution.submitted_at = job.submitted = ParseTimestamp(row[QueueField::kSubmitTime]);
  execution.eligible_at = ParseTimestamp(row[QueueField::kEligibleTime]);
  const auto start = ParseTimestamp(row[QueueField::kStartTime]);
  switch (execution.status) {
    case ExecutionStatus::kQueued:
      execution.expected_start_at = start;
      break;
    case ExecutionStatus::kRunning:
      execution.started_at = start;
      if (execution.native_state == kCompleting)
        job.completing_end = ParseTimestamp(row[QueueField::kEndTime]);
      break;
    case ExecutionStatus::kSucceeded:
    case ExecutionStatus::kFailed:
    case ExecutionStatus::kCancelled:
      // A job that was cancelled while it waited has a start, equal to its end, and no nodes.
      if (!row.Word(QueueField::kNodeList).empty()) execution.started_at = start;
      execution.ended_at = ParseTimestamp(row[QueueField::kEndTime]);
      break;
    case ExecutionStatus::kUnspecified:
    case ExecutionStatus::kUnknown:
      break;
  }
}

// GPUs asked for, by whichever option they were; unknown where none was.
GpuCount RequestedGpus(const Fields& row, std::optional<std::uint32_t> nodes,
                       std::optional<std::uint32_t> tasks) {
  struct Source {
    QueueField field;
    std::optional<std::uint32_t> times;
  };
  for (const Source& source :
       {Source{QueueField::kTresPerJob, 1}, Source{QueueField::kTresPerNode, nodes},
        Source{QueueField::kTresPerTask, tasks}}) {
    GpuCount gpus = GpusOf(ParseGres(row[source.field]));
    if (!gpus.count) continue;
    const std::uint64_t sum = std::uint64_t{*gpus.count} * source.times.value_or(0);
    gpus.count.reset();
    if (source.times && sum <= std::numeric_limits<std::uint32_t>::max()) {
      gpus.count = static_cast<std::uint32_t>(sum);
    }
    return gpus;
  }
  return {};
}

// What a job asked for that has left the queue; squeue shows its TRES as they were allocated.
void TakeRequestBehindAllocation(const Fields& row, Execution& execution) {
  evidence::Resources& requested = execution.requested;
  const auto cpus_per_task = row.Count(QueueField::kCpusPerTask);
  if (requested.task_count && cpus_per_task && *cpus_per_task > 0) {
    requested.cpu_cores = static_cast<double>(*requested.task_count) * *cpus_per_task;
  }
  const GpuCount gpus = RequestedGpus(row, execution.allocated.node_count, requested.task_count);
  requested.gpu_count = gpus.count;
  requested.gpu_type = gpus.type;
  // Whether the minimum is per node or per CPU is not shown: it is what gives the allocated sum.
  auto minimum = ParseMemory(row[QueueField::kMinMemory], kMebibyte);
  const evidence::Resources& allocated = execution.allocated;
  if (!minimum || !allocated.memory_bytes || !allocated.cpu_cores) return;
  const auto cpus = static_cast<std::uint64_t>(*allocated.cpu_cores);
  for (MemoryScope scope : {MemoryScope::kPerNode, MemoryScope::kPerCpu}) {
    minimum->scope = scope;
    const auto sum = TotalBytes(*minimum, cpus, allocated.node_count);
    if (sum == allocated.memory_bytes) requested.memory_bytes = sum;
  }
}

void TakeResources(const Fields& row, Execution& execution) {
  evidence::Resources tres = ResourcesFromTres(row[QueueField::kTresAlloc]);
  if (!tres.node_count) tres.node_count = row.Count(QueueField::kNumNodes);
  if (!tres.cpu_cores) tres.cpu_cores = row.Count(QueueField::kNumCpus);
  const bool waits = execution.status == ExecutionStatus::kQueued;
  const auto nodes = row.Word(QueueField::kNodeList);
  const bool never_started = nodes.empty() && evidence::IsTerminal(execution.status);
  if (waits || never_started) {
    execution.requested = tres;
    if (!tres.gpu_count) {
      const GpuCount gpus = RequestedGpus(row, tres.node_count, row.Count(QueueField::kNumTasks));
      execution.requested.gpu_count = gpus.count;
      execution.requested.gpu_type = gpus.type;
    }
  } else if (!nodes.empty()) {
    execution.allocated = std::move(tres);
  }
  execution.requested.task_count = row.Count(QueueField::kNumTasks);
  if (!waits && !nodes.empty()) TakeRequestBehindAllocation(row, execution);
  // While a job completes, the list has only the nodes that still clean up.
  if (!waits && execution.native_state != kCompleting) {
    if (auto hosts = ExpandHostlist(nodes)) execution.nodes = std::move(*hosts);
  }
  const auto limit = ParseTimeLimit(row[QueueField::kTimeLimit]);
  if (!limit) return;
  switch (limit->kind) {
    case TimeLimit::Kind::kLimited:
      execution.requested.walltime_s = limit->limit.count();
      break;
    case TimeLimit::Kind::kUnlimited:
      Label(kLabelTimeLimit, "unlimited", execution);
      break;
    case TimeLimit::Kind::kPartition:
      Label(kLabelPartitionLimit, "true", execution);
      break;
  }
}

// One of a job's output files. Empty while the pattern stands for something that is not yet known.
std::string PathOf(std::string_view pattern, const OutputNames& names) {
  if (names.node.empty() && pattern.find("%N") != std::string_view::npos) return {};
  OutputPath path = ExpandOutputPath(pattern, names);
  return std::move(path.path);
}

void TakeOutput(const Fields& row, const QueueNaming& naming, const std::optional<JobId>& shown,
                Job& job) {
  Execution& execution = job.execution;
  // Only a batch job has files; others write to the terminal that started them. An array that is
  // not split has none yet.
  if (row[QueueField::kBatchFlag] != "1" || (shown && shown->pending_tasks)) return;
  std::string host = job.batch_host;
  if (naming.host_of && !host.empty()) host = naming.host_of(host);
  OutputNames names{.job_id = job.job_id,
                    .array_job_id = std::nullopt,
                    .array_task = std::nullopt,
                    .step = {},
                    .node = host.substr(0, host.find('.')),
                    .user = execution.user,
                    .job_name = execution.name,
                    .working_directory = execution.working_directory,
                    .version = naming.version};
  if (shown && shown->array_task) {
    names.array_job_id = shown->job_id;
    names.array_task = shown->array_task;
  }
  // For a job without --output, squeue makes up the name that only jobs outside arrays have.
  const std::string made_up =
      fmt::format("{}/slurm-{}.out", execution.working_directory, job.job_id);
  const auto pattern = [&](QueueField field) {
    const std::string_view text = row.Word(field);
    return text == made_up ? DefaultOutputPattern(names) : text;
  };
  execution.stdout_path = PathOf(pattern(QueueField::kStdout), names);
  execution.stderr_path = PathOf(pattern(QueueField::kStderr), names);
}

}  // namespace

std::optional<Job> ParseQueueRow(std::string_view bytes, std::string_view cluster,
                                 const QueueNaming& naming) {
  Fields row;
  if (!row.Cut(bytes)) return std::nullopt;
  const auto job_id = base::ParseInt<std::uint32_t>(row[QueueField::kJobId]);
  if (!job_id || *job_id == 0) return std::nullopt;
  Job job;
  job.cluster = cluster;
  job.job_id = *job_id;
  job.execution.source_type = evidence::SourceType::kSlurm;
  std::optional<JobId> shown;
  TakeIds(row, job, shown);
  TakeOwner(row, job);
  TakeState(row, job);
  TakeTimes(row, job);
  TakeResources(row, job.execution);
  // Of other jobs it is the host on which srun or salloc was called.
  if (row[QueueField::kBatchFlag] == "1") job.batch_host = row.Word(QueueField::kBatchHost);
  job.execution.restart_count = row.Count(QueueField::kRestartCount).value_or(0);
  if (job.execution.status == ExecutionStatus::kQueued) {
    Label(kLabelPriority, row.Word(QueueField::kPriority), job.execution);
  }
  Label(kLabelTresPerNode, row.Word(QueueField::kTresPerNode), job.execution);
  TakeOutput(row, naming, shown, job);
  return job;
}

}  // namespace expanse::schedulers::slurm
