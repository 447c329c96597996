#include "schedulers/slurm/commands/sacct.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "evidence/wire.h"
#include "schedulers/slurm/commands/sacct_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;
using testing::ElementsAre;
using F = SacctField;

base::WallTime At(std::int64_t seconds) { return base::WallTime(std::chrono::seconds(seconds)); }

struct Reading {
  std::vector<Job> runs;
  SacctFigures figures;
};

Reading ReadRows(const std::vector<SacctCells>& rows,
                 const SacctFormat& format = SacctFormat::Full(), SacctReaderOptions options = {}) {
  Reading reading;
  SacctReader reader(format, std::string(kTestSeparator), std::move(options),
                     [&](Job run) { reading.runs.push_back(std::move(run)); });
  for (const SacctCells& row : rows) reader.Feed(SacctLine(format, kTestSeparator, row));
  reader.Finish(/*whole=*/true);
  reading.figures = reader.figures();
  return reading;
}

evidence::Execution ReadOne(const std::vector<SacctCells>& rows) {
  Reading reading = ReadRows(rows);
  EXPECT_EQ(reading.runs.size(), 1U);
  return reading.runs.empty() ? evidence::Execution{} : std::move(reading.runs.front().execution);
}

std::string LabelOf(const evidence::Execution& execution, std::string_view label) {
  const auto found = execution.labels.find(std::string(label));
  return found == execution.labels.end() ? "" : found->second;
}

// A version without Restarts.
SacctFormat OldFormat() {
  std::string help;
  for (const F field : SacctFormat::Full().columns()) {
    if (field != F::kRestarts && field != F::kSluid) help += std::string(Name(field)) + " ";
  }
  return *SacctFormat::FromHelp(help);
}

TEST(Sacct, TellsAllOfAnOrdinaryJob) {
  const Reading reading = ReadRows(
      {JobCells({{F::kWorkDir, "/home/ines/runs"},
                 {F::kComment, "third try"},
                 {F::kConstraints, "zen4"},
                 {F::kReservation, "course"},
                 {F::kWcKey, "w7"},
                 {F::kReason, "Priority"},
                 {F::kSuspended, "00:00:40"},
                 {F::kSubmitLine, "sbatch --export=API_TOKEN=supersecretvalue123 fold.sh"}}),
       StepCells("batch", {{F::kTotalCpu, "03:10.500"},
                           {F::kMaxRss, "104857600"},
                           {F::kAveRss, "104857600"},
                           {F::kTresUsageInTot,
                            "cpu=00:03:10,energy=0,fs/disk=5000,mem=104857600,pages=2,vmem=9"},
                           {F::kTresUsageOutTot, "energy=0,fs/disk=70"}}),
       StepCells("extern", {{F::kTresUsageInTot, "cpu=00:00:00,fs/disk=5,mem=0"}})});
  ASSERT_EQ(reading.runs.size(), 1U);
  const Job& job = reading.runs.front();
  const evidence::Execution& execution = job.execution;
  EXPECT_EQ(KeyOf(job)->identity, "aurora/4711@1790000000");
  EXPECT_TRUE(job.final);
  EXPECT_EQ(job.uid, 2001U);
  EXPECT_EQ(execution.source_type, evidence::SourceType::kSlurm);
  EXPECT_EQ(execution.native_id, "4711");
  EXPECT_EQ(execution.parent_native_id, "");
  EXPECT_EQ(execution.user, "ines");
  EXPECT_EQ(execution.account, "bio");
  EXPECT_EQ(execution.queue, "batch");
  EXPECT_EQ(execution.qos, "normal");
  EXPECT_EQ(execution.name, "fold");
  EXPECT_EQ(execution.comment, "third try");
  EXPECT_EQ(execution.working_directory, "/home/ines/runs");
  EXPECT_EQ(execution.status, ExecutionStatus::kSucceeded);
  EXPECT_EQ(execution.outcome, Outcome::kSuccess);
  EXPECT_EQ(execution.native_state, "COMPLETED");
  EXPECT_EQ(execution.native_reason, "");  // why it waited is not how it ended
  EXPECT_EQ(LabelOf(execution, kLabelWaitReason), "Priority");
  EXPECT_EQ(execution.exit_code, 0);
  EXPECT_FALSE(execution.signal);
  EXPECT_EQ(execution.submitted_at, At(1790000000));
  EXPECT_EQ(execution.started_at, At(1790000060));
  EXPECT_EQ(execution.ended_at, At(1790000160));
  EXPECT_EQ(execution.suspended_s, 40);
  EXPECT_EQ(execution.requested.walltime_s, 3600);
  EXPECT_EQ(execution.requested.cpu_cores, 4);
  EXPECT_EQ(execution.requested.memory_bytes, 8192ULL << 20);
  EXPECT_EQ(execution.allocated.node_count, 1U);
  EXPECT_THAT(execution.nodes, ElementsAre("c01"));
  EXPECT_EQ(LabelOf(execution, kLabelFeatures), "zen4");
  EXPECT_EQ(LabelOf(execution, kLabelReservation), "course");
  EXPECT_EQ(LabelOf(execution, kLabelWcKey), "w7");
  ASSERT_EQ(execution.command.size(), 1U);
  EXPECT_EQ(execution.command[0].find("supersecretvalue123"), std::string::npos);
  EXPECT_TRUE(execution.command[0].starts_with("sbatch --export="));

  EXPECT_DOUBLE_EQ(execution.used.cpu_s.value_or(0), 190.5);
  EXPECT_DOUBLE_EQ(execution.used.cpu_user_s.value_or(0), 180.25);
  EXPECT_EQ(execution.used.memory_peak_bytes, 104857600U);
  EXPECT_EQ(execution.used.memory_peak_basis, "rss");
  EXPECT_EQ(execution.used.io_read_bytes, 5005U);
  EXPECT_EQ(execution.used.io_write_bytes, 70U);
  ASSERT_EQ(execution.steps.size(), 2U);
  EXPECT_EQ(execution.steps[0].id, "batch");
  EXPECT_EQ(execution.steps[0].memory_peak_task_bytes, 104857600U);
  EXPECT_EQ(execution.steps[0].task_count, 1U);
  EXPECT_FALSE(execution.steps[1].used.memory_peak_bytes);  // 0 was not measured
  EXPECT_TRUE(execution.lossy_text);                        // what squeue said of names is kept
}

