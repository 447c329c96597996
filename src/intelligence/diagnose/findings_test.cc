#include "intelligence/diagnose/findings.h"

#include <gtest/gtest.h>

namespace expanse::intelligence::diagnose {
namespace {

constexpr std::string_view kWorld = R"(
- id: disk
  kind: cause
  title: t
  what: w
  signatures: ['No space', {re: 'ENOSPC', strength: decisive}, {re: 'write', strength: weak}]
  when: [{fact: exit_code, is: ['28']}, {fact: memory_ratio, at_least: 0.9, strength: weak}]
  unless: [{fact: signal, is: ['9']}]
  only: [{fact: scheduler, is: [slurm]}]
  must_match: ['No space left', 'ENOSPC', 'write']
- {id: pod, kind: cause, title: t, what: w, signatures: ['evicted'], must_match: ['evicted']}
)";

class FindingsTest : public testing::Test {
 protected:
  std::vector<Finding> Find() {
    ledger_ = Ledger();
    Facts facts = Facts::Of(case_, &ledger_);
    return FindAll(case_, *set_, &facts, &ledger_, &summary_);
  }
  void Log(std::string stream, std::string data) {
    case_.logs.push_back({.stream = std::move(stream), .data = std::move(data)});
  }

  Case case_;
  Ledger ledger_;
  LogSummary summary_;
  std::shared_ptr<const RunbookSet> set_ = *RunbookSet::Create(
      *ParseRunbooks(kWorld, "world.yaml"), {{.pattern = "No space .ignored.", .why = "harmless"}});
};

TEST_F(FindingsTest, NothingOfNothing) {
  EXPECT_TRUE(Find().empty());
  EXPECT_EQ(summary_.lines, 0U);
}

TEST_F(FindingsTest, CitesTheLineWithItsPlace) {
  Log("stderr", "one\n[rank3]: No space left\nNo space (ignored)\n");
  Log("stdout", "a\nENOSPC\n");
  const auto found = Find();
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].marks.size(), 2U);
  const Item& first = ledger_[found[0].marks[0].item];
  EXPECT_EQ(first.where, "stderr line 2");
  EXPECT_EQ(first.text, "[rank3]: No space left");
  EXPECT_EQ(first.rank, 3U);
  EXPECT_EQ(ledger_[found[0].marks[1].item].where, "stdout line 2");
  EXPECT_EQ(found[0].first_line, 2U);
  EXPECT_EQ(found[0].best, Strength::kDecisive);
  EXPECT_EQ(summary_.lines, 5U);
  EXPECT_EQ(summary_.streams, 2U);
}

TEST_F(FindingsTest, ReadsTheFirstErrorThatTheTailNoLongerShows) {
  case_.logs.push_back({.stream = "stderr", .data = "tail\n", .first_error = "x\nNo space\n"});
  const auto found = Find();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(ledger_[found[0].marks[0].item].where, "stderr (first error) line 2");
}

TEST_F(FindingsTest, CountsKindsOfEvidenceAndNotLines) {
  Log("stderr", "No space A\nNo space B\nNo space C\n");
  const double alone = Find()[0].score;
  EXPECT_NEAR(alone, 3.2, 1e-9);
  case_.execution.exit_code = 28;
  const auto found = Find();
  EXPECT_NEAR(found[0].score, 6.2, 1e-9);
  EXPECT_EQ(found[0].kinds.size(), 2U);
}

TEST_F(FindingsTest, KnowsWhatSpeaksAgainst) {
  Log("stderr", "No space\n");
  case_.execution.signal = 9;
  const auto found = Find();
  ASSERT_EQ(found[0].against.size(), 1U);
  EXPECT_EQ(ledger_[found[0].against[0]].text, "signal 9");
  EXPECT_NEAR(found[0].score, 1.0, 1e-9);
}

TEST_F(FindingsTest, LeavesOutWhatAFactRulesOut) {
  Log("stderr", "No space\n");
  case_.execution.source_type = evidence::SourceType::kNomad;
  EXPECT_TRUE(Find().empty());
}

TEST_F(FindingsTest, ReadsEvents) {
  case_.events.push_back({.source = "kubernetes", .node = "n1", .text = "The pod was evicted"});
  const auto found = Find();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].around_only);
  EXPECT_EQ(ledger_[found[0].marks[0].item].node, "n1");
  EXPECT_FALSE(found[0].first_line);
  case_.events[0].source = "kernel";
  EXPECT_FALSE(Find()[0].around_only);
}

TEST_F(FindingsTest, BoundsTheMarksOfOneClass) {
  std::string log;
  for (int i = 0; i < 400; ++i)
    log += "No space " + std::string(static_cast<std::size_t>(i), 'x') + "\n";
  Log("stderr", log + "ENOSPC\n");
  const auto found = Find();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_LE(found[0].marks.size(), 13U);
  EXPECT_EQ(found[0].best, Strength::kDecisive) << "a stronger one counts whenever it comes";
}

TEST_F(FindingsTest, SetsHowTheOutputEnds) {
  Log("stderr", "fine\nNo space\n");
  Facts facts = Facts::Of(case_, &ledger_);
  FindAll(case_, *set_, &facts, &ledger_, &summary_);
  ASSERT_NE(facts.Find("ends_in_failure"), nullptr);
  EXPECT_EQ(facts.Find("ends_in_failure")->number, 1.0);
  EXPECT_EQ(facts.Find("ends_in_failure")->words, std::vector<std::string>{"disk"});
  case_.logs[0].data += "and on it goes\n";
  facts = Facts::Of(case_, &ledger_);
  FindAll(case_, *set_, &facts, &ledger_, &summary_);
  EXPECT_EQ(facts.Find("ends_in_failure")->number, 0.0);
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
