#include "intelligence/analyse/analyse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "intelligence/analyse/cited.h"
#include "intelligence/predict/probability.h"
#include "workload/patch/unified_diff.h"

namespace expanse::intelligence::analyse {
namespace {

using predict::Basis;
using predict::Confidence;
using predict::Ending;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kGiB = 1024.0 * 1024 * 1024;

constexpr std::string_view kScript = R"(#!/bin/bash
#SBATCH --job-name=train
#SBATCH --cpus-per-task=16   # cores
#SBATCH --mem=128G
#SBATCH --time=01:00:00
srun python train.py
)";

Question Ask(std::string_view script) {
  Question question;
  question.target = {.path = "train.slurm", .data = std::string(script), .role = "script"};
  return question;
}

predict::Run Good(double memory_gib, double runtime_s) {
  predict::Run run;
  run.ending = Ending::kSuccess;
  run.requested = {
      .cpu_cores = 16, .memory_bytes = 128 * kGiB, .gpu_count = {}, .walltime_s = 3600};
  run.runtime_s = runtime_s;
  run.memory_peak_bytes = memory_gib * kGiB;
  run.cpu_mean_cores = 15.2;
  return run;
}

history::Found FourGoodRuns() {
  history::Found found;
  found.basis = Basis::kExactBundle;
  found.similarity = 1;
  for (int i = 0; i < 4; ++i) {
    predict::Run run = Good(12.0 + 0.2 * i, 2000 + 10 * i);
    run.execution_id = "run" + std::to_string(i);
    run.native_id = std::to_string(4401 + i);
    found.runs.push_back(run);
    found.origins.push_back({.compute_id = "hpc-01",
                             .source_type = evidence::SourceType::kSlurm,
                             .user = "ann",
                             .job_name = "train",
                             .same_arguments = true});
  }
  return found;
}

Answer AnswerTo(const Question& question, const history::Found& found) {
  const auto target = ReadTarget(question);
  EXPECT_TRUE(target) << target.error().message;
  return Compose(question, *target, found);
}

TEST(Analyse, FourGoodRunsAreHighConfidenceAndLowerTheMemory) {
  const Question question = Ask(kScript);
  const Answer answer = AnswerTo(question, FourGoodRuns());
  EXPECT_EQ(answer.job_name, "train");
  EXPECT_EQ(answer.target_kind, "sbatch");
  EXPECT_EQ(answer.confidence, Confidence::kHigh);
  ASSERT_TRUE(answer.confidence_score);
  EXPECT_EQ(predict::RoundedToCents(*answer.confidence_score), 0.83);
  EXPECT_EQ(answer.fit, 4U);
  ASSERT_TRUE(answer.completion);
  EXPECT_EQ(predict::Rounded(*answer.completion).mean, 0.90);
  ASSERT_TRUE(answer.recommended.memory_bytes);
  EXPECT_LT(*answer.recommended.memory_bytes, 32 * kGiB);
  EXPECT_GT(*answer.recommended.memory_bytes, 12.6 * kGiB);
  EXPECT_THAT(answer.right_size_class, HasSubstr("memory_lower"));
  EXPECT_TRUE(answer.review_required);
  EXPECT_THAT(answer.unresolved, IsEmpty());
  ASSERT_EQ(answer.evidence.size(), 4U);
  EXPECT_THAT(answer.evidence[0].summary, HasSubstr("succeeded after 33 min"));
  ASSERT_TRUE(answer.patch);
  const auto patched = workload::ApplyUnifiedDiff(answer.patch->diff, question.target.data);
  ASSERT_TRUE(patched) << patched.error().message;
  const auto again = ReadTarget(Ask(*patched));
  ASSERT_TRUE(again);
  EXPECT_EQ(static_cast<double>(*again->submission.parts[0].request.memory_bytes),
            *answer.recommended.memory_bytes);
  EXPECT_THAT(*patched, HasSubstr("#SBATCH --cpus-per-task=16   # cores\n"));
}

TEST(Analyse, AKillAtTheLimitRaisesTheMemory) {
  std::string script(kScript);
  script.replace(script.find("128G"), 4, "2G");
  history::Found found;
  found.basis = Basis::kExactBundle;
  for (int i = 0; i < 2; ++i) {
    predict::Run run = Good(2, 100);
    run.requested.memory_bytes = 2 * kGiB;
    run.ending = Ending::kOutOfMemory;
    run.memory_is_floor = true;
    found.runs.push_back(run);
    found.origins.emplace_back();
  }
  const Answer answer = AnswerTo(Ask(script), found);
  EXPECT_GT(*answer.recommended.memory_bytes, 2 * kGiB);
  EXPECT_THAT(answer.right_size_class, HasSubstr("memory_raise"));
  ASSERT_FALSE(answer.risks.empty());
  EXPECT_EQ(answer.risks[0].failure_class, "out_of_memory");
  // Runs of the same source, of which none is known to fit.
  EXPECT_EQ(answer.confidence, Confidence::kHigh);
  ASSERT_TRUE(answer.confidence_score);
  EXPECT_DOUBLE_EQ(*answer.confidence_score, 0.25);
  EXPECT_EQ(answer.fit, 0U);
  EXPECT_EQ(answer.measured_runs, 2U);
}

TEST(Analyse, WithoutHistoryItIsLowAndSaysWhatIsMissing) {
  const Answer answer = AnswerTo(Ask(kScript), {});
  EXPECT_EQ(answer.confidence, Confidence::kLow);
  EXPECT_FALSE(answer.completion);
  EXPECT_FALSE(answer.confidence_score);
  EXPECT_FALSE(answer.warnings.empty());
  EXPECT_THAT(answer.evidence, IsEmpty());
  EXPECT_EQ(answer.requested.memory_bytes, 128 * kGiB);
}

TEST(Analyse, WithoutHistoryTheSourceTells) {
  Question question =
      Ask("#!/bin/bash\n#SBATCH --mem=2G\n#SBATCH --gres=gpu:v100:1\nsrun python train.py\n");
  question.files.push_back(
      {.path = "train.py",
       .data = "import torch\nfrom transformers import AutoModelForCausalLM, Trainer\n"
               "m = AutoModelForCausalLM.from_pretrained('org/Name-7B')\nTrainer(m).train()\n",
       .role = "argument"});
  const Answer answer = AnswerTo(question, {});
  EXPECT_EQ(answer.confidence, Confidence::kLow);
  EXPECT_EQ(answer.right_size_class, "memory_raise");
  EXPECT_GE(answer.recommended.memory_bytes, 28 * kGiB);
  ASSERT_TRUE(answer.gpu.floor_bytes);
  EXPECT_GE(*answer.gpu.floor_bytes, 104 * kGiB);
  EXPECT_THAT(answer.warnings, Contains(HasSubstr("v100 has at most 32.0 GiB")));
  EXPECT_THAT(answer.warnings, Contains(HasSubstr("the optimizer is not stated")));
  ASSERT_TRUE(answer.patch);
  EXPECT_THAT(answer.patch->diff, HasSubstr("-#SBATCH --mem=2G\n"));
}

TEST(Analyse, WithoutPatchThereIsNoClass) {
  Question question = Ask(kScript);
  question.patch = false;
  const Answer answer = AnswerTo(question, FourGoodRuns());
  EXPECT_EQ(answer.right_size_class, "none");
  EXPECT_FALSE(answer.patch);
  EXPECT_FALSE(answer.review_required);
  EXPECT_LT(*answer.recommended.memory_bytes, 128 * kGiB);
}

TEST(Analyse, FlagsStandForWhatTheFileAsks) {
  Question question = Ask(kScript);
  question.requested.memory_bytes = 16 * kGiB;
  EXPECT_EQ(AnswerTo(question, {}).requested.memory_bytes, 16 * kGiB);
}

TEST(Analyse, RefusalsSayWhere) {
  Question question = Ask("\x01\x02\x7f garbage");
  question.target.path = "x.bin";
  const auto target = ReadTarget(question);
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, base::Code::kInvalidArgument);
  EXPECT_TRUE(target.error().reason.starts_with("analyse."));
  EXPECT_THAT(target.error().message, HasSubstr("x.bin"));
}

