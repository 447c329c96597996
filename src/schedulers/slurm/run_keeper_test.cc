#include "schedulers/slurm/run_keeper.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;
using evidence::ExecutionStatus;

constexpr std::int64_t kNow = 1'800'000'000;

base::WallTime At(std::int64_t s) { return base::WallTime(std::chrono::seconds(s)); }

class KeepingSink final : public EvidenceSink {
 public:
  base::Status Emit(evidence::Payload payload, base::WallTime) override {
    seen.push_back(std::get<evidence::ExecutionObservation>(std::move(payload)));
    return {};
  }
  std::vector<evidence::ExecutionObservation> seen;
};

class Keeping : public testing::Test {
 protected:
  Keeping() { Start(); }

  void Start() {
    keeper = std::make_unique<RunKeeper>(
        options, *table, outgoing,
        RunKeeper::Followers{.seen =
                                 [this](RunId id, TrackedRun& run, const Job&) {
                                   run.followed = true;
                                   followed.push_back(id);
                                 },
                             .ended = [this](RunId id) { ended.push_back(id); }});
  }

  static Job MakeJob(std::uint32_t id, std::int64_t submitted, ExecutionStatus status) {
    Job job;
    job.cluster = "mole";
    job.job_id = id;
    job.submitted = At(submitted);
    job.execution.native_id = std::to_string(id);
    job.execution.status = status;
    job.execution.name = "sweep";
    job.execution.user = "mira";
    job.execution.queue = "long";
    if (status == ExecutionStatus::kRunning) job.execution.started_at = At(submitted + 10);
    job.final = evidence::IsTerminal(status);
    if (job.final) {
      job.execution.started_at = At(submitted + 10);
      job.execution.ended_at = At(submitted + 60);
    }
    return job;
  }

  // A row whose bytes are told apart by `version`.
  void Row(Job job, std::uint64_t version = 1) {
    const auto status = static_cast<std::uint64_t>(job.execution.status);
    keeper->TakeRow(std::move(job), 1000 * status + version, 1000 * status, tick);
  }
  void Gone(std::vector<std::uint32_t> ids) { keeper->TakeGone(ids, tick); }
  void Pass(std::chrono::seconds time) {
    tick.wall += time;
    tick.mono += time;
    keeper->Sweep(tick);
  }
  // What was told since the last call.
  std::vector<evidence::ExecutionObservation> Told() {
    KeepingSink sink;
    EXPECT_TRUE(outgoing.Flush(sink, tick.wall));
    return std::move(sink.seen);
  }

  KeeperOptions options;
  std::unique_ptr<JobTable> table = std::make_unique<JobTable>("mole");
  Outgoing outgoing;
  std::unique_ptr<RunKeeper> keeper;
  collect::Tick tick{.wall = At(kNow), .mono = base::MonoTime(1h)};
  std::vector<RunId> followed;
  std::vector<RunId> ended;
};

TEST_F(Keeping, TellsEachChangeOnceAndTheFinalRecord) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kQueued));
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kQueued));
  auto told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].key.identity, "mole/7@1799999900");
  EXPECT_EQ(told[0].key.source_type, evidence::SourceType::kSlurm);
  EXPECT_EQ(told[0].execution.updated_at, tick.wall);
  EXPECT_EQ(keeper->figures().queued, 1U);
  EXPECT_TRUE(followed.empty()) << "nothing to read of a job that waits";

  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  EXPECT_EQ(Told().size(), 1U);
  EXPECT_EQ(keeper->figures().queued, 0U);
  EXPECT_EQ(keeper->figures().running, 1U);
  EXPECT_EQ(followed, (std::vector<RunId>{{7, kNow - 100}}));

  Row(MakeJob(7, kNow - 100, ExecutionStatus::kFailed));
  told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].execution.status, ExecutionStatus::kFailed);
  EXPECT_EQ(ended, followed);
  Pass(1s);
  EXPECT_EQ(keeper->figures().running, 0U);
  EXPECT_EQ(keeper->figures().awaiting_final, 1U);

  keeper->TakeAccounting(MakeJob(7, kNow - 100, ExecutionStatus::kFailed), tick);
  keeper->TakeAccounting(MakeJob(7, kNow - 100, ExecutionStatus::kFailed), tick);
  told = Told();
  ASSERT_EQ(told.size(), 1U) << "windows overlap";
  EXPECT_EQ(told[0].execution.name, "") << "slurmdbd does not keep it byte by byte";
  Pass(1s);
  EXPECT_EQ(keeper->figures().awaiting_final, 0U);
  EXPECT_EQ(ended.size(), 1U);
}

