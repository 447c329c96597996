#include "schedulers/slurm/node/cgroup_discovery.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "collect/fake_tree_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using List = std::vector<std::string>;

constexpr char kV1Mounts[] =
    "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
    "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n"
    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
constexpr char kV2Mounts[] = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
constexpr char kScope[] = "sys/fs/cgroup/system.slice/slurmstepd.scope/";

class CgroupDiscoveryTest : public testing::Test {
 protected:
  void Mounts(const char* text) { tree_.Write("proc/mounts", text); }
  void Procs(const std::string& cgroup, const std::string& pids = "") {
    tree_.Write(cgroup + "/cgroup.procs", pids);
  }
  void Stepd(int pid, const std::string& cgroup, const std::string& comm = "slurmstepd\n") {
    const std::string process = "proc/" + std::to_string(pid);
    tree_.Write(process + "/comm", comm);
    tree_.Write(process + "/cgroup", cgroup);
  }
  // "node/job uid path path", as found.
  List Jobs() {
    EXPECT_TRUE(discovery_.FindRoots());
    List lines;
    for (const JobCgroups& found : discovery_.ListJobs()) {
      std::string line = found.node + "/" + LocalKey(found.job).identity;
      if (found.uid) line += " " + std::to_string(*found.uid);
      for (const std::string& path : found.cgroups) line += " " + path;
      lines.push_back(line);
    }
    return lines;
  }
  collect::FakeTree tree_;
  CgroupDiscovery discovery_{tree_.root()};
};

// A user's own service manager has cgroups that the user may fill with any.
TEST_F(CgroupDiscoveryTest, UsersCannotMakeUpJobs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  Mounts(kV2Mounts);
  Procs(std::string(kScope) + "job_5");
  const std::string theirs = "sys/fs/cgroup/machine.slice/theirs";
  Procs(theirs + "/slurmstepd.scope/job_6");
  Procs("sys/fs/cgroup/user.slice/u/slurmstepd.scope/job_7");
  Procs("sys/fs/cgroup/user.slice/v/slurmstepd.scope/job_8");
  Stepd(70, "0::/user.slice/u/slurmstepd.scope/job_7\n");
  Stepd(80, "0::/user.slice/v/slurmstepd.scope/job_8\n");
  const auto give_away = [this](const std::string& path) {
    ASSERT_EQ(::chown((tree_.root() + "/" + path).c_str(), 65534, 65534), 0) << path;
  };
  give_away(theirs + "/slurmstepd.scope");
  give_away("sys/fs/cgroup/user.slice/u/slurmstepd.scope");
  give_away("proc/80");  // a process may take any name
  EXPECT_EQ(Jobs(), (List{"/job:5 /sys/fs/cgroup/system.slice/slurmstepd.scope/job_5"}));
  EXPECT_EQ(discovery_.figures().stepds, 1U);
}

TEST(JobPath, KnowsJobsByIdAndBySluid) {
  EXPECT_EQ(JobOfDirectory("job_41982"), (LocalJob{.job_id = 41982}));
  EXPECT_EQ(JobOfDirectory("s5K1KKYAYG5D00"), (LocalJob{.sluid = "s5K1KKYAYG5D00"}));
  for (const char* other : {"job_", "job_0", "job_-1", "job_1x", "jobs_1", "step_0", "system",
                            "s5K1KKYAYG5D0", "s5K1KKYAYG5D00x", "slurm", "user.slice"}) {
    EXPECT_FALSE(JobOfDirectory(other)) << other;
  }
}

TEST(JobPath, TakesAPathApart) {
  const auto v1 = ParseJobPath("/slurm_n1/uid_1000/job_5/step_0/task_0");
  EXPECT_EQ(v1->root, "/slurm_n1");
  EXPECT_EQ(v1->job.job_id, 5U);
  const auto v2 = ParseJobPath("/a.slice/n2_slurmstepd.scope/job_6/step_batch/user/task_0");
  EXPECT_EQ(v2->root, "/a.slice/n2_slurmstepd.scope");
  EXPECT_EQ(v2->job.job_id, 6U);
  EXPECT_EQ(ParseJobPath("/job_7")->root, "");
  EXPECT_FALSE(ParseJobPath("/system.slice/slurmd.service"));
  EXPECT_EQ(NodeOfRoot("slurm_n1"), "n1");
  EXPECT_EQ(NodeOfRoot("n_1_slurmstepd.scope"), "n_1");
  EXPECT_EQ(NodeOfRoot("slurm"), "");
  EXPECT_EQ(NodeOfRoot("slurmstepd.scope"), "");
}

