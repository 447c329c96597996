#include "collect/cgroup/collector.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/fake_tree_testing.h"
#include "collect/sink_testing.h"

namespace expanse::collect {
namespace {

using namespace std::chrono_literals;

constexpr char kGroup[] = "/sys/fs/cgroup/w";

TrackedWorkload Workload(std::string identity, std::vector<std::string> cgroups) {
  TrackedWorkload workload;
  workload.key = {evidence::SourceType::kHost, std::move(identity)};
  workload.cgroups = std::move(cgroups);
  workload.started = TickAt(-1h).wall;
  return workload;
}

// Gives up root's rights for a while: as root nothing is forbidden.
class AsNobody {
 public:
  AsNobody() : before_(::geteuid()) {
    if (before_ == 0 && ::seteuid(65534) != 0) ADD_FAILURE();
  }
  ~AsNobody() {
    if (::geteuid() != before_ && ::seteuid(before_) != 0) ADD_FAILURE();
  }

 private:
  uid_t before_;
};

class CgroupCollectorTest : public testing::Test {
 protected:
  void SetUp() override {
    tree_.Write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    tree_.Write("sys/fs/cgroup/w/cgroup.controllers", "cpu memory\n");
    tree_.Write("sys/fs/cgroup/w/cpu.stat",
                "usage_usec 1000000\nuser_usec 900000\nsystem_usec 100000\n");
    tree_.Write("sys/fs/cgroup/w/memory.stat", "anon 1000\nfile 9000\nkernel 10\nshmem 100\n");
    tree_.Write("sys/fs/cgroup/w/memory.current", "10010\n");
    tree_.Write("sys/fs/cgroup/w/io.stat", "8:0 rbytes=100 wbytes=0\n");
  }
  FakeTree tree_;
  RecordingSink sink_;
};

TEST_F(CgroupCollectorTest, GivesTheNeedOfMemoryAndRates) {
  CgroupCollector collector({tree_.root(), "n1"});
  ASSERT_TRUE(collector.Start());
  const std::vector<TrackedWorkload> workloads = {Workload("a", {kGroup})};
  collector.Collect(TickAt(0s), workloads, sink_);
  EXPECT_EQ(sink_.Value("memory", "a"), 1110.0);
  EXPECT_EQ(sink_.Value("memory-file", "a"), 8900.0);
  EXPECT_FALSE(sink_.Value("memory-limit", "a"));
  EXPECT_FALSE(sink_.Value("cpu", "a")) << "an hour's average says nothing about now";

  tree_.Write("sys/fs/cgroup/w/cpu.stat",
              "usage_usec 21000000\nuser_usec 15900000\nsystem_usec 5100000\n");
  tree_.Write("sys/fs/cgroup/w/io.stat", "8:0 rbytes=1100 wbytes=0\n");
  sink_.Clear();
  collector.Collect(TickAt(10s), workloads, sink_);
  EXPECT_DOUBLE_EQ(*sink_.Value("cpu", "a"), 2.0);
  EXPECT_DOUBLE_EQ(*sink_.Value("cpu-user", "a"), 1.5);
  EXPECT_DOUBLE_EQ(*sink_.Value("io-read", "a"), 100.0);
  EXPECT_EQ(sink_.points()[0].series.source, "cgroup");
  EXPECT_EQ(sink_.points()[0].series.unit, "cores");
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kOk);
}

TEST_F(CgroupCollectorTest, GivesAYoungWorkloadItsRateAtOnce) {
  CgroupCollector collector({tree_.root(), "n1"});
  collector.Start();
  auto workload = Workload("a", {kGroup});
  workload.started = TickAt(-500ms).wall;
  collector.Collect(TickAt(0s), {workload}, sink_);
  EXPECT_DOUBLE_EQ(*sink_.Value("cpu", "a"), 2.0) << "one second in half a second";
}

TEST_F(CgroupCollectorTest, ATickAboutSomeWorkloadsForgetsNoOther) {
  CgroupCollector collector({tree_.root(), "n1"});
  collector.Start();
  const std::vector<TrackedWorkload> old = {Workload("a", {kGroup})};
  collector.Collect(TickAt(0s), old, sink_);
  for (int i = 1; i < 10; ++i)
    collector.Collect(TickAt(i * 1s), {Workload("young", {kGroup})}, sink_);
  tree_.Write("sys/fs/cgroup/w/cpu.stat", "usage_usec 6000000\n");
  sink_.Clear();
  collector.Collect(TickAt(10s), old, sink_);
  EXPECT_DOUBLE_EQ(sink_.Value("cpu", "a").value_or(-1), 0.5);
}

TEST_F(CgroupCollectorTest, AWorkloadThatEndsIsNoFault) {
  tree_.Write("sys/fs/cgroup/v/cgroup.controllers", "cpu\n");
  tree_.Write("sys/fs/cgroup/v/cpu.stat", "usage_usec 5\n");
  // A regular file stays readable while it is open, so nothing is kept open here.
  CgroupCollector collector({tree_.root(), "n1", /*open_files=*/0});
  collector.Start();
  const std::vector<TrackedWorkload> workloads = {Workload("a", {kGroup}),
                                                  Workload("b", {"/sys/fs/cgroup/v"})};
  collector.Collect(TickAt(0s), workloads, sink_);
  tree_.Remove("sys/fs/cgroup/v");
  for (int i = 1; i < 6; ++i) collector.Collect(TickAt(i * 10s), workloads, sink_);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kOk);
  EXPECT_EQ(collector.health().figures.at("vanished"), 1);
}