TEST(Sacct, AStepThatNobodyLookedAtHasNoInputAndOutput) {
  const auto execution =
      ReadOne({JobCells(), StepCells("batch", {{F::kTresUsageInTot, "cpu=00:00:00,fs/disk=0,mem=0"},
                                               {F::kTresUsageOutTot, "energy=0,fs/disk=0"}})});
  EXPECT_FALSE(execution.used.io_read_bytes);
  EXPECT_FALSE(execution.used.io_write_bytes);
}

// ---- memory (per task, several steps, missing)

TEST(SacctMemory, OfAStepIsTheSumOverItsTasks) {
  const auto execution =
      ReadOne({JobCells({{F::kAllocTres, "cpu=8,mem=32G,node=1"}}),
               StepCells("0", {{F::kTaskCount, "8"},
                               {F::kMaxRss, "1947276K"},
                               {F::kAveRss, "1940000K"},
                               {F::kTresUsageInTot, "cpu=00:08:00,mem=15520000K"}})});
  EXPECT_EQ(execution.used.memory_peak_bytes, 15520000ULL << 10);
  EXPECT_EQ(execution.steps[0].memory_peak_task_bytes, 1947276ULL << 10);
}

TEST(SacctMemory, FallsBackToAverageTimesTasksAndThenToLargestTimesTasks) {
  const auto by_average =
      ReadOne({JobCells(), StepCells("0", {{F::kTaskCount, "4"},
                                           {F::kMaxRss, "900M"},
                                           {F::kAveRss, "800M"},
                                           {F::kTresUsageInTot, "cpu=00:08:00,mem=0"}})});
  EXPECT_EQ(by_average.used.memory_peak_bytes, 3200ULL << 20);
  const auto by_largest =
      ReadOne({JobCells(), StepCells("0", {{F::kTaskCount, "4"}, {F::kMaxRss, "900M"}})});
  EXPECT_EQ(by_largest.used.memory_peak_bytes, 3600ULL << 20);
}

TEST(SacctMemory, OfManyTasksIsNotBelievedBeyondWhatWasAllocated) {
  const auto bounded = ReadOne({JobCells(), StepCells("0", {{F::kTaskCount, "16"},
                                                            {F::kMaxRss, "1G"},
                                                            {F::kTresUsageInTot, "mem=12G"}})});
  EXPECT_EQ(bounded.used.memory_peak_bytes, 8ULL << 30);
  // One task that is larger than the allocation was measured, not added up: nothing limited it.
  const auto one =
      ReadOne({JobCells(), StepCells("0", {{F::kMaxRss, "9G"}, {F::kTresUsageInTot, "mem=9G"}})});
  EXPECT_EQ(one.used.memory_peak_bytes, 9ULL << 30);
}

