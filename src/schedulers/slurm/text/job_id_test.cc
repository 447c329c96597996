#include "schedulers/slurm/text/job_id.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

TEST(SlurmJobId, ReadsJobsTasksComponentsAndSteps) {
  EXPECT_EQ(ParseJobId("123"), (JobId{.job_id = 123}));
  EXPECT_EQ(ParseJobId("123_4"), (JobId{.job_id = 123, .array_task = 4}));
  EXPECT_EQ(ParseJobId("123+1"), (JobId{.job_id = 123, .het_offset = 1}));
  EXPECT_EQ(ParseJobId("123.batch"), (JobId{.job_id = 123, .step = "batch"}));
  EXPECT_EQ(ParseJobId("123_4.0"), (JobId{.job_id = 123, .array_task = 4, .step = "0"}));
  EXPECT_EQ(ParseJobId("123+1.extern"), (JobId{.job_id = 123, .het_offset = 1, .step = "extern"}));
  EXPECT_EQ(ParseJobId("123.interactive"), (JobId{.job_id = 123, .step = "interactive"}));
  EXPECT_EQ(ParseJobId("123.TBD"), (JobId{.job_id = 123, .step = "TBD"}));
  EXPECT_EQ(ParseJobId("123.0+1"), (JobId{.job_id = 123, .step = "0+1"}));
}

TEST(SlurmJobId, CountsTheTasksOfAnArrayThatIsNotSplit) {
  const auto id = ParseJobId("123_[0-9%2,12]");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->job_id, 123);
  EXPECT_EQ(id->pending_expression, "0-9%2,12");
  EXPECT_EQ(id->pending_tasks, (ArrayTasks{.count = 11, .throttle = 2}));
  EXPECT_FALSE(id->array_task);
}

TEST(SlurmJobId, RefusesOthers) {
  for (std::string_view text :
       {"", "0", "x", "123_", "123+", "123_x", "123_[0-9", "123_[]", "123.", "123.a b", "123.a/b",
        "-1", "+1", "4294967296", "123_4_5", "123-4", " 123", "123_+1", "123_-1"}) {
    EXPECT_EQ(ParseJobId(text), std::nullopt) << text;
  }
}

TEST(SlurmArrayTasks, CountsRangesAndStrides) {
  EXPECT_EQ(ParseArrayTasks("5"), (ArrayTasks{.count = 1}));
  EXPECT_EQ(ParseArrayTasks("0-99%5"), (ArrayTasks{.count = 100, .throttle = 5}));
  EXPECT_EQ(ParseArrayTasks("1-7:2"), (ArrayTasks{.count = 4}));
  EXPECT_EQ(ParseArrayTasks("1-7:2%3"), (ArrayTasks{.count = 4, .throttle = 3}));
  EXPECT_EQ(ParseArrayTasks("0,4,8-10"), (ArrayTasks{.count = 5}));
  EXPECT_EQ(ParseArrayTasks("0-4294967295"), (ArrayTasks{.count = 4294967296}));
}

TEST(SlurmArrayTasks, SaysWhenSlurmCutTheList) {
  EXPECT_EQ(ParseArrayTasks("0,2,4,..."), (ArrayTasks{.count = 3, .cut = true}));
  EXPECT_EQ(ParseArrayTasks("0,2,1..."), (ArrayTasks{.count = 2, .cut = true}));
}

TEST(SlurmArrayTasks, RefusesOthers) {
  for (std::string_view text : {"", ",", "1,", "9-1", "1-7:0", "a", "1%", "%5", "...,3", "1-2-3"}) {
    EXPECT_EQ(ParseArrayTasks(text), std::nullopt) << text;
  }
}

TEST(SlurmSluid, HasThirteenCrockfordCharacters) {
  EXPECT_TRUE(IsSluid("s8VNHDMQ2Y5D00"));
  EXPECT_FALSE(IsSluid("s8VNHDMQ2Y5D0"));
  EXPECT_FALSE(IsSluid("s8VNHDMQ2Y5D000"));
  EXPECT_FALSE(IsSluid("s8VNHDMQ2Y5D0I"));  // I, L, O and U are not in the alphabet
  EXPECT_FALSE(IsSluid("S8VNHDMQ2Y5D00"));
  EXPECT_FALSE(IsSluid("s8vnhdmq2y5d00"));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
