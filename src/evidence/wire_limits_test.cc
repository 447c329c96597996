// What is too much of is cut, so that no long value costs the record it stands in.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "evidence/wire.h"

namespace expanse::evidence {
namespace {

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

Record RecordOf(const Execution& execution) {
  return {.sequence = 7,
          .observed_at = kNow,
          .payload = ExecutionObservation{{SourceType::kSlurm, "51234@1799999900"}, execution}};
}

TEST(WireLimits, CutsStepsThatAreTooManyOrTooLong) {
  Execution e;
  for (int i = 0; i < 2000; ++i) {
    e.steps.push_back({.id = std::to_string(i), .name = std::string(2000, 'n')});
    e.steps.back().tres_used = std::string(2000, 't');
  }
  e.steps[1999].status = ExecutionStatus::kFailed;
  const auto back = Decode(Encode(RecordOf(e)), kNow);
  ASSERT_TRUE(back) << back.error().message;
  const Execution& taken = std::get<ExecutionObservation>(back->payload).execution;
  ASSERT_EQ(taken.steps.size(), WireLimits{}.steps);
  EXPECT_EQ(taken.steps.back().id, "1999");
  EXPECT_EQ(taken.steps[0].name.size(), WireLimits{}.step_text);
  ASSERT_EQ(taken.capture_notes.size(), 2U);
  EXPECT_EQ(taken.capture_notes[1], "too long, cut: steps");
}

TEST(WireLimits, CutsACommandLineAtItsBytes) {
  Execution e;
  e.command = {"python3", "-c", std::string(300'000, 'x'), "last"};
  const Execution cut = FitLimits(e);
  ASSERT_EQ(cut.command.size(), 3U);
  EXPECT_EQ(cut.command[2].size(), WireLimits{}.command_bytes - 9);
  EXPECT_TRUE(Decode(Encode(RecordOf(e)), kNow));
}

TEST(WireLimits, CutsNodesAtTheBytesThatTheyTakeUp) {
  Execution e;
  e.nodes.assign(60'000, std::string(50, 'n'));
  EXPECT_EQ(FitLimits(e).nodes.size(), e.nodes.size());
  for (const char byte : {'n', '\x96'}) {
    e.nodes.assign(60'000, std::string(200, byte));
    const Execution cut = FitLimits(e);
    EXPECT_LT(cut.nodes.size(), e.nodes.size());
    EXPECT_GT(cut.nodes.size(), 4'000U);
    EXPECT_EQ(cut.capture_notes.at(0), "too long, cut: nodes");
    EXPECT_TRUE(Decode(Encode(RecordOf(e)), kNow));
  }
}

}  // namespace
}  // namespace expanse::evidence