TEST_F(Keeping, AChangedRowOfARunningJobIsHandedOnForItsFiles) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning), 1);
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning), 1);
  EXPECT_EQ(followed.size(), 1U);
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning), 2);
  EXPECT_EQ(followed.size(), 2U) << "its comment may say no";
}

TEST_F(Keeping, AJobThatNobodyKnowsIsLookedUpAFewTimesOnly) {
  int asked = 0;
  for (int i = 0; i < 590; ++i) {
    keeper->WantUnknown(9, tick.mono);
    for (const std::uint32_t id : keeper->TakeLookUps(64, tick.mono)) {
      EXPECT_EQ(id, 9U);
      ++asked;
      Gone({9});
    }
    Pass(1s);
  }
  EXPECT_EQ(asked, 5);
  Pass(60s);
  keeper->WantUnknown(9, tick.mono);
  EXPECT_TRUE(keeper->WantsLookUps(tick.mono)) << "it may be somebody else's by now";
}

TEST_F(Keeping, TokensOnACommandLineDoNotLeaveTheHost) {
  Job job = MakeJob(7, kNow - 100, ExecutionStatus::kQueued);
  job.execution.command = {"/home/mira/push.sh --api-key=9f8e7d6c5b4a39281706f5e4d3c2b1a0"};
  Row(job);
  const auto told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].execution.command.at(0).starts_with("/home/mira/push.sh --api-key="));
  EXPECT_FALSE(told[0].execution.command[0].contains("9f8e7d6c"));
}

// squeue's row changed within the ten minutes, and then no more.
TEST_F(Keeping, TheLastReasonOfAWaitIsToldInTime) {
  Job job = MakeJob(7, kNow - 100, ExecutionStatus::kQueued);
  job.execution.native_reason = "None";
  Row(job, 1);
  job.execution.native_reason = "QOSMaxJobsPerUserLimit";
  job.execution.expected_start_at = At(kNow + 5000);
  Row(job, 2);
  Row(job, 3);
  EXPECT_EQ(Told().size(), 1U);
  Pass(590s);
  EXPECT_TRUE(Told().empty());
  Pass(20s);
  auto told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].execution.status, ExecutionStatus::kQueued);
  EXPECT_EQ(told[0].execution.native_reason, "QOSMaxJobsPerUserLimit");
  EXPECT_EQ(told[0].execution.expected_start_at, At(kNow + 5000));
  Pass(3600s);
  EXPECT_TRUE(Told().empty()) << "once";
  job.execution.native_reason = "Priority";
  Row(job, 4);
  EXPECT_EQ(Told().size(), 1U);
  Row(job, 5);
  Pass(3600s);
  EXPECT_TRUE(Told().empty()) << "its priority changed, no more";
  job.execution.native_reason = "Resources";
  Row(job, 6);
  EXPECT_EQ(Told().size(), 1U);
  job.execution.native_reason = "None";
  Row(job, 7);
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  EXPECT_EQ(Told().size(), 1U);
  Pass(3600s);
  EXPECT_TRUE(Told().empty()) << "it waits no more";
}

