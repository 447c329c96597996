#include "schedulers/slurm/observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "schedulers/slurm/fake_slurm_testing.h"
#include "schedulers/slurm/node/node_report.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;
using evidence::ExecutionStatus;
using evidence::HealthStatus;
using testing::ElementsAre;

// What the data plane would have: observations of a run merged.
class MergingSink final : public EvidenceSink {
 public:
  base::Status Emit(evidence::Payload payload, base::WallTime) override {
    if (refuses) return base::Fail(base::Code::kResourceExhausted, "outbox.full", "full");
    if (const auto* seen = std::get_if<evidence::ExecutionObservation>(&payload)) {
      if (seen->execution.status != ExecutionStatus::kUnspecified) ++count;
      auto& known = runs[seen->key.identity];
      known = evidence::Merge(std::move(known), seen->execution);
    }
    return {};
  }
  bool refuses = false;
  std::size_t count = 0;  // of what was told of states; notes on files are told again
  std::map<std::string, evidence::Execution> runs;  // by identity
};

class Observing : public testing::Test {
 protected:
  Observing() {
    options.state_directory = base::JoinPath(directory->path(), "slurm");
    options.host = "head1";
    options.node.root = directory->path();  // no cgroups of jobs
    EXPECT_TRUE(base::MakeDirectories(base::JoinPath(directory->path(), "/sys/fs/cgroup")));
    EXPECT_TRUE(base::MakeDirectories(base::JoinPath(directory->path(), "/proc")));
    EXPECT_TRUE(base::WriteFileAtomically(base::JoinPath(directory->path(), "/proc/mounts"),
                                          "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", 0644));
    options.files.switches = {
        .logs = false, .sources = false, .exclude_accounts = {}, .exclude_users = {}};
    Start();
  }

  void Start() {
    observer = std::make_unique<SlurmObserver>(
        options, clock,
        SlurmObserverParts{.runner = slurm.runner(),
                           .controller_lane = std::make_unique<InlineLane>(),
                           .accounting_lane = std::make_unique<InlineLane>(),
                           .files_lane = std::make_unique<InlineLane>()});
    ASSERT_TRUE(observer->Start());
  }
  void Restart() {
    observer->Stop();
    observer.reset();
    Start();
  }
  // The daemon looks once a second.
  void Pass(std::chrono::seconds time) {
    for (auto left = time; left > 0s; left -= 1s) {
      clock.Advance(1s);
      observer->Observe({.wall = clock.Now(), .mono = clock.Mono()}, sink);
    }
  }
  // A sampler's report of a Prolog or Epilog.
  void Hook(HookKind kind, std::uint32_t job_id, std::string node = "fir07") {
    HookEvent event;
    event.kind = kind;
    event.job_id = job_id;
    event.node = node;
    event.at = clock.Now();
    EXPECT_TRUE(observer->OnLifecycle(MakeReport(event), node, clock.Now()));
  }
  std::int64_t Now() {
    return std::chrono::floor<std::chrono::seconds>(clock.Now()).time_since_epoch().count();
  }
  std::string Identity(std::uint32_t id, std::int64_t submitted) {
    return "aurora/" + std::to_string(id) + "@" + std::to_string(submitted);
  }
  const evidence::Execution& Run(std::uint32_t id, std::int64_t submitted) {
    return sink.runs[Identity(id, submitted)];
  }
  // The only run of a job.
  const evidence::Execution& Run(std::uint32_t id) {
    const std::string begin = "aurora/" + std::to_string(id) + "@";
    const evidence::Execution* found = nullptr;
    for (const auto& [identity, run] : sink.runs) {
      if (!identity.starts_with(begin)) continue;
      EXPECT_EQ(found, nullptr) << "several runs of " << id;
      found = &run;
    }
    static const evidence::Execution kNone;
    return found == nullptr ? kNone : *found;
  }
  evidence::HealthRow Row(std::string_view name) {
    for (evidence::HealthRow& row : observer->health()) {
      if (row.collector == name) return std::move(row);
    }
    ADD_FAILURE() << "no row " << name;
    return {};
  }

  base::Result<base::TempDir> directory = base::TempDir::Create();
  base::FakeClock clock;
  FakeSlurm slurm{clock};
  MergingSink sink;
  SlurmObserverOptions options;
  std::unique_ptr<SlurmObserver> observer;
};