TEST(SacctMemory, OfAJobIsThatOfItsLargestStep) {
  std::vector<SacctCells> rows = {JobCells({{F::kAllocTres, "cpu=4,mem=2048G,node=2"}}),
                                  StepCells("batch", {{F::kMaxRss, "2M"}})};
  for (int i = 0; i < 10; ++i) {
    rows.push_back(StepCells(std::to_string(i), {{F::kMaxRss, std::to_string(i + 1) + "G"}}));
  }
  EXPECT_EQ(ReadOne(rows).used.memory_peak_bytes, 10ULL << 30);
  EXPECT_EQ(ReadOne({JobCells({{F::kAllocTres, "cpu=4,mem=2048G,node=2"}}),
                     StepCells("0", {{F::kMaxRss, "1.50T"}, {F::kNodeCount, "2"}})})
                .used.memory_peak_bytes,
            1536ULL << 30);
}

TEST(SacctMemory, ThatIsMissingIsUnknownAndNotZero) {
  EXPECT_FALSE(ReadOne({JobCells()}).used.memory_peak_bytes);  // as sacct -X would give it
  const auto unmeasured = ReadOne(
      {JobCells(),
       StepCells("batch", {{F::kMaxRss, "0"}, {F::kAveRss, "0"}, {F::kTresUsageInTot, "mem=0"}})});
  EXPECT_FALSE(unmeasured.used.memory_peak_bytes);
  EXPECT_EQ(unmeasured.used.memory_peak_basis, "");
  // NO_VAL64 as a number
  const auto none =
      ReadOne({JobCells(), StepCells("0", {{F::kTresUsageInTot, "mem=18446744073709551614"}})});
  EXPECT_FALSE(none.used.memory_peak_bytes);
}

TEST(SacctMemory, GivesWayToThePeakOfTheCgroup) {
  evidence::Execution known;
  known.used.memory_peak_bytes = 2900ULL << 20;  // anonymous, shared and kernel memory
  known.used.memory_peak_basis = "cgroup_peak";
  // With the page cache in it, as jobacct_gather/cgroup counts.
  const auto seen = ReadOne({JobCells(), StepCells("batch", {{F::kMaxRss, "16800M"}})});
  EXPECT_EQ(evidence::Merge(known, seen).used.memory_peak_bytes, 2900ULL << 20);
}

// ---- CPU and GPU

TEST(SacctCpu, OfSteps2505ComesFromTheirUsage) {
  const auto execution = ReadOne(
      {JobCells(
           {{F::kTotalCpu, "00:00:00"}, {F::kUserCpu, "00:00:00"}, {F::kSystemCpu, "00:00:00"}}),
       StepCells("batch",
                 {{F::kTotalCpu, "00:00:00"}, {F::kTresUsageInTot, "cpu=00:00:20,mem=1M"}}),
       StepCells("0", {{F::kTotalCpu, "00:00:00"}, {F::kTresUsageInTot, "cpu=00:05:00,mem=1M"}})});
  EXPECT_EQ(execution.used.cpu_s, 320);
  EXPECT_FALSE(execution.used.cpu_user_s);
  EXPECT_EQ(execution.steps[1].used.cpu_s, 300);
}

TEST(SacctCpu, ThatNobodyMeasuredIsUnknown) {
  const auto execution = ReadOne(
      {JobCells(
           {{F::kTotalCpu, "00:00:00"}, {F::kUserCpu, "00:00:00"}, {F::kSystemCpu, "00:00:00"}}),
       StepCells("batch", {{F::kTresUsageInTot, "cpu=00:00:00"}})});
  EXPECT_FALSE(execution.used.cpu_s);
}

TEST(SacctCpu, MoreThanTheCpusHadIsMarked) {
  EXPECT_EQ(LabelOf(ReadOne({JobCells()}), kLabelSuspectUsage), "");
  const auto too_much = ReadOne({JobCells({{F::kTotalCpu, "05:08:36"}})});  // 4629 % of 4 CPUs
  EXPECT_EQ(LabelOf(too_much, kLabelSuspectUsage), "cpu");
  EXPECT_EQ(too_much.used.cpu_s, 18516);  // told all the same
}

