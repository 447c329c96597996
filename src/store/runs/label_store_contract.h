// What every backend of LabelStore and DiagnosisQueue does, as tests. A backend's test file
// includes this once and says
//   INSTANTIATE_TEST_SUITE_P(Sqlite, LabelStoreContract, ::testing::Values(&OpenIn));
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/runs/run_store_contract.h"

namespace expanse::store {

class LabelStoreContract : public RunStoreContract {
 protected:
  static FailureLabel Label(const std::string& execution, std::int64_t ended_at,
                            const std::string& failure_class = "disk_full") {
    return {.organisation_id = "o1",
            .execution_id = execution,
            .compute_id = "c1",
            .failure_class = failure_class,
            .title = "Disk full",
            .confidence = 2,
            .run_id = "",
            .asked_by = "system",
            .user = "mara",
            .workload = "w-" + execution,
            .nodes = {"n1"},
            .ended_at = At(ended_at),
            .diagnosed_at = At(ended_at + 5)};
  }
  std::vector<std::string> Labelled(const std::vector<std::string>& ids,
                                    const std::string& organisation = "o1") {
    std::vector<std::string> found;
    const auto labels = store_->labels().Get(organisation, ids);
    EXPECT_TRUE(labels);
    if (!labels) return found;
    for (const FailureLabel& label : *labels)
      found.push_back(label.execution_id + " " + label.failure_class);
    return found;
  }
  static DiagnosisChange Change(const std::string& execution, std::optional<std::int64_t> due) {
    DiagnosisChange change{.organisation_id = "o1", .execution_id = execution, .due = {}};
    if (due) change.due = At(*due);
    return change;
  }
  base::Status Follow(const std::vector<DiagnosisChange>& changes, std::uint64_t place = 1) {
    return store_->diagnoses().Follow(changes, {.change = place, .began = 7}, At(100));
  }
  std::optional<DueDiagnosis> TakeDue(std::int64_t now, std::int64_t lease = 1000) {
    auto taken = store_->diagnoses().Take(At(now), At(lease));
    EXPECT_TRUE(taken);
    return taken ? *taken : std::nullopt;
  }
};

using Labels = std::vector<std::string>;

TEST_P(LabelStoreContract, KeepsEveryFieldOfALabel) {
  ASSERT_TRUE(store_->Add(Over("r1", 1), {}));
  FailureLabel label = Label("e1", 3);
  label.run_id = "r1";
  label.title = "caf\xE9";
  label.user = "m\xFFx";
  label.nodes = {"a1", "b2"};
  ASSERT_TRUE(store_->labels().Put(label));
  const auto got = store_->labels().Get("o1", {"e1", "e1", "e2"});
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 1U);
  EXPECT_EQ(got->front(), label);
  EXPECT_EQ(Labelled({"e1"}, "o2"), Labels());
  EXPECT_EQ(Labelled({}), Labels());
}

TEST_P(LabelStoreContract, ALaterDiagnosisReplacesAnEarlierOne) {
  ASSERT_TRUE(store_->labels().Put(Label("e1", 3)));
  FailureLabel later = Label("e1", 3, "quota");
  later.diagnosed_at = At(9);
  later.nodes = {"n2"};
  ASSERT_TRUE(store_->labels().Put(later));
  ASSERT_TRUE(store_->labels().Put(Label("e1", 3, "late_writer")));  // diagnosed at 8
  const auto got = store_->labels().Get("o1", {"e1"});
  ASSERT_TRUE(got && got->size() == 1);
  EXPECT_EQ(got->front(), later);
}

TEST_P(LabelStoreContract, ALabelOutlivesItsRun) {
  ASSERT_TRUE(store_->Add(Over("r1", 1), {}));
  FailureLabel label = Label("e1", 3);
  label.run_id = "r1";
  ASSERT_TRUE(store_->labels().Put(label));
  ASSERT_EQ(store_->DropBefore(At(50), 10), 1U);
  const auto got = store_->labels().Get("o1", {"e1"});
  ASSERT_TRUE(got && got->size() == 1);
  EXPECT_EQ(got->front().run_id, "");
}