TEST_F(Observing, AJobFromSubmitToItsFinalRecord) {
  slurm.Submit(41, {{QueueField::kName, "a|b\n\"c\""}});
  Pass(31s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kQueued);
  EXPECT_EQ(Run(41).name, "a|b\n\"c\"");
  EXPECT_EQ(Run(41).native_reason, "Priority");
  slurm.Begin(41);
  Pass(30s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kRunning);
  EXPECT_THAT(Run(41).nodes, ElementsAre("fir07"));
  slurm.HoldAccounting(true);
  slurm.End(41, "FAILED", 3 << 8);
  Pass(30s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kFailed);
  EXPECT_EQ(Run(41).exit_code, 3);
  EXPECT_FALSE(Run(41).used.cpu_s) << "squeue does not tell that";
  slurm.HoldAccounting(false);
  Pass(60s);
  EXPECT_DOUBLE_EQ(Run(41).used.cpu_s.value_or(0), 190.5);
  EXPECT_EQ(Row("slurm_squeue").status, HealthStatus::kOk);
  EXPECT_EQ(Row("slurm_sacct").figures["awaiting_final"], 0);
}

TEST_F(Observing, FewCommandsWhileNothingHappens) {
  slurm.Submit(41);
  Pass(60s);
  slurm.runner()->commands.clear();
  Pass(600s);
  EXPECT_LE(slurm.runner()->commands.size(), 40U) << "four a minute";
  EXPECT_GE(slurm.runner()->CountOf(Program::kSqueue), 19U);
  EXPECT_GE(slurm.runner()->CountOf(Program::kSacct), 9U);
  const evidence::HealthRow cost = Row("slurm_cost");
  EXPECT_LE(cost.figures.at("commands_per_minute"), 4.0);
  EXPECT_EQ(cost.status, HealthStatus::kOk);
}

TEST_F(Observing, HooksMakeItPrompt) {
  Pass(40s);  // the next listing is in some twenty seconds
  slurm.Submit(41);
  slurm.Begin(41);
  Hook(HookKind::kProlog, 41);
  Pass(2s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kRunning);
  EXPECT_EQ(Run(41).name, "sweep");
  slurm.End(41);
  Hook(HookKind::kEpilog, 41);
  Pass(2s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kSucceeded);
}

TEST_F(Observing, LookUpsOfOneSecondAreOneCommand) {
  Pass(40s);
  for (std::uint32_t id = 1; id <= 40; ++id) {
    slurm.Submit(id);
    slurm.Begin(id);
    Hook(HookKind::kProlog, id);
  }
  Pass(2s);
  EXPECT_EQ(slurm.Count(Program::kSqueue, "--jobs="), 1U);
  for (std::uint32_t id = 1; id <= 40; ++id)
    EXPECT_EQ(Run(id).status, ExecutionStatus::kRunning) << id;
}

TEST_F(Observing, ASlowSlurmctldIsNotLookedUp) {
  slurm.latency = 3000ms;
  Pass(90s);
  slurm.Submit(41);
  slurm.Begin(41);
  Hook(HookKind::kProlog, 41);
  Pass(5s);
  EXPECT_EQ(slurm.Count(Program::kSqueue, "--jobs="), 0U);
  Pass(60s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kRunning) << "by the next listing";
  EXPECT_EQ(Row("slurm_cost").reason, "backed_off");
}

TEST_F(Observing, EveryRunOfAPreemptedJobIsKept) {
  slurm.Submit(41);
  slurm.Begin(41);
  const std::int64_t first = Now();
  Pass(31s);
  slurm.Requeue(41, "PREEMPTED");
  const std::int64_t second = Now();
  Pass(31s);
  slurm.Begin(41);
  Pass(60s);
  slurm.End(41);
  Pass(120s);
  EXPECT_EQ(Run(41, first).native_state, "PREEMPTED");
  EXPECT_TRUE(Run(41, first).ended_at);
  EXPECT_EQ(Run(41, second).status, ExecutionStatus::kSucceeded);
  EXPECT_EQ(Run(41, second).restart_count, 1U);
  EXPECT_EQ(sink.runs.size(), 2U);
}

