#include "intelligence/predict/probability.h"

#include <gtest/gtest.h>

#include <cmath>

namespace expanse::intelligence::predict {
namespace {

std::vector<Run> Runs(std::initializer_list<Ending> endings) {
  std::vector<Run> runs;
  for (const Ending ending : endings) runs.emplace_back().ending = ending;
  return runs;
}

std::vector<Run> Successes(std::size_t count) {
  std::vector<Run> runs(count);
  for (Run& run : runs) run.ending = Ending::kSuccess;
  return runs;
}

TEST(Probability, FourOfFourAsTheReferencePrintsIt) {
  const auto runs = Runs({Ending::kSuccess, Ending::kSuccess, Ending::kSuccess, Ending::kSuccess});
  const auto completion = CompletionProbability(runs, Basis::kExactBundle);
  ASSERT_TRUE(completion);
  const Probability rounded = Rounded(*completion);
  EXPECT_EQ(rounded, (Probability{0.90, 0.12, 0.73, 1.00, 4, Basis::kExactBundle}));
  EXPECT_EQ(Rounded(Residual(*completion)),
            (Probability{0.10, 0.12, 0.00, 0.27, 4, Basis::kExactBundle}));
}

TEST(Probability, RecurrenceOfNoneOfNineAsTheReferencePrintsIt) {
  const auto recurrence = RecurrenceProbability(Successes(9), Basis::kExactBundle);
  ASSERT_TRUE(recurrence);
  EXPECT_EQ(Rounded(*recurrence), (Probability{0.05, 0.07, 0.00, 0.14, 9, Basis::kExactBundle}));
}

TEST(Probability, RunsThatSayNothingDoNotCount) {
  const auto runs = Runs({Ending::kSuccess, Ending::kCancelled, Ending::kInfrastructure,
                          Ending::kUnknown, Ending::kTimeout});
  const auto completion = CompletionProbability(runs, Basis::kSameName);
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->success_count, 1u);
  EXPECT_DOUBLE_EQ(completion->mean, 0.5);
}

TEST(Probability, FewerThanTwoRunsAreUnknown) {
  EXPECT_FALSE(CompletionProbability({}, Basis::kExactBundle));
  EXPECT_FALSE(CompletionProbability(Runs({Ending::kSuccess}), Basis::kExactBundle));
  EXPECT_FALSE(RecurrenceProbability(Runs({Ending::kSuccess, Ending::kCancelled}), Basis::kNone));
  EXPECT_TRUE(CompletionProbability(Runs({Ending::kSuccess, Ending::kFailure}), Basis::kNone));
}

TEST(Probability, MomentsAndQuantilesAreThoseOfTheBeta) {
  // Beta(1/2, 1/2) is the arcsine law: quantile(q) = sin²(πq/2).
  const Probability none = JeffreysProbability(0, 0, Basis::kNone);
  EXPECT_DOUBLE_EQ(none.mean, 0.5);
  EXPECT_NEAR(none.p10, std::pow(std::sin(std::acos(-1.0) * 0.05), 2), 1e-9);
  EXPECT_NEAR(none.p90, std::pow(std::sin(std::acos(-1.0) * 0.45), 2), 1e-9);
  EXPECT_NEAR(none.sigma, std::sqrt(0.125), 1e-12);
}

TEST(Probability, NarrowsWithMoreRunsAndStaysOrdered) {
  double sigma = 1;
  for (std::size_t n = 2; n <= 4096; n *= 2) {
    const Probability p = JeffreysProbability(n / 2, n, Basis::kNone);
    EXPECT_LT(p.sigma, sigma);
    EXPECT_LT(p.p10, p.mean);
    EXPECT_GT(p.p90, p.mean);
    sigma = p.sigma;
    for (std::size_t s = 0; s < n; s += 1 + n / 8) {
      const Probability lower = JeffreysProbability(s, n, Basis::kNone);
      const Probability higher = JeffreysProbability(s + 1, n, Basis::kNone);
      EXPECT_LT(lower.mean, higher.mean);
      EXPECT_LE(lower.p10, higher.p10);
      EXPECT_LE(lower.p90, higher.p90);
      EXPECT_TRUE(lower.p10 >= 0 && lower.p90 <= 1);
    }
  }
}

TEST(Probability, ExtremeCountsAreFinite) {
  const Probability all = JeffreysProbability(50'000'000, 50'000'000, Basis::kNone);
  EXPECT_TRUE(all.p10 > 0.9999999 && all.p10 <= 1 && all.p90 <= 1);
  EXPECT_EQ(JeffreysProbability(9, 4, Basis::kNone).success_count, 4u);
}

}  // namespace
}  // namespace expanse::intelligence::predict
