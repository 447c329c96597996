#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/slurm/commands/squeue.h"
#include "schedulers/slurm/commands/squeue_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;
using testing::ElementsAre;
using enum QueueField;

constexpr std::uint64_t kGiB = 1ULL << 30;

base::WallTime At(std::int64_t seconds) { return base::WallTime(std::chrono::seconds(seconds)); }

Job Parsed(const QueueValues& values) {
  std::optional<Job> job;
  QueueReader reader("~12345678",
                     [&](const QueueRow& row) { job = ParseQueueRow(row.bytes, "alder"); });
  reader.Feed(QueueLine("~12345678", values));
  EXPECT_TRUE(job);
  return job.value_or(Job{});
}

std::string LabelOf(const Job& job, std::string_view name) {
  const auto found = job.execution.labels.find(std::string(name));
  return found == job.execution.labels.end() ? "" : found->second;
}

TEST(QueueRow, SaysWhatARunningJobIs) {
  const Job job = Parsed(RunningJob(41982));
  EXPECT_EQ(KeyOf(job)->identity, "alder/41982@1790000000");
  EXPECT_EQ(job.uid, 1203);
  EXPECT_EQ(LabelOf(job, kLabelUid), "1203");
  EXPECT_EQ(job.batch_host, "fir07");
  EXPECT_FALSE(job.final);
  const evidence::Execution& execution = job.execution;
  EXPECT_EQ(execution.source_type, evidence::SourceType::kSlurm);
  EXPECT_EQ(execution.native_id, "41982");
  EXPECT_EQ(execution.parent_native_id, "");
  EXPECT_EQ(execution.user, "mira");
  EXPECT_EQ(execution.account, "bio");
  EXPECT_EQ(execution.queue, "long");
  EXPECT_EQ(execution.qos, "normal");
  EXPECT_EQ(execution.name, "sweep");
  EXPECT_EQ(execution.comment, "");
  EXPECT_THAT(execution.command, ElementsAre("/home/mira/run/sweep.sh"));
  EXPECT_EQ(execution.status, ExecutionStatus::kRunning);
  EXPECT_EQ(execution.native_state, "RUNNING");
  EXPECT_EQ(execution.native_reason, "");
  EXPECT_EQ(execution.submitted_at, At(1'790'000'000));
  EXPECT_EQ(execution.eligible_at, At(1'790'000'000));
  EXPECT_EQ(execution.started_at, At(1'790'000'100));
  EXPECT_EQ(execution.ended_at, std::nullopt) << "the end is only the latest possible one";
  EXPECT_EQ(execution.expected_start_at, std::nullopt);
  EXPECT_EQ(execution.exit_code, std::nullopt);
  EXPECT_THAT(execution.nodes, ElementsAre("fir07"));
  EXPECT_EQ(execution.allocated.cpu_cores, 4);
  EXPECT_EQ(execution.allocated.memory_bytes, 8 * kGiB);
  EXPECT_EQ(execution.allocated.node_count, 1);
  EXPECT_EQ(execution.allocated.gpu_count, std::nullopt) << "unknown, not zero";
  EXPECT_EQ(execution.requested.walltime_s, 3600);
  EXPECT_EQ(execution.requested.task_count, 2);
  EXPECT_EQ(execution.requested.cpu_cores, 4);
  EXPECT_EQ(execution.requested.memory_bytes, 8 * kGiB) << "2G for each of four CPUs";
  EXPECT_EQ(execution.stdout_path, "/home/mira/run/slurm-41982.out");
}

TEST(QueueRow, SaysWhatAWaitingJobAsksFor) {
  QueueValues values = PendingJob(7);
  values[kTresAlloc] = "cpu=4,mem=8G,node=2,billing=4,gres/gpu=4,gres/gpu:a100=4";
  values[kStartTime] = "1790005000";
  values[kDependency] = "afterok:6(unfulfilled)";
  values[kReservation] = "spring school";
  values[kFeatures] = "ib&big";
  values[kTimeLimit] = "UNLIMITED";
  const Job job = Parsed(values);
  EXPECT_EQ(job.execution.status, ExecutionStatus::kQueued);
  EXPECT_EQ(job.execution.native_reason, "Priority");
  EXPECT_EQ(job.execution.expected_start_at, At(1'790'005'000));
  EXPECT_EQ(job.execution.started_at, std::nullopt);
  EXPECT_EQ(job.execution.requested.gpu_count, 4);
  EXPECT_EQ(job.execution.requested.gpu_type, "a100");
  EXPECT_EQ(job.execution.requested.memory_bytes, 8 * kGiB);
  EXPECT_EQ(job.execution.requested.walltime_s, std::nullopt);
  EXPECT_EQ(job.execution.allocated, evidence::Resources{});
  EXPECT_TRUE(job.execution.nodes.empty());
  EXPECT_EQ(job.batch_host, "");
  EXPECT_EQ(LabelOf(job, kLabelTimeLimit), "unlimited");
  EXPECT_EQ(LabelOf(job, kLabelDependency), "afterok:6(unfulfilled)");
  EXPECT_EQ(LabelOf(job, kLabelReservation), "spring school");
  EXPECT_EQ(LabelOf(job, kLabelFeatures), "ib&big");
  EXPECT_EQ(LabelOf(job, kLabelPriority), "4294901720");
}

TEST(QueueRow, CountsGpusByTheOptionThatAskedForThem) {
  QueueValues values = PendingJob(7);
  values[kTresAlloc] = "cpu=4,mem=8G,node=2,billing=4";  // a cluster that does not track them
  values[kTresPerNode] = "gres:gpu:a100:2";
  EXPECT_EQ(Parsed(values).execution.requested.gpu_count, 4);
  EXPECT_EQ(Parsed(values).execution.requested.gpu_type, "a100");
  values[kTresPerNode] = "N/A";
  values[kTresPerTask] = "gres/gpu:1";
  EXPECT_EQ(Parsed(values).execution.requested.gpu_count, 2);
  values[kTresPerJob] = "gpu:6";
  EXPECT_EQ(Parsed(values).execution.requested.gpu_count, 6);
  values[kTresPerJob] = values[kTresPerTask] = "N/A";
  EXPECT_EQ(Parsed(values).execution.requested.gpu_count, std::nullopt);
}

// Trap 15: --exclusive allocates far more than was asked for.
TEST(QueueRow, TellsTheRequestFromTheAllocation) {
  QueueValues values = RunningJob(7);
  values[kNumTasks] = "1";
  values[kCpusPerTask] = "1";
  values[kNumCpus] = "64";
  values[kMinMemory] = "1G";
  values[kTresAlloc] = "cpu=64,mem=500G,node=1,billing=64,gres/gpu=4";
  values[kTresPerNode] = "gres/gpu:1";
  const Job job = Parsed(values);
  EXPECT_EQ(job.execution.allocated.cpu_cores, 64);
  EXPECT_EQ(job.execution.allocated.gpu_count, 4);
  EXPECT_EQ(job.execution.requested.cpu_cores, 1);
  EXPECT_EQ(job.execution.requested.gpu_count, 1);
  EXPECT_EQ(job.execution.requested.memory_bytes, std::nullopt) << "per node or per CPU: unknown";
}

TEST(QueueRow, KnowsArraysAndTheirTasks) {
  QueueValues values = PendingJob(500);
  values[kJobArrayId] = "500_[3-99%5]";
  values[kStdout] = "/l/%A_%a.out";
  Job job = Parsed(values);
  EXPECT_EQ(job.execution.native_id, "500_[3-99%5]");
  EXPECT_EQ(job.execution.parent_native_id, "500");
  EXPECT_EQ(LabelOf(job, kLabelArrayTasks), "3-99%5");
  EXPECT_EQ(LabelOf(job, kLabelArrayTaskCount), "97");
  EXPECT_EQ(job.execution.stdout_path, "");
  values = RunningJob(503);
  values[kJobArrayId] = "500_2";
  values[kStdout] = "/l/%A_%a.out";
  job = Parsed(values);
  EXPECT_EQ(job.execution.native_id, "500_2");
  EXPECT_EQ(job.execution.parent_native_id, "500");
  EXPECT_EQ(job.execution.stdout_path, "/l/500_2.out");
  EXPECT_EQ(KeyOf(job)->identity, "alder/503@1790000000");
}

TEST(QueueRow, KnowsHetComponents) {
  QueueValues values = RunningJob(601);
  values[kJobArrayId] = "600+1";
  const Job job = Parsed(values);
  EXPECT_EQ(job.execution.native_id, "600+1");
  EXPECT_EQ(job.execution.parent_native_id, "600");
}

TEST(QueueRow, SaysHowAJobEnded) {
  QueueValues values = RunningJob(7);
  values[kState] = "FAILED";
  values[kReason] = "NonZeroExitCode";
  values[kExitCode] = "768";
  values[kDerivedExitCode] = "9";
  values[kEndTime] = "1790000250";
  const Job job = Parsed(values);
  EXPECT_TRUE(job.final);
  EXPECT_EQ(job.execution.status, ExecutionStatus::kFailed);
  values[kDerivedExitCode] = "0";
  EXPECT_EQ(LabelOf(Parsed(values), kLabelDerivedExitCode), "") << "no step failed";
  EXPECT_EQ(job.execution.native_reason, "NonZeroExitCode");
  EXPECT_EQ(job.execution.exit_code, 3);
  EXPECT_EQ(job.execution.signal, std::nullopt);
  EXPECT_EQ(LabelOf(job, kLabelDerivedExitCode), "0:9");
  EXPECT_EQ(job.execution.started_at, At(1'790'000'100));
  EXPECT_EQ(job.execution.ended_at, At(1'790'000'250));
}

TEST(QueueRow, KnowsSlurmsOutOfMemory) {
  QueueValues values = RunningJob(7);
  values[kState] = "OUT_OF_MEMORY";
  values[kExitCode] = "125";
  const Job job = Parsed(values);
  EXPECT_EQ(job.execution.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(job.execution.exit_code, 0);
  EXPECT_EQ(job.execution.signal, 125);
}

TEST(QueueRow, AJobCancelledWhileItWaitedNeverStarted) {
  QueueValues values = RunningJob(7);
  values[kState] = "CANCELLED";
  values[kNodeList] = "";
  values[kStartTime] = values[kEndTime] = "1790000300";
  const Job job = Parsed(values);
  EXPECT_EQ(job.execution.status, ExecutionStatus::kCancelled);
  EXPECT_EQ(job.execution.started_at, std::nullopt);
  EXPECT_EQ(job.execution.ended_at, At(1'790'000'300));
  EXPECT_EQ(job.execution.allocated, evidence::Resources{}) << "nothing was allocated";
  EXPECT_EQ(job.execution.requested.cpu_cores, 4);
}

TEST(QueueRow, WhileCompletingTheNodesAreNotTheJobs) {
  QueueValues values = RunningJob(7);
  values[kState] = "COMPLETING";
  values[kNodeList] = "fir08";
  const Job job = Parsed(values);
  EXPECT_EQ(job.execution.status, ExecutionStatus::kRunning);
  EXPECT_FALSE(job.final);
  EXPECT_TRUE(job.execution.nodes.empty());
  EXPECT_EQ(job.completing_end, At(1'790'003'700));
  values[kState] = "RUNNING";
  EXPECT_EQ(Parsed(values).completing_end, std::nullopt) << "a limit, no end";
}

// Trap 12 and 13: no submit time (seen of a job that was being made), no epoch.
TEST(QueueRow, WithoutASubmitTimeThereIsNoKey) {
  QueueValues values = PendingJob(7);
  values[kSubmitTime] = "N/A";
  const Job job = Parsed(values);
  EXPECT_EQ(KeyOf(job), std::nullopt);
  EXPECT_EQ(job.execution.submitted_at, std::nullopt);
}

TEST(QueueRow, UsersThatThisHostDoesNotKnowAreNotOneUser) {
  QueueValues values = RunningJob(7);
  values[kUserName] = "nobody";
  EXPECT_EQ(Parsed(values).execution.user, "");
  values[kUserName] = "1203";
  EXPECT_EQ(Parsed(values).execution.user, "");
  EXPECT_EQ(Parsed(values).uid, 1203);
  values[kUserName] = "nobody";
  values[kUserId] = "65534";
  EXPECT_EQ(Parsed(values).execution.user, "nobody");
  EXPECT_EQ(LabelOf(Parsed(values), kLabelUid), "65534");
  values[kUserId] = "4294967294";
  EXPECT_EQ(LabelOf(Parsed(values), kLabelUid), "");
}

TEST(QueueRow, ExpandsOutputFiles) {
  QueueValues values = RunningJob(7);
  values[kStdout] = "logs/%x-%j-%N.out";
  values[kStderr] = "/dev/null";
  EXPECT_EQ(Parsed(values).execution.stdout_path, "/home/mira/run/logs/sweep-7-fir07.out");
  EXPECT_EQ(Parsed(values).execution.stderr_path, "/dev/null");
  values[kBatchHost] = "n/a";  // waits: the node is not known
  EXPECT_EQ(Parsed(values).execution.stdout_path, "");
}

TEST(QueueRow, NamesFilesAfterTheHostOfTheNode) {
  QueueValues values = RunningJob(7);
  values[kStdout] = "/l/%N.%b";
  std::string path;
  QueueReader reader("~12345678", [&](const QueueRow& row) {
    const QueueNaming naming{.version = Version{22, 5, 8}, .host_of = [](std::string_view node) {
                               return node == "fir07" ? "box3.example.org" : "";
                             }};
    path = ParseQueueRow(row.bytes, "alder", naming)->execution.stdout_path;
  });
  reader.Feed(QueueLine("~12345678", values));
  EXPECT_EQ(path, "/l/box3.%b");
}

// squeue of 22.05 makes up the name that a job outside arrays would have.
TEST(QueueRow, RepairsTheDefaultNameOfArrayTasks) {
  QueueValues values = RunningJob(503);
  values[kJobArrayId] = "500_2";
  EXPECT_EQ(Parsed(values).execution.stdout_path, "/home/mira/run/slurm-500_2.out");
}

TEST(QueueRow, InteractiveJobsHaveNoFiles) {
  QueueValues values = RunningJob(7);
  values[kBatchFlag] = "0";
  values[kBatchHost] = "login1";
  EXPECT_EQ(Parsed(values).batch_host, "") << "login1 is where salloc runs";
  EXPECT_EQ(Parsed(values).execution.stdout_path, "");
  EXPECT_EQ(Parsed(values).execution.stderr_path, "");
}

TEST(QueueRow, CarriesTheSluid) {
  QueueValues values = RunningJob(7);
  values[kSluid] = "s8VNHDMQ2Y5D00";
  EXPECT_EQ(Parsed(values).sluid, "s8VNHDMQ2Y5D00");
  EXPECT_EQ(LabelOf(Parsed(values), kLabelSluid), "s8VNHDMQ2Y5D00");
  values[kSluid] = "none";
  EXPECT_EQ(Parsed(values).sluid, "");
}

TEST(QueueRow, UnknownStatesConcludeNothing) {
  QueueValues values = RunningJob(7);
  values[kState] = "LEVITATING";
  const Job job = Parsed(values);
  EXPECT_EQ(job.execution.status, ExecutionStatus::kUnspecified);
  EXPECT_EQ(job.execution.native_state, "LEVITATING");
  EXPECT_EQ(job.execution.started_at, std::nullopt);
  EXPECT_FALSE(job.final);
}

TEST(QueueRow, NoExitOfAJobThatHasNotEnded) {
  QueueValues values = RunningJob(7);
  values[kState] = "COMPLETED";
  values[kExitCode] = "-2";  // NO_VAL
  EXPECT_EQ(Parsed(values).execution.exit_code, std::nullopt);
  values[kExitCode] = "4294967294";
  EXPECT_EQ(Parsed(values).execution.exit_code, std::nullopt);
  values[kExitCode] = "2:0";
  EXPECT_EQ(Parsed(values).execution.exit_code, 2);
}

TEST(QueueRow, RefusesWhatIsNotTheReaders) {
  EXPECT_EQ(ParseQueueRow("", "alder"), std::nullopt);
  EXPECT_EQ(ParseQueueRow(std::string(400, '\xFF'), "alder"), std::nullopt);
  EXPECT_EQ(ParseQueueRow(std::string(kQueueFields * 4, '\0'), "alder"), std::nullopt);
  std::string bytes;
  QueueReader reader("~s", [&](const QueueRow& row) { bytes = row.bytes; });
  reader.Feed(QueueLine("~s", RunningJob(7)));
  EXPECT_TRUE(ParseQueueRow(bytes, "alder"));
  EXPECT_EQ(ParseQueueRow(bytes + "x", "alder"), std::nullopt);
  EXPECT_EQ(ParseQueueRow(std::string_view(bytes).substr(1), "alder"), std::nullopt);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
