#include "schedulers/slurm/commands/scontrol_job.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/text.h"
#include "schedulers/slurm/commands/scontrol_text.h"
#include "schedulers/slurm/text/hostlist.h"
#include "schedulers/slurm/text/values.h"

namespace expanse::schedulers::slurm {
namespace {

// Lines of a record that Slurm prints once each, in this order. What users can write comes before
// the first, between the first two (the wckey), and after the last.
constexpr std::string_view kUserLine = "\n   UserId=";
constexpr std::string_view kStateLine = "\n   JobState=";
constexpr std::string_view kNodesLine = "\n   NumNodes=";
constexpr std::string_view kMinimumLine = "\n   MinCPUsNode=";

constexpr std::string_view kOnNodesLine = "\n     Nodes=";
constexpr std::size_t kMaxOnNodes = 65'536;

constexpr std::array<std::string_view, 32> kHeadKeys = {
    "JobState",      "Reason",        "FailedNode",     "Dependency",    "Requeue",
    "Restarts",      "BatchFlag",     "Reboot",         "ExitCode",      "DerivedExitCode",
    "RunTime",       "TimeLimit",     "TimeMin",        "SubmitTime",    "EligibleTime",
    "AccrueTime",    "StartTime",     "EndTime",        "Deadline",      "PreemptEligibleTime",
    "PreemptTime",   "SuspendTime",   "SecsPreSuspend", "LastSchedEval", "Scheduler",
    "Partition",     "AllocNode:Sid", "ReqNodeList",    "ExcNodeList",   "NodeList",
    "SchedNodeList", "BatchHost"};
constexpr std::array<std::string_view, 5> kOnNodesKeys = {"Nodes", "CPU_IDs", "Mem", "GRES",
                                                          "GRES_IDX"};
// What may follow a path.
constexpr std::array<std::string_view, 16> kTailKeys = {
    "Command",      "WorkDir",       "StdErr",    "StdIn",        "StdOut",     "Comment",
    "AdminComment", "SystemComment", "Container", "Power",        "TresPerJob", "TresPerNode",
    "TresPerTask",  "TresPerSocket", "MailUser",  "NtasksPerTRES"};

std::unexpected<base::Error> Ambiguous(std::uint32_t job_id) {
  return base::Fail(base::Code::kFailedPrecondition, "slurm.ambiguous",
                    fmt::format("what scontrol shows of job {} is not one plain record", job_id));
}

// Where the only such line of the record begins, behind its newline; npos when it is not the only
// one.
std::size_t OnlyLine(std::string_view record, std::string_view line) {
  const std::size_t found = record.find(line);
  if (found == std::string_view::npos || record.find(line, found + 1) != std::string_view::npos)
    return std::string_view::npos;
  return found + 1;
}

// The value of `key` in the lines at the end of a record: what users write there may have newlines
// of its own, so it goes up to the next line with a key.
std::string_view TailValue(std::string_view tail, std::string_view key) {
  const std::string line = fmt::format("\n   {}=", key);
  const std::size_t found = tail.find(line);
  if (found == std::string_view::npos) return {};
  std::string_view value = tail.substr(found + line.size());
  for (std::size_t end = value.find("\n   "); end != std::string_view::npos;
       end = value.find("\n   ", end + 1)) {
    const std::string_view next = value.substr(end + 4, 32);
    for (const std::string_view other : kTailKeys) {
      if (next.starts_with(other) && next.substr(other.size()).starts_with('='))
        return value.substr(0, end);
    }
  }
  return base::Trim(value);
}

std::string Path(std::string_view value) { return value == "(null)" ? "" : std::string(value); }

ScontrolJob::OnNodes OnNodesFrom(std::string_view line) {
  const ScontrolRecord record(line, kOnNodesKeys);
  ScontrolJob::OnNodes on;
  if (auto nodes = ExpandHostlist(record.Text("Nodes"))) on.nodes = std::move(*nodes);
  on.cpu_ids = record.Text("CPU_IDs");
  if (const auto mebibytes = base::ParseInt<std::uint32_t>(record.Text("Mem")))
    on.memory_bytes = *mebibytes * kMebibyte;
  // GRES_IDX is the spelling of 19.05, kept by some sites' patches.
  on.gres = ParseGres(record.Get("GRES") ? record.Text("GRES") : record.Text("GRES_IDX"));
  return on;
}

base::Result<ScontrolJob> ParseRecord(std::string_view record, std::uint32_t job_id) {
  const std::size_t user = OnlyLine(record, kUserLine);
  const std::size_t state = OnlyLine(record, kStateLine);
  const std::size_t nodes = OnlyLine(record, kNodesLine);
  const std::size_t minimum = OnlyLine(record, kMinimumLine);
  constexpr std::size_t kNone = std::string_view::npos;
  if (user == kNone || state == kNone || nodes == kNone || minimum == kNone || user > state ||
      state > nodes || nodes > minimum) {
    return Ambiguous(job_id);
  }
  ScontrolJob job{.job_id = job_id};
  const ScontrolRecord head(record.substr(state, nodes - state), kHeadKeys);
  job.submitted = ParseTimestamp(head.Text("SubmitTime"));
  job.restarts = base::ParseInt<std::uint32_t>(head.Text("Restarts"));
  const std::string_view batch = head.Text("BatchFlag");
  job.batch = batch == "1" || batch == "2";  // 2: its launch failed once
  job.batch_host = head.Text("BatchHost");

  const std::string_view resources = record.substr(nodes, minimum - nodes);
  for (std::size_t at = resources.find(kOnNodesLine);
       at != kNone && job.on_nodes.size() < kMaxOnNodes;
       at = resources.find(kOnNodesLine, at + 1)) {
    const std::size_t end = resources.find('\n', at + 1);
    job.on_nodes.push_back(OnNodesFrom(resources.substr(at + 1, end - at - 1)));
  }

  const std::string_view tail = record.substr(minimum);
  job.command = Path(TailValue(tail, "Command"));
  job.work_dir = Path(TailValue(tail, "WorkDir"));
  job.stdin_path = Path(TailValue(tail, "StdIn"));
  job.stdout_path = Path(TailValue(tail, "StdOut"));
  job.stderr_path = Path(TailValue(tail, "StdErr"));
  return job;
}

}  // namespace

base::Result<ScontrolJob> ParseScontrolJob(std::string_view text, std::uint32_t job_id) {
  const auto records = SplitRecords(text, "JobId=", 2);
  if (records.empty() || !records[0].starts_with(fmt::format("JobId={} ", job_id))) {
    return base::Fail(base::Code::kNotFound, "slurm.job_not_found",
                      fmt::format("scontrol shows no job {}", job_id));
  }
  // A second one may be part of the first's name.
  if (records.size() > 1) return Ambiguous(job_id);
  return ParseRecord(records[0], job_id);
}

}  // namespace expanse::schedulers::slurm
