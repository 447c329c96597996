#include "daemon/node_sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "collect/cgroup/collector.h"
#include "collect/fake_tree_testing.h"
#include "daemon/spool/segment_evidence.h"
#include "daemon/spool/segment_format.h"
#include "schedulers/slurm/files/assignment.h"
#include "schedulers/slurm/node/node_report.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;
namespace slurm = schedulers::slurm;

class NodeSamplerTest : public testing::Test {
 protected:
  void SetUp() override {
    tree_.Write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    tree_.Write("proc/stat", "cpu 0 0 0 0\n");
    ASSERT_TRUE(base::MakeDirectories(Path("srv/spool"), 0755));
    ASSERT_TRUE(base::MakeDirectories(Path("run/hooks"), 0700));
  }
  std::string Path(const std::string& path) const { return base::JoinPath(tree_.root(), path); }
  std::unique_ptr<NodeSampler> Create(std::chrono::milliseconds idle = 0ms) {
    NodeSamplerOptions options;
    options.end_when_idle_for = idle;
    options.sampler.node = "reed07";
    options.observer = {.hook_directory = Path("run/hooks"), .jobs = {.root = tree_.root()}};
    options.writer = {.queue_directory = Path("run/hooks/queue"),
                      .spool = Path("srv/spool"),
                      .host = "reed07",
                      .version = "1.2.3",
                      .own_thread = false};
    if (assigned_) {
      options.files.assignments = {
          .directory = Path("srv/assign"), .spool = Path("srv/spool"), .host = "reed07"};
      options.files.user = [](uid_t) -> base::Result<collect::UserIdentity> {
        return collect::UserIdentity{.uid = ::geteuid(), .gid = ::getegid(), .groups = {}};
      };
    }
    std::vector<SamplerSource> sources;
    sources.push_back({.collector = std::make_unique<collect::CgroupCollector>(
                           collect::HostView{.root = tree_.root(), .node = "reed07"}),
                       .in_young_rounds = true});
    auto sampler = NodeSampler::Create(std::move(options), std::move(sources),
                                       {{.collector = "privileges",
                                         .status = evidence::HealthStatus::kOk,
                                         .checked_at = clock_.Now()}},
                                       files_, clock_);
    EXPECT_TRUE(sampler) << sampler.error().message;
    return sampler ? std::move(*sampler) : nullptr;
  }
  void Prolog(int job) {
    std::string bytes;
    for (const std::string& field : {std::string("expanse-hook 1"), std::string("prolog"),
                                     "SLURM_JOB_ID=" + std::to_string(job), std::string("end")}) {
      bytes += field + '\0';
    }
    ASSERT_TRUE(base::WriteFileAtomically(
        Path("run/hooks/prolog." + std::to_string(job) + ".reed07"), bytes, 0644));
  }
  void Job(int job, double cpu_s) {
    const std::string at =
        "sys/fs/cgroup/system.slice/slurmstepd.scope/job_" + std::to_string(job) + "/";
    tree_.Write(at + "cgroup.controllers", "cpu\n");
    tree_.Write(at + "cpu.stat", "usage_usec " + std::to_string(std::uint64_t(cpu_s * 1e6)) + "\n");
  }
  void EndOfJob(int job) {
    tree_.Remove("sys/fs/cgroup/system.slice/slurmstepd.scope/job_" + std::to_string(job));
  }
  // All that was left in the spool, as the controller takes it.
  struct Shipped {
    std::vector<std::string> reports;
    std::vector<double> cpu;  // of job 5
    std::vector<std::string> tails;
    evidence::HealthReport status;
  };
  Shipped Take() {
    Shipped shipped;
    const std::string directory = Path("srv/spool/reed07");
    const auto names = base::ListDirectory(directory);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      auto segment = spool::DecodeSegment(*base::ReadFile(base::JoinPath(directory, name)));
      EXPECT_TRUE(segment) << segment.error().message;
      auto evidence = spool::TakeEvidence(std::move(*segment), "reed07");
      EXPECT_TRUE(evidence) << evidence.error().message;
      if (!evidence) continue;
      for (const evidence::Record& record : evidence->records) {
        if (const auto* seen = std::get_if<evidence::ExecutionObservation>(&record.payload)) {
          if (seen->execution.labels.empty()) continue;  // notes about its files
          const auto report = slurm::ReadReport(*seen);
          EXPECT_TRUE(report);
          shipped.reports.push_back(seen->key.identity + " " +
                                    seen->execution.labels.at("slurm.report"));
        }
        if (const auto* tail = std::get_if<evidence::LogTail>(&record.payload))
          shipped.tails.push_back(tail->key.identity + " " + tail->stream + ": " + tail->data);
        const auto* batch = std::get_if<evidence::SampleBatch>(&record.payload);
        if (batch == nullptr || !batch->key || batch->key->identity != "job:5") continue;
        for (const auto& column : batch->columns) {
          EXPECT_EQ(column.node, "reed07");
          if (column.metric != "cpu") continue;
          shipped.cpu.insert(shipped.cpu.end(), column.values.begin(), column.values.end());
        }
      }
      if (evidence->status) shipped.status = *evidence->status;
    }
    return shipped;
  }

  collect::FakeTree tree_;
  base::FakeClock clock_;
  SystemFileIo files_;
  bool assigned_ = false;
};

