#include "intelligence/predict/recommend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "intelligence/predict/probability.h"
#include "intelligence/predict/run_testing.h"
#include "intelligence/predict/units.h"

namespace expanse::intelligence::predict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Amounts Asked(std::optional<double> memory_gib, std::optional<double> walltime_s) {
  Amounts amounts;
  if (memory_gib) amounts.memory_bytes = *memory_gib * kGiB;
  amounts.walltime_s = walltime_s;
  return amounts;
}

TEST(Recommend, FourGoodRunsLowerAGreatRequest) {
  const Runs runs = {Succeeded(10.9, 6500), Succeeded(11.2, 6700), Succeeded(11.0, 6600),
                     Succeeded(11.1, 6650)};
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(128, 4 * kHour), {});
  EXPECT_EQ(result.memory.change, Change::kLower);
  EXPECT_GE(*result.memory.amount, 11.2 * kGiB);
  EXPECT_LE(*result.memory.amount, 17 * kGiB);
  EXPECT_EQ(*result.memory.requested, 128 * kGiB);
  EXPECT_GE(*result.joint_chance, 0.95);
  EXPECT_EQ(result.confidence, Confidence::kHigh);
  EXPECT_EQ(result.fit, 4u);
  EXPECT_EQ(result.runs, 4u);
  EXPECT_DOUBLE_EQ(RoundedToCents(*result.score), 0.83);
  EXPECT_EQ(Rounded(*result.completion),
            (Probability{0.90, 0.12, 0.73, 1.00, 4, Basis::kExactBundle}));
  EXPECT_EQ(Rounded(*result.residual),
            (Probability{0.10, 0.12, 0.00, 0.27, 4, Basis::kExactBundle}));
  EXPECT_EQ(result.residual_class, "none");
  EXPECT_THAT(result.risks, IsEmpty());
  EXPECT_THAT(result.evidence, ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(result.right_size, ::testing::StartsWith("memory_lower"));
}

TEST(Recommend, TenOfTenScoreAsTheReferencePrintsIt) {
  const Runs runs(10, Succeeded(5, 1000));
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(5.5, 1200), {});
  EXPECT_EQ(result.fit, 10u);
  EXPECT_DOUBLE_EQ(RoundedToCents(*result.score), 0.92);
}

TEST(Recommend, AKillAtTheLimitRaisesAboveIt) {
  const Runs runs = {OutOfMemoryAt(2)};
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(2, std::nullopt), {});
  EXPECT_EQ(result.memory.change, Change::kRaise);
  EXPECT_GE(*result.memory.amount, 3 * kGiB);
  EXPECT_LE(*result.memory.amount, 8 * kGiB);
  EXPECT_EQ(result.right_size, "memory_raise");
  ASSERT_THAT(result.risks, SizeIs(1));
  EXPECT_EQ(result.risks[0].risk_class, "out_of_memory");
  EXPECT_GT(result.risks[0].probability.mean, 0.5);
  EXPECT_THAT(result.risks[0].summary, HasSubstr("more than 2 GiB"));
  EXPECT_THAT(result.memory.reason, HasSubstr("limit of 2 GiB"));
}

TEST(Recommend, EachKillRaisesFurther) {
  Runs runs;
  double limit = 1;
  for (int tries = 0; tries < 6; ++tries) {
    runs.push_back(OutOfMemoryAt(limit));
    const auto result = Recommend(runs, Basis::kExactBundle, Asked(limit, std::nullopt), {});
    ASSERT_EQ(result.memory.change, Change::kRaise);
    const double next = *result.memory.amount / kGiB;
    EXPECT_GE(next, limit * 1.2);
    EXPECT_LE(next, limit * 5);
    limit = next;
  }
}

TEST(Recommend, AKillBelowWhatOthersNeededAsksForThat) {
  const Runs runs = {Succeeded(36.2, 4000), Succeeded(35.8, 4000), Succeeded(36.0, 4000),
                     OutOfMemoryAt(24)};
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(24, std::nullopt), {});
  EXPECT_EQ(result.memory.change, Change::kRaise);
  EXPECT_GE(*result.memory.amount, 36.2 * kGiB);
  EXPECT_LE(*result.memory.amount, 60 * kGiB);
}

