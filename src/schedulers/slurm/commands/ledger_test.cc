#include "schedulers/slurm/commands/ledger.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

const base::Status kFailed = base::Fail(base::Code::kUnavailable, "slurm.unreachable", "no answer");
constexpr base::MonoTime kStart{24h};

CommandCost Waited(std::chrono::microseconds time) { return {.wall = time + 5ms, .cpu = 5ms}; }

TEST(CommandLedger, CountsByKindAndKeepsTheLastError) {
  CommandLedger ledger({}, kStart);
  ledger.Record(CommandKind::kQueue, Waited(20ms), {}, kStart);
  ledger.Record(CommandKind::kQueue, Waited(10ms), kFailed, kStart + 30s);
  const auto& queue = ledger.of(CommandKind::kQueue);
  EXPECT_EQ(queue.runs, 2U);
  EXPECT_EQ(queue.failures, 1U);
  EXPECT_EQ(queue.failures_in_row, 1U);
  EXPECT_EQ(queue.error.reason, "slurm.unreachable");
  EXPECT_EQ(queue.succeeded_at, kStart);
  EXPECT_EQ(queue.served, 30ms);
  EXPECT_EQ(ledger.of(CommandKind::kNodes).runs, 0U);
  ledger.Record(CommandKind::kQueue, Waited(10ms), {}, kStart + 60s);
  EXPECT_EQ(queue.failures_in_row, 0U);
  EXPECT_EQ(queue.error.reason, "");
}

TEST(CommandLedger, ForgetsRatesAfterFiveMinutes) {
  CommandLedger ledger({}, kStart);
  for (int i = 0; i < 20; ++i)
    ledger.Record(CommandKind::kQueue, Waited(300ms), {}, kStart + i * 30s);
  const base::MonoTime now = kStart + 10min;
  EXPECT_NEAR(ledger.RunsPerMinute(now), 2.0, 0.1);
  EXPECT_NEAR(ledger.ServedShare(now), 0.01, 0.001);
  EXPECT_EQ(ledger.RunsPerMinute(now + 10min), 0.0);
  EXPECT_EQ(ledger.runs(), 20U);
}

TEST(CommandLedger, LookUpsSpendWhatIsSavedUp) {
  CommandLedger ledger({.share = 0.01, .burst = 1s}, kStart);
  int afforded = 0;
  while (ledger.Affords(CommandKind::kLookup, kStart) && afforded < 1000) {
    ledger.Record(CommandKind::kLookup, Waited(19ms), {}, kStart);
    ++afforded;
  }
  EXPECT_EQ(afforded, 52);
  // 12 ms are left, a second gives 10 more.
  EXPECT_FALSE(ledger.Affords(CommandKind::kLookup, kStart + 500ms));
  EXPECT_TRUE(ledger.Affords(CommandKind::kLookup, kStart + 1s));
}

TEST(CommandLedger, SlowListingsLeaveNothingForLookUps) {
  CommandLedger ledger({.share = 0.01, .burst = 3s}, kStart);
  base::MonoTime now = kStart;
  for (int i = 0; i < 20; ++i, now += 30s)
    ledger.Record(CommandKind::kQueue, Waited(1500ms), {}, now);
  EXPECT_FALSE(ledger.Affords(CommandKind::kLookup, now));
  // Debt is bounded: as much again as can be saved.
  EXPECT_TRUE(ledger.Affords(CommandKind::kLookup, now + 310s));
}

TEST(CommandSchedule, KeepsTheIntervalFromStartToStart) {
  CommandSchedule schedule(30s, 5min);
  EXPECT_TRUE(schedule.Due(kStart));
  schedule.Started(kStart);
  EXPECT_FALSE(schedule.Due(kStart + 1h)) << "never two at once";
  schedule.Ended(kStart + 1s, 1s, true);
  EXPECT_FALSE(schedule.Due(kStart + 29s));
  EXPECT_TRUE(schedule.Due(kStart + 30s));
}

TEST(CommandSchedule, AsksASlowSlurmLessOften) {
  CommandSchedule schedule(30s, 5min);
  schedule.Started(kStart);
  schedule.Ended(kStart + 4s, 4s, true);
  EXPECT_FALSE(schedule.Due(kStart + 79s));
  EXPECT_TRUE(schedule.Due(kStart + 80s));
  schedule.Started(kStart + 80s);
  schedule.Ended(kStart + 140s, 60s, true);
  EXPECT_FALSE(schedule.Due(kStart + 159s));
  EXPECT_TRUE(schedule.Due(kStart + 160s)) << "one slow answer, of a slurmctld that just starts";
  schedule.Started(kStart + 160s);
  schedule.Ended(kStart + 220s, 60s, true);
  EXPECT_FALSE(schedule.Due(kStart + 160s + 19min)) << "a twentieth of the time, however slow";
  EXPECT_TRUE(schedule.Due(kStart + 160s + 20min));
}

TEST(CommandSchedule, TimeoutsDoNotTakeHalfOfTheTime) {
  CommandSchedule schedule(30s, 2min);
  base::MonoTime now = kStart;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(schedule.Due(now));
    schedule.Started(now);
    schedule.Ended(now + 60s, 60s, false);
    EXPECT_FALSE(schedule.Due(now + 239s));
    now += 240s;
  }
  schedule.Started(now);
  schedule.Ended(now + 10h, 10h, true);
  EXPECT_TRUE(schedule.Due(now + 10h)) << "from start to start";
}

TEST(CommandLedger, NoShareIsNoLookUp) {
  CommandLedger ledger({.share = 0}, kStart);
  EXPECT_FALSE(ledger.Affords(CommandKind::kLookup, kStart + 1h));
}

TEST(CommandSchedule, FailuresDoubleTheIntervalAndOneSuccessEndsIt) {
  CommandSchedule schedule(30s, 5min);
  base::MonoTime now = kStart;
  for (const auto wait : {30s, 60s, 120s, 240s, 300s, 300s}) {
    ASSERT_TRUE(schedule.Due(now));
    schedule.Started(now);
    schedule.Ended(now, 0s, false);
    schedule.Hasten(now);
    EXPECT_FALSE(schedule.Due(now + wait - 1s));
    now += wait;
  }
  schedule.Started(now);
  schedule.Ended(now, 0s, true);
  EXPECT_TRUE(schedule.Due(now + 30s));
  schedule.Hasten(now);
  EXPECT_TRUE(schedule.Due(now));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
