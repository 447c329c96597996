#include "collect/process/collector.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "collect/process/fake_process_testing.h"
#include "collect/sink_testing.h"

namespace expanse::collect {
namespace {

using namespace std::chrono_literals;

TrackedWorkload Tree(std::string identity, pid_t root) {
  TrackedWorkload workload;
  workload.key = {evidence::SourceType::kHost, std::move(identity)};
  workload.roots = {{root, 100}};
  workload.started = TickAt(-1h).wall;
  return workload;
}

class ProcessCollectorTest : public testing::Test {
 protected:
  void SetUp() override {
    tree_.Write("proc/stat", "cpu 1 1 1 1\n");
    WriteProcess(tree_, {.pid = 1, .parent = 0, .name = "init", .start = 1});
  }
  FakeTree tree_;
  RecordingSink sink_;
};

TEST_F(ProcessCollectorTest, FollowsAWorkloadWithoutCgroup) {
  WriteProcess(tree_, {.pid = 100, .user = 100, .anon_kb = 300});
  ProcessCollector collector({tree_.root(), "n1", 0});
  ASSERT_TRUE(collector.Start());
  collector.Collect(TickAt(0s), {Tree("a", 100)}, sink_);
  EXPECT_EQ(sink_.Value("memory", "a"), 300.0 * 1024);
  EXPECT_EQ(sink_.Value("pids", "a"), 2.0);
  WriteProcess(tree_, {.pid = 100, .user = 2100, .anon_kb = 300});
  sink_.Clear();
  collector.Collect(TickAt(10s), {Tree("a", 100)}, sink_);
  EXPECT_DOUBLE_EQ(*sink_.Value("cpu", "a"), 2.0);
  EXPECT_EQ(sink_.points()[0].series.source, "process");
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kOk);
}

TEST_F(ProcessCollectorTest, ATickAboutSomeWorkloadsForgetsNoOther) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  WriteProcess(tree_, {.pid = 200, .user = 100});
  ProcessCollector collector({tree_.root(), "n1", 0});
  collector.Start();
  collector.Collect(TickAt(0s), {Tree("a", 100)}, sink_);
  for (int i = 1; i < 10; ++i) collector.Collect(TickAt(i * 1s), {Tree("young", 200)}, sink_);
  WriteProcess(tree_, {.pid = 100, .user = 600});
  sink_.Clear();
  collector.Collect(TickAt(10s), {Tree("a", 100)}, sink_);
  EXPECT_DOUBLE_EQ(sink_.Value("cpu", "a").value_or(-1), 0.5);
}

TEST_F(ProcessCollectorTest, MakesTextOfTheNamesOfPrograms) {
  ProcessCollector collector({tree_.root(), "n1", 0});
  collector.Start();
  for (int i = 0; i < 2; ++i) {
    WriteProcess(tree_, {.pid = 100, .name = "a\x1b[1m\xff\x7f", .user = 1000UL * i});
    sink_.Clear();
    collector.Collect(TickAt(i * 10s), {Tree("a", 100)}, sink_);
  }
  bool found = false;
  for (const auto& point : sink_.points())
    found |= point.series.source == "process:a?[1m\uFFFD?" && point.series.metric == "process-cpu";
  EXPECT_TRUE(found);
}