TEST(Recommend, ATimeoutRaisesWalltime) {
  const Runs runs = {TimedOutAt(kHour)};
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(std::nullopt, kHour), {});
  EXPECT_EQ(result.right_size, "walltime_raise");
  EXPECT_GE(*result.walltime.amount, 1.25 * kHour);
  EXPECT_EQ(*result.walltime.amount, RoundUpToUnit(Resource::kWalltime, *result.walltime.amount));
  ASSERT_THAT(result.risks, SizeIs(1));
  EXPECT_EQ(result.risks[0].risk_class, "timeout");
}

TEST(Recommend, CancelledRunsAndNodeFailuresSayNothing) {
  Runs runs = {Ended(Ending::kCancelled), Ended(Ending::kInfrastructure), Ended(Ending::kUnknown)};
  for (RecordedRun& run : runs) {
    run.memory_peak_bytes = 100 * kGiB;
    run.runtime_s = 9 * kHour;
  }
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(4, kHour), {});
  EXPECT_EQ(result.right_size, "none");
  EXPECT_EQ(result.memory.amount, 4 * kGiB);
  EXPECT_FALSE(result.memory.chance);
  EXPECT_FALSE(result.completion);
  EXPECT_FALSE(result.score);
  EXPECT_EQ(result.confidence, Confidence::kLow);
  EXPECT_THAT(result.warnings, SizeIs(2));
}

TEST(Recommend, ACrashSaysWhatMemoryItHadReachedAndNothingOfTime) {
  RecordedRun crash = Succeeded(20, 30);
  crash.ending = Ending::kFailure;
  const auto result = Recommend(Runs{crash, crash}, Basis::kExactBundle, Asked(8, kHour), {});
  EXPECT_EQ(result.walltime.runs, 0u);
  EXPECT_EQ(result.walltime.change, Change::kNone);
  EXPECT_EQ(result.memory.change, Change::kRaise);
  EXPECT_GT(*result.memory.amount, 20 * kGiB);
  EXPECT_EQ(result.risks.size(), 2u);
}

TEST(Recommend, NoRunsKeepWhatWasAsked) {
  const auto result = Recommend({}, Basis::kNone, Asked(4, kHour), {});
  EXPECT_EQ(result.memory.amount, 4 * kGiB);
  EXPECT_EQ(result.walltime.amount, kHour);
  EXPECT_EQ(result.right_size, "none");
  EXPECT_EQ(result.confidence, Confidence::kLow);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("no recorded run")));
}

TEST(Recommend, ARequestThatHeldIsNotRaisedForTheTailAlone) {
  const Runs runs = {Succeeded(6, 1000), Succeeded(5, 900), Succeeded(4, 950)};
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(6.5, 1200), {});
  EXPECT_EQ(result.memory.change, Change::kNone);
  EXPECT_EQ(result.memory.amount, 6.5 * kGiB);
}

TEST(Recommend, ARequestThatANeedNearlyReachedIsRaised) {
  const Runs runs = {Succeeded(6.49, 1000), Succeeded(5, 900), Succeeded(4, 950)};
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(6.5, 4000), {});
  EXPECT_EQ(result.memory.change, Change::kRaise);
}

TEST(Recommend, ASmallGainIsNoChange) {
  const Runs runs(40, Succeeded(9.2, 1000));
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(10.5, 20 * 60), {});
  EXPECT_EQ(result.memory.change, Change::kNone);
  EXPECT_EQ(result.right_size, "none");
}

TEST(Recommend, JointChanceClearsTheTarget) {
  Runs runs;
  for (int i = 0; i < 12; ++i) runs.push_back(Succeeded(4 + 0.5 * (i % 5), 1000 + 300 * (i % 7)));
  for (const double target : {0.8, 0.9, 0.95, 0.99}) {
    const auto result = Recommend(runs, Basis::kExactBundle, {}, {.target = target});
    EXPECT_GE(*result.joint_chance, target);
  }
}

