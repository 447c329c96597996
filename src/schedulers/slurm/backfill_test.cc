#include "schedulers/slurm/backfill.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/files.h"
#include "schedulers/slurm/commands/fake_runner_testing.h"
#include "schedulers/slurm/commands/sacct_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;
using F = SacctField;

constexpr std::int64_t kNow = 1'790'000'000;

base::WallTime At(std::int64_t seconds) { return base::WallTime(std::chrono::seconds(seconds)); }

// Time passes by waiting for it.
class PassingClock final : public base::Clock {
 public:
  base::WallTime Now() override {
    return At(kNow) + std::chrono::floor<std::chrono::microseconds>(waited);
  }
  base::MonoTime Mono() override { return base::MonoTime(waited); }
  bool WaitFor(std::stop_token stop, base::Duration duration) override {
    waited += duration;
    waits.push_back(duration);
    if (on_wait) on_wait();
    return !stop.stop_requested();
  }
  base::Duration waited{};
  std::vector<base::Duration> waits;
  std::function<void()> on_wait;
};

class RecordingSink final : public EvidenceSink {
 public:
  base::Status Emit(evidence::Payload payload, base::WallTime) override {
    if (refuse) {
      if (auto refused = refuse(); !refused) return refused;
    }
    auto& seen = std::get<evidence::ExecutionObservation>(payload);
    ++emitted;
    runs[seen.key.identity] = std::move(seen.execution);
    return {};
  }
  std::map<std::string, evidence::Execution> runs;
  std::size_t emitted = 0;
  std::function<base::Status()> refuse;
};

