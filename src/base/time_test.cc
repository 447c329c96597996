#include "base/time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace expanse::base {
namespace {

using namespace std::chrono_literals;

TEST(Rfc3339, FormatsWithAsManyDigitsAsNeeded) {
  const WallTime time(1'796'029'687s);
  EXPECT_EQ(FormatRfc3339(time), "2026-11-30T09:08:07Z");
  EXPECT_EQ(FormatRfc3339(time + 250ms), "2026-11-30T09:08:07.250Z");
  EXPECT_EQ(FormatRfc3339(time + 1us), "2026-11-30T09:08:07.000001Z");
  EXPECT_EQ(FormatRfc3339(WallTime(-1s)), "1969-12-31T23:59:59Z");
}

TEST(Rfc3339, ReadsWhatItWritesAndOffsets) {
  for (const auto time :
       {WallTime{}, WallTime(1'796'029'687s + 1us), WallTime(4'000'000'000s + 5ms)}) {
    EXPECT_EQ(ParseRfc3339(FormatRfc3339(time)), time);
  }
  EXPECT_EQ(ParseRfc3339("2026-11-30T14:38:07.5+05:30"), WallTime(1'796'029'687s + 500ms));
  EXPECT_EQ(ParseRfc3339("2026-11-30 09:08:07z"), WallTime(1'796'029'687s));
  EXPECT_EQ(ParseRfc3339("2026-11-30T09:08:07.123456789Z"), WallTime(1'796'029'687s + 123456us));
  EXPECT_EQ(ParseRfc3339("2016-12-31T23:59:60Z"), *ParseRfc3339("2017-01-01T00:00:00Z"));
}

TEST(Rfc3339, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2026-11-30", "2026-11-30T09:08:07", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-11-30T24:00:00Z", "2026-11-30T09:60:00Z", "2026-11-30T09:08:07.Z",
        "2026-11-30T09:08:07.1234567890Z", "2026-11-30T09:08:07+5:30", "2026-11-30T09:08:07+05:60",
        "2026-11-30T09:08:07Zx", "+026-11-30T09:08:07Z", "2026-11-30T09:08: 7Z"}) {
    const auto time = ParseRfc3339(text);
    ASSERT_FALSE(time) << text;
    EXPECT_EQ(time.error().reason, "time.syntax");
  }
}

TEST(Durations, ReadsAllSpellings) {
  EXPECT_EQ(ParseDuration("90s"), 90s);
  EXPECT_EQ(ParseDuration("15m"), 15min);
  EXPECT_EQ(ParseDuration("1h30m"), 90min);
  EXPECT_EQ(ParseDuration("250ms"), 250ms);
  EXPECT_EQ(ParseDuration("1d"), 24h);
  EXPECT_EQ(ParseDuration("1.5h"), 90min);
  EXPECT_EQ(ParseDuration("1 h 5 s"), 1h + 5s);
  EXPECT_EQ(ParseDuration("90"), 90s);
  EXPECT_EQ(ParseDuration("0"), 0s);
  EXPECT_EQ(ParseDuration("1-02:00:00"), 26h);
  EXPECT_EQ(ParseDuration("1-02:30"), 26h + 30min);
  EXPECT_EQ(ParseDuration("1-02"), 26h);
  EXPECT_EQ(ParseDuration("02:30:00"), 150min);
  EXPECT_EQ(ParseDuration(" 30:00 "), 30min);
}

TEST(Durations, RefusesWhatIsNone) {
  for (const char* text : {"", "x", "5x", "-5s", "1h-5m", "1:2:3:4", ":", "1-", "-1:00", "1h5", "s",
                           "nan", "1e5s", "1--2:3"}) {
    const auto duration = ParseDuration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().reason, "duration.syntax") << text;
  }
  for (const char* text :
       {"200000d", "99999999999999999s", "40000-00:00:00", "9223372036854775807:00:00",
        "9223372036854775807:9223372036854775807:00", "36600-9000000000000000:00", "inf"}) {
    const auto duration = ParseDuration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().reason, "duration.range") << text;
  }
}

TEST(Durations, FormatsShortAndExact) {
  EXPECT_EQ(FormatDuration(0ms), "0s");
  EXPECT_EQ(FormatDuration(90min), "1h30m");
  EXPECT_EQ(FormatDuration(250ms), "250ms");
  EXPECT_EQ(FormatDuration(-90s), "-1m30s");
  for (const auto duration : {1ms, 999ms, 61'001ms, 90'061'001ms})
    EXPECT_EQ(ParseDuration(FormatDuration(duration)), duration);
}

TEST(FakeClock, WaitsUntilTimeIsAdvanced) {
  FakeClock clock;
  std::atomic<bool> done{false};
  Duration waited{};
  std::thread waiter([&] {
    const MonoTime start = clock.Mono();
    EXPECT_TRUE(clock.WaitFor({}, 10s));
    waited = clock.Mono() - start;
    done = true;
  });
  while (!done) {
    clock.Advance(1s);
    std::this_thread::yield();
  }
  waiter.join();
  EXPECT_GE(waited, 10s);
}

TEST(FakeClock, JumpsTheWallAlone) {
  FakeClock clock;
  clock.Advance(10s);
  clock.JumpWall(-1h);
  EXPECT_EQ(clock.Mono(), MonoTime(10s));
  EXPECT_EQ(clock.Now(), WallTime(1'800'000'010s) - 1h);
}

TEST(Clocks, StopEndsAWait) {
  std::stop_source source;
  source.request_stop();
  FakeClock fake;
  SystemClock real;
  EXPECT_FALSE(fake.WaitFor(source.get_token(), 1h));
  EXPECT_FALSE(real.WaitFor(source.get_token(), 1h));
  EXPECT_TRUE(real.WaitFor({}, 1ms));
}

}  // namespace
}  // namespace expanse::base