TEST(SacctGpu, UtilisationIsThatOfOneGpu) {
  const SacctCells job = JobCells({{F::kAllocTres, "cpu=4,gres/gpu=4,mem=8G,node=1"}});
  const auto busy =
      ReadOne({job, StepCells("0", {{F::kTresUsageInTot,
                                     "cpu=00:03:00,gres/gpumem=64G,gres/gpuutil=396,mem=1G"}})});
  EXPECT_EQ(LabelOf(busy, kLabelGpuUtil), "99.0");
  EXPECT_EQ(LabelOf(busy, kLabelGpuMemory), std::to_string(64ULL << 30));
  const auto impossible =
      ReadOne({job, StepCells("0", {{F::kTresUsageInTot, "gres/gpuutil=640"}})});
  EXPECT_EQ(LabelOf(impossible, kLabelGpuUtil), "");
  EXPECT_EQ(LabelOf(impossible, kLabelSuspectUsage), "gpu");
  EXPECT_EQ(LabelOf(ReadOne({job, StepCells("0")}), kLabelGpuUtil), "");
}

TEST(SacctGpu, CountIsExactOrUnknown) {
  struct Case {
    const char* tres;
    std::optional<std::uint32_t> gpus;
  };
  for (const Case& c :
       std::vector<Case>{{"cpu=8,gres/gpu:rtx2080ti=4,gres/gpu=4,node=1", 4},
                         {"cpu=8,gres/gpu:nvidia_geforce_rtx_2080_ti=1,node=1", 1},
                         {"cpu=8,gres/gpu:a100=2,gres/gpu:v100=2,gres/gpu=4,node=1", 4},
                         {"cpu=8,gres/gpu=1,gres/gpu:a100=1,node=1", 1},
                         {"cpu=8,mem=9G,node=1", std::nullopt}}) {
    EXPECT_EQ(ReadOne({JobCells({{F::kAllocTres, c.tres}})}).allocated.gpu_count, c.gpus) << c.tres;
  }
  // --exclusive: less is asked for than is got
  const auto exclusive =
      ReadOne({JobCells({{F::kReqTres, "billing=1,cpu=1,mem=1G,node=1"},
                         {F::kAllocTres, "cpu=64,gres/gpu=4,mem=512G,node=1"}})});
  EXPECT_EQ(exclusive.requested.cpu_cores, 1);
  EXPECT_FALSE(exclusive.requested.gpu_count);
  EXPECT_EQ(exclusive.allocated.cpu_cores, 64);
  EXPECT_EQ(exclusive.allocated.gpu_count, 4U);
}

// ---- text and times

TEST(SacctText, ComesOutByteForByte) {
  for (const std::string& nasty :
       {std::string("crazy|name"), std::string("\"half"), std::string("a\nb|c\n"),
        std::string("\xff\xfe bytes"), std::string("<img src=x>"), std::string("1|2|3.batch\n")}) {
    const Reading reading = ReadRows(
        {JobCells({{F::kJobName, nasty}, {F::kWorkDir, "/tmp/" + nasty}, {F::kComment, nasty}}),
         JobCells({{F::kJobIdRaw, "4712"}, {F::kDbIndex, "90002"}})});
    ASSERT_EQ(reading.runs.size(), 2U) << nasty;
    EXPECT_EQ(reading.runs[0].execution.name, nasty);
    EXPECT_EQ(reading.runs[0].execution.working_directory, "/tmp/" + nasty);
    EXPECT_EQ(reading.runs[0].execution.comment, nasty);
    EXPECT_EQ(reading.figures.bad_rows, 0U);
  }
}

TEST(SacctTimes, AreNeverTheEpoch) {
  for (const char* none : {"None", "Unknown", "0", "", "1970-01-01T00:00:00", "7109000"}) {
    const auto execution = ReadOne({JobCells({{F::kStart, none},
                                              {F::kEligible, none},
                                              {F::kNodeList, "None assigned"},
                                              {F::kAllocTres, ""}})});
    EXPECT_FALSE(execution.started_at) << none;
    EXPECT_FALSE(execution.eligible_at) << none;
  }
  const auto iso = ReadOne({JobCells({{F::kSubmit, "2026-09-21T14:13:20"}})});
  EXPECT_EQ(iso.submitted_at, At(1790000000));
}