// A database with one run every ten minutes, answered as sacct does.
class BackfillTest : public testing::Test {
 protected:
  BackfillTest() {
    runner_.On(Program::kSacct,
               [this](const std::vector<std::string>& arguments) { return Answer(arguments); });
    options_ = {.cluster = "aurora",
                .state_path = base::JoinPath(directory_.path(), "resume.json"),
                .span = {At(kNow - 10 * 86'400), At(kNow)}};
  }

  static std::string Value(const std::vector<std::string>& arguments, std::string_view option) {
    for (const std::string& argument : arguments) {
      if (argument.starts_with(option)) return argument.substr(option.size());
    }
    return "";
  }

  FakeRunner::Answer Answer(const std::vector<std::string>& arguments) {
    if (arguments.front() == "--helpformat") {
      std::string help = SacctFormat::Full().Argument();
      std::ranges::replace(help, ',', ' ');
      return {.out = help, .status = {}};
    }
    const auto from = base::ParseRfc3339(Value(arguments, "--starttime=") + "Z");
    const auto to = base::ParseRfc3339(Value(arguments, "--endtime=") + "Z");
    EXPECT_TRUE(from && to);
    windows_.push_back({*from, *to});
    FakeRunner::Answer answer{.out = {}, .status = {}};
    if (on_query) answer = on_query();
    if (!answer.status) return answer;
    const std::string separator = Value(arguments, "--delimiter=");
    for (std::int64_t end = kNow - 10 * 86'400; end < kNow; end += 600) {
      if (At(end) < *from || At(end) > *to) continue;
      answer.out += SacctLine(SacctFormat::Full(), separator,
                              JobCells({{F::kJobIdRaw, std::to_string(end / 600)},
                                        {F::kSubmit, std::to_string(end - 100)},
                                        {F::kStart, std::to_string(end - 60)},
                                        {F::kEnd, std::to_string(end)}}));
    }
    return answer;
  }

  base::Status Run() {
    Backfill backfill(options_, runner_, sink_, clock_, hooks_);
    auto done = backfill.Run(stop_.get_token());
    progress_ = backfill.progress();
    return done;
  }

  static constexpr std::size_t kRuns = 10 * 144;
  base::TempDir directory_ = base::TempDir::Create().value();
  FakeRunner runner_;
  RecordingSink sink_;
  PassingClock clock_;
  Backfill::Hooks hooks_;
  std::stop_source stop_;
  BackfillOptions options_;
  BackfillProgress progress_;
  std::vector<TimeSpan> windows_;  // both ends included
  std::function<FakeRunner::Answer()> on_query;
};

TEST_F(BackfillTest, TakesEveryRunOnceUnderTheIdentityOfLiveCapture) {
  std::vector<double> fractions;
  hooks_.on_progress = [&](const BackfillProgress& p) { fractions.push_back(p.fraction); };
  ASSERT_TRUE(Run());
  EXPECT_EQ(sink_.runs.size(), kRuns);
  EXPECT_EQ(sink_.emitted, kRuns);
  EXPECT_EQ(progress_.runs, kRuns);
  EXPECT_EQ(windows_.size(), 10U);
  for (std::size_t i = 1; i < windows_.size(); ++i)
    EXPECT_EQ(windows_[i].from, windows_[i - 1].to + 1s);  // no second twice, none left out
  const auto& [identity, execution] = *sink_.runs.begin();
  EXPECT_EQ(identity, fmt::format("aurora/{}@{}", execution.native_id,
                                  execution.submitted_at->time_since_epoch() / 1s));
  EXPECT_TRUE(std::ranges::is_sorted(fractions));
  EXPECT_EQ(fractions.back(), 1);
}

TEST_F(BackfillTest, GoesOnWhereItWasInterrupted) {
  int queries = 0;
  on_query = [&] {
    if (++queries == 4) stop_.request_stop();
    return FakeRunner::Answer{.out = {}, .status = {}};
  };
  const auto stopped = Run();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().reason, "backfill.stopped");
  windows_.clear();
  on_query = nullptr;
  stop_ = {};
  ASSERT_TRUE(Run());
  EXPECT_EQ(windows_.front().from, At(kNow - 7 * 86'400));  // three chunks were done
  EXPECT_EQ(sink_.runs.size(), kRuns);
}

TEST_F(BackfillTest, AsksForNothingTwiceButTheLastMinutes) {
  ASSERT_TRUE(Run());
  windows_.clear();
  ASSERT_TRUE(Run());
  ASSERT_EQ(windows_.size(), 1U);
  // The pauses took some seconds.
  EXPECT_GE(windows_[0].from, At(kNow) - options_.settle);
  windows_.clear();
  options_.span.from = At(kNow - 12 * 86'400);
  ASSERT_TRUE(Run());
  EXPECT_EQ(windows_.front().from, At(kNow - 12 * 86'400));
  EXPECT_EQ(windows_[1].to, At(kNow - 10 * 86'400 - 1));
  windows_.clear();
  options_.again = true;
  ASSERT_TRUE(Run());
  EXPECT_EQ(windows_.size(), 12U);
}

TEST_F(BackfillTest, KeepsToItsShareOfTheDatabasesTime) {
  on_query = [] {
    return FakeRunner::Answer{.out = {}, .status = {}, .cost = {.wall = 10s, .cpu = 2s}};
  };
  ASSERT_TRUE(Run());
  EXPECT_EQ(progress_.served, 80s);
  EXPECT_EQ(clock_.waits.size(), 9U);
  EXPECT_EQ(clock_.waits.front(), 32s);  // 8 s are a fifth of 40 s
  clock_.waits.clear();
  on_query = nullptr;
  options_.again = true;
  ASSERT_TRUE(Run());
  EXPECT_EQ(clock_.waits.front(), 2s);
}

TEST_F(BackfillTest, AsksForLessWhereTheDatabaseIsSlowAndForMoreAgain) {
  on_query = [] {
    return FakeRunner::Answer{.out = {}, .status = {}, .cost = {.wall = 40s, .cpu = 1s}};
  };
  options_.span.from = At(kNow - 2 * 86'400);
  ASSERT_TRUE(Run());
  EXPECT_EQ(windows_[1].to - windows_[1].from + 1s, 12h);
  EXPECT_EQ(windows_[2].to - windows_[2].from + 1s, 6h);
  windows_.clear();
  int queries = 0;
  on_query = [&] {
    return FakeRunner::Answer{
        .out = {}, .status = {}, .cost = {.wall = ++queries == 1 ? 40s : 1s, .cpu = 0s}};
  };
  options_.again = true;
  options_.span.from = At(kNow - 5 * 86'400);
  ASSERT_TRUE(Run());
  EXPECT_EQ(windows_[1].to - windows_[1].from + 1s, 12h);
  EXPECT_EQ(windows_[2].to - windows_[2].from + 1s, 24h);
}

TEST_F(BackfillTest, WaitsForADatabaseThatIsAway) {
  int queries = 0;
  on_query = [&]() -> FakeRunner::Answer {
    if (++queries == 3 || queries == 4) {
      return {.out = {},
              .status = base::Fail(base::Code::kUnavailable, "slurm.unreachable", "dbd is away")};
    }
    return {.out = {}, .status = {}};
  };
  std::set<std::string> waited_for;
  hooks_.on_progress = [&](const BackfillProgress& p) { waited_for.insert(p.waiting_for); };
  ASSERT_TRUE(Run());
  EXPECT_EQ(sink_.runs.size(), kRuns);
  EXPECT_EQ(progress_.failures, 2U);
  EXPECT_TRUE(waited_for.contains("dbd is away"));
  EXPECT_EQ(windows_[3].to - windows_[3].from + 1s, 12h);  // and asked for less
}

TEST_F(BackfillTest, GivesUpAfterItsTriesAndKeepsWhatIsDone) {
  int queries = 0;
  on_query = [&]() -> FakeRunner::Answer {
    if (++queries <= 2) return {.out = {}, .status = {}};
    return {.out = {}, .status = base::Fail(base::Code::kUnavailable, "slurm.timeout", "too slow")};
  };
  const auto failed = Run();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().reason, "slurm.timeout");
  EXPECT_EQ(progress_.failures, 8U);
  on_query = nullptr;
  windows_.clear();
  ASSERT_TRUE(Run());
  EXPECT_EQ(windows_.front().from, At(kNow - 8 * 86'400));
}

TEST_F(BackfillTest, SaysAtOnceWhereThereIsNoAccounting) {
  runner_.On(Program::kSacct, [](const std::vector<std::string>&) {
    return FakeRunner::Answer{
        .out = {},
        .status = base::Fail(base::Code::kFailedPrecondition, "slurm.no_accounting", "none")};
  });
  const auto refused = Run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "slurm.no_accounting");
  EXPECT_TRUE(clock_.waits.empty());
}

TEST_F(BackfillTest, AFullOutboxMakesItWaitAndLosesNothing) {
  bool room = false;
  clock_.on_wait = [&] { room = clock_.waited > 30s; };
  hooks_.has_room = [&] { return room; };
  int emits = 0;
  sink_.refuse = [&]() -> base::Status {
    if (++emits == 300)
      return base::Fail(base::Code::kResourceExhausted, "outbox.full", "the outbox is full");
    return {};
  };
  ASSERT_TRUE(Run());
  EXPECT_EQ(sink_.runs.size(), kRuns);
  EXPECT_EQ(progress_.failures, 1U);
}

TEST_F(BackfillTest, ARecordThatCanNeverBeKeptIsCountedAndLeftOut) {
  int emits = 0;
  sink_.refuse = [&]() -> base::Status {
    if (++emits % 100 == 0)
      return base::Fail(base::Code::kInvalidArgument, "outbox.record_too_large", "too large");
    return {};
  };
  ASSERT_TRUE(Run());
  EXPECT_EQ(progress_.refused, kRuns / 100);
  EXPECT_EQ(sink_.runs.size(), kRuns - kRuns / 100);
  EXPECT_EQ(progress_.failures, 0U);
}

TEST(ParseSince, ReadsSpansAndDates) {
  EXPECT_EQ(ParseSince("30d", At(kNow)), At(kNow - 30 * 86'400));
  EXPECT_EQ(ParseSince("12h", At(kNow)), At(kNow - 43'200));
  EXPECT_EQ(ParseSince("2026-01-01", At(kNow)), At(1'767'225'600));
  EXPECT_EQ(ParseSince("2026-01-01T01:00:00+01:00", At(kNow)), At(1'767'225'600));
  for (const char* bad : {"", "yesterday", "2099-01-01", "0s", "2026-13-01", "99999d"}) {
    const auto time = ParseSince(bad, At(kNow));
    ASSERT_FALSE(time) << bad;
    EXPECT_EQ(time.error().reason, "backfill.time");
  }
}

}  // namespace
}  // namespace expanse::schedulers::slurm
