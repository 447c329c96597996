// Readers of schedulers' traces, on small inputs of the kinds that they read.
#include <gtest/gtest.h>

#include "bench/predict_parts/trace.h"

namespace expanse::bench {
namespace {

using intelligence::predict::Ending;

constexpr double kMiB = 1024.0 * 1024;
constexpr double kGiB = 1024 * kMiB;

TEST(ReadSacct, StepsBringTheMemoryOfTheirJob) {
  const auto runs = ReadSacct(
      "JobID|User|JobName|State|AllocCPUS|NNodes|ReqMem|Elapsed|Timelimit|Submit|End|MaxRSS|"
      "NTasks\n"
      "7|ann|sim|COMPLETED|8|2|4Gn|00:10:00|01:00:00|1970-01-01T00:01:40|1970-01-01T00:20:00||\n"
      "7.batch||batch|COMPLETED|8|1||00:10:00||||100M|1\n"
      "7.0||srun|COMPLETED|8|2||00:09:00||||300M|2\n"
      "8|ann|sim|OUT_OF_MEMORY|4|1|500Mc|00:00:05|01:00:00|Unknown|Unknown||\n"
      "9|bob|sim|RUNNING|4|1|500Mc|00:00:05|01:00:00|Unknown|Unknown||\n");
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 2U);
  const TraceRun& good = runs->at(0);
  EXPECT_EQ(good.group, "ann/sim");
  EXPECT_FALSE(good.same_source);
  EXPECT_EQ(good.ending, Ending::kSuccess);
  EXPECT_EQ(good.runtime_s, 600);
  EXPECT_EQ(good.cores, 8);
  EXPECT_EQ(good.submit_s, 100);
  EXPECT_EQ(good.end_s, 1200);
  EXPECT_EQ(good.memory_bytes, 600 * kMiB);
  EXPECT_EQ(good.requested_memory_bytes, 8 * kGiB);  // a node
  EXPECT_EQ(good.requested_walltime_s, 3600);
  EXPECT_EQ(runs->at(1).ending, Ending::kOutOfMemory);
  EXPECT_EQ(runs->at(1).requested_memory_bytes, 2000 * kMiB);  // a core
  EXPECT_FALSE(runs->at(1).memory_bytes);
}

TEST(ReadSacct, RowsWithoutAHeaderAreInTheOrderOfTheirTool) {
  const auto runs = ReadSacct("11|ann|lab|TIMEOUT|main|2|1G|00:00:00|01:00:00|5K|0:0|1|1\n");
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->at(0).ending, Ending::kTimeout);
  EXPECT_EQ(runs->at(0).runtime_s, 3600);
  EXPECT_EQ(runs->at(0).memory_bytes, 5 * 1024.0);
  EXPECT_FALSE(ReadSacct("a|b\n1|2\n"));
}

TEST(ReadSacctJson, ReadsJobsThatEnded) {
  const auto runs = ReadSacctJson(R"({"jobs": [
    {"name": "sim", "association": {"user": "ann"}, "state": {"current": ["FAILED"]},
     "time": {"elapsed": 50, "submission": 100, "end": {"set": true, "number": 170},
              "limit": {"set": true, "infinite": false, "number": 30}},
     "tres": {"requested": [{"type": "cpu", "count": 4}, {"type": "mem", "count": 2048}]},
     "steps": [{"tasks": {"count": 2},
                "tres": {"requested": {"max": [{"type": "mem", "count": 1000}]}}}]},
    {"name": "waits", "state": {"current": "PENDING"}, "time": {"elapsed": 0}},
    5]})");
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  const TraceRun& run = runs->at(0);
  EXPECT_EQ(run.group, "ann/sim");
  EXPECT_EQ(run.ending, Ending::kFailure);
  EXPECT_EQ(run.end_s, 170);
  EXPECT_EQ(run.cores, 4);
  EXPECT_EQ(run.requested_walltime_s, 1800);
  EXPECT_EQ(run.requested_memory_bytes, 2048 * kMiB);
  EXPECT_EQ(run.memory_bytes, 2000);
  EXPECT_FALSE(ReadSacctJson("{\"jobs\": 5}"));
  EXPECT_FALSE(ReadSacctJson("{"));
}