TEST_F(CgroupDiscoveryTest, FindsJobsUnderEveryControllerOfV1) {
  Mounts(kV1Mounts);
  Procs("sys/fs/cgroup/memory/slurm/uid_1000/job_5/step_0");
  Procs("sys/fs/cgroup/cpu,cpuacct/slurm/uid_1000/job_5/step_0");
  Procs("sys/fs/cgroup/freezer/slurm/uid_1000/job_5/step_0");
  Procs("sys/fs/cgroup/memory/slurm/uid_1001/job_6/step_batch");  // as it begins
  Procs("sys/fs/cgroup/memory/system.slice/ssh.service");
  EXPECT_EQ(Jobs(), (List{"/job:5 1000 /sys/fs/cgroup/cpu,cpuacct/slurm/uid_1000/job_5 "
                          "/sys/fs/cgroup/memory/slurm/uid_1000/job_5",
                          "/job:6 1001 /sys/fs/cgroup/memory/slurm/uid_1001/job_6"}));
  EXPECT_EQ(discovery_.figures().jobs, 2U);
}

TEST_F(CgroupDiscoveryTest, KeepsSeveralSlurmdOfOneHostApart) {
  Mounts(kV1Mounts);
  Procs("sys/fs/cgroup/memory/slurm_n1/uid_7/job_5");
  Procs("sys/fs/cgroup/memory/slurm_n2/uid_7/job_5");  // the same job, on both
  Procs("sys/fs/cgroup/memory/slurm_n3");              // idle
  EXPECT_EQ(Jobs(), (List{"n1/job:5 7 /sys/fs/cgroup/memory/slurm_n1/uid_7/job_5",
                          "n2/job:5 7 /sys/fs/cgroup/memory/slurm_n2/uid_7/job_5"}));
  EXPECT_EQ(discovery_.figures().roots, 3U);
}

TEST_F(CgroupDiscoveryTest, FindsJobsOfV2) {
  Mounts(kV2Mounts);
  Procs(std::string(kScope) + "job_5/step_0/user/task_0");
  Procs(std::string(kScope) + "job_5/step_0/slurm");
  Procs(std::string(kScope) + "system");
  Procs("sys/fs/cgroup/system.slice/n2_slurmstepd.scope/job_5/step_batch/user/task_special");
  Procs("sys/fs/cgroup/user.slice/user-0.slice/job_9");
  EXPECT_EQ(Jobs(), (List{"/job:5 /sys/fs/cgroup/system.slice/slurmstepd.scope/job_5",
                          "n2/job:5 /sys/fs/cgroup/system.slice/n2_slurmstepd.scope/job_5"}));
}

// Slurm 26.05 names job directories by SLUID, CgroupJobIdPaths=yes (26.05.2) by id again; a node
// that was upgraded while jobs ran has both, and nothing says so but the names.
TEST_F(CgroupDiscoveryTest, FindsJobsByIdAndBySluidAtOnce) {
  Mounts(kV2Mounts);
  Procs(std::string(kScope) + "sEKNKTV3WPV500/step_batch/user/task_0");
  Procs(std::string(kScope) + "job_41/step_batch/user/task_0");
  EXPECT_EQ(Jobs(), (List{"/sluid:sEKNKTV3WPV500 "
                          "/sys/fs/cgroup/system.slice/slurmstepd.scope/sEKNKTV3WPV500",
                          "/job:41 /sys/fs/cgroup/system.slice/slurmstepd.scope/job_41"}));
}

TEST_F(CgroupDiscoveryTest, FindsAMovedSliceAndOneInAContainer) {
  Mounts(kV2Mounts);
  Procs("sys/fs/cgroup/batch.slice/batch-hpc.slice/slurmstepd.scope/job_3/step_0");
  Procs(
      "sys/fs/cgroup/kubepods.slice/kubepods-pod1.slice/cri-1.scope/system.slice/"
      "n7_slurmstepd.scope/job_4/step_0");
  EXPECT_EQ(Jobs().size(), 2U);
  EXPECT_TRUE(discovery_.figures().complete);
}