TEST_F(Keeping, ARunThatGetsStuckIsToldAtOnce) {
  Job job = MakeJob(7, kNow - 100, ExecutionStatus::kQueued);
  job.execution.native_reason = "Dependency";
  Row(job, 1);
  EXPECT_EQ(Told().size(), 1U);
  job.execution.native_reason = "DependencyNeverSatisfied";
  Row(job, 2);
  auto told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].execution.native_reason, "DependencyNeverSatisfied");
  Row(job, 3);
  EXPECT_TRUE(Told().empty()) << "its priority changed, no more";
  job.execution.native_reason = "Priority";
  Row(job, 4);
  EXPECT_EQ(Told().size(), 1U) << "it may start again";
  job.execution.native_reason = "Resources";
  Row(job, 5);
  EXPECT_TRUE(Told().empty());
}

TEST_F(Keeping, RunsThatGetStuckKeepToTheRateOfAll) {
  options.waiting_updates_per_s = 1;
  Start();
  constexpr std::uint32_t kMany = 1'200;
  for (std::uint32_t id = 1; id <= kMany; ++id)
    Row(MakeJob(id, kNow - 100, ExecutionStatus::kQueued), 1);
  EXPECT_EQ(Told().size(), kMany);
  for (std::uint32_t id = 1; id <= kMany; ++id) {
    Job job = MakeJob(id, kNow - 100, ExecutionStatus::kQueued);
    job.execution.native_reason = "JobHeldAdmin";
    Row(job, 2);
  }
  EXPECT_EQ(Told().size(), 1'000U);
  Pass(100s);
  EXPECT_EQ(Told().size(), 100U);
  Pass(100s);
  EXPECT_EQ(Told().size(), 100U);
  Pass(3600s);
  EXPECT_TRUE(Told().empty());
}

TEST_F(Keeping, WaitingRunsAreToldAgainSeldom) {
  options.waiting_updates_per_s = 0;
  Start();
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kQueued), 1);
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kQueued), 2);
  EXPECT_EQ(Told().size(), 1U);
  EXPECT_EQ(table->Find({7, kNow - 100})->waiting->native_id, "7");
  Pass(601s);
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kQueued), 3);
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kQueued), 4);
  EXPECT_EQ(Told().size(), 1U);
  EXPECT_EQ(keeper->figures().waiting_updates_left_out, 2U);
  // What the user changes is told at once.
  keeper->TakeRow(MakeJob(7, kNow - 100, ExecutionStatus::kQueued), 5, 77, tick);
  EXPECT_EQ(Told().size(), 1U);
}

TEST_F(Keeping, AHookTellsTheStartBeforeSqueueDoes) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kQueued));
  (void)Told();
  keeper->TakeHint({.ends = false, .job_id = 7, .at = tick.wall, .started = At(kNow - 1)}, tick);
  auto told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].execution.status, ExecutionStatus::kRunning);
  EXPECT_EQ(told[0].execution.started_at, At(kNow - 1));
  EXPECT_EQ(keeper->figures().running, 1U);
  EXPECT_EQ(keeper->TakeLookUps(10, tick.mono), (std::vector<std::uint32_t>{7}));
  EXPECT_FALSE(keeper->WantsLookUps(tick.mono));
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  EXPECT_EQ(Told().size(), 1U);
  Pass(60s);
  EXPECT_FALSE(keeper->WantsLookUps(tick.mono)) << "squeue has shown it";
}

TEST_F(Keeping, LooksAgainUntilTheEndIsSeen) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  keeper->TakeHint({.ends = true, .job_id = 7, .at = tick.wall, .started = {}}, tick);
  EXPECT_FALSE(keeper->WantsLookUps(tick.mono)) << "slurmctld has not heard of it yet";
  std::vector<int> asked_at;
  for (int second = 1; second <= 120; ++second) {
    tick.mono += 1s;
    if (keeper->TakeLookUps(10, tick.mono).empty()) continue;
    asked_at.push_back(second);
    keeper->TakeRow(MakeJob(7, kNow - 100, ExecutionStatus::kRunning), 1, 1, tick);
  }
  EXPECT_EQ(asked_at, (std::vector<int>{1, 2, 4, 8, 16}));
  EXPECT_EQ(keeper->figures().hints, 1U);
}