TEST_F(Observing, ARecycledIdIsAnotherRun) {
  slurm.Submit(41);
  slurm.Begin(41);
  const std::int64_t first = Now();
  Pass(31s);
  slurm.End(41);
  Pass(700s);
  slurm.Submit(41, {{QueueField::kUserName, "otto"}});
  const std::int64_t second = Now();
  Pass(61s);
  EXPECT_EQ(Run(41, first).status, ExecutionStatus::kSucceeded);
  EXPECT_EQ(Run(41, first).user, "mira");
  EXPECT_EQ(Run(41, second).status, ExecutionStatus::kQueued);
  EXPECT_EQ(Run(41, second).user, "otto");
  // A cgroup of the id belongs to whichever run it was then.
  const evidence::ExecutionKey local = LocalKey({.job_id = 41, .sluid = {}});
  EXPECT_EQ(observer->Resolve(local, clock.Now(), "fir07")->identity, Identity(41, second));
  EXPECT_EQ(
      observer->Resolve(local, base::WallTime(std::chrono::seconds(first + 10)), "fir07")->identity,
      Identity(41, first));
}

TEST_F(Observing, ArraysAndHetJobs) {
  using enum QueueField;
  slurm.Submit(50, {{kJobArrayId, "50_[0-3%2]"}});
  slurm.Submit(60, {{kJobArrayId, "60+0"}});
  slurm.Submit(61, {{kJobArrayId, "60+1"}});
  Pass(31s);
  EXPECT_EQ(Run(50).native_id, "50_[0-3%2]");
  EXPECT_EQ(Run(50).status, ExecutionStatus::kQueued);
  EXPECT_EQ(Run(61).native_id, "60+1");
  EXPECT_EQ(Run(61).parent_native_id, "60");
  // Tasks get raw ids of their own; the last one keeps that of the array.
  const std::string submitted = slurm.row(50)[kSubmitTime];
  for (std::uint32_t task = 0; task < 3; ++task) {
    slurm.Submit(51 + task,
                 {{kJobArrayId, "50_" + std::to_string(task)}, {kSubmitTime, submitted}});
    slurm.Begin(51 + task);
  }
  slurm.row(50)[kJobArrayId] = "50_3";
  Pass(30s);
  slurm.Begin(50);
  Pass(30s);
  EXPECT_EQ(Run(50).native_id, "50_3");
  EXPECT_EQ(Run(50).status, ExecutionStatus::kRunning);
  EXPECT_EQ(Run(52).native_id, "50_1");
  EXPECT_EQ(Run(52).parent_native_id, "50");
}

TEST_F(Observing, AnHourWithoutSlurmdbdCostsNothingButTime) {
  Pass(61s);
  slurm.SetSlurmdbd(false);
  for (std::uint32_t id = 1; id <= 3; ++id) slurm.Submit(id);
  Pass(31s);
  for (std::uint32_t id = 1; id <= 3; ++id) slurm.Begin(id);
  Pass(31s);
  slurm.End(1);
  Pass(40s);
  // Too short for any listing to see: accounting alone will know it.
  slurm.Submit(9);
  slurm.Begin(9);
  slurm.End(9, "CANCELLED");
  slurm.Lose(9);
  Pass(3600s);
  EXPECT_EQ(Run(1).status, ExecutionStatus::kSucceeded) << "squeue told it";
  EXPECT_EQ(Row("slurm_sacct").status, HealthStatus::kFailed);
  EXPECT_EQ(Row("slurm_sacct").reason, "unreachable");
  EXPECT_EQ(Row("slurm_squeue").status, HealthStatus::kOk);
  slurm.HoldAccounting(true);
  slurm.SetSlurmdbd(true);
  slurm.HoldAccounting(false);
  Pass(960s);
  EXPECT_DOUBLE_EQ(Run(1).used.cpu_s.value_or(0), 190.5);
  EXPECT_EQ(Run(9).status, ExecutionStatus::kCancelled);
  EXPECT_EQ(Run(2).status, ExecutionStatus::kRunning);
  EXPECT_EQ(Row("slurm_sacct").status, HealthStatus::kOk);
}

TEST_F(Observing, RecordsThatReachSlurmdbdLateAreReadToo) {
  Pass(61s);
  slurm.SetSlurmdbd(false);
  slurm.Submit(9);
  slurm.Begin(9);
  slurm.End(9);
  slurm.Lose(9);
  Pass(1800s);
  slurm.HoldAccounting(true);
  slurm.SetSlurmdbd(true);
  Pass(620s);  // the window that reaches back to the outage is read, and finds nothing
  EXPECT_EQ(Run(9).status, ExecutionStatus::kUnspecified);
  slurm.HoldAccounting(false);
  Pass(700s);
  EXPECT_EQ(Run(9).status, ExecutionStatus::kSucceeded);
}

