#include "intelligence/diagnose/verdict.h"

#include <gtest/gtest.h>

namespace expanse::intelligence::diagnose {
namespace {

using evidence::ExecutionStatus;
using predict::Confidence;

// A small world: two causes, one of which explains a symptom and an outcome.
constexpr std::string_view kWorld = R"(
- {id: full, kind: cause, title: t, what: w, when: [{fact: state, is: x}], explains: [slow, failed], in_success: true}
- {id: broken, kind: cause, title: t, what: w, when: [{fact: state, is: x}], priority: 5, explains: [killed]}
- {id: named, kind: cause, title: t, what: w, when: [{fact: state, is: x}], may_be_high: false}
- {id: slow, kind: symptom, title: t, what: w, when: [{fact: state, is: x}], explains: [failed]}
- {id: failed, kind: outcome, title: t, what: w, when: [{fact: state, is: x}]}
- {id: killed, kind: cause, title: t, what: w, when: [{fact: state, is: x}]}
)";

class VerdictTest : public testing::Test {
 protected:
  // A finding with one mark of each kind of evidence.
  Finding Found(std::string_view id, Strength best, std::vector<Origin> kinds,
                std::optional<std::size_t> line = {}) {
    Finding finding;
    finding.runbook = set_->IndexOf(id);
    finding.best = best;
    for (const Origin kind : kinds)
      finding.marks.push_back({.item = 0, .origin = kind, .strength = best});
    const double weight = best == Strength::kDecisive ? 5 : best == Strength::kStrong ? 3 : 1;
    finding.score = weight * static_cast<double>(kinds.size());
    finding.kinds = std::move(kinds);
    finding.first_line = line;
    return finding;
  }
  Verdict Say(std::vector<Finding> findings, ExecutionStatus status = ExecutionStatus::kFailed) {
    Case of;
    of.execution.status = status;
    return Judge(std::move(findings), *set_, of);
  }
  std::string Best(const Verdict& verdict) {
    return verdict.best ? set_->runbooks()[verdict.best->runbook].id : "none";
  }