TEST_F(Keeping, UnknownJobsOfHooksAreLookedUp) {
  keeper->TakeHint({.ends = false, .job_id = 9, .at = tick.wall, .started = {}}, tick);
  keeper->TakeHint({.ends = false, .job_id = 8, .at = tick.wall, .started = {}}, tick);
  EXPECT_TRUE(Told().empty());
  EXPECT_EQ(keeper->TakeLookUps(1, tick.mono), (std::vector<std::uint32_t>{8}));
  EXPECT_EQ(keeper->TakeLookUps(9, tick.mono), (std::vector<std::uint32_t>{9}));
}

TEST_F(Keeping, WhatCannotBeLookedUpIsForgottenInTime) {
  keeper->TakeHint({.ends = false, .job_id = 9, .at = tick.wall, .started = {}}, tick);
  Pass(170s);
  EXPECT_TRUE(keeper->WantsLookUps(tick.mono));
  Pass(20s);
  EXPECT_FALSE(keeper->WantsLookUps(tick.mono));
}

TEST_F(Keeping, EachRunOfARequeuedJobIsKept) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  (void)Told();
  Job again = MakeJob(7, kNow, ExecutionStatus::kQueued);
  again.execution.restart_count = 1;
  Row(again);
  auto told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].key.identity, "mole/7@1800000000");
  Pass(1s);
  EXPECT_EQ(keeper->figures().lost, 1U);
  EXPECT_EQ(keeper->figures().running, 0U);
  EXPECT_EQ(keeper->figures().queued, 1U);
  EXPECT_EQ(keeper->TakeAccountingLookUps(10, tick), (std::vector<std::uint32_t>{7}));
  // sacct knows the first run under its own submit time, and says nothing of the second.
  Job first = MakeJob(7, kNow - 100, ExecutionStatus::kCancelled);
  first.execution.native_state = "REQUEUED";
  keeper->TakeAccounting(first, tick);
  told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].key.identity, "mole/7@1799999900");
  EXPECT_EQ(told[0].execution.native_state, "REQUEUED");
  Pass(3600s);
  EXPECT_TRUE(Told().empty()) << "no end is made up";
  EXPECT_EQ(table->Find({7, kNow})->phase, RunPhase::kQueued);
}

TEST_F(Keeping, WhatIsSaidBetweenTwoRunsIsOfNeither) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  (void)Told();
  Job between = MakeJob(7, kNow - 100, ExecutionStatus::kQueued);
  between.execution.restart_count = 1;  // counted already, under the old submit time
  Row(between);
  EXPECT_TRUE(Told().empty());
  EXPECT_EQ(keeper->figures().running, 1U);
  Job again = MakeJob(7, kNow, ExecutionStatus::kQueued);
  again.execution.restart_count = 1;
  Row(again);
  EXPECT_EQ(Told().at(0).key.identity, "mole/7@1800000000");
  Pass(1s);
  EXPECT_EQ(keeper->figures().lost, 1U);
}

// As Slurm 22.05 shows it while the nodes of a requeued run clean up.
Job Requeued(Job job) {
  job.execution.native_state = kCompleting;
  job.execution.restart_count = 1;
  job.execution.started_at = At(kNow);  // the present, whenever one looks
  job.completing_end = At(kNow + 600);
  return job;
}

TEST_F(Keeping, ARequeuedRunThatCleansUpKeepsItsCount) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  (void)Told();
  Row(Requeued(MakeJob(7, kNow - 100, ExecutionStatus::kRunning)));
  EXPECT_TRUE(Told().empty());
  EXPECT_EQ(table->Find({7, kNow - 100})->restarts, 0U);
  EXPECT_EQ(keeper->figures().running, 1U);
}

TEST_F(Keeping, ARunFirstSeenAfterItsRequeueHasTheCountAndStartOfItsOwn) {
  Row(Requeued(MakeJob(7, kNow - 100, ExecutionStatus::kRunning)));
  auto told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].execution.restart_count, 0U);
  EXPECT_EQ(told[0].execution.started_at, std::nullopt);
  // Once more, then the next run.
  Row(Requeued(MakeJob(7, kNow - 100, ExecutionStatus::kRunning)));
  EXPECT_TRUE(Told().empty());
  // One that has ended, restarted before, keeps both.
  Job ended = Requeued(MakeJob(8, kNow - 200, ExecutionStatus::kRunning));
  ended.completing_end = At(kNow - 1);
  Row(ended);
  told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].execution.restart_count, 1U);
  EXPECT_EQ(told[0].execution.started_at, At(kNow));
}