TEST_F(Observing, WithoutSlurmctldJobsStayWhatTheyWere) {
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(31s);
  slurm.slurmctld_is_up = false;
  Pass(1800s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kRunning);
  EXPECT_EQ(Row("slurm_squeue").status, HealthStatus::kFailed);
  EXPECT_EQ(Row("slurm_squeue").reason, "unreachable");
  slurm.End(41);
  slurm.slurmctld_is_up = true;
  Pass(200s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kSucceeded);
  EXPECT_EQ(Row("slurm_squeue").status, HealthStatus::kOk);
}

TEST_F(Observing, AnEmptyAnswerIsNotBelievedAtOnce) {
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(31s);
  slurm.lies_empty = true;
  Pass(30s);
  EXPECT_EQ(Row("slurm_squeue").reason, "empty");
  EXPECT_EQ(Row("slurm_jobs").figures["running"], 1);
  slurm.lies_empty = false;
  Pass(30s);
  EXPECT_EQ(Row("slurm_squeue").reason, "");
  EXPECT_EQ(Row("slurm_jobs").figures["lost"], 0);
}

TEST_F(Observing, WhatSlurmForgotEndsUnknownAndSaysSo) {
  slurm.Submit(41);
  slurm.Submit(42);
  slurm.Begin(41);
  Pass(31s);
  slurm.Lose(41);
  Pass(300s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kRunning);
  EXPECT_GE(slurm.Count(Program::kSacct, "--jobs=41"), 1U);
  Pass(400s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kUnknown);
  EXPECT_FALSE(Run(41).capture_notes.empty());
  EXPECT_EQ(Run(42).status, ExecutionStatus::kQueued);
}

TEST_F(Observing, ADaemonThatWasAwayCatchesUp) {
  slurm.Submit(1);
  slurm.Submit(2);
  slurm.Submit(3);
  slurm.Begin(1);
  slurm.Begin(2);
  Pass(61s);
  const std::size_t before = sink.count;
  Restart();
  Pass(61s);
  EXPECT_EQ(sink.count, before) << "nothing is told twice";
  observer->Stop();
  slurm.End(1, "TIMEOUT");
  clock.Advance(1h);
  slurm.Submit(4);
  slurm.Begin(4);
  slurm.End(4);
  slurm.Begin(3);
  clock.Advance(1h);
  slurm.Submit(5);
  observer.reset();
  Start();
  Pass(121s);
  EXPECT_EQ(Run(1).outcome, evidence::Outcome::kTimeout) << "gone from squeue long ago";
  EXPECT_EQ(Run(2).status, ExecutionStatus::kRunning);
  EXPECT_EQ(Run(3).status, ExecutionStatus::kRunning);
  EXPECT_EQ(Run(4).status, ExecutionStatus::kSucceeded) << "came and went meanwhile";
  EXPECT_EQ(Run(5).status, ExecutionStatus::kQueued);
}

TEST_F(Observing, AfterDaysAwayWindowsAreReadInPieces) {
  Pass(61s);
  observer->Stop();
  slurm.Submit(4);
  slurm.Begin(4);
  slurm.End(4);
  clock.Advance(std::chrono::hours(60));
  observer.reset();
  Start();
  slurm.runner()->commands.clear();
  Pass(60s);
  EXPECT_EQ(Run(4).status, ExecutionStatus::kSucceeded);
  EXPECT_GE(slurm.Count(Program::kSacct, "--starttime="), 10U);
}

TEST_F(Observing, WindowsThatSlurmdbdDoesNotGetThroughAreMadeShorter) {
  Pass(61s);
  observer->Stop();
  slurm.Submit(4);
  slurm.Begin(4);
  slurm.End(4);
  clock.Advance(std::chrono::hours(20));
  slurm.longest_window_s = 2700;
  observer.reset();
  Start();
  Pass(7200s);
  EXPECT_EQ(Run(4).status, ExecutionStatus::kSucceeded);
  EXPECT_LT(Row("slurm_sacct").figures["behind_s"], 900);
}

// What each look at all jobs takes leaves no share for single ones.
TEST_F(Observing, LostRunsAreAskedForAlsoWhereNothingCanBeAfforded) {
  slurm.latency = 3000ms;
  slurm.Submit(41);
  slurm.Submit(42);
  slurm.Begin(41);
  Pass(120s);
  slurm.Lose(41);
  Pass(560s);
  EXPECT_GE(slurm.Count(Program::kSacct, "--jobs=41"), 1U);
  EXPECT_EQ(slurm.Count(Program::kSqueue, "--jobs="), 0U);
}