TEST_F(CgroupCollectorTest, NoneFoundWhileWorkloadsRunIsAFault) {
  CgroupCollector collector({tree_.root(), "n1"});
  collector.Start();
  const std::vector<TrackedWorkload> workloads = {Workload("a", {"/sys/fs/cgroup/moved/job_7"})};
  collector.Collect(TickAt(0s), workloads, sink_);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kOk) << "it may have just ended";
  collector.Collect(TickAt(10s), workloads, sink_);
  collector.Collect(TickAt(20s), workloads, sink_);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kDegraded);
  EXPECT_EQ(collector.health().reason, "not_found");
  collector.Collect(TickAt(30s), {}, sink_);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kOk);
}

TEST_F(CgroupCollectorTest, SaysWhenItMayNotRead) {
  ASSERT_EQ(::chmod((tree_.root() + kGroup).c_str(), 0), 0);
  ASSERT_EQ(::chmod(tree_.root().c_str(), 0755), 0);
  const AsNobody nobody;
  CgroupCollector collector({tree_.root(), "n1"});
  collector.Start();
  collector.Collect(TickAt(0s), {Workload("a", {kGroup})}, sink_);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kDegraded);
  EXPECT_EQ(collector.health().reason, "no_permission");
}

TEST_F(CgroupCollectorTest, IsDisabledWithoutCgroupsAndStartsWhenTheyCome) {
  tree_.Write("proc/mounts", "proc /proc proc rw 0 0\n");
  CgroupCollector collector({tree_.root(), "n1"});
  EXPECT_FALSE(collector.Start());
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kDisabled);
  EXPECT_EQ(collector.health().reason, "not_found");
  tree_.Write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  collector.Collect(TickAt(0s), {Workload("a", {kGroup})}, sink_);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kOk);
  EXPECT_TRUE(sink_.Value("memory", "a"));
}

TEST_F(CgroupCollectorTest, AReusedIdentityWithOtherCgroupsStartsAnew) {
  tree_.Write("sys/fs/cgroup/v/cgroup.controllers", "cpu\n");
  tree_.Write("sys/fs/cgroup/v/cpu.stat", "usage_usec 999000000\n");
  CgroupCollector collector({tree_.root(), "n1"});
  collector.Start();
  collector.Collect(TickAt(0s), {Workload("a", {kGroup})}, sink_);
  sink_.Clear();
  collector.Collect(TickAt(10s), {Workload("a", {"/sys/fs/cgroup/v"})}, sink_);
  EXPECT_FALSE(sink_.Value("cpu", "a"));
}

// Two nodes of a scheduler on one host, and one job on both of them.
TEST_F(CgroupCollectorTest, KeepsTheNodesOfOneExecutionApart) {
  tree_.Write("sys/fs/cgroup/v/cgroup.controllers", "cpu\n");
  tree_.Write("sys/fs/cgroup/v/cpu.stat", "usage_usec 500000\n");
  std::vector<TrackedWorkload> workloads = {Workload("a", {kGroup}),
                                            Workload("a", {"/sys/fs/cgroup/v"})};
  workloads[0].node = "node1";
  workloads[1].node = "node2";
  CgroupCollector collector({tree_.root(), "n1"});
  ASSERT_TRUE(collector.Start());
  collector.Collect(TickAt(0s), workloads, sink_);
  tree_.Write("sys/fs/cgroup/w/cpu.stat", "usage_usec 11000000\n");
  tree_.Write("sys/fs/cgroup/v/cpu.stat", "usage_usec 5500000\n");
  sink_.Clear();
  collector.Collect(TickAt(10s), workloads, sink_);
  std::vector<double> rates;
  for (const auto& point : sink_.points()) {
    if (point.series.metric == "cpu") rates.push_back(point.value);
  }
  EXPECT_EQ(rates, (std::vector<double>{1.0, 0.5}));
}

}  // namespace
}  // namespace expanse::collect
