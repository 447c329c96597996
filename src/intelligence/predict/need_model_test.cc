#include "intelligence/predict/need_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "intelligence/predict/limits.h"
#include "intelligence/predict/run_testing.h"
#include "intelligence/predict/units.h"

namespace expanse::intelligence::predict {
namespace {

std::vector<Observation> Needs(std::initializer_list<double> gib) {
  std::vector<Observation> needs;
  for (const double need : gib) needs.push_back({.need = need * kGiB});
  return needs;
}

Observation KilledAt(double gib) { return {.need = gib * kGiB, .censored = true, .killed = true}; }

NeedModel Model(const std::vector<Observation>& needs) {
  return *NeedModel::Create(needs, PriorOf(Resource::kMemory, Basis::kExactBundle));
}

TEST(NeedModel, ChanceRisesFromNothingToCertainty) {
  const NeedModel model = Model(Needs({3, 9, 4, 4.5, 20, 3.3}));
  double last = 0;
  for (double gib = 0.01; gib < 1000; gib *= 1.07) {
    const double chance = model.Chance(gib * kGiB);
    EXPECT_GE(chance, last);
    last = chance;
  }
  EXPECT_LT(model.Chance(0.01 * kGiB), 0.01);
  EXPECT_GT(last, 0.999);
  EXPECT_EQ(model.Chance(0), 0);
}

TEST(NeedModel, QuantileIsTheInverseOfChance) {
  for (const auto& needs :
       {Needs({5}), Needs({3, 9, 4, 4.5, 20, 3.3}), Needs({7, 7, 7, 7, 7, 7, 7})}) {
    const NeedModel model = Model(needs);
    for (const double q : {0.05, 0.1, 0.5, 0.9, 0.95, 0.99})
      EXPECT_NEAR(model.Chance(model.Quantile(q)), q, 1e-3);
  }
}

TEST(NeedModel, MassesOfKillsAddUp) {
  // Interleaved kills and needs: all mass must be somewhere, whatever the order.
  std::vector<Observation> needs = {KilledAt(2),   Needs({3})[0], KilledAt(4),  KilledAt(4),
                                    Needs({5})[0], KilledAt(6),   Needs({2})[0]};
  const NeedModel model = Model(needs);
  EXPECT_NEAR(model.Chance(1e6 * kGiB), 1, 1e-9);
  EXPECT_LT(model.Chance(6 * kGiB), 0.9);
  EXPECT_LT(model.Quantile(0.999), 1000 * kGiB);
}

TEST(NeedModel, MoreRunsAreNarrower) {
  double last = 1e9;
  for (const std::size_t count : {1, 2, 4, 8, 16, 64}) {
    std::vector<Observation> needs;
    for (std::size_t i = 0; i < count; ++i) needs.push_back({.need = 8 * kGiB});
    const NeedModel model = Model(needs);
    const double spread = model.Quantile(0.95) / model.Quantile(0.05);
    EXPECT_LT(spread, last);
    last = spread;
  }
  EXPECT_LT(last, 1.1);
}

TEST(NeedModel, RunsOfANameThatWereSubmittedTogetherAreOneKind) {
  const Prior& prior = PriorOf(Resource::kWalltime, Basis::kSameName);
  constexpr std::int64_t kDay = 86'400'000'000;
  std::vector<Observation> together(40, {.need = 1000, .submitted_micros = 100 * kDay});
  std::vector<Observation> apart = together;
  for (std::size_t i = 0; i < apart.size(); ++i)
    apart[i].submitted_micros += static_cast<std::int64_t>(i) * kDay;
  const auto unknown = [&] {
    std::vector<Observation> needs = together;
    for (Observation& need : needs) need.submitted_micros = 0;
    return NeedModel::Create(needs, prior);
  }();
  const auto one = NeedModel::Create(together, prior);
  const auto many = NeedModel::Create(apart, prior);
  EXPECT_LT(one->Chance(1500), 0.93);
  EXPECT_GT(many->Chance(1500), 0.98);
  EXPECT_DOUBLE_EQ(unknown->Chance(1500), many->Chance(1500));
}

TEST(NeedModel, FollowsTheNeedsInScale) {
  // Far above the grain only ratios matter.
  std::vector<Observation> small = Needs({100, 130, 120, 150, 90});
  std::vector<Observation> large = small;
  for (Observation& need : large) need.need *= 50;
  for (const double q : {0.1, 0.5, 0.9, 0.95})
    EXPECT_NEAR(Model(large).Quantile(q) / Model(small).Quantile(q) / 50, 1, 2e-3);
}

TEST(NeedModel, GreaterNeedsNeverLowerTheQuantile) {
  std::vector<Observation> needs = Needs({5, 6, 5.5, 5.2, 6.1});
  double last = 0;
  for (double top = 6.1; top < 30; top *= 1.1) {
    needs.back().need = top * kGiB;
    const double amount = std::max(Model(needs).Quantile(0.95), Model(needs).floor());
    EXPECT_GE(amount, last);
    last = amount;
  }
}

TEST(NeedModel, KillsThatWereNotRepeatedCountForLess) {
  std::vector<Observation> needs;
  for (int i = 0; i < 10; ++i) {
    needs.push_back(KilledAt(10));
    needs.push_back(Needs({4})[0]);
    needs.push_back(Needs({4.1})[0]);
  }
  needs.push_back(KilledAt(10));
  const NeedModel often = Model(needs);
  EXPECT_TRUE(often.killed_last());
  EXPECT_NEAR(often.repeats(), 3.0 / 14, 1e-9);
  EXPECT_NEAR(Model({KilledAt(10)}).repeats(), 0.75, 1e-9);
}

TEST(NeedModel, RecentRunsWeighMoreWhenTheNeedDrifts) {
  std::vector<Observation> drifting;
  for (int i = 0; i < 60; ++i) drifting.push_back({.need = (2 + 0.2 * i) * kGiB});
  EXPECT_TRUE(Model(drifting).recent_weigh_more());
  EXPECT_GT(Model(drifting).Quantile(0.5), 10 * kGiB);
  std::vector<Observation> steady;
  for (int i = 0; i < 60; ++i) steady.push_back({.need = (8 + i % 5) * kGiB});
  EXPECT_FALSE(Model(steady).recent_weigh_more());
}

TEST(Units, AreThoseThatPeopleWrite) {
  constexpr double kMiB = kGiB / 1024;
  EXPECT_EQ(RoundUpToUnit(Resource::kMemory, 1), 64 * kMiB);
  EXPECT_EQ(RoundUpToUnit(Resource::kMemory, 65 * kMiB), 128 * kMiB);
  EXPECT_EQ(RoundUpToUnit(Resource::kMemory, 513 * kMiB), kGiB);
  EXPECT_EQ(RoundUpToUnit(Resource::kMemory, 14.2 * kGiB), 15 * kGiB);
  EXPECT_EQ(RoundUpToUnit(Resource::kMemory, 15 * kGiB), 15 * kGiB);
  EXPECT_EQ(RoundUpToUnit(Resource::kWalltime, 20), 300);
  EXPECT_EQ(RoundUpToUnit(Resource::kWalltime, 3599), 3600);
  EXPECT_EQ(RoundUpToUnit(Resource::kWalltime, 8400), 9000);
  EXPECT_EQ(RoundUpToUnit(Resource::kWalltime, 5 * kHour + 1), 5.5 * kHour);
  EXPECT_EQ(RoundUpToUnit(Resource::kWalltime, 30.2 * kHour), 31 * kHour);
  EXPECT_EQ(RoundUpToUnit(Resource::kCpu, 3.2), 4);
  EXPECT_EQ(Say(Resource::kWalltime, 9000), "2 h 30 min");
  EXPECT_EQ(Say(Resource::kCpu, 1.5), "1.5 cores");
}

Runs OfRequest(double walltime_s, double runtime_s, int count) {
  Runs runs;
  for (int i = 0; i < count; ++i) {
    runs.push_back(Succeeded(1, runtime_s + i));
    runs.back().requested.walltime_s = walltime_s;
  }
  return runs;
}

TEST(SameRequest, TellsRunsOfOneNameApart) {
  Runs runs = OfRequest(1 * kHour, 600, 6);
  const Runs longer = OfRequest(24 * kHour, 20 * kHour, 6);
  runs.insert(runs.end(), longer.begin(), longer.end());
  Amounts asked;
  asked.walltime_s = kHour;
  const auto same = ModelLimit(Resource::kWalltime, runs, Basis::kSameName, asked, std::nullopt);
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->same_request);
  EXPECT_EQ(same->needs.size(), 6u);
  // A request that nothing is known of: of one name nothing, of one source all.
  asked.walltime_s = 5 * kHour;
  EXPECT_FALSE(ModelLimit(Resource::kWalltime, runs, Basis::kSameName, asked, std::nullopt));
  const auto all = ModelLimit(Resource::kWalltime, runs, Basis::kExactBundle, asked, std::nullopt);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->needs.size(), 12u);
}

TEST(Limits, AreBoundedByWhatWasSeen) {
  const Runs runs = {Succeeded(1, 100), Succeeded(100, 90000), Succeeded(30, 4)};
  const auto limit = ModelLimit(Resource::kMemory, runs, Basis::kExactBundle, {}, std::nullopt);
  EXPECT_LE(AmountFor(*limit, 0.9999, /*round_to_units=*/false), 100 * kMostTimes * kGiB);
  EXPECT_GE(AmountFor(*limit, 0.5, /*round_to_units=*/false), 100 * kGiB);
}

}  // namespace
}  // namespace expanse::intelligence::predict
