#include "schedulers/slurm/node/node_jobs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collect/fake_tree_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;
using collect::TickAt;

constexpr std::uint64_t kMiB = 1U << 20;

class NodeJobsTest : public testing::Test {
 protected:
  void SetUp() override {
    tree_.Write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    ASSERT_TRUE(base::MakeDirectories(base::JoinPath(tree_.root(), kScope)));
  }
  struct Numbers {
    double cpu_s = 0;
    std::uint64_t need = 0;
    std::uint64_t cache = 0;
    std::uint64_t peak = 0;
    int oom_kills = 0;
    std::uint64_t untold = 0;
  };
  void Write(const std::string& job, const Numbers& n) {
    const std::string at = std::string(kScope) + "/" + job + "/";
    tree_.Write(at + "cgroup.controllers", "cpu memory\n");
    const auto usec = std::uint64_t(n.cpu_s * 1e6);
    tree_.Write(at + "cpu.stat", fmt::format("usage_usec {}\nuser_usec {}\nsystem_usec {}\n", usec,
                                             usec * 3 / 4, usec / 4));
    tree_.Write(at + "memory.stat", fmt::format("anon {}\nfile {}\n", n.need, n.cache));
    tree_.Write(at + "memory.current", fmt::format("{}\n", n.need + n.cache + n.untold));
    tree_.Write(at + "memory.peak", fmt::format("{}\n", n.peak));
    tree_.Write(at + "memory.events", fmt::format("oom 0\noom_kill {}\n", n.oom_kills));
    tree_.Write(at + "io.stat", "8:0 rbytes=100 wbytes=200\n");
  }
  void End(const std::string& job) { tree_.Remove(std::string(kScope) + "/" + job); }
  HookEvent Event(std::uint32_t job, HookKind kind = HookKind::kProlog) {
    HookEvent event;
    event.kind = kind;
    event.job_id = job;
    event.node = "reed07";
    event.uid = 2001;
    event.at = TickAt(0s).wall;
    return event;
  }

  static constexpr const char* kScope = "sys/fs/cgroup/system.slice/slurmstepd.scope";
  collect::FakeTree tree_;
  NodeJobs jobs_{{.root = tree_.root()}};
};

TEST_F(NodeJobsTest, FollowsJobsFromTheirBeginningToTheirEnd) {
  Write("job_4", {});
  jobs_.Scan(TickAt(0s));
  Write("job_5", {});
  jobs_.Scan(TickAt(1s));
  ASSERT_EQ(jobs_.jobs().size(), 2U);
  EXPECT_EQ(jobs_.jobs()[0].id.job_id, 4U);
  EXPECT_EQ(jobs_.jobs()[0].started, base::WallTime{}) << "it was there before";
  EXPECT_EQ(jobs_.jobs()[1].started, TickAt(1s).wall);
  EXPECT_EQ(jobs_.jobs()[1].cgroups,
            std::vector<std::string>{"/sys/fs/cgroup/system.slice/slurmstepd.scope/job_5"});
  End("job_4");
  jobs_.Scan(TickAt(2s));
  EXPECT_EQ(jobs_.jobs().size(), 1U);
}

TEST_F(NodeJobsTest, TellsAtTheEndWhatAJobHasUsed) {
  Write("job_5", {.cpu_s = 0.5, .need = 100 * kMiB, .peak = 100 * kMiB});
  jobs_.Scan(TickAt(0s));
  Write("job_5", {.cpu_s = 7.25, .need = 80 * kMiB, .peak = 101 * kMiB, .oom_kills = 2});
  jobs_.Scan(TickAt(2s));
  EXPECT_TRUE(jobs_.readings().empty());
  End("job_5");
  jobs_.Scan(TickAt(3s));
  ASSERT_EQ(jobs_.readings().size(), 1U);
  const JobReading& reading = jobs_.readings()[0];
  EXPECT_EQ(reading.id.job_id, 5U);
  EXPECT_TRUE(reading.last);
  EXPECT_EQ(reading.usage.cpu_s, 7.25);
  EXPECT_EQ(reading.usage.cpu_user_s, 5.4375);
  EXPECT_EQ(reading.usage.memory_peak_bytes, 101 * kMiB);
  EXPECT_EQ(reading.usage.memory_peak_basis, "cgroup_peak");
  EXPECT_EQ(reading.usage.oom_kills, 2U);
  EXPECT_EQ(reading.usage.io_read_bytes, 100U);
  EXPECT_EQ(reading.usage.io_write_bytes, 200U);
  jobs_.DropReadings(1);
  EXPECT_TRUE(jobs_.readings().empty());
}

// What is charged shows in memory.stat seconds later: 200 MB of a file are no need of the job.
TEST_F(NodeJobsTest, WhatTheKernelHasNotToldYetIsNoNeed) {
  Write("job_5", {.need = 6 * kMiB, .cache = 0, .peak = 206 * kMiB, .untold = 200 * kMiB});
  jobs_.Scan(TickAt(0s));
  End("job_5");
  jobs_.Scan(TickAt(1s));
  ASSERT_EQ(jobs_.readings().size(), 1U);
  EXPECT_EQ(jobs_.readings()[0].usage.memory_peak_bytes, 6 * kMiB);
  EXPECT_EQ(jobs_.readings()[0].usage.memory_peak_basis, "sampled");
}

