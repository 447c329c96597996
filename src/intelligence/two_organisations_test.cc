// The whole of a plane but its listener: recorded runs of two organisations in real stores, the
// history index over them, the engine, and the methods.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "intelligence/analyse_work.h"
#include "intelligence/diagnose_work.h"
#include "intelligence/history/history_testing.h"
#include "intelligence/intelligence_plane.h"
#include "intelligence/intelligence_testing.h"
#include "store/runs/sqlite_run_store.h"

namespace expanse::intelligence {
namespace {

using history::TestJob;

const std::string kScript =
    "#!/bin/bash\n"
    "#SBATCH --job-name=train\n"
    "#SBATCH --mem=100G\n"
    "#SBATCH --time=01:00:00\n"
    "module load cuda\n"
    "srun python train.py --epochs 4 --data /data/set\n";

class TwoOrganisationsTest : public history::HistoryWorld {
 protected:
  void SetUp() override {
    HistoryWorld::SetUp();
    for (int i = 1; i <= 4; ++i) PutRun("ours-" + std::to_string(i), "org-1", "c1");
    CatchUp();
    runs_ = store::SqliteRunStore::Open({.path = dir_->path() + "/runs.db"}).value();
    work_ = std::make_unique<AnalyseWork>(0.95, *history_, *runs_, clock_);
    runbooks_ = EmbeddedRunbooks::Create().value();
    diagnoser_ = std::make_unique<DiagnoseWork>(
        diagnose_case::Stores{*records_, *blobs_, *series_, *history_}, *runbooks_, *runs_);
    plane_ =
        IntelligencePlane::Create({}, *runs_, {*work_, *diagnoser_, *runbooks_}, clock_, metrics_)
            .value();
    ASSERT_TRUE(plane_->Start());
  }
  void TearDown() override { plane_->Stop(); }

  void PutRun(const std::string& id, const std::string& organisation, const std::string& compute) {
    Put({.id = id,
         .organisation = organisation,
         .compute = compute,
         .files = {{.path = "train.sbatch", .role = "script", .data = kScript}}});
  }
  v1::AnalyseResponse Ask(const net::CallContext& context, const std::string& compute = "") {
    auto request = RequestFor(kScript, "train.sbatch");
    request.mutable_target()->set_role("script");
    request.set_local_user("mara");
    request.set_compute_id(compute);
    auto response = plane_->analyse().Analyse(context, request);
    EXPECT_TRUE(response) << (response ? "" : response.error().message);
    return response ? *response : v1::AnalyseResponse();
  }
  static std::set<std::string> Evidence(const v1::AnalyseResponse& response) {
    std::set<std::string> ids;
    for (const auto& cited : response.result().evidence()) ids.insert(cited.execution_id());
    return ids;
  }

  base::Result<v1::DiagnoseResponse> Diagnose(const net::CallContext& context,
                                              const std::string& native_id) {
    v1::DiagnoseRequest request;
    request.set_native_id(native_id);
    return plane_->diagnose().Diagnose(context, request);
  }

