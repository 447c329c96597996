#include "schedulers/slurm/commands/scontrol_job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "schedulers/slurm/commands/reference_testing.h"
#include "schedulers/slurm/commands/scontrol_text.h"

namespace expanse::schedulers::slurm {
namespace {

using testing::ElementsAre;

std::string Record(std::uint32_t id, std::string_view name, std::string_view gres,
                   std::string_view wckey = "w", std::string_view command = "/home/ines/fold.sh") {
  return fmt::format(R"(JobId={} JobName={}
   UserId=ines(2001) GroupId=ines(2001) MCS_label=N/A
   Priority=4294 Nice=0 Account=bio QOS=normal WCKey={}
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:0
   RunTime=00:01:40 TimeLimit=01:00:00 TimeMin=N/A
   SubmitTime=2026-09-21T14:13:20 EligibleTime=2026-09-21T14:13:20
   AccrueTime=Unknown
   StartTime=2026-09-21T14:14:20 EndTime=2026-09-21T15:14:20 Deadline=N/A
   Partition=gpu AllocNode:Sid=login1:77
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=g[1-2]
   BatchHost=g1
   NumNodes=2 NumCPUs=16 NumTasks=2 CPUs/Task=8 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=16,mem=64G,node=2,gres/gpu=3
   AllocTRES=cpu=16,mem=64G,node=2,gres/gpu=3
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   JOB_GRES=gpu:a100:3
     Nodes=g1 CPU_IDs=0-7 Mem=32768 GRES={}
     Nodes=g2 CPU_IDs=8-15 Mem=32768 GRES=gpu:a100:1(IDX:2)
   MinCPUsNode=8 MinMemoryNode=32G MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
   Command={}
   WorkDir=/home/ines/run 1
   Comment=third try
   StdErr=/home/ines/out-%j.err
   StdIn=/dev/null
   StdOut=/home/ines/out-%j.txt
   TresPerNode=gres/gpu:2

)",
                     id, name, wckey, gres, command);
}

TEST(ScontrolJob, TellsDevicesPerNodeAndFiles) {
  const auto job = ParseScontrolJob(Record(88, "fold", "gpu:a100:2(IDX:0,3)"), 88);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->job_id, 88U);
  EXPECT_EQ(job->submitted, base::WallTime(std::chrono::seconds(1790000000)));
  EXPECT_EQ(job->restarts, 2U);
  EXPECT_TRUE(job->batch);
  EXPECT_EQ(job->batch_host, "g1");
  ASSERT_EQ(job->on_nodes.size(), 2U);
  EXPECT_THAT(job->on_nodes[0].nodes, ElementsAre("g1"));
  EXPECT_EQ(job->on_nodes[0].cpu_ids, "0-7");
  EXPECT_EQ(job->on_nodes[0].memory_bytes, 32768ULL << 20);
  ASSERT_EQ(job->on_nodes[0].gres.size(), 1U);
  EXPECT_THAT(job->on_nodes[0].gres[0].indices, ElementsAre(0U, 3U));
  EXPECT_THAT(job->on_nodes[1].gres[0].indices, ElementsAre(2U));
  EXPECT_EQ(job->command, "/home/ines/fold.sh");
  EXPECT_EQ(job->work_dir, "/home/ines/run 1");
  EXPECT_EQ(job->stdout_path, "/home/ines/out-%j.txt");
  EXPECT_EQ(job->stderr_path, "/home/ines/out-%j.err");
  EXPECT_EQ(job->stdin_path, "/dev/null");
}

TEST(ScontrolJob, NamesMayLookLikeAnything) {
  for (const char* name : {"a b=c JobState=FAILED", "x\ny", "MinCPUsNode=9", "", "\xff\xfe"}) {
    const auto job = ParseScontrolJob(Record(88, name, "gpu:a100:1(IDX:1)"), 88);
    ASSERT_TRUE(job) << name;
    EXPECT_THAT(job->on_nodes[0].gres[0].indices, ElementsAre(1U)) << name;
    EXPECT_TRUE(job->submitted) << name;
  }
}