TEST_F(NodeSamplerTest, LeavesInTheSpoolWhatHappenedOnTheNode) {
  auto sampler = Create();
  sampler->Start();
  Prolog(5);
  for (int s = 0; s < 30; ++s) {
    Job(5, 2.0 * s);
    EXPECT_TRUE(sampler->Step());
    clock_.Advance(1s);
  }
  EndOfJob(5);
  EXPECT_TRUE(sampler->Step());
  EXPECT_TRUE(sampler->Stop());
  const Shipped shipped = Take();
  EXPECT_EQ(shipped.reports, (std::vector<std::string>{"job:5 began", "job:5 last_usage"}));
  ASSERT_FALSE(shipped.cpu.empty());
  EXPECT_DOUBLE_EQ(shipped.cpu.back(), 2.0);
  EXPECT_EQ(base::ListDirectory(Path("run/hooks"))->size(), 1U) << "the queue alone";
  std::vector<std::string> rows;
  for (const auto& row : shipped.status.rows) rows.push_back(row.collector);
  for (const char* wanted : {"cgroup", "sampler", "slurm_jobs", "slurm_hooks", "privileges"}) {
    EXPECT_NE(std::ranges::find(rows, wanted), rows.end()) << wanted;
  }
}

TEST_F(NodeSamplerTest, KeepsEventsWhileTheSharedDirectoryIsAway) {
  tree_.Remove("srv");
  auto sampler = Create();
  sampler->Start();
  Prolog(5);
  for (int s = 0; s < 20; ++s) {
    EXPECT_TRUE(sampler->Step());
    clock_.Advance(1s);
  }
  ASSERT_TRUE(base::MakeDirectories(Path("srv/spool"), 0755));
  for (int s = 0; s < 90; ++s) {
    EXPECT_TRUE(sampler->Step());
    clock_.Advance(1s);
  }
  EXPECT_TRUE(sampler->Stop());
  EXPECT_EQ(Take().reports, std::vector<std::string>{"job:5 began"});
}

TEST_F(NodeSamplerTest, EndsByItselfOnlyWhenToldSo) {
  auto forever = Create();
  forever->Start();
  clock_.Advance(100h);
  EXPECT_TRUE(forever->Step());
  forever.reset();

  auto sampler = Create(/*idle=*/60s);
  sampler->Start();
  Job(5, 1);
  EXPECT_TRUE(sampler->Step());
  clock_.Advance(90s);
  EXPECT_TRUE(sampler->Step()) << "a job runs";
  EndOfJob(5);
  EXPECT_TRUE(sampler->Step());
  clock_.Advance(59s);
  EXPECT_TRUE(sampler->Step());
  clock_.Advance(1s);
  EXPECT_FALSE(sampler->Step());
}

TEST_F(NodeSamplerTest, FollowsTheOutputThatTheControllerAssigned) {
  assigned_ = true;
  const std::string output = Path("home/out.txt");
  ASSERT_TRUE(base::MakeDirectories(Path("home"), 0755));
  ASSERT_TRUE(base::WriteFileAtomically(output, "epoch 1\n", 0644));
  ASSERT_TRUE(base::MakeDirectories(Path("srv/assign"), 0700));
  ASSERT_TRUE(base::WriteFileAtomically(
      Path("srv/assign/reed07"),
      slurm::EncodeAssignments("reed07", {{.job_id = 5, .uid = 1001, .stdout_path = output}}),
      0600));
  Job(5, 1);
  auto sampler = Create();
  ASSERT_TRUE(sampler);
  sampler->Start();
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  // The thread looks whenever the clock moves.
  const auto await = [&](const std::string& wanted) {
    while (std::chrono::steady_clock::now() < deadline) {
      clock_.Advance(1s);
      EXPECT_TRUE(sampler->Step());
      const auto tails = Take().tails;
      if (std::ranges::find(tails, wanted) != tails.end()) return true;
    }
    return false;
  };
  EXPECT_TRUE(await("job:5 stdout: epoch 1\n"));
  // Its end is seen here, whatever the controller says: the unfinished line comes too.
  ASSERT_TRUE(base::WriteFileAtomically(output, "epoch 1\nepoch 2, and out", 0644));
  EndOfJob(5);
  EXPECT_TRUE(await("job:5 stdout: epoch 1\nepoch 2, and out"));
  const auto rows = Take().status.rows;
  EXPECT_TRUE(std::ranges::any_of(rows, [](const auto& r) { return r.collector == "job_files"; }));
  EXPECT_TRUE(sampler->Stop());
}

}  // namespace
}  // namespace expanse::daemon