TEST_F(Observing, AFullOutboxIsNoReasonToGrow) {
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(31s);
  sink.refuses = true;
  evidence::Usage usage;
  for (int i = 1; i <= 5000; ++i) {
    usage.cpu_s = i;
    EXPECT_TRUE(observer->OnLifecycle(
        MakeUsageReport({.job_id = 41, .sluid = {}}, "fir07", usage, /*last=*/false), "fir07",
        clock.Now()));
  }
  Pass(5s);
  EXPECT_THAT(Row("slurm_jobs").message, testing::StartsWith("1000 records wait"));
  sink.refuses = false;
  Pass(30s);
  EXPECT_EQ(Run(41).used.cpu_s, 5000.0) << "the last word";
}

TEST_F(Observing, TheEndOfAllJobsIsNoFailure) {
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(31s);
  slurm.End(41);
  for (int i = 0; i < 500; ++i) {
    Pass(1s);
    EXPECT_EQ(Row("slurm_squeue").reason, "") << i;
  }
}

// A Prolog of another cluster's node on this host: its job has the id of one of ours that waits.
TEST_F(Observing, AnotherClustersHookStartsNoJobOfOurs) {
  slurm.Submit(41);
  Pass(31s);
  Hook(HookKind::kProlog, 41, "oak01");
  Pass(2s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kQueued);
  Hook(HookKind::kProlog, 41, "fir07");
  Pass(2s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kRunning);
}

TEST_F(Observing, AFullOutboxLosesNothing) {
  sink.refuses = true;
  slurm.Submit(41);
  Pass(31s);
  EXPECT_EQ(Row("slurm_jobs").reason, "outbox_refuses");
  slurm.Begin(41);
  Pass(120s);
  Restart();  // what was not taken is not remembered as told
  sink.refuses = false;
  Pass(31s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kRunning);
  EXPECT_EQ(Row("slurm_jobs").reason, "");
}

TEST_F(Observing, WithoutAccountingSqueueIsFinal) {
  slurm.has_accounting = false;
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(31s);
  slurm.End(41, "NODE_FAIL");
  Pass(700s);
  EXPECT_EQ(Run(41).native_state, "NODE_FAIL");
  EXPECT_EQ(slurm.runner()->CountOf(Program::kSacct), 0U);
  EXPECT_EQ(Row("slurm_sacct").status, HealthStatus::kDisabled);
}

TEST_F(Observing, UsageOfNodesIsAddedUp) {
  using enum QueueField;
  slurm.Submit(41);
  slurm.Begin(41);
  slurm.row(41)[kNodeList] = "fir[07-08]";
  slurm.row(41)[kNumNodes] = "2";
  slurm.row(41)[kTresAlloc] = "cpu=4,mem=8G,node=2,billing=4";
  evidence::Usage usage;
  usage.cpu_s = 10;
  usage.memory_peak_bytes = 1000;
  usage.memory_peak_basis = "cgroup_peak";
  const auto report = [&](const char* node) {
    return MakeUsageReport({.job_id = 41, .sluid = {}}, node, usage, /*last=*/false);
  };
  // Before any listing: kept until the job is known.
  EXPECT_TRUE(observer->OnLifecycle(report("fir07"), "fir07", clock.Now()));
  Pass(31s);
  EXPECT_EQ(Run(41).used.cpu_s, std::nullopt) << "half of it is no total";
  EXPECT_TRUE(observer->OnLifecycle(report("fir08"), "fir08", clock.Now()));
  Pass(1s);
  EXPECT_EQ(Run(41).used.cpu_s, 20.0);
  EXPECT_EQ(Run(41).used.memory_peak_bytes, 2000U);
}

// Whoever drains what samplers left meanwhile has no row of the job yet, or never will.
TEST_F(Observing, UsageOfOneNodeIsNoTotalAfterARestartEither) {
  using enum QueueField;
  const auto on_two_nodes = [&](std::uint32_t id) {
    slurm.Submit(id);
    slurm.Begin(id);
    slurm.row(id)[kNodeList] = "fir[07-08]";
    slurm.row(id)[kNumNodes] = "2";
    slurm.row(id)[kTresAlloc] = "cpu=4,mem=8G,node=2,billing=4";
  };
  on_two_nodes(41);
  on_two_nodes(42);
  Pass(31s);
  slurm.HoldAccounting(true);
  slurm.End(42);
  Pass(31s);
  slurm.slurmctld_is_up = false;
  Restart();
  evidence::Usage usage;
  usage.cpu_s = 10;
  const auto report = [&](std::uint32_t id, const char* node) {
    EXPECT_TRUE(observer->OnLifecycle(
        MakeUsageReport({.job_id = id, .sluid = {}}, node, usage, /*last=*/true), node,
        clock.Now()));
  };
  for (const std::uint32_t id : {41, 42}) report(id, "fir07");
  Pass(2s);
  EXPECT_EQ(Run(41).used.cpu_s, std::nullopt);
  EXPECT_EQ(Run(42).used.cpu_s, std::nullopt);
  for (const std::uint32_t id : {41, 42}) report(id, "fir08");
  Pass(2s);
  EXPECT_EQ(Run(41).used.cpu_s, 20.0);
  EXPECT_EQ(Run(42).used.cpu_s, 20.0);
}