  std::unique_ptr<store::SqliteRunStore> runs_;
  std::unique_ptr<AnalyseWork> work_;
  std::unique_ptr<EmbeddedRunbooks> runbooks_;
  std::unique_ptr<DiagnoseWork> diagnoser_;
  std::unique_ptr<IntelligencePlane> plane_;
};

TEST_F(TwoOrganisationsTest, EachIsAnsweredFromItsOwnRunsAlone) {
  const auto ours = Ask(UserCall("user-1", "org-1"));
  EXPECT_EQ(Evidence(ours), (std::set<std::string>{"ours-1", "ours-2", "ours-3", "ours-4"}));
  EXPECT_EQ(ours.result().confidence(), v1::CONFIDENCE_LABEL_HIGH);
  EXPECT_DOUBLE_EQ(ours.result().completion_probability().mean(), 0.9);
  EXPECT_DOUBLE_EQ(ours.result().confidence_score(), 0.83);

  const auto theirs = Ask(UserCall("user-9", "org-2", {"intelligence.use", "executions.read_all"}));
  EXPECT_EQ(Evidence(theirs), std::set<std::string>());
  EXPECT_EQ(theirs.result().confidence(), v1::CONFIDENCE_LABEL_LOW);
  EXPECT_FALSE(theirs.result().has_completion_probability());
  EXPECT_GT(theirs.result().warnings_size(), 0);
  // Neither does naming the other's compute help.
  EXPECT_EQ(Evidence(Ask(UserCall("user-9", "org-2"), "c1")), std::set<std::string>());

  PutRun("theirs-1", "org-2", "c2");
  CatchUp();
  EXPECT_EQ(Evidence(Ask(UserCall("user-9", "org-2"))), std::set<std::string>{"theirs-1"});
  EXPECT_TRUE(Ask(UserCall("user-1", "org-1")).cached()) << "nothing changed for them";
}

TEST_F(TwoOrganisationsTest, WhoMayNotReadExecutionsIsAnsweredFromTheSourceAlone) {
  const auto blind = Ask(UserCall("user-2", "org-1", {"intelligence.use"}));
  EXPECT_EQ(Evidence(blind), std::set<std::string>());
  EXPECT_EQ(blind.result().confidence(), v1::CONFIDENCE_LABEL_LOW);
  const auto named = Ask(UserCall("user-2", "org-1", {"intelligence.use"}), "c1");
  EXPECT_EQ(Evidence(named), std::set<std::string>());
}

TEST_F(TwoOrganisationsTest, ANewRunOfTheSourceMakesANewAnswer) {
  const auto first = Ask(UserCall());
  EXPECT_TRUE(Ask(UserCall()).cached());
  PutRun("ours-5", "org-1", "c1");
  CatchUp();
  const auto later = Ask(UserCall());
  EXPECT_FALSE(later.cached());
  EXPECT_EQ(Evidence(later).size(), 5U);
}

TEST_F(TwoOrganisationsTest, DiagnosesOnesOwnExecutionsOnly) {
  TestJob job{.id = "failed-1", .organisation = "org-1", .compute = "c1"};
  job.status = evidence::ExecutionStatus::kFailed;
  job.outcome = evidence::Outcome::kOutOfMemory;
  Put(job);
  const auto ours = Diagnose(UserCall("user-1", "org-1"), "job-failed-1");
  ASSERT_TRUE(ours) << ours.error().message;
  EXPECT_EQ(ours->result().display().failure_class(), "host_out_of_memory");
  EXPECT_FALSE(ours->cached());
  const auto again = Diagnose(UserCall("user-1", "org-1"), "job-failed-1");
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->cached());
  EXPECT_EQ(again->run_id(), ours->run_id());
  const auto theirs = Diagnose(UserCall("user-9", "org-2"), "job-failed-1");
  ASSERT_FALSE(theirs);
  EXPECT_EQ(theirs.error().reason, "execution.not_found");
  const auto without = Diagnose(UserCall("user-1", "org-1", {"intelligence.use"}), "job-failed-1");
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, base::Code::kPermissionDenied);
}

TEST_F(TwoOrganisationsTest, ShowsTheClassesOfItsOwnExecutionsOnly) {
  const std::string id = "0190a0a0-0000-8000-8000-0000000000f1";
  TestJob job{.id = id, .organisation = "org-1", .compute = "c1"};
  job.status = evidence::ExecutionStatus::kFailed;
  job.outcome = evidence::Outcome::kOutOfMemory;
  Put(job);
  const auto classes = [&](const net::CallContext& context) {
    v1::ListFailureClassesRequest request;
    request.add_execution_ids(id);
    return plane_->failure_classes().ListFailureClasses(context, request).value();
  };
  EXPECT_EQ(classes(UserCall()).classes_size(), 0) << "never diagnosed";
  const auto said = Diagnose(UserCall(), "job-" + id);
  ASSERT_TRUE(said) << said.error().message;
  ASSERT_EQ(classes(UserCall()).classes_size(), 1);
  EXPECT_EQ(classes(UserCall()).classes(0).failure_class(), "host_out_of_memory");
  EXPECT_EQ(classes(UserCall()).classes(0).run_id(), said->run_id());
  EXPECT_EQ(classes(UserCall("user-9", "org-2")).classes_size(), 0);
  // Asked again, the answer is the earlier one and the label stays.
  ASSERT_TRUE(Diagnose(UserCall(), "job-" + id)->cached());
  EXPECT_EQ(classes(UserCall()).classes(0).run_id(), said->run_id());
}

TEST_F(TwoOrganisationsTest, AnswersForARunThatSucceededWithoutAFailure) {
  const auto said = Diagnose(UserCall("user-1", "org-1"), "job-ours-1");
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->result().display().state(), "succeeded");
  EXPECT_EQ(said->result().display().failure_class(), "");
  EXPECT_EQ(said->result().agent_prompt(), "");
}

}  // namespace
}  // namespace expanse::intelligence
