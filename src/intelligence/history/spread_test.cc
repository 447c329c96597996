#include "intelligence/history/spread.h"

#include <gtest/gtest.h>

#include <deque>

namespace expanse::intelligence::history {
namespace {

using predict::Resource;

struct Measured {
  std::string arguments;
  double memory = 1;
  double runtime = 100;
  predict::Ending ending = predict::Ending::kSuccess;
};

std::optional<Explained> Explain(const std::vector<Measured>& measured) {
  std::deque<predict::Run> runs;
  std::vector<GroupedRun> grouped;
  for (const Measured& one : measured) {
    runs.push_back(
        {.ending = one.ending, .runtime_s = one.runtime, .memory_peak_bytes = one.memory});
    grouped.push_back({.run = &runs.back(), .arguments = one.arguments});
  }
  return ExplainedByArguments(grouped);
}

TEST(ExplainedByArguments, TellsWhatLiesBetweenTheGroups) {
  const auto explained =
      Explain({{"a", 1.0}, {"a", 1.1}, {"b", 10}, {"b", 11}, {"c", 100}, {"c", 101}});
  ASSERT_TRUE(explained);
  EXPECT_GT(explained->share, 0.99);
  EXPECT_EQ(explained->resource, Resource::kMemory);
  const auto time =
      Explain({{"a", 1, 10}, {"a", 1, 11}, {"b", 1, 90}, {"b", 1, 99}, {"b", 1, 90}, {"b", 1, 91}});
  ASSERT_TRUE(time);
  EXPECT_EQ(time->resource, Resource::kWalltime);
  const auto nothing = Explain({{"a", 1}, {"a", 9}, {"b", 1}, {"b", 9}, {"c", 1}, {"c", 9}});
  ASSERT_TRUE(nothing);
  EXPECT_LT(nothing->share, 0.1) << "within the groups";
}

TEST(ExplainedByArguments, SaysNothingOfTooLittle) {
  EXPECT_FALSE(Explain({}));
  EXPECT_FALSE(Explain({{"a", 1}, {"a", 1}, {"b", 9}, {"b", 9}, {"b", 9}})) << "five";
  EXPECT_FALSE(Explain({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}, {"f", 6}}))
      << "none twice";
  EXPECT_FALSE(Explain({{"a", 1}, {"a", 5}, {"a", 1}, {"a", 3}, {"a", 1}, {"b", 6}}))
      << "one twice";
  EXPECT_FALSE(Explain({{"a", 100}, {"a", 101}, {"b", 102}, {"b", 103}, {"c", 99}, {"c", 100}}))
      << "hardly any spread";
  EXPECT_FALSE(Explain(
      {{"a", 1}, {"a", 1}, {"b", 9}, {"b", 9}, {"b", 9}, {"a", 1, 100, predict::Ending::kFailure}}))
      << "what failed does not count";
  EXPECT_FALSE(
      Explain({{"a", 0, 0}, {"a", 0, 0}, {"b", 0, 0}, {"b", 0, 0}, {"c", 0, 0}, {"c", 0, 0}}));
}

TEST(OneThatVaries, IsTheOnlyOne) {
  const RunNumbers asked{"s", {1, 2, 3}};
  EXPECT_EQ(OneThatVaries(asked, {{"s", {1, 5, 3}}, {"s", {1, 7, 3}}}), 1U);
  EXPECT_EQ(OneThatVaries(asked, {{"s", {1, 2, 3}}}), std::nullopt);
  EXPECT_EQ(OneThatVaries(asked, {{"s", {1, 5, 4}}}), std::nullopt);
  EXPECT_EQ(OneThatVaries(asked, {{"other", {1, 5, 3}}}), std::nullopt);
  EXPECT_EQ(OneThatVaries(asked, {{"other", {9, 9, 9}}, {"s", {1, 2, 9}}, {"s", {2}}}), 2U);
  EXPECT_EQ(OneThatVaries({}, {}), std::nullopt);
}

}  // namespace
}  // namespace expanse::intelligence::history
