#include "intelligence/failure_labels.h"

#include <gtest/gtest.h>

#include "intelligence/intelligence_testing.h"
#include "intelligence/run_service.h"
#include "store/runs/memory_run_store_testing.h"

namespace expanse::intelligence {
namespace {

constexpr const char* kExecution = FakeDiagnoser::kExecution;
const base::WallTime kNow{std::chrono::seconds(1'750'000'000)};

class FailureLabelsTest : public testing::Test {
 protected:
  static DiagnoseTask Task(const std::string& organisation = "org-1") {
    DiagnoseTask task;
    task.organisation_id = organisation;
    task.execution.execution_id = kExecution;
    task.execution.compute_id = "c1";
    task.execution.user = "mara";
    task.execution.name = "train";
    task.execution.nodes = {"n1", "n2"};
    task.execution.ended_at = kNow - std::chrono::hours(1);
    return task;
  }
  static DiagnoseOutcome Outcome(const std::string& failure_class = "disk_full") {
    DiagnoseOutcome outcome;
    outcome.failure_class = failure_class;
    outcome.title = "Title of " + failure_class;
    outcome.confidence = predict::Confidence::kHigh;
    return outcome;
  }
  // A diagnosis that was kept with its label.
  void Keep(const std::string& user, const DiagnoseOutcome& outcome, int at = 0) {
    store::RunRow run{.run_id = base::NewUuid(kNow),
                      .organisation_id = "org-1",
                      .user_id = user,
                      .kind = store::RunKind::kDiagnose,
                      .status = store::RunStatus::kSucceeded,
                      .created_at = kNow,
                      .finished_at = kNow};
    ASSERT_TRUE(runs_.Add(run, {}));
    run_ids_[user] = run.run_id;
    ASSERT_TRUE(KeepLabel(runs_.labels(), Task(), outcome, run, kNow + std::chrono::seconds(at)));
  }
  v1::ListFailureClassesResponse List(const net::CallContext& context) {
    v1::ListFailureClassesRequest request;
    request.add_execution_ids(kExecution);
    auto listed = service_.ListFailureClasses(context, request);
    EXPECT_TRUE(listed) << (listed ? "" : listed.error().message);
    return listed ? *listed : v1::ListFailureClassesResponse();
  }

  store::MemoryRunStore runs_;
  FailureClassService service_{runs_.labels()};
  std::map<std::string, std::string> run_ids_;
};

TEST_F(FailureLabelsTest, ADiagnosisBecomesTheLabelOfItsExecution) {
  Keep("user-1", Outcome());
  const auto listed = List(UserCall("user-1"));
  ASSERT_EQ(listed.classes_size(), 1);
  EXPECT_EQ(listed.classes(0).execution_id(), kExecution);
  EXPECT_EQ(listed.classes(0).failure_class(), "disk_full");
  EXPECT_EQ(listed.classes(0).title(), "Title of disk_full");
  EXPECT_EQ(listed.classes(0).confidence(), v1::CONFIDENCE_LABEL_HIGH);
  EXPECT_EQ(listed.classes(0).run_id(), run_ids_["user-1"]);
  const auto kept = runs_.labels().Get("org-1", {kExecution});
  ASSERT_TRUE(kept && kept->size() == 1);
  EXPECT_EQ(kept->front().nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(kept->front().user, "mara");
  EXPECT_EQ(kept->front().ended_at, kNow - std::chrono::hours(1));
}

TEST_F(FailureLabelsTest, ADiagnosisWithoutFailureTakesTheLabelAway) {
  Keep("user-1", Outcome(""));
  EXPECT_EQ(List(UserCall()).classes_size(), 0);
  Keep("user-1", Outcome());
  EXPECT_EQ(List(UserCall()).classes_size(), 1);
  Keep("user-1", Outcome(""), 1);
  EXPECT_EQ(List(UserCall()).classes_size(), 0);
}

TEST_F(FailureLabelsTest, RunsOfOthersAreNotNamed) {
  Keep("user-1", Outcome());
  EXPECT_EQ(List(UserCall("user-2")).classes(0).run_id(), "");
  EXPECT_EQ(List(UserCall("user-3", "org-1", {"intelligence.use", "executions.read_all"}))
                .classes(0)
                .run_id(),
            run_ids_["user-1"]);
}

TEST_F(FailureLabelsTest, TheSystemsRunIsForAllAndStaysWhileItSaysTheSame) {
  RunService shown(runs_);
  Keep("user-1", Outcome());
  Keep("system", Outcome(), 1);
  Keep("user-1", Outcome(), 2);
  EXPECT_EQ(List(UserCall("user-2")).classes(0).run_id(), run_ids_["system"]);
  v1::GetRunRequest request;
  request.set_run_id(run_ids_["system"]);
  EXPECT_TRUE(shown.GetRun(UserCall("user-2"), request));
  EXPECT_FALSE(shown.GetRun(UserCall("user-2", "org-1", {"intelligence.use"}), request));
  EXPECT_FALSE(shown.GetRun(UserCall("user-9", "org-2"), request));
  Keep("user-1", Outcome("quota_exceeded"), 3);
  EXPECT_EQ(List(UserCall("user-2")).classes(0).failure_class(), "quota_exceeded");
}

TEST_F(FailureLabelsTest, NodesThatAreKnownLaterAreTakenIn) {
  DiagnoseTask early = Task();
  early.execution.nodes.clear();
  Keep("system", Outcome());
  const store::RunRow run = runs_.Get({"org-1", std::nullopt}, run_ids_["system"]).value();
  const auto nodes = [&] { return runs_.labels().Get("org-1", {kExecution})->front().nodes; };
  ASSERT_TRUE(KeepLabel(runs_.labels(), early, Outcome(), run, kNow + std::chrono::seconds(1)));
  EXPECT_TRUE(nodes().empty());
  ASSERT_TRUE(KeepLabel(runs_.labels(), Task(), Outcome(), run, kNow + std::chrono::seconds(2)));
  EXPECT_EQ(nodes(), (std::vector<std::string>{"n1", "n2"}));
}

TEST_F(FailureLabelsTest, IsForThoseWhoMayReadTheOrganisationsExecutions) {
  Keep("user-1", Outcome());
  EXPECT_EQ(List(UserCall("user-9", "org-2")).classes_size(), 0);
  EXPECT_EQ(List(UserCall("user-2", "org-1", {"intelligence.use"})).classes_size(), 0);
}

TEST_F(FailureLabelsTest, TellsADiagnosisWhatIsKnownOfOthers) {
  const auto put = [&](const std::string& id, const std::string& user, const std::string& node,
                       const std::string& failure_class) {
    ASSERT_TRUE(runs_.labels().Put({.organisation_id = "org-1",
                                    .execution_id = id,
                                    .compute_id = "c1",
                                    .failure_class = failure_class,
                                    .user = user,
                                    .workload = "of " + id,
                                    .nodes = {node},
                                    .ended_at = kNow - std::chrono::hours(24),
                                    .diagnosed_at = kNow}));
  };
  put("e1", "ann", "n1", "no_space_left");
  put("e2", "bob", "n1", "no_space_left");
  put("e3", "cem", "n1", "no_space_left");
  put("e4", "ann", "n8", "no_space_left");
  put("e5", "ann", "n9", "port_in_use");
  put("e6", "ann", "n1", "port_in_use");
  diagnose::Case of;
  for (const char* id : {"e5", "e1", "none"}) {
    diagnose::SimilarRun similar;
    similar.run.execution_id = id;
    of.similar.push_back(similar);
  }
  ASSERT_TRUE(AddKnownFailures(runs_.labels(), Task(), &of));
  EXPECT_EQ(of.similar[0].failure_class, "port_in_use");
  EXPECT_EQ(of.similar[1].failure_class, "no_space_left");
  EXPECT_EQ(of.similar[1].nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(of.similar[2].failure_class, "");
  ASSERT_EQ(of.node_records.size(), 1U) << "one port in use points to nothing";
  EXPECT_EQ(of.node_records[0].node, "n1");
  EXPECT_EQ(of.node_records[0].failure_class, "no_space_left");
  EXPECT_EQ(of.node_records[0].executions, 3U);
  EXPECT_EQ(of.node_records[0].users, 3U);
  EXPECT_EQ(of.node_records[0].elsewhere, 1U);
  // Long before or after, and without an end, nothing is known.
  for (const auto shift : {std::chrono::hours(24 * 60), -std::chrono::hours(24 * 3)}) {
    DiagnoseTask task = Task();
    task.execution.ended_at = kNow + shift;
    diagnose::Case other;
    ASSERT_TRUE(AddKnownFailures(runs_.labels(), task, &other));
    EXPECT_TRUE(other.node_records.empty());
  }
}

TEST_F(FailureLabelsTest, RefusesWhatIsNoQuestion) {
  v1::ListFailureClassesRequest request;
  request.add_execution_ids("41");
  EXPECT_EQ(service_.ListFailureClasses(UserCall(), request).error().reason, "classes.id");
  request.Clear();
  EXPECT_TRUE(service_.ListFailureClasses(UserCall(), request));
  for (int i = 0; i < 1001; ++i) request.add_execution_ids(kExecution);
  EXPECT_EQ(service_.ListFailureClasses(UserCall(), request).error().reason, "classes.too_many");
}

TEST(WorkloadOf, IsOfUserAndNameOrOfTheOwner) {
  evidence::Execution execution;
  execution.user = "mara";
  execution.name = "train";
  evidence::Execution other = execution;
  EXPECT_EQ(WorkloadOf(execution), WorkloadOf(other));
  other.user = "mar";
  other.name = "atrain";
  EXPECT_NE(WorkloadOf(execution), WorkloadOf(other));
  other = execution;
  other.labels = {{"nomad.job", "etl"}, {"nomad.group", "load"}};
  EXPECT_NE(WorkloadOf(execution), WorkloadOf(other));
  execution.labels = other.labels;
  execution.name = "train-2";
  EXPECT_EQ(WorkloadOf(execution), WorkloadOf(other));
}

}  // namespace
}  // namespace expanse::intelligence