// A second cluster on the same machines: its job has this id too.
TEST_F(Observing, UsageOfAnotherClustersNodeIsNotTaken) {
  using enum QueueField;
  slurm.Submit(41);
  slurm.Begin(41);
  slurm.row(41)[kNodeList] = "fir07";
  Pass(31s);
  evidence::Usage usage;
  usage.cpu_s = 500;
  EXPECT_TRUE(observer->OnLifecycle(
      MakeUsageReport({.job_id = 41, .sluid = {}}, "oak01", usage, /*last=*/false), "machine",
      clock.Now()));
  Pass(1s);
  EXPECT_EQ(Run(41).used.cpu_s, std::nullopt);
  usage.cpu_s = 10;
  EXPECT_TRUE(observer->OnLifecycle(
      MakeUsageReport({.job_id = 41, .sluid = {}}, "fir07", usage, /*last=*/false), "fir07",
      clock.Now()));
  Pass(1s);
  EXPECT_EQ(Run(41).used.cpu_s, 10.0);
}

// How many nodes the job has is not known while it is known from a hook alone.
TEST_F(Observing, UsageOfOneNodeIsNoTotalBeforeTheNodesAreKnown) {
  using enum QueueField;
  slurm.Submit(41);
  Pass(31s);
  slurm.Begin(41);
  slurm.row(41)[kNodeList] = "fir[07-08]";
  slurm.row(41)[kNumNodes] = "2";
  slurm.row(41)[kTresAlloc] = "cpu=4,mem=8G,node=2,billing=4";
  evidence::Usage usage;
  usage.cpu_s = 10;
  Hook(HookKind::kProlog, 41);
  EXPECT_TRUE(
      observer->OnLifecycle(MakeUsageReport({.job_id = 41, .sluid = {}}, "", usage, /*last=*/true),
                            "fir07", clock.Now()));
  ASSERT_TRUE(observer->FlushReports(sink, clock.Now()));
  EXPECT_EQ(Run(41).used.cpu_s, std::nullopt);
  EXPECT_TRUE(
      observer->OnLifecycle(MakeUsageReport({.job_id = 41, .sluid = {}}, "", usage, /*last=*/true),
                            "fir08", clock.Now()));
  Pass(5s);
  EXPECT_EQ(Run(41).used.cpu_s, 20.0);
}

TEST_F(Observing, AMachineTellsOfItsOwnJobsOnly) {
  const auto resolves = [&](std::string_view host) {
    return observer
        ->Resolve({.source_type = evidence::SourceType::kSlurm, .identity = "job:41"}, clock.Now(),
                  host)
        .has_value();
  };
  slurm.Submit(41);
  Pass(31s);
  EXPECT_TRUE(resolves("fir08")) << "nobody knows yet where it will be";
  slurm.Begin(41);
  Pass(31s);
  EXPECT_TRUE(resolves("fir07"));
  EXPECT_TRUE(resolves("fir07.example"));
  EXPECT_FALSE(resolves("fir08"));
  EXPECT_TRUE(resolves("head1")) << "ourselves";
  slurm.End(41, "FAILED", 3 << 8);
  Pass(90s);
  EXPECT_TRUE(resolves("fir07")) << "what comes late";
  EXPECT_FALSE(resolves("fir08"));
  // Who a job is and how it ended is for Slurm to say; what became of its files, for the sampler.
  evidence::ExecutionObservation seen;
  seen.key = {.source_type = evidence::SourceType::kSlurm, .identity = "job:41"};
  seen.execution.source_type = evidence::SourceType::kSlurm;
  seen.execution.capture_notes = {"stdout: not found here"};
  EXPECT_FALSE(observer->OnLifecycle(seen, "fir07", clock.Now())) << "goes on as it is";
  seen.execution.user = "mallory";
  EXPECT_TRUE(observer->OnLifecycle(seen, "fir07", clock.Now()));
  Pass(1s);
  EXPECT_NE(Run(41).user, "mallory");
  EXPECT_EQ(Row("slurm_samplers").figures["forged_reports"], 1);
}

