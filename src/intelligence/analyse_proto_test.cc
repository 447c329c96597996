#include "intelligence/analyse_proto.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/analyse/analyse.h"
#include "intelligence/intelligence_testing.h"
#include "net/wire_body.h"
#include "workload/submission.h"

namespace expanse::intelligence {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// Four good runs: the example of docs/prediction.md, with every number as the engine gives it.
analyse::Answer GoodRuns() {
  analyse::Answer answer;
  answer.recommended = {
      .cpu_cores = 16, .memory_bytes = 15 * kGiB, .gpu_count = 1, .walltime_s = 9000};
  answer.gpu = {.model = "NVIDIA L40S",
                .available_bytes = 47'810'871'296,
                .peak_bytes = 31'000'000'000,
                .utilisation_pct = 91};
  answer.rationale = "Four runs needed up to 13.1 GiB.";
  answer.confidence = predict::Confidence::kHigh;
  answer.confidence_score = 5.0 / 6;
  answer.fit = 4;
  answer.measured_runs = 4;
  answer.completion = {.mean = 0.9,
                       .sigma = 0.122474,
                       .p10 = 0.7266,
                       .p90 = 0.9978,
                       .success_count = 4,
                       .basis = predict::Basis::kExactBundle};
  answer.residual = {.probability = predict::Probability{.mean = 0.1,
                                                         .sigma = 0.122474,
                                                         .p10 = 0.0022,
                                                         .p90 = 0.2734,
                                                         .success_count = 4,
                                                         .basis = predict::Basis::kExactBundle},
                     .failure_class = "none",
                     .summary = ""};
  answer.right_size_class = "memory_lower+walltime_raise";
  answer.review_required = true;
  answer.patch = {.source_file = "train.slurm", .source_hash = "sha256:00", .diff = "--- a\n"};
  return answer;
}

std::string Pretty(const google::protobuf::Message& message) {
  const auto body = net::SerializeMessage(net::WireFormat::kJson, message);
  EXPECT_TRUE(body);
  return nlohmann::ordered_json::parse(*body).dump(2) + "\n";
}

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(EXPANSE_SOURCE_DIR) + "/testdata/" + name;
  if (std::getenv("EXPANSE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(base::WriteFileAtomically(path, text, 0644));
  }
  EXPECT_EQ(base::ReadFile(path).value_or("no file"), text) << path;
}

v1::AnalyseResponse ResponseTo(const analyse::Answer& answer) {
  auto artifact = ArtifactOf(answer, {});
  if (artifact) artifact->artifact_id = "0193a8b2-0000-7000-8000-00000000000a";
  v1::AnalyseResponse response;
  response.set_run_id("0193a8b2-0000-7000-8000-00000000000b");
  response.set_status(v1::RUN_STATUS_SUCCEEDED);
  *response.mutable_result() = ResultOf(answer, artifact);
  return response;
}

TEST(AnalyseProto, SpeaksTheJsonOfTheReference) {
  ExpectGolden("analyse_four_runs.json", Pretty(ResponseTo(GoodRuns())));
}

// From the script to the answer: two runs of it, both killed at their memory limit.
TEST(AnalyseProto, KillsAloneAreRunsOfTheSameSource) {
  analyse::Question question;
  question.target = {.path = "train.slurm",
                     .data = "#!/bin/bash\n#SBATCH --mem=4G\n#SBATCH --time=60\nsrun ./train\n",
                     .role = "script"};
  history::Found found;
  found.basis = predict::Basis::kExactBundle;
  found.similarity = 1;
  for (int i = 0; i < 2; ++i) {
    predict::Run run;
    run.execution_id = "0193a8b2-0000-7000-8000-00000000001" + std::to_string(i);
    run.native_id = std::to_string(4401 + i);
    run.ending = predict::Ending::kOutOfMemory;
    run.requested.memory_bytes = (2 + 2 * i) * kGiB;
    run.requested.walltime_s = 3600;
    run.runtime_s = 100;
    found.runs.push_back(run);
    found.origins.push_back({.compute_id = "hpc-01",
                             .source_type = evidence::SourceType::kSlurm,
                             .user = "ann",
                             .job_name = "train",
                             .same_arguments = true});
  }
  const auto target = analyse::ReadTarget(question);
  ASSERT_TRUE(target) << target.error().message;
  ExpectGolden("analyse_kills_only.json",
               Pretty(ResponseTo(analyse::Compose(question, *target, found))));
}

TEST(AnalyseProto, SaysAllThatAnAnswerHolds) {
  analyse::Answer answer;
  answer.recommended = {.cpu_cores = 0.1234, .memory_bytes = 0.5 * kGiB + 0.5};
  answer.requested = {.cpu_cores = 2, .memory_bytes = kGiB, .gpu_count = 1, .walltime_s = 59.5};
  answer.requested_gpu_model = "l40s";
  answer.unresolved = {"memory: variable var.memory"};
  answer.rationale = "From the source alone.";
  answer.residual = {.probability = std::nullopt, .failure_class = "timeout", .summary = "tight"};
  answer.risks = {
      {.probability = predict::Probability{.mean = 0.987, .basis = predict::Basis::kSameName},
       .failure_class = "out_of_memory",
       .summary = "killed at 1 GiB"}};
  answer.evidence = {{.execution_id = "0193a8b2-0000-8000-8000-00000000000c",
                      .native_id = "4401",
                      .source_type = "slurm",
                      .compute_id = "c1",
                      .similarity = 0.9876,
                      .ending = predict::Ending::kOutOfMemory,
                      .summary = "killed"}};
  answer.warnings = {"no history"};
  answer.job_name = "train";
  answer.target_kind = "nomad";
  answer.workload = "train/worker";
  ExpectGolden("analyse_all_fields.json", Pretty(ResponseTo(answer)));
}

TEST(AnalyseProto, AnAnswerWithoutNumbersHasNoNumbers) {
  const v1::AnalyseResult result = ResultOf({}, std::nullopt);
  EXPECT_FALSE(result.recommended_resources().has_cpu_cores());
  EXPECT_FALSE(result.recommended_resources().has_gpu_utilisation_known());
  EXPECT_FALSE(result.has_requested_resources());
  EXPECT_FALSE(result.has_completion_probability());
  EXPECT_FALSE(result.has_residual_failure_risk());
  EXPECT_FALSE(result.has_confidence_score());
  EXPECT_EQ(result.confidence(), v1::CONFIDENCE_LABEL_LOW);
  EXPECT_EQ(result.right_size().class_(), "none");
  EXPECT_EQ(result.artifacts_size(), 0);
}

TEST(AnalyseProto, NumbersThatAreNoneAndTextThatIsNoneDoNoHarm) {
  analyse::Answer answer;
  answer.recommended = {.cpu_cores = std::numeric_limits<double>::quiet_NaN(),
                        .memory_bytes = std::numeric_limits<double>::infinity(),
                        .gpu_count = -1,
                        .walltime_s = 1e300};
  answer.job_name = "caf\xE9";
  answer.warnings = {"\xFF"};
  answer.completion = {.mean = -0.001};
  const v1::AnalyseResult result = ResultOf(answer, std::nullopt);
  EXPECT_FALSE(result.recommended_resources().has_cpu_cores());
  EXPECT_FALSE(result.recommended_resources().has_gpu_count());
  EXPECT_EQ(result.recommended_resources().memory_bytes(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(result.recommended_resources().walltime_seconds(),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(result.job_name(), "caf\xEF\xBF\xBD");
  EXPECT_FALSE(std::signbit(result.completion_probability().mean()));
  EXPECT_TRUE(net::SerializeMessage(net::WireFormat::kJson, result));
}

TEST(AnalyseProto, TakesAWholeRequest) {
  auto request = RequestFor("#SBATCH", "job.sh");
  request.mutable_target()->set_role("script");
  auto* file = request.add_files();
  file->set_path("lib.py");
  file->set_data("import x");
  file->set_role("import");
  request.mutable_requested()->set_cpu_cores(1.5);
  request.mutable_requested()->set_memory_bytes(7);
  request.mutable_requested()->set_gpu_count(0);
  request.mutable_requested()->set_walltime_seconds(60);
  request.set_local_user("ada");
  request.set_workload("w");
  (*request.mutable_variables())["v"] = "1";
  request.set_no_patch(true);
  const auto question = QuestionOf(request);
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_EQ(question->target.path, "job.sh");
  EXPECT_EQ(question->target.data, "#SBATCH");
  EXPECT_EQ(question->target.role, "script");
  ASSERT_EQ(question->files.size(), 1U);
  EXPECT_EQ(question->files[0].data, "import x");
  EXPECT_EQ(
      question->requested,
      (predict::Amounts{.cpu_cores = 1.5, .memory_bytes = 7, .gpu_count = 0, .walltime_s = 60}));
  EXPECT_EQ(question->local_user, "ada");
  EXPECT_EQ(question->workload, "w");
  EXPECT_EQ(question->variables.at("v"), "1");
  EXPECT_FALSE(question->patch);
}

TEST(AnalyseProto, RefusesWhatIsBeyondItsBounds) {
  using Change = std::function<void(v1::AnalyseRequest&)>;
  const auto many_files = [](v1::AnalyseRequest& r) {
    for (int i = 0; i <= kMostFiles; ++i) r.add_files()->set_path("f");
  };
  const auto large_files = [](v1::AnalyseRequest& r) {
    for (int i = 0; i < 2; ++i) {
      r.add_files()->set_path("f");
      r.mutable_files(i)->set_data(std::string(kMostFileBytes / 2 + 1, 'x'));
    }
  };
  const auto many_variables = [](v1::AnalyseRequest& r) {
    for (std::size_t i = 0; i <= kMostVariables; ++i) (*r.mutable_variables())[std::to_string(i)];
  };
  const std::vector<std::pair<std::string, Change>> table = {
      {"analyse.target", [](v1::AnalyseRequest& r) { r.clear_target(); }},
      {"analyse.target", [](v1::AnalyseRequest& r) { r.mutable_target()->clear_path(); }},
      {"analyse.target",
       [](v1::AnalyseRequest& r) { r.mutable_target()->set_path(std::string(4097, 'p')); }},
      {"analyse.target",
       [](v1::AnalyseRequest& r) { r.mutable_target()->set_role(std::string(65, 'p')); }},
      {"analyse.target",
       [](v1::AnalyseRequest& r) {
         r.mutable_target()->set_data(std::string(workload::kMaxText + 1, 'x'));
       }},
      {"analyse.files", many_files},
      {"analyse.files", large_files},
      {"analyse.files", [](v1::AnalyseRequest& r) { r.add_files(); }},
      {"analyse.requested", [](v1::AnalyseRequest& r) { r.mutable_requested()->set_cpu_cores(0); }},
      {"analyse.requested",
       [](v1::AnalyseRequest& r) {
         r.mutable_requested()->set_cpu_cores(std::numeric_limits<double>::quiet_NaN());
       }},
      {"analyse.requested",
       [](v1::AnalyseRequest& r) { r.mutable_requested()->set_memory_bytes(0); }},
      {"analyse.requested",
       [](v1::AnalyseRequest& r) {
         r.mutable_requested()->set_memory_bytes(std::numeric_limits<std::uint64_t>::max());
       }},
      {"analyse.requested",
       [](v1::AnalyseRequest& r) { r.mutable_requested()->set_gpu_count(1'000'001); }},
      {"analyse.requested",
       [](v1::AnalyseRequest& r) { r.mutable_requested()->set_walltime_seconds(-1); }},
      {"analyse.name", [](v1::AnalyseRequest& r) { r.set_local_user(std::string(1025, 'u')); }},
      {"analyse.name", [](v1::AnalyseRequest& r) { r.set_workload(std::string(1025, 'u')); }},
      {"analyse.name", [](v1::AnalyseRequest& r) { r.set_compute_id(std::string(1025, 'u')); }},
      {"analyse.variables", many_variables},
      {"analyse.variables",
       [](v1::AnalyseRequest& r) {
         (*r.mutable_variables())["v"] = std::string(kMostVariableBytes, 'x');
       }},
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    auto request = RequestFor("x");
    table[i].second(request);
    const auto question = QuestionOf(request);
    ASSERT_FALSE(question) << i;
    EXPECT_EQ(question.error().code, base::Code::kInvalidArgument) << i;
    EXPECT_EQ(question.error().reason, table[i].first) << i;
    EXPECT_LT(question.error().message.size(), 300U) << i;
  }
}

TEST(AnalyseProto, TheCacheKeyTellsApartWhatMayBeAnsweredDifferently) {
  using Change = std::function<void(analyse::Question&)>;
  std::set<std::string> keys;
  const std::vector<Change> changes = {
      [](auto&) {},
      [](auto& q) { q.target.path = "other"; },
      [](auto& q) { q.target.data = "other"; },
      [](auto& q) { q.target.role = "other"; },
      [](auto& q) { q.files = {{.path = "a", .data = "b", .role = "c"}}; },
      [](auto& q) { q.files = {{.path = "a", .data = "bc", .role = ""}}; },
      [](auto& q) { q.requested.cpu_cores = 1; },
      [](auto& q) { q.requested.memory_bytes = 1; },
      [](auto& q) { q.requested.gpu_count = 1; },
      [](auto& q) { q.requested.gpu_count = 0; },
      [](auto& q) { q.requested.walltime_s = 1; },
      [](auto& q) { q.local_user = "u"; },
      [](auto& q) { q.workload = "u"; },
      [](auto& q) { q.variables = {{"a", "b"}}; },
      [](auto& q) { q.variables = {{"ab", ""}}; },
      [](auto& q) { q.patch = false; },
  };
  for (const Change& change : changes) {
    analyse::Question question{.target = {.path = "p", .data = "d", .role = ""}};
    change(question);
    keys.insert(CacheKey(question, "", "v"));
    EXPECT_EQ(CacheKey(question, "", "v"), CacheKey(question, "", "v"));
  }
  EXPECT_EQ(keys.size(), changes.size());
  EXPECT_TRUE(keys.insert(CacheKey({}, "c", "v")).second);
  EXPECT_TRUE(keys.insert(CacheKey({}, "", "w")).second);
}

}  // namespace
}  // namespace expanse::intelligence
