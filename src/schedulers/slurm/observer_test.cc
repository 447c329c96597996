// What becomes of jobs, as their sources tell it over time.
#include "schedulers/slurm/observer_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace expanse::schedulers::slurm
