#include "schedulers/slurm/node/own_cgroup.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "collect/fake_tree_testing.h"

namespace expanse::schedulers::slurm {
namespace {

class OwnCgroupTest : public testing::Test {
 protected:
  std::string Read(const std::string& path) const {
    return base::ReadFile(base::JoinPath(tree_.root(), path)).value_or("?");
  }
  collect::FakeTree tree_;
};

TEST_F(OwnCgroupTest, LeavesTheJobOfAPrologThatRanInIt) {
  tree_.Write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  tree_.Write("proc/55/cgroup",
              "0::/system.slice/slurmstepd.scope/job_7/step_extern/user/task_0\n");
  tree_.Write("sys/fs/cgroup/cgroup.procs", "");
  EXPECT_EQ(LeaveJobCgroups(tree_.root(), 55).value_or(false), true);
  EXPECT_EQ(Read("sys/fs/cgroup/cgroup.procs"), "55\n");
}

TEST_F(OwnCgroupTest, LeavesEveryHierarchyOfV1ButThoseThatAreNoJobs) {
  tree_.Write("proc/mounts",
              "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
              "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
              "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n");
  tree_.Write("proc/55/cgroup",
              "6:freezer:/slurm/uid_0/job_7\n4:memory:/slurm/uid_0/job_7/step_extern\n"
              "2:cpu,cpuacct:/system.slice/slurmd.service\n");
  for (const char* name : {"freezer", "memory", "cpu,cpuacct"}) {
    tree_.Write(std::string("sys/fs/cgroup/") + name + "/cgroup.procs", "");
  }
  EXPECT_EQ(LeaveJobCgroups(tree_.root(), 55).value_or(false), true);
  EXPECT_EQ(Read("sys/fs/cgroup/freezer/cgroup.procs"), "55\n");
  EXPECT_EQ(Read("sys/fs/cgroup/memory/cgroup.procs"), "55\n");
  EXPECT_EQ(Read("sys/fs/cgroup/cpu,cpuacct/cgroup.procs"), "");
}

TEST_F(OwnCgroupTest, StaysWhereItIsInNoJob) {
  tree_.Write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  tree_.Write("proc/55/cgroup", "0::/system.slice/expanse-sampler.service\n");
  const auto left = LeaveJobCgroups(tree_.root(), 55);
  ASSERT_TRUE(left);
  EXPECT_FALSE(*left);
  tree_.Write("proc/55/cgroup", "0::/system.slice/slurmstepd.scope/job_7\n");
  EXPECT_FALSE(LeaveJobCgroups(tree_.root(), 55)) << "there is no file to write to";
}

}  // namespace
}  // namespace expanse::schedulers::slurm
