#include "intelligence/analyse_work.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "expanse/intelligence/v1/analyse.pb.h"
#include "store/runs/memory_run_store_testing.h"
#include "workload/patch/unified_diff.h"

namespace expanse::intelligence {
namespace {

// Knows what it is given.
class FakeHistory final : public history::History {
 public:
  base::Result<history::Found> Find(const history::Query& query) override {
    asked = query;
    if (!error.reason.empty()) return std::unexpected(error);
    return next;
  }
  history::Query asked;
  history::Found next;
  base::Error error;
};

constexpr double kGiB = 1024.0 * 1024 * 1024;

const std::string kScript =
    "#!/bin/bash\n"
    "#SBATCH --job-name=train\n"
    "#SBATCH --mem=100G\n"
    "#SBATCH --time=01:00:00\n"
    "python train.py\n";

class AnalyseWorkTest : public testing::Test {
 protected:
  // Four good runs that needed 4 GiB.
  void PutGoodRuns() {
    history_.next.basis = predict::Basis::kExactBundle;
    history_.next.similarity = 1;
    history_.next.version = "4";
    for (int i = 1; i <= 4; ++i) {
      predict::Run run;
      run.execution_id = "0193a8b2-0000-8000-8000-00000000000" + std::to_string(i);
      run.native_id = std::to_string(4400 + i);
      run.ending = predict::Ending::kSuccess;
      run.submitted_micros = i;
      run.requested = {.memory_bytes = 100 * kGiB, .walltime_s = 3600};
      run.runtime_s = 1800;
      run.memory_peak_bytes = 4 * kGiB;
      history_.next.runs.push_back(run);
      history_.next.origins.push_back(
          {.compute_id = "c1", .source_type = evidence::SourceType::kSlurm});
    }
  }
  static AnalyseTask Task(const std::string& data = kScript) {
    return {.question = {.target = {.path = "train.sbatch", .data = data, .role = "script"},
                         .local_user = "ada"},
            .organisation_id = "org-1",
            .user_id = "user-1",
            .compute_id = "c1",
            .reads_executions = true};
  }
  v1::AnalyseResult ResultOf(const AnalyseOutcome& outcome) {
    v1::AnalyseResult result;
    EXPECT_TRUE(result.ParseFromString(outcome.answer));
    return result;
  }

  base::FakeClock clock_;
  FakeHistory history_;
  store::MemoryRunStore runs_;
  AnalyseWork work_{0.95, history_, runs_, clock_};
};

TEST_F(AnalyseWorkTest, AnswersFromTheRunsThatWereFound) {
  PutGoodRuns();
  const auto outcome = work_.Do(Task());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(outcome->cached);
  EXPECT_EQ(outcome->job_name, "train");
  const v1::AnalyseResult result = ResultOf(*outcome);
  EXPECT_EQ(result.confidence(), v1::CONFIDENCE_LABEL_HIGH);
  EXPECT_DOUBLE_EQ(result.confidence_score(), 0.83);
  EXPECT_DOUBLE_EQ(result.completion_probability().mean(), 0.9);
  EXPECT_DOUBLE_EQ(result.completion_probability().sigma(), 0.12);
  EXPECT_EQ(result.evidence_size(), 4);
  EXPECT_EQ(result.job_name(), "train");
  EXPECT_LT(result.recommended_resources().memory_bytes(), 100 * kGiB);
  EXPECT_GE(result.recommended_resources().memory_bytes(), 4 * kGiB);
}

TEST_F(AnalyseWorkTest, TheArtefactIsADiffOfTheTarget) {
  PutGoodRuns();
  const auto outcome = work_.Do(Task());
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->artifacts.size(), 1U);
  const store::RunArtifactRow& artifact = outcome->artifacts[0];
  EXPECT_EQ(artifact.content_hash, "sha256:" + base::Sha256Hex(artifact.data));
  EXPECT_EQ(artifact.source_hash, "sha256:" + base::Sha256Hex(kScript));
  EXPECT_EQ(artifact.source_file, "train.sbatch");
  const v1::AnalyseResult result = ResultOf(*outcome);
  EXPECT_EQ(result.right_size().artifact_id(), artifact.artifact_id);
  EXPECT_EQ(result.artifacts(0).content_hash(), artifact.content_hash);
  const auto patched = workload::ApplyUnifiedDiff(artifact.data, kScript);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_NE(*patched, kScript);
  auto plain = Task();
  plain.question.patch = false;
  EXPECT_TRUE(work_.Do(plain)->artifacts.empty());
}

TEST_F(AnalyseWorkTest, AsksForTheRunsOfTheRightOrganisation) {
  ASSERT_TRUE(work_.Do(Task()));
  EXPECT_EQ(history_.asked.organisation_id, "org-1");
  EXPECT_EQ(history_.asked.compute_id, "c1");
  EXPECT_EQ(history_.asked.local_user, "ada");
  EXPECT_FALSE(history_.asked.visible_computes);  // all of the organisation
  auto blind = Task();
  blind.reads_executions = false;
  ASSERT_TRUE(work_.Do(blind));
  ASSERT_TRUE(history_.asked.visible_computes);
  EXPECT_TRUE(history_.asked.visible_computes->empty());
}

TEST_F(AnalyseWorkTest, FindsTheEarlierAnswerOverTheSameHistory) {
  PutGoodRuns();
  const auto first = work_.Do(Task());
  ASSERT_TRUE(first);
  ASSERT_TRUE(runs_.Add({.run_id = "r1",
                         .organisation_id = "org-1",
                         .user_id = "user-1",
                         .status = store::RunStatus::kSucceeded,
                         .cache_key = first->cache_key,
                         .answer = first->answer},
                        {}));
  const auto again = work_.Do(Task());
  ASSERT_TRUE(again && again->cached);
  EXPECT_EQ(again->cached->run_id, "r1");
  auto anew = Task();
  anew.use_cache = false;
  EXPECT_FALSE(work_.Do(anew)->cached);
  auto elsewhere = Task();
  elsewhere.compute_id = "c2";
  EXPECT_FALSE(work_.Do(elsewhere)->cached);
  history_.next.version = "5";
  EXPECT_FALSE(work_.Do(Task())->cached);
}

TEST_F(AnalyseWorkTest, AnEarlierAnswerThatCannotBeReadIsNotGiven) {
  const auto first = work_.Do(Task());
  ASSERT_TRUE(first);
  ASSERT_TRUE(runs_.Add({.run_id = "r1",
                         .organisation_id = "org-1",
                         .user_id = "user-1",
                         .status = store::RunStatus::kSucceeded,
                         .cache_key = first->cache_key,
                         .answer = "\xFF\xFF"},
                        {}));
  const auto again = work_.Do(Task());
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->cached);
  EXPECT_EQ(ResultOf(*again).job_name(), "train");
}

TEST_F(AnalyseWorkTest, SaysWhatIsWrong) {
  auto unknown = Task("nothing that runs\n");
  unknown.question.target.path = "notes.txt";
  const auto refused = work_.Do(unknown);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kInvalidArgument);
  history_.error = {base::Code::kUnavailable, "store.busy", "busy"};
  const auto failed = work_.Do(Task());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().reason, "store.busy");
}

TEST_F(AnalyseWorkTest, KnowsTheJobsName) { EXPECT_EQ(work_.JobName(Task().question), "train"); }

}  // namespace
}  // namespace expanse::intelligence