TEST(SacctTimes, OfAJobCancelledWhileItWaitedHaveNoStart) {
  // Slurm 22.05 prints the end as the start.
  const auto execution = ReadOne({JobCells({{F::kState, "CANCELLED by 2001"},
                                            {F::kStart, "1790000100"},
                                            {F::kEnd, "1790000100"},
                                            {F::kElapsedRaw, "0"},
                                            {F::kNodeList, "None assigned"},
                                            {F::kAllocTres, ""},
                                            {F::kAllocCpus, "0"},
                                            {F::kTotalCpu, "00:00:00"},
                                            {F::kUserCpu, "00:00:00"},
                                            {F::kSystemCpu, "00:00:00"}})});
  EXPECT_FALSE(execution.started_at);
  EXPECT_EQ(execution.ended_at, At(1790000100));
  EXPECT_EQ(execution.status, ExecutionStatus::kCancelled);
  EXPECT_EQ(execution.native_state, "CANCELLED");
  EXPECT_EQ(LabelOf(execution, kLabelCancelledBy), "2001");
  EXPECT_EQ(LabelOf(execution, kLabelUid), "2001");
  EXPECT_FALSE(execution.allocated.cpu_cores);
  EXPECT_FALSE(execution.used.cpu_s);
  EXPECT_TRUE(execution.nodes.empty());
}

TEST(SacctTimes, OfARunningJobHaveNoEnd) {
  const Reading reading = ReadRows({JobCells({{F::kState, "RUNNING"}, {F::kEnd, "Unknown"}})});
  ASSERT_EQ(reading.runs.size(), 1U);
  EXPECT_FALSE(reading.runs[0].final);
  EXPECT_FALSE(reading.runs[0].execution.ended_at);
  EXPECT_FALSE(reading.runs[0].execution.exit_code);  // 0:0 of a job that has not ended
  EXPECT_EQ(reading.runs[0].execution.status, ExecutionStatus::kRunning);
}

TEST(SacctTimeLimit, ReadsEverySpelling) {
  EXPECT_EQ(ReadOne({JobCells({{F::kTimelimitRaw, "1440"}})}).requested.walltime_s, 86400);
  const auto unlimited = ReadOne({JobCells({{F::kTimelimitRaw, "UNLIMITED"}})});
  EXPECT_FALSE(unlimited.requested.walltime_s);
  EXPECT_EQ(LabelOf(unlimited, kLabelTimeLimit), "unlimited");
  const auto partition = ReadOne({JobCells({{F::kTimelimitRaw, "Partition_Limit"}})});
  EXPECT_FALSE(partition.requested.walltime_s);
  EXPECT_EQ(LabelOf(partition, kLabelPartitionLimit), "true");
}

TEST(SacctRequest, WithoutTresReadsOldSpellings) {
  struct Case {
    const char* memory;
    std::optional<std::uint64_t> total;
  };
  for (const Case& c : std::vector<Case>{{"4Gc", 16ULL << 30},
                                         {"16000Mn", 32000ULL << 20},
                                         {"0n", std::nullopt},
                                         {"0c", std::nullopt},
                                         {"1.50T", 1536ULL << 30},
                                         {"9223372036854779904", 16ULL << 30}}) {
    const auto execution = ReadOne({JobCells(
        {{F::kReqTres, ""}, {F::kReqCpus, "4"}, {F::kReqNodes, "2"}, {F::kReqMem, c.memory}})});
    EXPECT_EQ(execution.requested.memory_bytes, c.total) << c.memory;
    EXPECT_EQ(execution.requested.cpu_cores, 4);
    EXPECT_EQ(execution.requested.node_count, 2U);
  }
}

// ---- identity

TEST(SacctIdentity, OfARecycledIdIsThatOfItsSubmitTime) {
  const Reading reading = ReadRows(
      {JobCells({{F::kSubmit, "1790000000"}}),
       JobCells(
           {{F::kSubmit, "1500000000"}, {F::kUser, "older"}, {F::kUid, "3"}, {F::kDbIndex, "5"}})},
      OldFormat());
  ASSERT_EQ(reading.runs.size(), 2U);
  EXPECT_EQ(KeyOf(reading.runs[0])->identity, "aurora/4711@1500000000");
  EXPECT_EQ(KeyOf(reading.runs[1])->identity, "aurora/4711@1790000000");
  EXPECT_EQ(reading.runs[1].execution.user, "ines");
  EXPECT_EQ(reading.runs[1].execution.restart_count, 0U);
}