TEST_P(LabelStoreContract, DropsOneAndWhatIsOld) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(store_->labels().Put(Label("e" + std::to_string(i), i)));
  ASSERT_TRUE(store_->labels().Drop("o2", "e4"));
  ASSERT_TRUE(store_->labels().Drop("o1", "e9"));
  ASSERT_TRUE(store_->labels().Drop("o1", "e4"));
  const Labels all = {"e0", "e1", "e2", "e3", "e4"};
  EXPECT_EQ(Labelled(all).size(), 4U);
  EXPECT_EQ(store_->labels().DropBefore(At(8), 2), 2U);
  EXPECT_EQ(store_->labels().DropBefore(At(8), 2), 1U);
  EXPECT_EQ(store_->labels().DropBefore(At(8), 2), 0U);
  EXPECT_EQ(Labelled(all), Labels({"e3 disk_full"}));
}

TEST_P(LabelStoreContract, CountsWhatElseFailedOnANode) {
  const auto put = [&](const std::string& id, std::int64_t ended, const std::string& cls,
                       const std::string& user, std::vector<std::string> nodes) {
    FailureLabel label = Label(id, ended, cls);
    label.user = user;
    label.nodes = std::move(nodes);
    ASSERT_TRUE(store_->labels().Put(label));
  };
  put("e1", 10, "disk_full", "ann", {"n1"});
  put("e0", 10, "disk_full", "ann", {"n2"});
  put("many", 10, "disk_full", "zoe", {"n1", "n2"});
  put("e2", 20, "disk_full", "bob", {"n1"});
  put("e3", 20, "disk_full", "bob", {"n3"});
  put("e4", 20, "segfault", "ann", {"n2"});
  put("e5", 31, "disk_full", "late", {"n1"});
  put("e6", 9, "disk_full", "early", {"n1"});
  FailureLabel other = Label("x1", 20);
  other.compute_id = "c2";
  ASSERT_TRUE(store_->labels().Put(other));
  other = Label("x2", 20);
  other.organisation_id = "o2";
  ASSERT_TRUE(store_->labels().Put(other));
  NodeQuery query{.organisation_id = "o1",
                  .compute_id = "c1",
                  .nodes = {"n1", "n2", "n4", "n1"},
                  .without_workload = "w-x",
                  .ended_from = At(10),
                  .ended_to = At(30)};
  const auto found = store_->labels().NodeHistory(query);
  ASSERT_TRUE(found) << found.error().message;
  const std::vector<NodeFailures> expected = {{"n1", "disk_full", 2, 2, 2, 2},
                                              {"n2", "disk_full", 1, 1, 3, 2},
                                              {"n2", "segfault", 1, 1, 0, 2}};
  EXPECT_EQ(*found, expected);
  query.without_workload = "w-e2";
  query.nodes = {"n1"};
  EXPECT_EQ(store_->labels().NodeHistory(query),
            (std::vector<NodeFailures>{{"n1", "disk_full", 1, 1, 2, 2}}));
  query.least_executions = 2;
  EXPECT_EQ(store_->labels().NodeHistory(query), std::vector<NodeFailures>());
  query.without_workload = "w-x";
  EXPECT_EQ(store_->labels().NodeHistory(query),
            (std::vector<NodeFailures>{{"n1", "disk_full", 2, 2, 2, 2}}));
  query.least_users = 3;
  EXPECT_EQ(store_->labels().NodeHistory(query), std::vector<NodeFailures>());
  query.least_users = 1;
  for (int i = 0; i < 20; ++i)
    put("x" + std::to_string(i), 20, "segfault", "ann", {"x" + std::to_string(i)});
  EXPECT_EQ(store_->labels().NodeHistory(query),
            (std::vector<NodeFailures>{{"n1", "disk_full", 2, 2, 2, LabelStore::kMostOthers}}));
  query.nodes = {};
  EXPECT_EQ(store_->labels().NodeHistory(query), std::vector<NodeFailures>());
}