// Whatever the directory is called: a running step says where it is.
TEST_F(CgroupDiscoveryTest, AsksTheStepsWhereTheyAre) {
  Mounts(kV2Mounts);
  Procs("sys/fs/cgroup/odd/name/job_3/step_0/user");
  EXPECT_EQ(Jobs(), List{});
  Stepd(100, "0::/odd/name/job_3/step_0/slurm\n");
  Stepd(101, "0::/odd/name/job_3/step_1/slurm\n", "sshd\n");
  EXPECT_EQ(Jobs(), List{"/job:3 /sys/fs/cgroup/odd/name/job_3"});
  EXPECT_EQ(discovery_.figures().stepds, 1U);
  EXPECT_EQ(discovery_.figures().stepds_elsewhere, 0U);

  Mounts(kV1Mounts);
  Procs("sys/fs/cgroup/memory/odd_n1/uid_7/job_4/step_0");
  Stepd(100, "6:freezer:/odd_n1/uid_7/job_4\n4:memory:/odd_n1/uid_7/job_4/step_0\n");
  EXPECT_EQ(Jobs(), List{"/job:4 7 /sys/fs/cgroup/memory/odd_n1/uid_7/job_4"});
}

TEST_F(CgroupDiscoveryTest, CountsStepsThatAreInNoJobsCgroup) {
  Mounts(kV2Mounts);
  Stepd(100, "0::/system.slice/slurmd.service\n");              // proctrack without cgroups
  Stepd(101, "0::/system.slice/n1_slurmstepd.scope/system\n");  // keeps the scope open
  EXPECT_EQ(Jobs(), List{});
  EXPECT_EQ(discovery_.figures().stepds, 2U);
  EXPECT_EQ(discovery_.figures().stepds_elsewhere, 1U);
}

TEST_F(CgroupDiscoveryTest, KeepsWhatItKnowsWhenMountsCannotBeRead) {
  Mounts(kV2Mounts);
  Procs(std::string(kScope) + "job_5/step_0");
  EXPECT_EQ(Jobs().size(), 1U);
  tree_.Remove("proc/mounts");
  EXPECT_FALSE(discovery_.FindRoots());
  EXPECT_EQ(discovery_.ListJobs().size(), 1U);
}

TEST_F(CgroupDiscoveryTest, IsBoundedHoweverManyDirectoriesThereAre) {
  Mounts(kV2Mounts);
  for (const char* name : {"a", "b", "c"}) {
    for (int i = 0; i < 10; ++i) {
      Procs(fmt::format("sys/fs/cgroup/{}.slice/x{}/y", name, i));
    }
  }
  Procs(std::string(kScope) + "job_5/step_0");
  CgroupDiscovery bounded(tree_.root(), /*most_directories=*/40);
  EXPECT_TRUE(bounded.FindRoots());
  EXPECT_EQ(bounded.ListJobs().size(), 1U) << "near the mount, whatever else there is";
  EXPECT_FALSE(bounded.figures().complete);
}

TEST_F(CgroupDiscoveryTest, CountsTheTasksAndNotSlurmsOwnProcesses) {
  const std::string job = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_5";
  const auto count = [&] { return CountTasks(tree_.root(), {job}); };
  EXPECT_EQ(count(), std::nullopt);
  tree_.Write("proc/mounts", kV2Mounts);
  Procs(job.substr(1) + "/step_extern/user/task_0", "90\n");
  Procs(job.substr(1) + "/step_extern/slurm", "89\n");
  Procs(job.substr(1) + "/step_0/slurm", "91\n");
  Procs(job.substr(1) + "/step_0/user/task_0", "92\n93\n");
  EXPECT_EQ(count(), 2U);
  Procs(job.substr(1) + "/step_0/user/task_0");  // the ranks are dead, the step is held open
  EXPECT_EQ(count(), 0U);
  Procs(job.substr(1) + "/step_extern/user/task_0", "90\n99\n");  // somebody logged in
  EXPECT_EQ(count(), 1U);
  const std::string v1 = "/sys/fs/cgroup/memory/slurm/uid_7/job_6";
  Procs(v1.substr(1) + "/step_0", "91\n");  // slurmstepd
  Procs(v1.substr(1) + "/step_0/task_0", "92\n");
  EXPECT_EQ(CountTasks(tree_.root(), {v1}), 1U);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