// While it runs the next look may find that the peak was page cache, and Merge takes nothing back.
TEST_F(NodeJobsTest, TheKernelsPeakCountsOnlyAtTheEnd) {
  Write("job_5", {.need = 100 * kMiB, .peak = 120 * kMiB});
  for (auto now = 0s; jobs_.readings().empty() && now < 600s; now += 1s) jobs_.Scan(TickAt(now));
  ASSERT_FALSE(jobs_.readings().empty());
  EXPECT_FALSE(jobs_.readings()[0].last);
  EXPECT_EQ(jobs_.readings()[0].usage.memory_peak_bytes, 100 * kMiB);
  EXPECT_EQ(jobs_.readings()[0].usage.memory_peak_basis, "sampled");
  jobs_.DropReadings(jobs_.readings().size());
  End("job_5");
  jobs_.Scan(TickAt(700s));
  ASSERT_EQ(jobs_.readings().size(), 1U);
  EXPECT_EQ(jobs_.readings()[0].usage.memory_peak_bytes, 120 * kMiB);
  EXPECT_EQ(jobs_.readings()[0].usage.memory_peak_basis, "cgroup_peak");
}

// 16.8 GB by the kernel, of which 14 GB are files: what the job needs are 2.8 GB.
TEST_F(NodeJobsTest, LeavesThePageCacheOutOfThePeak) {
  Write("job_5", {.need = 2800 * kMiB, .cache = 100 * kMiB, .peak = 2900 * kMiB});
  jobs_.Scan(TickAt(0s));
  Write("job_5", {.need = 2000 * kMiB, .cache = 14'000 * kMiB, .peak = 16'800 * kMiB});
  jobs_.Scan(TickAt(2s));
  Write("job_5", {.need = 100 * kMiB, .cache = 0, .peak = 16'800 * kMiB});  // the file is deleted
  jobs_.Scan(TickAt(4s));
  End("job_5");
  jobs_.Scan(TickAt(5s));
  EXPECT_EQ(jobs_.readings()[0].usage.memory_peak_bytes, 2800 * kMiB);
  EXPECT_EQ(jobs_.readings()[0].usage.memory_peak_basis, "sampled");
}

TEST_F(NodeJobsTest, MissesLittleWhenAJobEndsBetweenTwoLooks) {
  // A core's worth of work; the job ends right before a look.
  for (const int seconds : {10, 60, 200}) {
    Write("job_5", {});
    for (int s = 0; s < seconds; ++s) {
      tree_.Write(std::string(kScope) + "/job_5/cpu.stat",
                  fmt::format("usage_usec {}\n", s * 1'000'000));
      jobs_.Scan(TickAt(std::chrono::seconds(s)));
    }
    End("job_5");
    jobs_.Scan(TickAt(std::chrono::seconds(seconds)));
    EXPECT_TRUE(jobs_.readings().back().last);
    EXPECT_GE(*jobs_.readings().back().usage.cpu_s, seconds * 0.97 - 1.5) << seconds;
    jobs_.DropReadings(jobs_.readings().size());
  }
}

TEST_F(NodeJobsTest, TellsSomethingOfALongJobBeforeItEnds) {
  std::size_t told = 0;
  Write("job_5", {.cpu_s = 5});
  for (int s = 0; s < 4 * 3600; s += 60) {
    jobs_.Scan(TickAt(std::chrono::seconds(s)));
    for (const JobReading& reading : jobs_.readings()) EXPECT_FALSE(reading.last);
    told += jobs_.readings().size();
    jobs_.DropReadings(jobs_.readings().size());
  }
  EXPECT_GE(told, 24U);  // every ten minutes, and more often while it is young
  EXPECT_LE(told, 40U);
}

TEST_F(NodeJobsTest, KnowsFromTheHookWhatCgroupsDoNotTell) {
  Write("sEKNKTV3WPV500", {});
  HookEvent event = Event(77);
  event.sluid = "sEKNKTV3WPV500";
  event.job_gpus = "GPU-1a";
  jobs_.TakeEvent(event);
  jobs_.Scan(TickAt(1s));
  ASSERT_EQ(jobs_.jobs().size(), 1U);
  const NodeJob& job = jobs_.jobs()[0];
  EXPECT_EQ(job.id.job_id, 77U);
  EXPECT_EQ(job.id.sluid, "sEKNKTV3WPV500");
  EXPECT_EQ(job.uid, 2001U);
  EXPECT_EQ(job.started, TickAt(0s).wall);
  EXPECT_EQ(job.gpu_uuids, std::vector<std::string>{"GPU-1a"});
  EXPECT_EQ(job.node, "") << "the host's own, as the cgroups have it";
}

TEST_F(NodeJobsTest, TakesAnEventThatComesLater) {
  Write("job_77", {});
  jobs_.Scan(TickAt(0s));
  jobs_.TakeEvent(Event(78));
  jobs_.TakeEvent(Event(77));
  jobs_.Scan(TickAt(1s));
  EXPECT_EQ(jobs_.jobs()[0].uid, 2001U);
}

// The next job of that id (requeued, or ids started over) has other GPUs.
TEST_F(NodeJobsTest, ForgetsTheGrantOfAJobThatIsGone) {
  HookEvent event = Event(5);
  event.job_gpus = "GPU-1a";
  jobs_.TakeEvent(event);
  Write("job_5", {});
  jobs_.Scan(TickAt(0s));
  EXPECT_EQ(jobs_.jobs()[0].gpu_uuids.size(), 1U);
  End("job_5");
  jobs_.Scan(TickAt(1s));
  Write("job_5", {});
  jobs_.Scan(TickAt(2s));
  EXPECT_TRUE(jobs_.jobs()[0].gpu_uuids.empty());
  jobs_.TakeEvent(event);
  jobs_.TakeEvent(Event(5, HookKind::kEpilog));
  jobs_.Scan(TickAt(3s));
  EXPECT_TRUE(jobs_.jobs()[0].gpu_uuids.empty());
}

TEST_F(NodeJobsTest, SaysWhichRunningJobsHaveNoProcess) {
  Write("job_5", {});
  tree_.Write(std::string(kScope) + "/job_5/step_0/user/task_0/cgroup.procs", "");
  tree_.Write(std::string(kScope) + "/job_6/step_0/user/task_0/cgroup.procs", "17\n");
  jobs_.Scan(TickAt(0s));
  EXPECT_EQ(jobs_.jobs().size(), 2U);
  EXPECT_EQ(jobs_.jobs()[0].tasks, 0U);
  EXPECT_EQ(jobs_.jobs()[1].tasks, 1U);
  EXPECT_EQ(jobs_.jobs_without_tasks(), 1U);
}

// JobAcctGatherType=jobacct_gather/linux on v1: no cgroup tells the cpu time.
TEST_F(NodeJobsTest, TellsWhatToFollowWhereCgroupsDoNotTellTheCpu) {
  tree_.Write("proc/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n");
  const std::string job = "sys/fs/cgroup/memory/slurm/uid_7/job_5/";
  tree_.Write(job + "memory.stat", "total_rss 4096\n");
  tree_.Write(job + "step_0/cgroup.procs", "91\n");
  tree_.Write(job + "step_0/task_0/cgroup.procs", "92\n");
  tree_.Write("proc/91/stat",
              "91 (slurmstepd) S 1 91 91 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 0\n");
  jobs_.Scan(TickAt(0s));
  ASSERT_EQ(jobs_.jobs().size(), 1U);
  ASSERT_EQ(jobs_.jobs()[0].roots.size(), 1U);
  EXPECT_EQ(jobs_.jobs()[0].roots[0].pid, 91);
  EXPECT_EQ(jobs_.jobs()[0].roots[0].start_ticks, 4711U);
  EXPECT_EQ(jobs_.jobs()[0].tasks, 1U);
}

TEST_F(NodeJobsTest, FollowsNoProcessesWhereCgroupsTellAll) {
  Write("job_5", {});
  tree_.Write(std::string(kScope) + "/job_5/step_0/slurm/cgroup.procs", "91\n");
  tree_.Write("proc/91/stat",
              "91 (slurmstepd) S 1 91 91 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 0\n");
  jobs_.Scan(TickAt(0s));
  EXPECT_TRUE(jobs_.jobs()[0].roots.empty());
}

TEST_F(NodeJobsTest, SaysSinceWhenItIsBlind) {
  tree_.Write("proc/9/comm", "slurmstepd\n");
  tree_.Write("proc/9/cgroup", "0::/system.slice/slurmd.service\n");
  jobs_.Scan(TickAt(0s));
  jobs_.Scan(TickAt(40s));
  EXPECT_EQ(jobs_.blind_for(), 40s);
  Write("job_5", {});
  jobs_.Scan(TickAt(41s));
  EXPECT_EQ(jobs_.blind_for(), 0s);
}

TEST_F(NodeJobsTest, FindsANewRootInTime) {
  jobs_.Scan(TickAt(0s));
  tree_.Write("sys/fs/cgroup/other.slice/n2_slurmstepd.scope/job_9/cpu.stat", "usage_usec 1\n");
  jobs_.Scan(TickAt(29s));
  EXPECT_TRUE(jobs_.jobs().empty());
  jobs_.Scan(TickAt(30s));
  ASSERT_EQ(jobs_.jobs().size(), 1U);
  EXPECT_EQ(jobs_.jobs()[0].node, "n2");
}

TEST_F(NodeJobsTest, SaysWhyItSeesNothing) {
  tree_.Remove("proc/mounts");
  jobs_.Scan(TickAt(0s));
  EXPECT_NE(jobs_.trouble(), "");
  tree_.Write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  jobs_.Scan(TickAt(30s));
  EXPECT_EQ(jobs_.trouble(), "");
}

}  // namespace
}  // namespace expanse::schedulers::slurm