TEST(Analyse, ANameThatThereIsNotListsThoseThereAre) {
  Question question = Ask(kScript);
  question.workload = "other";
  const auto target = ReadTarget(question);
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().reason, "analyse.no_workload");
  EXPECT_THAT(target.error().message, HasSubstr("train"));
}

TEST(Analyse, TakesTheLargestOfSeveralWorkloads) {
  Question question;
  question.target = {.path = "all.yaml",
                     .data = R"(apiVersion: v1
kind: Pod
metadata: {name: small}
spec:
  containers:
  - name: main
    image: a
    resources: {requests: {cpu: "1", memory: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: large}
spec:
  containers:
  - name: main
    image: a
    resources: {limits: {nvidia.com/gpu: 1, memory: 8Gi}}
)",
                     .role = "script"};
  const auto target = ReadTarget(question);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->submission.parts[target->part].workload, "large");
  question.workload = "small";
  const auto named = ReadTarget(question);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->submission.parts[named->part].workload, "small");
}

TEST(Analyse, AsksHistoryForTheFileAndItsName) {
  Question question = Ask(kScript);
  question.local_user = "ann";
  question.files.push_back({.path = "train.py", .data = "print(1)\n", .role = "argument"});
  const auto target = ReadTarget(question);
  ASSERT_TRUE(target);
  const history::Query query = QueryFor(question, *target);
  EXPECT_EQ(query.job_name, "train");
  EXPECT_EQ(query.local_user, "ann");
  EXPECT_EQ(query.fingerprint.files.size(), 2U);
  EXPECT_EQ(query.owner, "");
}

TEST(FormatDuration, ReadsLikeAPerson) {
  EXPECT_EQ(FormatDuration(0.4), "0 s");
  EXPECT_EQ(FormatDuration(59), "59 s");
  EXPECT_EQ(FormatDuration(125), "2 min");
  EXPECT_EQ(FormatDuration(7800), "2 h 10 min");
  EXPECT_EQ(FormatDuration(86'400 * 3), "3 d");
}

}  // namespace
}  // namespace expanse::intelligence::analyse