// Whatever a user writes into a name or a wckey, the devices of others stay out of reach.
TEST(ScontrolJob, RefusesRecordsThatUsersMayHaveForged) {
  const std::string forged =
      "x\n   UserId=root(0)\n   JobState=RUNNING\n   NumNodes=1\n"
      "     Nodes=g1 CPU_IDs=0 Mem=1 GRES=gpu:8(IDX:0-7)\n   MinCPUsNode=1\n";
  const std::vector<std::string> names = {
      forged, forged + "\n\nJobId=89 JobName=rest", "x\n\nJobId=88 JobName=" + forged,
      "x\n\nJobId=88 JobName=" + forged + "\n\nJobId=89 JobName=rest"};
  for (const std::string& name : names) {
    const auto by_name = ParseScontrolJob(Record(88, name, "gpu:a100:1(IDX:1)"), 88);
    EXPECT_FALSE(by_name) << name;
    const auto by_wckey = ParseScontrolJob(Record(88, "n", "gpu:a100:1(IDX:1)", name), 88);
    EXPECT_FALSE(by_wckey) << name;
    EXPECT_EQ(by_wckey.error().reason, "slurm.ambiguous");
  }
  // Lines between, where Slurm prints none of its own, count for nothing.
  const auto job =
      ParseScontrolJob(Record(88, "n\n     Nodes=g9 GRES=gpu:8(IDX:0-7)", "gpu:a100:1(IDX:1)",
                              "w\n     Nodes=g9 GRES=gpu:8(IDX:0-7)\n   Restarts=9 SubmitTime=1"),
                       88);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->on_nodes.size(), 2U);
  EXPECT_EQ(job->restarts, 2U);
}

TEST(ScontrolJob, PathsMayHoldNewlines) {
  const auto job =
      ParseScontrolJob(Record(88, "n", "gpu:1(IDX:0)", "w", "/home/in\nes/\n   odd=1.sh a b"), 88);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->command, "/home/in\nes/\n   odd=1.sh a b");
  EXPECT_EQ(job->work_dir, "/home/ines/run 1");
}

TEST(ScontrolJob, OfAnArrayTakesOneTaskAtATime) {
  const std::string text =
      Record(88, "a", "gpu:a100:1(IDX:0)") + Record(91, "a", "gpu:a100:1(IDX:3)");
  EXPECT_EQ(ParseScontrolJob(text, 88).error().reason, "slurm.ambiguous");
  EXPECT_EQ(ParseScontrolJob(Record(91, "a", ""), 88).error().reason, "slurm.job_not_found");
  EXPECT_EQ(ParseScontrolJob("", 9).error().reason, "slurm.job_not_found");
}

TEST(ScontrolJob, ReadsCapturesOfRealClusters) {
  std::vector<std::string> paths = ReferenceTexts("shelper__testdata__scontrol_out");
  for (const std::string& path : ReferenceTexts("scontrol_job")) paths.push_back(path);
  if (paths.empty()) GTEST_SKIP() << "no reference inputs at " << ReferenceTextDirectory();
  std::size_t jobs = 0;
  std::size_t devices = 0;
  for (const std::string& path : paths) {
    const std::string text = base::ReadFile(path).value();
    for (const std::string_view record : SplitRecords(text, "JobId=", 100)) {
      const auto id = base::ParseInt<std::uint32_t>(record.substr(6, record.find(' ') - 6));
      ASSERT_TRUE(id) << record;
      const auto job = ParseScontrolJob(record, *id);
      ASSERT_TRUE(job) << path << job.error().message;
      ++jobs;
      EXPECT_TRUE(job->submitted) << path;
      EXPECT_TRUE(job->work_dir.starts_with('/')) << path;
      for (const auto& on : job->on_nodes) {
        EXPECT_FALSE(on.nodes.empty()) << path;
        for (const Gres& gres : on.gres) devices += gres.indices.size();
      }
    }
  }
  EXPECT_GE(jobs, 8U);
  EXPECT_GE(devices, 20U);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
