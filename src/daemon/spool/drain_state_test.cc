#include "daemon/spool/drain_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;

std::string Stream(int number) { return fmt::format("0190a2b4-0000-7000-8000-{:012}", number); }

SegmentName Name(int stream, std::uint64_t sequence) {
  return {.stream_id = Stream(stream), .sequence = sequence, .events = false};
}

TEST(HostState, RemembersHowFarEachStreamWasTaken) {
  HostState host;
  EXPECT_FALSE(host.WasTaken(Name(1, 1)));
  host.MarkTaken(Name(1, 5));
  host.MarkTaken(Name(1, 3));
  host.MarkTaken(Name(2, 1));
  EXPECT_TRUE(host.WasTaken(Name(1, 5)));
  EXPECT_FALSE(host.WasTaken(Name(1, 6)));
  EXPECT_TRUE(host.WasTaken(Name(2, 1)));
  for (int stream = 3; stream <= 9; ++stream) host.MarkTaken(Name(stream, 1));
  EXPECT_EQ(host.streams.size(), HostState::kStreams);
  EXPECT_FALSE(host.WasTaken(Name(1, 1))) << "the oldest stream is forgotten";
  EXPECT_TRUE(host.WasTaken(Name(9, 1)));
}

TEST(HostState, SegmentsBeforeACorrectionKeepTheOneBefore) {
  HostState host;
  host.Saw(Name(1, 1).stream_id);
  host.Correct(90s, Name(2, 10));
  EXPECT_EQ(host.CorrectionOf(Name(1, 99)), 0s);
  EXPECT_EQ(host.CorrectionOf(Name(2, 9)), 0s);
  EXPECT_EQ(host.CorrectionOf(Name(2, 10)), 90s);
  EXPECT_EQ(host.CorrectionOf(Name(3, 1)), 90s);
  host.Correct(0s, Name(3, 5));
  EXPECT_EQ(host.CorrectionOf(Name(3, 4)), 90s);
  EXPECT_EQ(host.CorrectionOf(Name(3, 5)), 0s);
}

// The id of the wrong clock's stream is of a later moment than that of the next one.
TEST(HostState, StreamsCountInTheOrderInWhichTheyCame) {
  HostState host;
  host.Correct(90s, Name(5, 3));
  host.Saw(Name(2, 1).stream_id);
  host.Correct(0s, Name(2, 1));
  EXPECT_EQ(host.CorrectionOf(Name(5, 9)), 90s) << "what was left of it";
  EXPECT_EQ(host.CorrectionOf(Name(2, 1)), 0s);
  EXPECT_EQ(host.CorrectionOf(Name(1, 1)), 0s) << "the next one";
  for (int stream = 10; stream < 20; ++stream) host.MarkTaken(Name(stream, 1));
  EXPECT_EQ(host.CorrectionOf(Name(11, 2)), 0s) << "the corrected one is forgotten";
}

DrainState Example() {
  DrainState state;
  state["node1"].MarkTaken(Name(1, 7));
  state["node1"].MarkTaken(Name(2, 1));
  state["node2"].Correct(-90s, Name(4, 2));
  state["node3"];
  return state;
}

TEST(DrainState, ComesBackFromItsBytes) {
  const auto state = DecodeDrainState(EncodeDrainState(Example()));
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(*state, Example());
}

TEST(DrainState, DamageOfAnyByteIsNoticed) {
  const std::string bytes = EncodeDrainState(Example());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(DecodeDrainState(damaged)) << at;
    EXPECT_FALSE(DecodeDrainState(bytes.substr(0, at))) << at;
  }
}

}  // namespace
}  // namespace expanse::daemon::spool