TEST(SacctIdentity, EveryRunOfARequeuedJobIsKeptWithItsSteps) {
  std::vector<SacctCells> rows;
  for (int run = 4; run >= 0; --run) {  // newest first, as sacct prints them
    const std::int64_t submit = 1790000000 + run * 1000;
    const std::string db_index = std::to_string(100 + run);
    rows.push_back(JobCells({{F::kSubmit, std::to_string(submit)},
                             {F::kStart, std::to_string(submit + 10)},
                             {F::kEnd, std::to_string(submit + 1000)},
                             {F::kState, run == 4   ? "COMPLETED"
                                         : run == 1 ? "PREEMPTED"
                                                    : "REQUEUED"},
                             {F::kDbIndex, db_index}}));
    rows.push_back(
        StepCells("batch", {{F::kMaxRss, std::to_string(run + 1) + "M"}, {F::kDbIndex, db_index}}));
  }
  const Reading reading = ReadRows(rows, OldFormat());
  ASSERT_EQ(reading.runs.size(), 5U);
  for (std::size_t run = 0; run < 5; ++run) {
    EXPECT_EQ(reading.runs[run].execution.restart_count, run);
    ASSERT_EQ(reading.runs[run].execution.steps.size(), 1U);
    EXPECT_EQ(reading.runs[run].execution.used.memory_peak_bytes, (run + 1) << 20);
    EXPECT_TRUE(reading.runs[run].final);
  }
  EXPECT_EQ(reading.figures.orphan_steps, 0U);
}

TEST(SacctIdentity, RestartsOfTheVersionCountWhereItHasThem) {
  const Reading reading = ReadRows({JobCells({{F::kRestarts, "3"}})});
  EXPECT_EQ(reading.runs[0].execution.restart_count, 3U);
}

TEST(SacctIdentity, StepsOfAnotherRunAreNotTakenForThisOnes) {
  const Reading reading = ReadRows({JobCells(), StepCells("0", {{F::kDbIndex, "7"}})});
  EXPECT_TRUE(reading.runs[0].execution.steps.empty());
  EXPECT_EQ(reading.figures.orphan_steps, 1U);
}

TEST(SacctIdentity, AStepWithoutAnIdIsLeftOut) {
  const Reading reading = ReadRows({JobCells(), StepCells("")});
  ASSERT_EQ(reading.runs.size(), 1U);
  EXPECT_TRUE(reading.runs[0].execution.steps.empty());
  EXPECT_EQ(reading.figures.orphan_steps, 1U);
}

TEST(SacctIdentity, ArrayTasksAndComponentsOfHetJobsHaveAParent) {
  const auto task = ReadOne({JobCells({{F::kJobId, "4700_11"}})});
  EXPECT_EQ(task.native_id, "4700_11");
  EXPECT_EQ(task.parent_native_id, "4700");
  const auto component = ReadOne({JobCells({{F::kJobId, "4710+1"}})});
  EXPECT_EQ(component.native_id, "4710+1");
  EXPECT_EQ(component.parent_native_id, "4710");
  const auto waiting = ReadOne({JobCells({{F::kJobId, "4711_[3-9%2]"}})});
  EXPECT_EQ(waiting.native_id, "4711_[3-9%2]");
  EXPECT_EQ(waiting.parent_native_id, "4711");
  EXPECT_EQ(LabelOf(waiting, kLabelArrayTaskCount), "7");
}

TEST(SacctIdentity, SluidIsALabelAndNotTheIdentity) {
  const Reading reading = ReadRows({JobCells({{F::kSluid, "s3KNKTV3WPV500"}})});
  EXPECT_EQ(LabelOf(reading.runs[0].execution, kLabelSluid), "s3KNKTV3WPV500");
  EXPECT_EQ(KeyOf(reading.runs[0])->identity, "aurora/4711@1790000000");
}

TEST(SacctIdentity, AUidThatAccountingDoesNotKnowIsNotRoots) {
  for (const char* user : {"ines", ""}) {
    const Reading reading = ReadRows({JobCells({{F::kUser, user}, {F::kUid, "0"}})});
    EXPECT_FALSE(reading.runs[0].uid) << user;
    EXPECT_EQ(LabelOf(reading.runs[0].execution, kLabelUid), "") << user;
    EXPECT_EQ(reading.runs[0].execution.user, user);
  }
}