TEST_F(Keeping, ARecycledIdDoesNotTouchTheOldRun) {
  Row(MakeJob(7, kNow - 9000, ExecutionStatus::kSucceeded));
  (void)Told();
  Row(MakeJob(7, kNow, ExecutionStatus::kQueued));
  EXPECT_EQ(Told().size(), 1U);
  Pass(1s);
  EXPECT_EQ(keeper->figures().lost, 0U);
  // The record of the old one, late.
  keeper->TakeAccounting(MakeJob(7, kNow - 9000, ExecutionStatus::kSucceeded), tick);
  EXPECT_EQ(Told().at(0).key.identity, "mole/7@1799991000");
  EXPECT_EQ(table->Find({7, kNow})->phase, RunPhase::kQueued);
}

TEST_F(Keeping, ALostRunIsAskedForThenItsEndIsGuessedAndSaysSo) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  (void)Told();
  Gone({7});
  EXPECT_TRUE(Told().empty());
  EXPECT_TRUE(keeper->WantsAccountingLookUps(tick));
  const auto ids = keeper->TakeAccountingLookUps(10, tick);
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{7}));
  keeper->AccountingAnswered(ids, tick);
  EXPECT_FALSE(keeper->WantsAccountingLookUps(tick)) << "not at once again";
  Pass(599s);
  EXPECT_TRUE(Told().empty());
  Pass(2s);
  auto told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].execution.status, ExecutionStatus::kUnknown);
  EXPECT_EQ(told[0].execution.outcome, evidence::Outcome::kUnknown);
  EXPECT_EQ(told[0].execution.ended_at, At(kNow));
  EXPECT_EQ(told[0].execution.capture_notes.size(), 1U);
  EXPECT_EQ(ended.size(), 1U);
  EXPECT_EQ(keeper->figures().guessed, 1U);
  // The truth comes after all.
  keeper->TakeAccounting(MakeJob(7, kNow - 100, ExecutionStatus::kFailed), tick);
  told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].execution.status, ExecutionStatus::kFailed);
}

TEST_F(Keeping, ALostRunThatComesBackIsNoLongerLost) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  Gone({7});
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning), 2);
  Pass(3600s);
  for (const auto& told : Told()) EXPECT_EQ(told.execution.status, ExecutionStatus::kRunning);
  EXPECT_EQ(keeper->figures().running, 1U);
}

TEST_F(Keeping, TheRecordMayComeBeforeTheRow) {
  keeper->TakeAccounting(MakeJob(7, kNow - 100, ExecutionStatus::kSucceeded), tick);
  auto told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].execution.name, "sweep") << "the only one to tell it so far";
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kSucceeded));
  EXPECT_EQ(Told().size(), 1U) << "squeue's bytes are exact";
  Pass(1s);
  EXPECT_EQ(keeper->figures().awaiting_final, 0U);
  EXPECT_EQ(keeper->figures().lost, 0U);
}

TEST_F(Keeping, HighExitCodesAreKeptAsSqueueTellsThem) {
  const auto failed = [](std::uint32_t id, std::int32_t code) {
    Job job = MakeJob(id, kNow - 100, ExecutionStatus::kFailed);
    job.execution.exit_code = code;
    for (const char* step_id : {"batch", "0"}) {
      evidence::Step step;
      step.id = step_id;
      step.exit_code = code;
      job.execution.steps.push_back(step);
    }
    return job;
  };
  Row(failed(7, 255));
  Row(failed(8, 200));
  EXPECT_EQ(Told().size(), 2U);
  keeper->TakeAccounting(failed(7, 127), tick);
  keeper->TakeAccounting(failed(8, 3), tick);
  keeper->TakeAccounting(failed(9, 127), tick);
  const auto told = Told();
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].execution.exit_code, 255);
  EXPECT_EQ(told[0].execution.steps[0].exit_code, 255) << "the script is the job";
  EXPECT_EQ(told[0].execution.steps[1].exit_code, 127) << "as sacct says";
  EXPECT_EQ(told[1].execution.exit_code, 3) << "no spelling of 200: the record is the truth";
  EXPECT_EQ(told[2].execution.exit_code, 127) << "nothing better is known";
}

