#include "daemon/spool/host_clock.h"

#include <gtest/gtest.h>

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

const base::WallTime kStart = base::FromMicros(1'800'000'000'000'000);

// A host whose clock is `ahead`, seen by a controller that looks every second, `late` after the
// true moment.
class Host {
 public:
  microseconds ahead{};
  microseconds late = 400ms;
  bool prompt = true;
  std::optional<microseconds> file_ahead;  // of the file's time against the controller's clock

  // Ten seconds later a segment comes. True: the correction changed.
  bool Segment(HostClock* clock, bool seen_to_come = true, const std::string& stream = "a") {
    passed_ += 10s;
    const base::WallTime now = kStart + passed_;
    const ClockReading reading{.wall = now + ahead, .mono = base::MonoTime(passed_)};
    Sighting sighting{.handed_over = reading,
                      .seen = now + late,
                      .looked_before = now + late - 1s,
                      .prompt = prompt,
                      .file_time = {}};
    if (file_ahead) sighting.file_time = now + *file_ahead;
    return clock->Note(stream, reading, seen_to_come ? std::optional(sighting) : std::nullopt);
  }

 private:
  microseconds passed_{};
};

TEST(HostClock, LeavesARightClockAlone) {
  HostClock clock;
  Host host;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(host.Segment(&clock));
  EXPECT_EQ(clock.correction(), 0us);
  EXPECT_EQ(clock.skew(), 0us);
}

TEST(HostClock, ANewStreamWithARightClockIsBelievedAtOnce) {
  for (const microseconds ahead : {microseconds(90s), microseconds(-90s)}) {
    HostClock clock;
    Host host;
    host.ahead = ahead;
    for (int i = 0; i < 10; ++i) host.Segment(&clock);
    EXPECT_FALSE(host.Segment(&clock, true, "b")) << "the clock is as wrong as before";
    ASSERT_LT(std::chrono::abs(clock.correction() - ahead), 1s);
    host.ahead = 0s;
    EXPECT_TRUE(host.Segment(&clock, true, "c"));
    EXPECT_EQ(clock.correction(), 0us);
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(host.Segment(&clock, true, "c"));
  }
}

TEST(HostClock, CorrectsNinetySecondsEitherWayOnceLooksAgree) {
  for (const microseconds ahead : {microseconds(90s), microseconds(-90s)}) {
    HostClock clock;
    Host host;
    host.ahead = ahead;
    int changes = 0;
    for (int i = 0; i < 4; ++i) changes += host.Segment(&clock) ? 1 : 0;
    EXPECT_EQ(clock.correction(), 0us) << "not sure yet";
    for (int i = 0; i < 16; ++i) changes += host.Segment(&clock) ? 1 : 0;
    EXPECT_LT(std::chrono::abs(clock.correction() - ahead), 1s);
    EXPECT_EQ(changes, 1);
  }
}

TEST(HostClock, LeavesLittleSkewsAlone) {
  HostClock clock;
  Host host;
  host.ahead = 1900ms;
  for (int i = 0; i < 20; ++i) host.Segment(&clock);
  EXPECT_EQ(clock.correction(), 0us);
}

TEST(HostClock, ABacklogSaysNothingOfTheClock) {
  HostClock clock;
  Host host;
  host.late = 1h;  // the controller was away
  for (int i = 0; i < 20; ++i) host.Segment(&clock, /*seen_to_come=*/false);
  EXPECT_FALSE(clock.skew());
  EXPECT_EQ(clock.correction(), 0us);
}

TEST(HostClock, LooksThatDisagreeChangeNothing) {
  HostClock clock;
  Host host;
  for (int i = 0; i < 20; ++i) {
    host.ahead = i % 2 == 0 ? 90s : 30s;
    host.Segment(&clock, true, i % 2 == 0 ? "a" : "b");  // two machines of one name
  }
  EXPECT_EQ(clock.correction(), 0us);
}

// A directory on NFS is seen up to half a minute late: that is no skew.
TEST(HostClock, OnNfsALateLookIsNoSkew) {
  HostClock clock;
  Host host;
  host.prompt = false;
  host.file_ahead = 0us;
  for (int i = 0; i < 20; ++i) {
    host.late = microseconds((i * 7 % 30) * 1s);
    EXPECT_FALSE(host.Segment(&clock));
  }
  EXPECT_EQ(clock.skew(), 0us);
}

TEST(HostClock, OnNfsTheFilesTimeTellsAClockThatIsBehind) {
  HostClock clock;
  Host host;
  host.prompt = false;
  host.file_ahead = 0us;
  host.ahead = -90s;
  for (int i = 0; i < 6; ++i) host.Segment(&clock);
  EXPECT_EQ(clock.correction(), -90s);
}

TEST(HostClock, WithoutTheServersTimeOnlyAClockThatIsAheadShows) {
  HostClock clock;
  Host host;
  host.prompt = false;
  host.ahead = -90s;
  for (int i = 0; i < 6; ++i) host.Segment(&clock);
  EXPECT_FALSE(clock.skew());
  host.ahead = 90s;
  for (int i = 0; i < 6; ++i) host.Segment(&clock);
  EXPECT_GT(clock.correction(), 89s);
}

// ntpd comes up and sets the clock: the very next segment is right.
TEST(HostClock, AStepOfTheHostsClockMovesTheCorrectionAtOnce) {
  HostClock clock;
  Host host;
  host.ahead = 90s;
  for (int i = 0; i < 6; ++i) host.Segment(&clock);
  ASSERT_GT(clock.correction(), 89s);
  host.ahead = 0us;
  EXPECT_TRUE(host.Segment(&clock));
  EXPECT_EQ(clock.correction(), 0us);
  host.ahead = -3600s;
  EXPECT_TRUE(host.Segment(&clock));
  EXPECT_LT(std::chrono::abs(clock.correction() + 3600s), 1s);
}

TEST(HostClock, ARestartGoesOnWithTheCorrectionInForce) {
  HostClock clock(90s);
  Host host;
  host.ahead = 90s;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(host.Segment(&clock));
  EXPECT_EQ(clock.correction(), 90s);
  // It was put right while nobody looked.
  host.ahead = 0us;
  HostClock later(90s);
  for (int i = 0; i < 6; ++i) host.Segment(&later);
  EXPECT_EQ(later.correction(), 0us);
}

TEST(HostClock, TheControllersOwnClockBeingSetIsNoSkewOfTheHost) {
  const ClockReading reading{.wall = kStart, .mono = {}};
  EXPECT_FALSE(HostClock::Estimate(
      {.handed_over = reading, .seen = kStart - 1h, .looked_before = kStart, .prompt = true}));
}

}  // namespace
}  // namespace expanse::daemon::spool
