#include "cli/render.h"

#include <gtest/gtest.h>

#include "cli/lookup.h"

namespace expanse::cli {
namespace {

TEST(Render, RelativeTimesHaveTwoUnitsAtMost) {
  const base::WallTime now = base::FromMicros(1'790'000'000'000'000);
  EXPECT_EQ(RelativeTime(now, now), "just now");
  EXPECT_EQ(RelativeTime(now, now - std::chrono::seconds(59)), "59s ago");
  EXPECT_EQ(RelativeTime(now, now - std::chrono::seconds(119)), "1m ago");
  EXPECT_EQ(RelativeTime(now, now - std::chrono::minutes(125)), "2h05m ago");
  EXPECT_EQ(RelativeTime(now, now + std::chrono::hours(50)), "in 2d02h");
}

TEST(Render, LabelsAreTheReferencesWords) {
  EXPECT_EQ(Label(data::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY), "out_of_memory");
  EXPECT_EQ(Label(common::v1::COMPUTE_STATE_ACTIVE), "active");
  EXPECT_EQ(Label(common::v1::SOURCE_TYPE_UNSPECIFIED), "");
  EXPECT_EQ(Label(static_cast<data::v1::ExecutionStatus>(99)), "99");  // a newer server's
  EXPECT_EQ(ParseOutcome("out_of_memory"), data::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  EXPECT_EQ(ParseStatus("unspecified"), std::nullopt);
  EXPECT_EQ(ParseSourceType("host"), common::v1::SOURCE_TYPE_HOST);
}

TEST(Render, JsonKeepsProtoNamesAndUnknownStaysAbsent) {
  data::v1::Execution execution;
  execution.set_native_id("7");
  execution.mutable_used()->set_io_read_bytes(std::uint64_t{1} << 60);
  execution.set_exit_code(0);
  const auto json = ToJson(execution);
  ASSERT_TRUE(json);
  EXPECT_EQ(*json,
            "{\n \"native_id\": \"7\",\n \"exit_code\": 0,\n \"used\": {\n"
            "  \"io_read_bytes\": \"1152921504606846976\"\n }\n}\n");
}

TEST(Lookup, StepsBelongToTheirJob) {
  EXPECT_EQ(WithoutStep("41982.batch"), "41982");
  EXPECT_EQ(WithoutStep("41982_7.0"), "41982_7");
  EXPECT_EQ(WithoutStep("41982"), "41982");
  EXPECT_EQ(WithoutStep("pod-a.b"), "pod-a.b");
  EXPECT_EQ(WithoutStep(".5"), ".5");
}

}  // namespace
}  // namespace expanse::cli