TEST_F(Observing, KnowsWhichSamplersShouldBeHeard) {
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(31s);
  EXPECT_TRUE(observer->BusyHosts().empty()) << "its sampler may just be starting";
  Pass(240s);
  EXPECT_THAT(observer->BusyHosts(), ElementsAre("fir07.example")) << "as Slurm calls the machine";
  EXPECT_EQ(Row("slurm_samplers").reason, "without_sampler");
  observer->OnSampler("fir07", clock.Now(), /*reads_files=*/false);
  Pass(31s);
  EXPECT_THAT(observer->BusyHosts(), ElementsAre("fir07")) << "as its directory is called";
  EXPECT_EQ(Row("slurm_samplers").status, HealthStatus::kOk);
  slurm.End(41, "COMPLETED", 0);
  Pass(31s);
  EXPECT_TRUE(observer->BusyHosts().empty());
}

TEST_F(Observing, TellsTheClustersState) {
  using enum QueueField;
  slurm.Submit(1, {{kPriority, "10"}, {kPartition, "long,short"}});
  slurm.Submit(2, {{kPriority, "90"}, {kReason, "ReqNodeNotAvail, UnavailableNodes:fir[01-09]"}});
  slurm.Submit(3);
  slurm.Begin(3);
  Pass(61s);
  std::optional<ClusterState> newest;
  if (auto state = observer->TakeClusterState()) newest = std::move(state);
  Pass(30s);
  if (auto state = observer->TakeClusterState()) newest = std::move(state);
  ASSERT_TRUE(newest);
  EXPECT_FALSE(observer->TakeClusterState()) << "each once";
  EXPECT_EQ(newest->cluster, "aurora");
  EXPECT_EQ(newest->pending_jobs, 2U);
  EXPECT_EQ(newest->running_jobs, 1U);
  ASSERT_EQ(newest->pending.size(), 2U);
  EXPECT_EQ(newest->pending[0].native_id, "2");
  EXPECT_EQ(newest->pending[0].priority, 90.0);
  EXPECT_EQ(newest->pending[1].key.identity.substr(0, 9), "aurora/1@");
  EXPECT_EQ(newest->pending_by_reason,
            (std::map<std::string, std::uint32_t>{{"Priority", 1}, {"ReqNodeNotAvail", 1}}));
  ASSERT_EQ(newest->nodes.size(), 1U);
  ASSERT_EQ(newest->partitions.size(), 1U);
  EXPECT_EQ(newest->partitions[0].pending_jobs, 2U);
  EXPECT_EQ(newest->partitions[0].running_jobs, 1U);
  EXPECT_EQ(newest->partitions[0].cpus_total, 16U);
}

TEST_F(Observing, KnowsNodesByTheirHosts) {
  Pass(31s);
  EXPECT_TRUE(observer->IsNodeOf("fir07", "fir07.example"));
  EXPECT_TRUE(observer->IsNodeOf("fir07", "fir07"));
  EXPECT_FALSE(observer->IsNodeOf("fir07", "fir08"));
  EXPECT_TRUE(observer->IsNodeOf("unheard", "unheard"));
}

TEST_F(Observing, HealthMissesHooksAndSamplers) {
  Pass(31s);
  for (std::uint32_t id = 1; id <= 12; ++id) slurm.Submit(id);
  Pass(31s);
  for (std::uint32_t id = 1; id <= 12; ++id) slurm.Begin(id);
  Pass(31s);
  EXPECT_EQ(Row("slurm_hooks").reason, "no_events");
  EXPECT_EQ(Row("slurm_samplers").status, HealthStatus::kOk) << "they have just begun";
  Pass(240s);
  EXPECT_EQ(Row("slurm_samplers").reason, "without_sampler");
  EXPECT_EQ(Row("slurm_samplers").figures["nodes_with_jobs"], 1);
  Hook(HookKind::kEpilog, 1);
  Pass(31s);
  EXPECT_EQ(Row("slurm_hooks").status, HealthStatus::kOk);
  EXPECT_EQ(Row("slurm_samplers").status, HealthStatus::kOk);
}