TEST(Recommend, InputSizeIsUsedWhereItExplains) {
  Runs runs;
  for (int i = 1; i <= 12; ++i) {
    runs.push_back(Succeeded(2.0 * i * (i % 2 == 0 ? 1.02 : 0.99), 600.0 * i));
    runs.back().input_size = 1e9 * i;
  }
  PredictOptions options{.input_size = 3e9};
  const auto small = Recommend(runs, Basis::kExactBundle, Asked(64, 4 * kHour), options);
  EXPECT_LT(*small.memory.amount, 10 * kGiB);
  EXPECT_GE(*small.memory.amount, 6 * kGiB);
  EXPECT_THAT(small.memory.reason, HasSubstr("input size explains"));
  options.input_size = 20e9;
  const auto large = Recommend(runs, Basis::kExactBundle, Asked(64, 4 * kHour), options);
  EXPECT_GE(*large.memory.amount, 38 * kGiB);
  // Without the size of the input to come, the largest need stands.
  const auto unknown = Recommend(runs, Basis::kExactBundle, Asked(64, 4 * kHour), {});
  EXPECT_GE(*unknown.memory.amount, 24 * kGiB);
  // Far beyond what was seen a line says nothing.
  options.input_size = 1e12;
  const auto far = Recommend(runs, Basis::kExactBundle, Asked(64, 4 * kHour), options);
  EXPECT_THAT(far.memory.reason, ::testing::Not(HasSubstr("input size")));
}

TEST(Recommend, ASampledPeakGetsHeadroom) {
  Runs runs(30, Succeeded(10, 1000));
  const PredictOptions exact{.round_to_units = false};
  const double measured = *Recommend(runs, Basis::kExactBundle, {}, exact).memory.amount;
  for (RecordedRun& run : runs) run.memory_is_floor = true;
  const double sampled = *Recommend(runs, Basis::kExactBundle, {}, exact).memory.amount;
  EXPECT_NEAR(sampled / measured, 1.05, 1e-3);
}

TEST(Recommend, OldOutliersAreSetAside) {
  Runs runs = {Succeeded(100, 1000)};
  for (int i = 0; i < 29; ++i) runs.push_back(Succeeded(10, 1000));
  EXPECT_GE(*Recommend(runs, Basis::kExactBundle, {}, {}).memory.amount, 100 * kGiB);
  runs.push_back(Succeeded(10, 1000));
  const auto result = Recommend(runs, Basis::kExactBundle, {}, {});
  EXPECT_LT(*result.memory.amount, 100 * kGiB);
  EXPECT_THAT(result.memory.reason, HasSubstr("set aside"));
  // Newer ones that come near it again make it count.
  runs.push_back(Succeeded(60, 1000));
  EXPECT_GE(*Recommend(runs, Basis::kExactBundle, {}, {}).memory.amount, 100 * kGiB);
}

TEST(Recommend, BasisSetsTheConfidence) {
  const Runs runs(3, Succeeded(1, 100));
  EXPECT_EQ(Recommend(runs, Basis::kExactBundle, {}, {}).confidence, Confidence::kHigh);
  EXPECT_EQ(Recommend(runs, Basis::kSimilarBundle, {}, {}).confidence, Confidence::kMedium);
  EXPECT_EQ(Recommend(runs, Basis::kSameName, {}, {}).confidence, Confidence::kMedium);
  EXPECT_EQ(Recommend(runs, Basis::kNone, {}, {}).confidence, Confidence::kLow);
}

TEST(Recommend, OneRunOfTheSameSourceIsNotHighConfidence) {
  EXPECT_EQ(Recommend(Runs{Succeeded(1, 100)}, Basis::kExactBundle, {}, {}).confidence,
            Confidence::kMedium);
  EXPECT_EQ(Recommend(Runs{Ended(Ending::kCancelled), Ended(Ending::kFailure)}, Basis::kExactBundle,
                      {}, {})
                .confidence,
            Confidence::kLow);
}