TEST(ReadJobTable, ReadsAccountedAndSimulatedJobs) {
  const auto ran = ReadJobTable(
      "user,name,state,processors_req,wallclock_req,run_time,submit_time,end_time\n"
      "ann,sim,COMPLETED,16,3600,60,1970-01-01 00:00:10,1970-01-01 00:02:00\n"
      "ann,sim,RUNNING,16,3600,60,1970-01-01 00:00:10,\n");
  ASSERT_TRUE(ran);
  ASSERT_EQ(ran->size(), 1U);
  EXPECT_EQ(ran->at(0).cores, 16);
  EXPECT_EQ(ran->at(0).end_s, 120);
  EXPECT_EQ(ran->at(0).requested_walltime_s, 3600);
  const auto simulated = ReadJobTable(
      "sim_username;sim_tasks;sim_cpus_per_task;sim_wclimit;sim_duration;sim_submit_ts\n"
      "bob;2;3;10;600;5\nbob;1;1;10;20;6\n");
  ASSERT_TRUE(simulated);
  ASSERT_EQ(simulated->size(), 2U);
  EXPECT_EQ(simulated->at(0).cores, 6);
  EXPECT_EQ(simulated->at(0).ending, Ending::kTimeout);
  EXPECT_EQ(simulated->at(1).ending, Ending::kSuccess);
  EXPECT_EQ(simulated->at(1).end_s, 26);
  EXPECT_FALSE(ReadJobTable("a,b\n1,2\n"));
}

TEST(ReadMeasuredTable, ReadsUseInGibibytes) {
  const auto runs = ReadMeasuredTable(
      "Caller,Sequencing_deph,Time,CPU_asigned,Memory_asigned,RAM_usage\n"
      "tool,30,01:00:00,4,16,2.5\ntool,30,oops,4,16,2.5\n");
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_TRUE(runs->at(0).same_source);
  EXPECT_EQ(runs->at(0).memory_bytes, 2.5 * kGiB);
  EXPECT_EQ(runs->at(0).requested_memory_bytes, 16 * kGiB);
  EXPECT_EQ(runs->at(0).input_size, 30);
}

TEST(ReadSlurmEvents, ReadsSubmitLines) {
  const auto runs = ReadSlurmEvents(
      "-dt 5 -e submit_batch_job | -J job_1 -sim-walltime 600 --uid=u1 -N 2 -n 8 -t 00:10:00 "
      "--mem=1G\n"
      "-dt 6 -e submit_batch_job | -J job_2 -sim-walltime -1 --uid=u1 -t 00:10:00\n");
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->at(0).group, "u1");
  EXPECT_EQ(runs->at(0).cores, 8);
  EXPECT_EQ(runs->at(0).ending, Ending::kTimeout);
  EXPECT_EQ(runs->at(0).requested_memory_bytes, 2 * kGiB);
  EXPECT_FALSE(ReadSlurmEvents("sbatch -dt"));
}

TEST(ReadSwf, ReadsTheStandardFormat) {
  const auto runs = ReadSwf(
      "; a comment\n"
      "1 100 20 300 4 -1 2048 8 600 4096 1 5 1 7 1 1 -1 -1\n"
      "2 100 -1 700 4 -1 -1 8 600 -1 0 5 1 7 1 1 -1 -1\n"
      "3 100 0 700 4 -1 -1 8 600 -1 3 5 1 7 1 1 -1 -1\n"
      "4 100 0 10 -1 -1 -1 8 600 -1 5 5 1 8 1 1 -1 -1\n");
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 3U);  // not the part of a job
  const TraceRun& run = runs->at(0);
  EXPECT_EQ(run.group, "5/7");
  EXPECT_EQ(run.end_s, 420);
  EXPECT_EQ(run.memory_bytes, 4 * 2 * kMiB);
  EXPECT_EQ(run.requested_memory_bytes, 4 * 4 * kMiB);
  EXPECT_EQ(run.requested_walltime_s, 600);
  EXPECT_EQ(runs->at(1).ending, Ending::kTimeout);
  EXPECT_EQ(runs->at(1).end_s, 800);
  EXPECT_EQ(runs->at(2).ending, Ending::kCancelled);
  EXPECT_EQ(runs->at(2).cores, 8);
  EXPECT_FALSE(ReadSwf("1 2 3\n"));
  EXPECT_FALSE(ReadSwf("1 100 20 x 4 -1 2048 8 600 4096 1 5 1 7 1 1 -1 -1\n"));
}

}  // namespace
}  // namespace expanse::bench