TEST(SacctIdentity, RemovedUsersAndUnknownGroupsAreSomebody) {
  const auto removed = ReadOne({JobCells({{F::kUser, ""}, {F::kUid, "2044"}})});
  EXPECT_EQ(LabelOf(removed, kLabelUid), "2044");
  EXPECT_EQ(LabelOf(ReadOne({JobCells({{F::kUser, "root"}, {F::kUid, "0"}})}), kLabelUid), "0");
  EXPECT_EQ(removed.user, "2044");
  const Reading nobody =
      ReadRows({JobCells({{F::kUser, ""}, {F::kUid, "4294967294"}}), StepCells("interactive")});
  EXPECT_EQ(nobody.runs[0].execution.user, "");
  EXPECT_FALSE(nobody.runs[0].uid);
  EXPECT_EQ(nobody.runs[0].execution.steps[0].id, "interactive");
}

// ---- how it ended

TEST(SacctEnd, OutOfMemoryOfAChildShowsBesideASuccess) {
  const auto execution =
      ReadOne({JobCells({{F::kDerivedExitCode, "0:125"}}), StepCells("batch"),
               StepCells("0", {{F::kState, "OUT_OF_MEMORY"}, {F::kExitCode, "0:125"}})});
  EXPECT_EQ(execution.status, ExecutionStatus::kSucceeded);
  EXPECT_EQ(execution.exit_code, 0);
  EXPECT_EQ(LabelOf(execution, kLabelStepsOutOfMemory), "0");
  EXPECT_EQ(LabelOf(execution, kLabelDerivedExitCode), "0:125");
  EXPECT_EQ(execution.steps[1].native_state, "OUT_OF_MEMORY");
  EXPECT_EQ(execution.steps[1].status, ExecutionStatus::kFailed);
}

TEST(SacctEnd, ReadsStatesExitCodesAndSignals) {
  const auto oom = ReadOne({JobCells({{F::kState, "OUT_OF_MEMORY"}, {F::kExitCode, "0:125"}})});
  EXPECT_EQ(oom.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(oom.exit_code, 0);
  EXPECT_EQ(oom.signal, 125);
  const auto failed = ReadOne({JobCells({{F::kState, "FAILED"}, {F::kExitCode, "3:0"}})});
  EXPECT_EQ(failed.outcome, Outcome::kFailure);
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_FALSE(failed.signal);
  const auto killed = ReadOne({JobCells({{F::kState, "FAILED"}, {F::kExitCode, "0:9"}})});
  EXPECT_EQ(killed.signal, 9);
  EXPECT_EQ(ReadOne({JobCells({{F::kState, "TIMEOUT"}})}).outcome, Outcome::kTimeout);
  EXPECT_EQ(ReadOne({JobCells({{F::kState, "NODE_FAIL"}})}).status, ExecutionStatus::kFailed);
  const auto later = ReadOne({JobCells({{F::kState, "TRANSMOGRIFIED"}})});
  EXPECT_EQ(later.status, ExecutionStatus::kUnknown);
  EXPECT_EQ(later.native_state, "TRANSMOGRIFIED");
}

// ---- reading

TEST(SacctReader, LeavesOutWhatCannotBeRecognised) {
  const Reading reading =
      ReadRows({StepCells("0"), JobCells({{F::kSubmit, "Unknown"}}), StepCells("batch"),
                JobCells({{F::kSubmit, "7109000"}}), JobCells({{F::kJobIdRaw, "x"}}),
                JobCells({{F::kState, ""}}), JobCells({{F::kJobIdRaw, "4712"}})});
  ASSERT_EQ(reading.runs.size(), 1U);
  EXPECT_EQ(reading.runs[0].job_id, 4712U);
  EXPECT_EQ(reading.figures.bad_rows, 4U);
  EXPECT_EQ(reading.figures.orphan_steps, 2U);
  EXPECT_EQ(reading.figures.rows, 7U);
}

TEST(SacctReader, DoesNotGiveTheLastRunOfAnOutputThatWasCut) {
  std::vector<Job> runs;
  const SacctFormat format = SacctFormat::Full();
  SacctReader reader(format, std::string(kTestSeparator), {},
                     [&](Job run) { runs.push_back(std::move(run)); });
  reader.Feed(SacctLine(format, kTestSeparator, JobCells()));
  reader.Feed(SacctLine(format, kTestSeparator, JobCells({{F::kJobIdRaw, "4712"}})));
  reader.Feed(SacctLine(format, kTestSeparator, StepCells("0")).substr(0, 20));
  reader.Finish(/*whole=*/true);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].job_id, 4711U);
  EXPECT_TRUE(reader.figures().torn);
}