TEST(Recommend, KillsAloneAreEvidenceAndNoneIsKnownToFit) {
  const auto result =
      Recommend(Runs{OutOfMemoryAt(4), OutOfMemoryAt(8)}, Basis::kExactBundle, Asked(8, 3600), {});
  EXPECT_GT(*result.memory.amount, 8 * kGiB);
  EXPECT_EQ(result.confidence, Confidence::kHigh);
  EXPECT_EQ(result.fit, 0U);
  EXPECT_EQ(result.runs, 2U);
  EXPECT_DOUBLE_EQ(*result.score, 1.0 / 4);
}

TEST(Recommend, AKillThatNoRunGotBeyondDoesNotFit) {
  Runs runs(3, Succeeded(4, 100));
  runs.push_back(OutOfMemoryAt(8));
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(8, 3600), {});
  EXPECT_GT(*result.memory.amount, 8 * kGiB);
  EXPECT_EQ(result.fit, 3U);
  EXPECT_EQ(result.runs, 4U);
}

TEST(Recommend, AKillThatOthersGotBeyondTellsNothingOfFit) {
  Runs runs = {OutOfMemoryAt(2)};
  for (int i = 0; i < 4; ++i) runs.push_back(Succeeded(4, 100));
  const auto result = Recommend(runs, Basis::kExactBundle, Asked(8, 3600), {});
  EXPECT_EQ(result.fit, 4U);
  EXPECT_EQ(result.runs, 4U);
}

TEST(Recommend, OneRunOfANameDoesNotSpeakAgainstTheWalltimeAskedFor) {
  Runs runs = {Succeeded(2, 600)};
  runs[0].requested = Asked(64, 36000);
  const auto one = Recommend(runs, Basis::kSameName, Asked(64, 36000), {});
  EXPECT_EQ(one.walltime.amount, 36000);
  EXPECT_EQ(one.walltime.change, Change::kNone);
  EXPECT_EQ(one.memory.change, Change::kLower);
  // Without a request there is nothing better; and of the same source it tells.
  EXPECT_TRUE(Recommend(runs, Basis::kSameName, {}, {}).walltime.chance);
  EXPECT_EQ(Recommend(runs, Basis::kExactBundle, Asked(64, 36000), {}).walltime.change,
            Change::kLower);
  runs.push_back(runs[0]);
  EXPECT_EQ(Recommend(runs, Basis::kSameName, Asked(64, 36000), {}).walltime.change,
            Change::kLower);
}

TEST(Recommend, AfterATimeoutOfANameTheWalltimeAskedForIsWithinReach) {
  Runs runs(6, Succeeded(2, 600));
  runs.push_back(TimedOutAt(3600));
  for (RecordedRun& run : runs) run.requested = Asked(64, 3600);
  // 1.5 times the limit that was exceeded, as far as the name alone tells.
  const auto bound = Recommend(runs, Basis::kSameName, {}, {});
  EXPECT_LE(*bound.walltime.amount, 1.75 * 3600);
  const auto asked = Recommend(runs, Basis::kSameName, Asked(64, 4 * 3600), {});
  EXPECT_GT(*asked.walltime.amount, 1.75 * 3600);
  EXPECT_LE(*asked.walltime.amount, 4 * 3600);
}

TEST(Recommend, FewRunsAreNotTrustedWithNextToNothing) {
  Runs runs(3, Succeeded(1.0 / 256, 100));
  EXPECT_EQ(Recommend(runs, Basis::kExactBundle, {}, {}).memory.amount, kGiB / 8);
  runs.push_back(runs[0]);
  EXPECT_LT(*Recommend(runs, Basis::kExactBundle, {}, {}).memory.amount, kGiB / 8);
  EXPECT_EQ(Recommend(Runs{Succeeded(1.0 / 16, 100)}, Basis::kExactBundle, {}, {}).memory.amount,
            kGiB / 4);
}

TEST(Recommend, AUnitThatDoublesTheRequestMustBeWorthIt) {
  Runs runs(8, Succeeded(896.0 / 1024, 100));
  runs[2] = runs[7] = Succeeded(930.0 / 1024, 100);
  for (const Basis basis : {Basis::kExactBundle, Basis::kSameName})
    EXPECT_EQ(Recommend(runs, basis, {}, {}).memory.amount, kGiB);
  // While few runs tell, it is.
  EXPECT_EQ(Recommend(Runs(3, runs[0]), Basis::kExactBundle, {}, {}).memory.amount, 2 * kGiB);
  // As it is when some need it.
  runs[2] = Succeeded(1.2, 100);
  EXPECT_EQ(Recommend(runs, Basis::kExactBundle, {}, {}).memory.amount, 2 * kGiB);
}