TEST_F(Keeping, RecordsThatNeverComeAreGivenUp) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kSucceeded));
  int asked = 0;
  for (int i = 0; i < 24 * 60; ++i) {
    Pass(60s);
    const auto ids = keeper->TakeAccountingLookUps(10, tick);
    if (ids.empty()) continue;
    ++asked;
    keeper->AccountingAnswered(ids, tick);
  }
  EXPECT_EQ(asked, 5);
  Gone({7});
  Pass(7300s);
  EXPECT_TRUE(table->runs().empty());
}

TEST_F(Keeping, WithoutAccountingSqueueIsFinal) {
  Row(MakeJob(6, kNow - 100, ExecutionStatus::kSucceeded));
  keeper->SetAccounting(false);
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kSucceeded));
  Row(MakeJob(8, kNow - 100, ExecutionStatus::kRunning));
  Gone({6, 7, 8});
  EXPECT_FALSE(keeper->WantsAccountingLookUps(tick));
  (void)Told();
  Pass(601s);
  EXPECT_EQ(Told().size(), 1U) << "the end of 8";
  Pass(7300s);
  EXPECT_TRUE(table->runs().empty());
}

TEST_F(Keeping, ARestartRepeatsNothingAndForgetsNothing) {
  Row(MakeJob(1, kNow - 100, ExecutionStatus::kQueued));
  Row(MakeJob(2, kNow - 100, ExecutionStatus::kRunning));
  Row(MakeJob(3, kNow - 100, ExecutionStatus::kRunning));
  Row(MakeJob(4, kNow - 100, ExecutionStatus::kSucceeded));
  Gone({3});
  (void)Told();
  const std::string state = table->Encode();
  keeper.reset();
  table = std::make_unique<JobTable>("mole");
  ASSERT_TRUE(table->Decode(state));
  followed.clear();
  Start();
  Row(MakeJob(1, kNow - 100, ExecutionStatus::kQueued));
  Row(MakeJob(2, kNow - 100, ExecutionStatus::kRunning));
  Row(MakeJob(4, kNow - 100, ExecutionStatus::kSucceeded));
  EXPECT_TRUE(Told().empty());
  EXPECT_EQ(followed, (std::vector<RunId>{{2, kNow - 100}, {4, kNow - 100}}))
      << "their output is read on";
  ASSERT_NE(table->Find({1, kNow - 100})->waiting, nullptr) << "for the queue view";
  EXPECT_EQ(keeper->TakeAccountingLookUps(10, tick), (std::vector<std::uint32_t>{3, 4}));
  Pass(1s);
  EXPECT_EQ(keeper->figures().lost, 1U);
  EXPECT_EQ(keeper->figures().queued, 1U);
  EXPECT_EQ(keeper->figures().running, 1U);
}

TEST_F(Keeping, RowsWithoutASubmitTimeAreCountedOnly) {
  Job job = MakeJob(7, kNow, ExecutionStatus::kRunning);
  job.submitted.reset();
  Row(job);
  keeper->TakeAccounting(job, tick);
  EXPECT_TRUE(Told().empty());
  EXPECT_EQ(keeper->figures().without_key, 2U);
}

TEST_F(Keeping, RunningRecordsOfAccountingAreNoEnds) {
  Row(MakeJob(7, kNow - 100, ExecutionStatus::kRunning));
  (void)Told();
  keeper->TakeAccounting(MakeJob(7, kNow - 100, ExecutionStatus::kRunning), tick);
  EXPECT_TRUE(Told().empty());
}

}  // namespace
}  // namespace expanse::schedulers::slurm