  std::shared_ptr<const RunbookSet> set_ =
      *RunbookSet::Create(*ParseRunbooks(kWorld, "world.yaml"), {});
};

TEST_F(VerdictTest, NothingOfNothing) {
  const Verdict verdict = Say({});
  EXPECT_FALSE(verdict.best);
  EXPECT_EQ(verdict.state, State::kFailed);
  EXPECT_EQ(verdict.confidence, Confidence::kLow);
}

TEST_F(VerdictTest, CausesAbsorbWhatTheyExplain) {
  const Verdict verdict = Say({Found("failed", Strength::kDecisive, {Origin::kExit}),
                               Found("slow", Strength::kStrong, {Origin::kText}),
                               Found("full", Strength::kStrong, {Origin::kText})});
  EXPECT_EQ(Best(verdict), "full");
  EXPECT_TRUE(verdict.alternatives.empty());
  EXPECT_EQ(verdict.best->absorbed.size(), 2U);
}

TEST_F(VerdictTest, CausesBeatSymptomsAndThoseOutcomes) {
  EXPECT_EQ(Best(Say({Found("slow", Strength::kDecisive, {Origin::kText, Origin::kMetric}),
                      Found("broken", Strength::kStrong, {Origin::kText})})),
            "broken");
  EXPECT_EQ(Best(Say({Found("failed", Strength::kDecisive, {Origin::kExit}),
                      Found("slow", Strength::kStrong, {Origin::kText})})),
            "slow");
}

TEST_F(VerdictTest, ConfidenceCountsKindsOfEvidence) {
  EXPECT_EQ(Say({Found("full", Strength::kStrong, {Origin::kText})}).confidence,
            Confidence::kMedium);
  EXPECT_EQ(Say({Found("full", Strength::kStrong, {Origin::kText, Origin::kExit})}).confidence,
            Confidence::kHigh);
  EXPECT_EQ(Say({Found("full", Strength::kDecisive, {Origin::kText})}).confidence,
            Confidence::kHigh);
  EXPECT_EQ(Say({Found("full", Strength::kWeak, {Origin::kText})}).confidence, Confidence::kLow);
  EXPECT_EQ(Say({Found("named", Strength::kDecisive, {Origin::kText})}).confidence,
            Confidence::kMedium);
  EXPECT_EQ(Say({Found("slow", Strength::kDecisive, {Origin::kText})}).confidence,
            Confidence::kMedium);
  EXPECT_EQ(Say({Found("failed", Strength::kDecisive, {Origin::kExit})}).confidence,
            Confidence::kLow);
}

TEST_F(VerdictTest, WhatSpeaksAgainstItLowersConfidence) {
  Finding finding = Found("full", Strength::kDecisive, {Origin::kText});
  finding.against = {0};
  const Verdict verdict = Say({finding});
  EXPECT_EQ(verdict.confidence, Confidence::kMedium);
  EXPECT_FALSE(verdict.doubts.empty());
}

TEST_F(VerdictTest, ARivalLowersConfidenceAndIsAnAlternative) {
  const Verdict verdict = Say({Found("full", Strength::kDecisive, {Origin::kText}, 9),
                               Found("broken", Strength::kDecisive, {Origin::kText}, 20)});
  EXPECT_EQ(Best(verdict), "broken") << "priority";
  EXPECT_EQ(verdict.confidence, Confidence::kMedium);
  ASSERT_EQ(verdict.alternatives.size(), 1U);
}

TEST_F(VerdictTest, OfEqualsTheFirstInTheOutputWins) {
  EXPECT_EQ(Best(Say({Found("full", Strength::kStrong, {Origin::kText}, 40),
                      Found("named", Strength::kStrong, {Origin::kText}, 3)})),
            "named");
  EXPECT_EQ(Best(Say({Found("full", Strength::kStrong, {Origin::kMetric}),
                      Found("named", Strength::kStrong, {Origin::kText}, 3)})),
            "named");
}

TEST_F(VerdictTest, TextDoesNotExplainAwayWhatTheSchedulerNames) {
  const auto killed = Found("killed", Strength::kDecisive, {Origin::kScheduler});
  EXPECT_EQ(Best(Say({Found("broken", Strength::kStrong, {Origin::kText}), killed})), "killed");
  EXPECT_EQ(Best(Say({Found("broken", Strength::kWeak, {Origin::kText, Origin::kExit}), killed})),
            "killed");
  EXPECT_EQ(Best(Say({Found("broken", Strength::kStrong, {Origin::kMetric}), killed})), "broken");
  EXPECT_EQ(Best(Say({Found("broken", Strength::kDecisive, {Origin::kText}), killed})), "broken");
}

TEST_F(VerdictTest, WhatGoesOnAroundARunYieldsToItsOutput) {
  Finding around = Found("broken", Strength::kDecisive, {Origin::kEvent});
  around.around_only = true;
  EXPECT_EQ(Best(Say({around, Found("named", Strength::kStrong, {Origin::kText}, 1)})), "named");
  EXPECT_EQ(Best(Say({around, Found("named", Strength::kStrong, {Origin::kMetric})})), "broken");
}

TEST_F(VerdictTest, ARunThatDidNotFailNeedsADecisiveMarkOfAClassForIt) {
  const auto success = ExecutionStatus::kSucceeded;
  EXPECT_EQ(Best(Say({Found("full", Strength::kStrong, {Origin::kText, Origin::kExit})}, success)),
            "none");
  EXPECT_EQ(Best(Say({Found("broken", Strength::kDecisive, {Origin::kText})}, success)), "none");
  const Verdict verdict = Say({Found("full", Strength::kDecisive, {Origin::kText})}, success);
  EXPECT_EQ(Best(verdict), "full");
  EXPECT_EQ(verdict.confidence, Confidence::kMedium);
}

TEST_F(VerdictTest, AtMostTwoAlternatives) {
  const Verdict verdict = Say({Found("full", Strength::kStrong, {Origin::kText}),
                               Found("broken", Strength::kStrong, {Origin::kText}),
                               Found("named", Strength::kStrong, {Origin::kText}),
                               Found("slow", Strength::kStrong, {Origin::kEvent})});
  EXPECT_LE(verdict.alternatives.size(), 2U);
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