TEST(Recommend, ALargerInputThanSeenMayTakeMoreThanTwiceWhatWasSeen) {
  Runs runs;
  for (int i = 1; i <= 8; ++i) {
    runs.push_back(Succeeded(2.0 * i, 1000.0 * i));
    runs.back().input_size = 100.0 * i;
  }
  PredictOptions options;
  options.input_size = 3000;
  const auto result = Recommend(runs, Basis::kExactBundle, {}, options);
  EXPECT_GE(*result.memory.amount, 60 * kGiB);
  EXPECT_LE(*result.memory.amount, 120 * kGiB);
  EXPECT_GE(*result.walltime.amount, 30000);
  EXPECT_LE(*result.walltime.amount, 60000);
}

TEST(Recommend, ASmallerInputThanSeenIsTakenForTheSmallestSeen) {
  Runs runs;
  for (int i = 4; i <= 12; ++i) {
    runs.push_back(Succeeded(4.0 * i, 1000.0 * i));
    runs.back().input_size = 100.0 * i;
  }
  PredictOptions options;
  options.input_size = 120;
  EXPECT_GE(*Recommend(runs, Basis::kExactBundle, {}, options).memory.amount, 16 * kGiB);
}

TEST(Recommend, SizesThatHardlyDifferAreNotFollowedFar) {
  // An exponent of about ten within a range of ten per cent.
  Runs runs;
  for (int i = 0; i <= 10; ++i) {
    runs.push_back(Succeeded(10 * std::pow(1 + 0.01 * i, 10), 1000));
    runs.back().input_size = 1000 * (1 + 0.01 * i);
  }
  PredictOptions options;
  options.input_size = 2000;
  const double most = 10 * std::pow(1.1, 10) * std::pow(2000 / 1100.0, 2);
  EXPECT_LE(*Recommend(runs, Basis::kExactBundle, {}, options).memory.amount, 2 * most * kGiB);
}

TEST(Recommend, NonsenseInRunsIsUnknown) {
  RecordedRun run = Succeeded(0, 0);
  run.memory_peak_bytes = std::numeric_limits<double>::quiet_NaN();
  run.runtime_s = -5;
  run.cpu_mean_cores = std::numeric_limits<double>::infinity();
  run.gpus_active = -1;
  run.gpu_memory_peak_bytes = -4;
  Amounts asked = Asked(-3, std::numeric_limits<double>::infinity());
  asked.cpu_cores = 0;
  const auto result = Recommend(Runs{run, run}, Basis::kExactBundle, asked, {});
  EXPECT_FALSE(result.memory.amount);
  EXPECT_FALSE(result.walltime.amount);
  EXPECT_FALSE(result.cpu.amount);
  EXPECT_FALSE(result.gpu_memory_peak_bytes);
  EXPECT_EQ(result.right_size, "none");
  EXPECT_EQ(result.completion->success_count, 2u);
}

TEST(Recommend, ClassNamesComeInOrder) {
  Runs runs(4, Succeeded(2, 7100));
  for (RecordedRun& run : runs) {
    run.requested.cpu_cores = 16;
    run.requested.gpu_count = 4;
    run.cpu_mean_cores = 3;
    run.gpus_active = 1;
  }
  Amounts asked = Asked(64, 7200);
  asked.cpu_cores = 16;
  asked.gpu_count = 4;
  const auto result = Recommend(runs, Basis::kExactBundle, asked, {});
  EXPECT_EQ(result.right_size, "cpu_lower+memory_lower+gpu_lower+walltime_raise");
  EXPECT_EQ(result.cpu.amount, 4);
  EXPECT_EQ(result.gpu.amount, 1);
}

}  // namespace
}  // namespace expanse::intelligence::predict
