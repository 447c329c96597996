// squeue's output as tests want it: rows with chosen fields, all others as an ordinary running job
// has them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/slurm/commands/squeue.h"

namespace expanse::schedulers::slurm {

using QueueValues = std::map<QueueField, std::string>;

// A batch job of one node that runs: what Slurm 22.05 prints for it.
inline QueueValues RunningJob(std::uint32_t job_id) {
  using enum QueueField;
  const std::string id = std::to_string(job_id);
  return {{kJobId, id},
          {kJobArrayId, id},
          {kState, "RUNNING"},
          {kSubmitTime, "1790000000"},
          {kEligibleTime, "1790000000"},
          {kTimeLimit, "1:00:00"},
          {kUserId, "1203"},
          {kUserName, "mira"},
          {kAccount, "bio"},
          {kPartition, "long"},
          {kQos, "normal"},
          {kNumNodes, "1"},
          {kNumCpus, "4"},
          {kNumTasks, "2"},
          {kCpusPerTask, "2"},
          {kMinMemory, "2G"},
          {kTresAlloc, "cpu=4,mem=8G,node=1,billing=4"},
          {kTresPerJob, "N/A"},
          {kTresPerNode, "N/A"},
          {kTresPerTask, "N/A"},
          {kNodeList, "fir07"},
          {kBatchHost, "fir07"},
          {kBatchFlag, "1"},
          {kRestartCount, "0"},
          {kExitCode, "0"},
          {kDerivedExitCode, "0"},
          {kReservation, "(null)"},
          {kFeatures, "(null)"},
          {kDependency, "(null)"},
          {kLicenses, "(null)"},
          {kName, "sweep"},
          {kComment, "(null)"},
          {kWorkDir, "/home/mira/run"},
          {kCommand, "/home/mira/run/sweep.sh"},
          {kStdout, "/home/mira/run/slurm-" + id + ".out"},
          {kStderr, "/home/mira/run/slurm-" + id + ".out"},
          {kSluid, ""},
          {kReason, "None"},
          {kPriority, "4294901720"},
          {kStartTime, "1790000100"},
          {kEndTime, "1790003700"}};
}

inline QueueValues PendingJob(std::uint32_t job_id) {
  using enum QueueField;
  QueueValues values = RunningJob(job_id);
  values[kState] = "PENDING";
  values[kNodeList] = "";
  values[kBatchHost] = "n/a";
  values[kReason] = "Priority";
  values[kStartTime] = "N/A";
  values[kEndTime] = "N/A";
  return values;
}

inline std::string QueueLine(std::string_view separator, const QueueValues& values) {
  std::string line;
  for (std::size_t i = 0; i < kQueueFields; ++i) {
    const auto found = values.find(static_cast<QueueField>(i));
    if (found != values.end()) line += found->second;
    line += separator;
  }
  return line + '\n';
}

// The separator that QueueArguments wove into these; "" if they are not of that kind.
inline std::string QueueSeparatorOf(const std::vector<std::string>& arguments) {
  constexpr std::string_view kBegin = "--Format=JobID:";
  for (const std::string& argument : arguments) {
    if (!argument.starts_with(kBegin)) continue;
    const std::string_view rest = std::string_view(argument).substr(kBegin.size());
    return std::string(rest.substr(0, rest.find(',')));
  }
  return {};
}

}  // namespace expanse::schedulers::slurm