TEST_F(Observing, JobsOfThisHostWithoutCgroupsAreAFailure) {
  options.host = "fir07";
  Restart();
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(61s);
  EXPECT_EQ(Row("slurm_jobs").status, HealthStatus::kOk);
  Pass(180s);
  EXPECT_EQ(Row("slurm_jobs").status, HealthStatus::kFailed);
  EXPECT_EQ(Row("slurm_jobs").reason, "no_cgroups");
}

TEST_F(Observing, FilesOfRunningJobsAreFollowed) {
  options.files.switches.logs = true;
  Restart();
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(31s);
  // Files have a thread of their own.
  for (int i = 0; i < 1000 && Row("job_files").figures["jobs"] == 0; ++i)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(Row("job_files").figures["jobs"], 1);
}

TEST_F(Observing, FilesAreLeftToALiveSamplerThatMayReadThem) {
  options.files.switches.logs = true;
  options.assign_directory = base::JoinPath(directory->path(), "assign");
  Restart();
  const std::string path = base::JoinPath(options.assign_directory, "fir07");
  const auto pass_until = [&](auto done, bool heard, bool reads_files) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      if (heard) observer->OnSampler("fir07", clock.Now(), reads_files);
      Pass(1s);
      std::this_thread::sleep_for(1ms);  // the board has a thread of its own
    }
    return done();
  };
  slurm.Submit(41);
  slurm.Begin(41);
  observer->OnSampler("fir07", clock.Now(), true);
  const auto assigned = [&] {
    const auto jobs = ParseAssignments(base::ReadFile(path).value_or(""), "fir07");
    return jobs && jobs->size() == 1 && (*jobs)[0].job_id == 41 && (*jobs)[0].logs &&
           !(*jobs)[0].stdout_path.empty();
  };
  EXPECT_TRUE(pass_until(assigned, true, true));
  EXPECT_EQ(Row("assignments").figures["jobs"], 1);
  // It says that it may not: the controller looks itself.
  EXPECT_TRUE(pass_until([&] { return !base::Exists(path); }, true, false));
  EXPECT_TRUE(pass_until([&] { return Row("job_files").figures["looks"] > 1; }, true, false));
}

TEST_F(Observing, TakesThisHostAndItsHooks) {
  options.run_directory = base::JoinPath(directory->path(), "run");
  options.version = "9.9";
  Restart();
  Pass(40s);
  EXPECT_EQ(base::ReadFile(options.run_directory + "/hooks/sampler").value_or(""),
            std::to_string(::getpid()) + " 9.9 controller\n");
  slurm.Submit(41);
  slurm.Begin(41);
  std::string event("expanse-hook 1\0prolog\0SLURM_JOB_ID=41\0SLURMD_NODENAME=fir07\0end\0", 64);
  event.resize(event.rfind("end") + 4);
  ASSERT_TRUE(
      base::WriteFileAtomically(options.run_directory + "/hooks/prolog.41.fir07", event, 0644));
  Pass(2s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kRunning);
  EXPECT_FALSE(base::Exists(options.run_directory + "/hooks/prolog.41.fir07"));
  EXPECT_EQ(Row("slurm_hooks").figures["events"], 1);
  // Another controller has the host: it takes the events, and samples.
  std::unique_ptr<SlurmObserver> first = std::move(observer);
  options.state_directory += "2";
  Start();
  Pass(5s);
  EXPECT_EQ(Row("slurm_hooks").reason, "not_claimed");
  first->Stop();
  Pass(60s);
  EXPECT_EQ(Row("slurm_hooks").status, HealthStatus::kOk);
}

TEST_F(Observing, ADamagedStateIsStartedAnew) {
  slurm.Submit(41);
  Pass(61s);
  observer->Stop();
  observer.reset();
  ASSERT_TRUE(base::WriteFileAtomically(options.state_directory + "/runs", "EXPSLURM junk", 0600));
  Start();
  Pass(61s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kQueued);
}

TEST_F(Observing, JobsAreKnownBeforeSlurmctldAnswers) {
  slurm.Submit(41);
  slurm.Begin(41);
  const std::int64_t submitted = Now();
  Pass(61s);
  slurm.slurmctld_is_up = false;
  Restart();
  EXPECT_EQ(
      observer->Resolve(LocalKey({.job_id = 41, .sluid = {}}), clock.Now(), "fir07")->identity,
      Identity(41, submitted));
  Pass(61s);
  EXPECT_EQ(Row("slurm_squeue").status, HealthStatus::kFailed);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