TEST_P(LabelStoreContract, QueuesWhatIsDueWithThePlaceInTheFeed) {
  EXPECT_EQ(store_->diagnoses().Place(), FeedPlace());
  EXPECT_EQ(store_->diagnoses().NextDue().value(), std::nullopt);
  ASSERT_TRUE(Follow({Change("e1", 20), Change("e2", 10), Change("e3", {})}, 5));
  EXPECT_EQ(store_->diagnoses().Place(), (FeedPlace{.change = 5, .began = 7}));
  EXPECT_EQ(store_->diagnoses().Waiting(), 2U);
  EXPECT_EQ(store_->diagnoses().NextDue().value(), At(10));
  EXPECT_FALSE(TakeDue(9));
  const auto first = TakeDue(25);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->execution_id, "e2");
  EXPECT_EQ(first->organisation_id, "o1");
  EXPECT_EQ(first->tries, 1U);
  EXPECT_EQ(first->changed_at, At(100));
  EXPECT_EQ(TakeDue(25)->execution_id, "e1");
  EXPECT_FALSE(TakeDue(25));
  EXPECT_EQ(store_->diagnoses().Waiting(), 2U) << "what is worked on waits too";
  ASSERT_TRUE(store_->diagnoses().StartOver());
  EXPECT_EQ(store_->diagnoses().Waiting(), 0U);
  EXPECT_EQ(store_->diagnoses().Place(), FeedPlace());
}

TEST_P(LabelStoreContract, WhatWasNotFinishedComesBackWithItsTries) {
  ASSERT_TRUE(Follow({Change("e1", 10)}));
  ASSERT_TRUE(TakeDue(10, 50));
  EXPECT_FALSE(TakeDue(49));
  const auto again = TakeDue(50, 90);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->tries, 2U);
  ASSERT_TRUE(store_->diagnoses().Finish(*again, At(60), /*succeeded=*/false));
  EXPECT_EQ(TakeDue(60, 90)->tries, 3U);
  const auto last = TakeDue(90, 120);
  ASSERT_TRUE(store_->diagnoses().Finish(*last, At(95), /*succeeded=*/true));
  const auto fresh = TakeDue(95, 200);
  EXPECT_EQ(fresh->tries, 1U);
  ASSERT_TRUE(store_->diagnoses().Finish(*fresh, std::nullopt, /*succeeded=*/true));
  EXPECT_EQ(store_->diagnoses().Waiting(), 0U);
}

TEST_P(LabelStoreContract, AChangeMeanwhileIsNotFinishedAway) {
  ASSERT_TRUE(Follow({Change("e1", 10)}));
  const auto taken = TakeDue(10, 500);
  ASSERT_TRUE(taken);
  ASSERT_TRUE(Follow({Change("e1", 30)}, 2));
  ASSERT_TRUE(store_->diagnoses().Finish(*taken, std::nullopt, /*succeeded=*/true));
  const auto changed = TakeDue(30, 500);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->tries, 1U);
  ASSERT_TRUE(store_->diagnoses().Finish(*taken, At(31), /*succeeded=*/true));
  EXPECT_FALSE(TakeDue(40)) << "an older take moves nothing";
  // One that waits is not put off by changes.
  ASSERT_TRUE(Follow({Change("e2", 50)}, 3));
  ASSERT_TRUE(Follow({Change("e2", 80)}, 4));
  EXPECT_EQ(TakeDue(50)->execution_id, "e2");
}

TEST_P(LabelStoreContract, ARemovedExecutionTakesItsLabelAlong) {
  for (const char* id : {"e1", "e2"}) ASSERT_TRUE(store_->labels().Put(Label(id, 1)));
  ASSERT_TRUE(Follow({Change("e1", 10), Change("e2", 10)}));
  DiagnosisChange removed = Change("e1", {});
  removed.removed = true;
  ASSERT_TRUE(Follow({removed, Change("e2", {})}, 2));
  EXPECT_EQ(store_->diagnoses().Waiting(), 0U);
  EXPECT_EQ(Labelled({"e1", "e2"}), Labels({"e2 disk_full"}));
}

}  // namespace expanse::store
