#include "data/bounds.h"

#include <gtest/gtest.h>

#include <string>

namespace expanse::data {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TokenBucket, LetsTheBurstThroughThenTheRate) {
  base::FakeClock clock;
  TokenBucket bucket(/*rate=*/10, /*burst=*/100, clock.Mono());
  EXPECT_TRUE(bucket.CanTake(100, clock.Mono()));
  bucket.Take(100);
  EXPECT_FALSE(bucket.CanTake(1, clock.Mono()));
  clock.Advance(milliseconds(100));
  EXPECT_TRUE(bucket.CanTake(1, clock.Mono()));
  EXPECT_FALSE(bucket.CanTake(2, clock.Mono()));
}

TEST(TokenBucket, LetsABatchAboveTheBurstThroughAndCountsItsDebt) {
  base::FakeClock clock;
  TokenBucket bucket(10, 100, clock.Mono());
  ASSERT_TRUE(bucket.CanTake(300, clock.Mono()));
  bucket.Take(300);
  clock.Advance(seconds(20));  // 200 of debt, 200 back
  EXPECT_FALSE(bucket.CanTake(1, clock.Mono()));
  clock.Advance(seconds(1));
  EXPECT_TRUE(bucket.CanTake(10, clock.Mono()));
}

TEST(TokenBucket, NeverHoldsMoreThanItsBurst) {
  base::FakeClock clock;
  TokenBucket bucket(10, 100, clock.Mono());
  clock.Advance(std::chrono::hours(1));
  bucket.GiveBack(1000);
  ASSERT_TRUE(bucket.CanTake(100, clock.Mono()));
  bucket.Take(100);
  EXPECT_FALSE(bucket.CanTake(1, clock.Mono()));
}

TEST(ComputeBounds, KeepsComputesApart) {
  base::FakeClock clock;
  ComputeBounds bounds(1, 1000, clock);
  EXPECT_TRUE(bounds.Take("a", {.records = 10, .samples = 0}));
  const auto refused = bounds.Take("a", {.records = 1, .samples = 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kResourceExhausted);
  EXPECT_EQ(refused.error().reason, "ingest.record_rate");
  EXPECT_TRUE(bounds.Take("b", {.records = 1, .samples = 0}));
}

TEST(ComputeBounds, TakesNeitherWhenOneIsOver) {
  base::FakeClock clock;
  ComputeBounds bounds(10, 10, clock);
  EXPECT_TRUE(bounds.Take("a", {.records = 0, .samples = 100}));
  EXPECT_EQ(bounds.Take("a", {.records = 100, .samples = 1}).error().reason, "ingest.sample_rate");
  EXPECT_TRUE(bounds.Take("a", {.records = 100, .samples = 0}))
      << "the records of the refused batch were not taken";
}

TEST(ComputeBounds, GivesBack) {
  base::FakeClock clock;
  ComputeBounds bounds(1, 1, clock);
  EXPECT_TRUE(bounds.Take("a", {.records = 10, .samples = 10}));
  bounds.GiveBack("a", {.records = 10, .samples = 10});
  EXPECT_TRUE(bounds.Take("a", {.records = 10, .samples = 10}));
}

TEST(ComputeBounds, ZeroMeansNoBound) {
  base::FakeClock clock;
  ComputeBounds bounds(0, 0, clock);
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(bounds.Take("a", {.records = 1'000'000, .samples = 100'000'000}));
}

TEST(ComputeBounds, ForgetsComputesThatAreIdle) {
  base::FakeClock clock;
  ComputeBounds bounds(1, 1, clock);
  for (int i = 0; i < 10'000; ++i)
    ASSERT_TRUE(bounds.Take(std::to_string(i), {.records = 1, .samples = 0}));
  EXPECT_EQ(bounds.tracked(), 10'000U);
  clock.Advance(seconds(60));
  EXPECT_TRUE(bounds.Take("one more", {.records = 1, .samples = 0}));
  EXPECT_EQ(bounds.tracked(), 1U);
}

}  // namespace
}  // namespace expanse::data