TEST_F(ProcessCollectorTest, NamesTheProgramsThatUseMost) {
  WriteProcess(tree_, {.pid = 100, .name = "launcher"});
  WriteProcess(
      tree_,
      {.pid = 101, .parent = 100, .name = "train", .user = 50, .start = 101, .rss_pages = 1000});
  WriteProcess(
      tree_,
      {.pid = 102, .parent = 100, .name = "train", .user = 50, .start = 101, .rss_pages = 500});
  ProcessCollector collector({tree_.root(), "n1", 0});
  collector.Start();
  collector.Collect(TickAt(0s), {Tree("a", 100)}, sink_);
  EXPECT_FALSE(sink_.Value("process-cpu", "a", "", "process:train"));
  WriteProcess(
      tree_,
      {.pid = 101, .parent = 100, .name = "train", .user = 550, .start = 101, .rss_pages = 1000});
  WriteProcess(tree_, {.pid = 103, .parent = 100, .name = "\xff!", .user = 250, .start = 300});
  sink_.Clear();
  collector.Collect(TickAt(10s), {Tree("a", 100)}, sink_);
  EXPECT_DOUBLE_EQ(*sink_.Value("process-cpu", "a", "", "process:train"), 0.5);
  EXPECT_EQ(sink_.Value("process-memory", "a", "", "process:train"),
            1500.0 * double(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(sink_.Value("process-count", "a", "", "process:train"), 2.0);
  EXPECT_DOUBLE_EQ(*sink_.Value("process-cpu", "a", "", "process:\xEF\xBF\xBD!"), 0.25);
}

TEST_F(ProcessCollectorTest, BoundsTheNamesOfOneWorkload) {
  WriteProcess(tree_, {.pid = 100});
  ProcessCollector collector({tree_.root(), "n1", 0});
  collector.Start();
  std::set<std::string> sources;
  for (int i = 0; i < 60; ++i) {
    WriteProcess(tree_, {.pid = 200,
                         .parent = 100,
                         .name = fmt::format("job{}", i),
                         .user = 100UL * i,
                         .start = 200UL + i,
                         .rss_pages = 900});
    collector.Collect(TickAt(i * 10s), {Tree("a", 100)}, sink_);
  }
  for (const auto& point : sink_.points()) sources.insert(point.series.source);
  EXPECT_LE(sources.size(), TopPrograms::kNames + 1);
  EXPECT_GT(sources.size(), 10U);
}

TEST_F(ProcessCollectorTest, LeavesToTheCgroupWhatItMeasures) {
  WriteProcess(tree_, {.pid = 100, .user = 100, .anon_kb = 300});
  tree_.Write("sys/fs/cgroup/w/cgroup.controllers", "memory\n");
  tree_.Write("sys/fs/cgroup/w/cgroup.procs", "100\n");
  tree_.Write("sys/fs/cgroup/w/cpu.stat", "usage_usec 5\n");
  tree_.Write("sys/fs/cgroup/w/memory.stat", "anon 5\n");
  auto workload = Tree("a", 100);
  workload.cgroups = {"/sys/fs/cgroup/w"};
  ProcessCollector collector({tree_.root(), "n1", 0});
  collector.Start();
  collector.Collect(TickAt(0s), {workload}, sink_);
  collector.Collect(TickAt(10s), {workload}, sink_);
  EXPECT_FALSE(sink_.Value("memory", "a"));
  EXPECT_FALSE(sink_.Value("cpu", "a"));
  EXPECT_EQ(sink_.Value("process-count", "a"), 1.0) << "its programs are still told";
}

TEST_F(ProcessCollectorTest, FillsInForAControllerThatIsNotEnabled) {
  WriteProcess(tree_, {.pid = 100, .user = 100, .anon_kb = 300});
  tree_.Write("sys/fs/cgroup/w/cgroup.controllers", "\n");
  tree_.Write("sys/fs/cgroup/w/cpu.stat", "usage_usec 5\n");
  auto workload = Tree("a", 100);
  workload.cgroups = {"/sys/fs/cgroup/w"};
  ProcessCollector collector({tree_.root(), "n1", 0});
  collector.Start();
  collector.Collect(TickAt(0s), {workload}, sink_);
  EXPECT_EQ(sink_.Value("memory", "a"), 300.0 * 1024);
}

// Two nodes of a scheduler on one host, and one job on both of them.
TEST_F(ProcessCollectorTest, KeepsTheNodesOfOneExecutionApart) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  WriteProcess(tree_, {.pid = 200, .user = 100});
  std::vector<TrackedWorkload> workloads = {Tree("a", 100), Tree("a", 200)};
  workloads[0].node = "node1";
  workloads[1].node = "node2";
  ProcessCollector collector({tree_.root(), "n1", 0});
  collector.Start();
  collector.Collect(TickAt(0s), workloads, sink_);
  WriteProcess(tree_, {.pid = 100, .user = 1100});
  WriteProcess(tree_, {.pid = 200, .user = 600});
  sink_.Clear();
  collector.Collect(TickAt(10s), workloads, sink_);
  std::vector<double> rates;
  for (const auto& point : sink_.points()) {
    if (point.series.metric == "cpu") rates.push_back(point.value);
  }
  EXPECT_EQ(rates, (std::vector<double>{1.0, 0.5}));
}

TEST_F(ProcessCollectorTest, SaysWhenProcessesAreHidden) {
  tree_.Remove("proc/1");
  ProcessCollector collector({tree_.root(), "n1", 0});
  collector.Start();
  collector.Collect(TickAt(0s), {}, sink_);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kDegraded);
  EXPECT_EQ(collector.health().reason, "no_permission");
}

TEST_F(ProcessCollectorTest, SaysWhenMemoryIsAnUpperBound) {
  WriteProcess(tree_, {.pid = 100, .anon_kb = 300});
  WriteProcess(tree_, {.pid = 101, .parent = 100, .start = 101, .anon_kb = 300});
  ProcessCollector collector({tree_.root(), "n1", 0});
  collector.Start();
  collector.Collect(TickAt(0s), {Tree("a", 100)}, sink_);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kDegraded);
  EXPECT_EQ(collector.health().figures.at("inexact"), 1);
}

TEST_F(ProcessCollectorTest, FailsWithoutProc) {
  tree_.Remove("proc");
  ProcessCollector collector({tree_.root(), "n1", 0});
  EXPECT_FALSE(collector.Start());
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kFailed);
  EXPECT_EQ(collector.health().reason, "not_found");
}

}  // namespace
}  // namespace expanse::collect