TEST(SacctReader, NamesTheClusterAsItsOwnerDoes) {
  for (const char* of_row : {"", "aurora"}) {
    const Reading reading =
        ReadRows({JobCells({{F::kCluster, of_row}})}, SacctFormat::Full(), {.cluster = "Borealis"});
    EXPECT_EQ(KeyOf(reading.runs[0])->identity, "Borealis/4711@1790000000");
  }
  EXPECT_TRUE(ReadRows({JobCells({{F::kCluster, ""}})}).runs.empty());
}

TEST(SacctReader, BoundsTheStepsOfOneJobAndKeepsThoseThatFailed) {
  std::vector<SacctCells> rows = {
      JobCells({{F::kTotalCpu, ""}, {F::kUserCpu, ""}, {F::kSystemCpu, ""}})};
  for (int i = 0; i < 3000; ++i) {
    rows.push_back(StepCells(std::to_string(i), {{F::kTotalCpu, "00:00:02"},
                                                 {F::kState, i == 2999 ? "FAILED" : "COMPLETED"},
                                                 {F::kMaxRss, i == 1500 ? "7G" : "1M"}}));
  }
  const Reading reading = ReadRows(rows, SacctFormat::Full(), {.max_steps = 1024});
  const evidence::Execution& execution = reading.runs[0].execution;
  EXPECT_EQ(execution.steps.size(), evidence::kMaxSteps);
  EXPECT_EQ(execution.steps.back().id, "2999");
  EXPECT_EQ(execution.used.memory_peak_bytes, 7ULL << 30);  // those left out count all the same
  EXPECT_EQ(execution.used.cpu_s, 6000);
  EXPECT_FALSE(execution.capture_notes.empty());
}

TEST(SacctReader, GivesRecordsThatTheDataPlaneTakes) {
  const Reading reading =
      ReadRows({JobCells({{F::kJobName, "\xff|\n"},
                          {F::kAllocTres, "cpu=99999999999999999999,mem=18446744073709551614"},
                          {F::kConsumedEnergyRaw, "18446744073709551614"}}),
                StepCells("0", {{F::kTresUsageInTot, "fs/disk=18446744073709551614,mem=9E"},
                                {F::kTaskCount, "4294967294"}})});
  const evidence::Record record{.sequence = 1,
                                .observed_at = At(1790000200),
                                .payload = evidence::ExecutionObservation{
                                    *KeyOf(reading.runs[0]), reading.runs[0].execution}};
  const auto back = evidence::Decode(evidence::Encode(record), At(1790000200));
  ASSERT_TRUE(back) << back.error().message;
}

// ---- restarts without a column for them

Job RunOf(std::uint32_t id, std::int64_t submitted, std::int64_t ended, uid_t uid = 1) {
  Job job{.job_id = id, .submitted = At(submitted), .uid = uid};
  job.execution.ended_at = At(ended);
  return job;
}

TEST(RestartCounts, CountOverSeveralQueries) {
  RestartCounts counts;
  EXPECT_EQ(counts.Next(RunOf(5, 1000, 2000)), 0U);
  EXPECT_EQ(counts.Next(RunOf(6, 1000, 2000)), 0U);
  EXPECT_EQ(counts.Next(RunOf(5, 2001, 3000)), 1U);
  EXPECT_EQ(counts.Next(RunOf(5, 2001, 3000)), 1U);  // told once more
  EXPECT_EQ(counts.Next(RunOf(5, 2990, 4000)), 2U);  // its nodes took long to clean up
  EXPECT_EQ(counts.Next(RunOf(5, 4300, 5000)), 3U);  // requeued by hand after its end
}

TEST(RestartCounts, RecycledIdsBeginAnew) {
  RestartCounts counts;
  EXPECT_EQ(counts.Next(RunOf(5, 1000, 2000)), 0U);
  EXPECT_EQ(counts.Next(RunOf(5, 50'000, 60'000)), 0U);
  EXPECT_EQ(counts.Next(RunOf(5, 60'001, 61'000, /*uid=*/2)), 0U);
}

TEST(RestartCounts, ForgetTheOldestIdsFirst) {
  RestartCounts counts(/*most=*/2);
  for (std::uint32_t id : {1U, 2U, 3U}) (void)counts.Next(RunOf(id, 1000, 2000));
  EXPECT_EQ(counts.Next(RunOf(3, 2000, 3000)), 1U);
  EXPECT_EQ(counts.Next(RunOf(1, 2000, 3000)), 0U);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
