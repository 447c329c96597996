#include "schedulers/slurm/node/node_observer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "collect/fake_tree_testing.h"
#include "schedulers/slurm/node/node_health.h"
#include "schedulers/slurm/node/node_report.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;
using collect::TickAt;

class RecordingSink final : public EvidenceSink {
 public:
  base::Status Emit(evidence::Payload payload, base::WallTime) override {
    if (refuse) return base::Fail(base::Code::kResourceExhausted, "spool.full", "full");
    auto& seen = std::get<evidence::ExecutionObservation>(payload);
    if (seen.key.identity == too_large) {
      return base::Fail(base::Code::kInvalidArgument, "spool.record_too_large", "too large");
    }
    reports.push_back(seen);
    return {};
  }
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const auto& seen : reports) {
      const auto report = ReadReport(seen);
      EXPECT_TRUE(report);
      lines.push_back(seen.key.identity + " " + seen.execution.labels.at("slurm.report"));
    }
    return lines;
  }
  bool refuse = false;
  std::string too_large;
  std::vector<evidence::ExecutionObservation> reports;
};

class NodeObserverTest : public testing::Test {
 protected:
  void SetUp() override {
    tree_.Write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    ASSERT_TRUE(base::MakeDirectories(hooks_, 0700));
  }
  void Event(const std::string& kind, int job) {
    std::string bytes;
    for (const std::string& field : {std::string("expanse-hook 1"), kind,
                                     "SLURM_JOB_ID=" + std::to_string(job), std::string("end")}) {
      bytes += field + '\0';
    }
    ASSERT_TRUE(base::WriteFileAtomically(
        base::JoinPath(hooks_, kind + "." + std::to_string(job) + ".n"), bytes, 0644));
  }
  void Cgroup(const std::string& job) {
    const std::string at = "sys/fs/cgroup/system.slice/slurmstepd.scope/" + job;
    tree_.Write(at + "/cgroup.controllers", "cpu\n");
    tree_.Write(at + "/cpu.stat", "usage_usec 3000000\n");
  }
  std::size_t EventsLeft() const { return base::ListDirectory(hooks_)->size(); }
  evidence::HealthRow Row(const std::string& name) const {
    for (const auto& row : observer_.health()) {
      if (row.collector == name) return row;
    }
    return {};
  }

  collect::FakeTree tree_;
  const std::string hooks_ = base::JoinPath(tree_.root(), "run/expanse/hooks");
  NodeObserver observer_{{.hook_directory = hooks_, .jobs = {.root = tree_.root()}}};
  RecordingSink sink_;
  using List = std::vector<std::string>;
};

TEST_F(NodeObserverTest, ReportsAJobFromItsPrologToItsLastUsage) {
  Event("prolog", 5);
  Cgroup("job_5");
  observer_.Observe(TickAt(0s), sink_);
  ASSERT_EQ(observer_.running().size(), 1U);
  EXPECT_EQ(observer_.running()[0].key.identity, "job:5");
  EXPECT_EQ(observer_.running()[0].cgroups.size(), 1U);
  EXPECT_EQ(sink_.Lines(), List{"job:5 began"});
  EXPECT_EQ(EventsLeft(), 0U);
  EXPECT_TRUE(observer_.busy());
  tree_.Remove("sys/fs/cgroup/system.slice/slurmstepd.scope/job_5");
  Event("epilog", 5);
  observer_.Observe(TickAt(1s), sink_);
  EXPECT_EQ(sink_.Lines(), (List{"job:5 began", "job:5 ended", "job:5 last_usage"}));
  EXPECT_EQ(sink_.reports[2].execution.used.cpu_s, 3.0);
  EXPECT_TRUE(observer_.running().empty());
  observer_.Observe(TickAt(2s), sink_);
  EXPECT_FALSE(observer_.busy());
  EXPECT_EQ(sink_.reports.size(), 3U);
}

TEST_F(NodeObserverTest, OffersAgainWhatWasRefused) {
  Event("prolog", 5);
  Event("prolog", 6);
  Cgroup("job_5");
  sink_.refuse = true;
  observer_.Observe(TickAt(0s), sink_);
  tree_.Remove("sys/fs/cgroup/system.slice/slurmstepd.scope/job_5");
  observer_.Observe(TickAt(1s), sink_);
  EXPECT_EQ(EventsLeft(), 2U);
  sink_.refuse = false;
  observer_.Observe(TickAt(2s), sink_);
  EXPECT_EQ(sink_.Lines(), (List{"job:5 began", "job:6 began", "job:5 last_usage"}));
  EXPECT_EQ(EventsLeft(), 0U);
}

TEST_F(NodeObserverTest, IsNotHeldUpByARecordThatNobodyCanTake) {
  Event("prolog", 5);
  Event("prolog", 6);
  sink_.too_large = "job:5";
  observer_.Observe(TickAt(0s), sink_);
  EXPECT_EQ(sink_.Lines(), List{"job:6 began"});
  EXPECT_EQ(EventsLeft(), 0U);
}

TEST_F(NodeObserverTest, SaysHowItIs) {
  Event("prolog", 5);
  Cgroup("job_5");
  observer_.Observe(TickAt(0s), sink_);
  EXPECT_EQ(Row("slurm_jobs").status, evidence::HealthStatus::kOk);
  EXPECT_EQ(Row("slurm_jobs").figures.at("jobs"), 1);
  EXPECT_EQ(Row("slurm_hooks").status, evidence::HealthStatus::kOk);
  EXPECT_EQ(Row("slurm_hooks").figures.at("events"), 1);
  ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(hooks_, "prolog.7.n"), "junk", 0644));
  observer_.Observe(TickAt(100h), sink_);
  EXPECT_EQ(Row("slurm_hooks").reason, "quarantined");
  ASSERT_EQ(::chmod(hooks_.c_str(), 0777), 0);
  observer_.Observe(TickAt(101h), sink_);
  EXPECT_EQ(Row("slurm_hooks").reason, "hook.untrusted");
  tree_.Remove("proc/mounts");
  observer_.Observe(TickAt(102h), sink_);
  EXPECT_EQ(Row("slurm_jobs").reason, "unreadable");
}

// Slurm was told to keep track of processes without cgroups: nothing can be sampled, and that must
// be seen. A step that only just began is no alarm.
TEST_F(NodeObserverTest, RaisesTheAlarmWhenStepsRunAndNoJobIsFound) {
  tree_.Write("proc/9/comm", "slurmstepd\n");
  tree_.Write("proc/9/cgroup", "0::/system.slice/slurmd.service\n");
  observer_.Observe(TickAt(0s), sink_);
  observer_.Observe(TickAt(31s), sink_);
  EXPECT_EQ(Row("slurm_jobs").status, evidence::HealthStatus::kOk);
  observer_.Observe(TickAt(62s), sink_);
  EXPECT_EQ(Row("slurm_jobs").status, evidence::HealthStatus::kFailed);
  EXPECT_EQ(Row("slurm_jobs").reason, "no_cgroups");
}

}  // namespace
}  // namespace expanse::schedulers::slurm
