#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "cli/diagnose_render.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;
using testing::HasSubstr;
using testing::Not;

const std::string kExecution = "0191e7a0-0000-8000-8000-00000000aaaa";

void AddStage(v1::DiagnoseResult* result, const char* name, v1::PipelineStageStatus status,
              const char* summary) {
  v1::PipelineStage* stage = result->add_pipeline();
  stage->set_name(name);
  stage->set_status(status);
  stage->set_summary(summary);
}

// The reference's example of a diagnosis, in our words.
v1::DiagnoseResult Example() {
  v1::DiagnoseResult result;
  AddStage(&result, "evidence", v1::PIPELINE_STAGE_STATUS_OK, "execution record, scheduler status");
  AddStage(&result, "similar", v1::PIPELINE_STAGE_STATUS_OK, "5 similar executions");
  AddStage(&result, "attribution", v1::PIPELINE_STAGE_STATUS_SKIPPED, "no code regions captured");
  AddStage(&result, "runbooks", v1::PIPELINE_STAGE_STATUS_OK, "host_out_of_memory");
  v1::DiagnoseDisplay* display = result.mutable_display();
  display->set_target(kExecution);
  display->set_job_name("train");
  display->set_state("failed");
  display->set_failure_class("host_out_of_memory");
  display->set_compute("hpc-01");
  v1::ResourceSnapshot* seen = display->mutable_resource_snapshot();
  seen->set_runtime_seconds(2531);
  seen->set_gpu_type("NVIDIA H100 80GB HBM3");
  seen->set_cuda_version("12.4");
  seen->set_gpu_count(1);
  seen->set_gpu_utilisation_pct(91);
  seen->set_gpu_memory_available_bytes(85520809984);
  seen->set_gpu_memory_observed_bytes(33500000000);
  seen->set_cpu_requested(16);
  seen->set_host_ram_observed_peak_bytes(25769803776);
  seen->set_host_ram_requested_bytes(25769803776);
  v1::Probability* recurrence = display->mutable_recurrence();
  recurrence->set_mean(0.05);
  recurrence->set_sigma(0.07);
  recurrence->set_p10(0);
  recurrence->set_p90(0.14);
  result.set_confidence(v1::CONFIDENCE_LABEL_HIGH);
  result.set_owner("user");
  result.set_root_cause("What happened: it ran out of memory at its limit of 24.0 GiB.");
  v1::DiagnoseEvidence* cited = result.add_evidence();
  cited->set_where("stderr line 2");
  cited->set_origin("log");
  cited->set_quote("Detected 1 oom_kill event\x1b[31m");
  v1::DiagnoseEvidence* similar = result.add_evidence();
  similar->set_origin("similar");
  similar->set_summary("9 similar executions succeeded");
  result.set_advice("request more memory");
  result.set_retry("after_fix");
  result.set_agent_prompt("Check this.\n");
  return result;
}

TEST(RenderDiagnosis, ShowsTheReferencesRowsInOrder) {
  EXPECT_EQ(RenderDiagnosis(Example(), /*cached=*/false, {}), R"(PIPELINE DIAGNOSE
evidence     done      execution record, scheduler status
similar      done      5 similar executions
attribution  skipped   no code regions captured
runbooks     done      host_out_of_memory

EXPANSE DIAGNOSE
target         0191e7a0-0000-8000-8000-00000000aaaa
job_name       train
state          failed
failure_class  host_out_of_memory
compute        hpc-01

RESOURCE SNAPSHOT
runtime_s                  2531
gpu_type                   NVIDIA H100 80GB HBM3
cuda_version               12.4
gpu_count                  1
gpu_utilisation_pct        91
gpu_memory_available_gb    79.6
gpu_memory_observed_gb     31.2
cpu_requested              16
host_ram_observed_peak_gb  24
host_ram_requested_gb      24

FAILURE DETECTION
pattern     host_out_of_memory
confidence  high
recurrence  mean=0.05 sigma=0.07 p10=0.00 p90=0.14
owner       user
root_cause  What happened: it ran out of memory at its limit of 24.0 GiB.

EVIDENCE
stderr line 2  Detected 1 oom_kill event\x1b[31m
similar        9 similar executions succeeded

NEXT
advice  request more memory
retry   after_fix
)");
}

TEST(RenderDiagnosis, FillsSentencesOnATerminalAndLeavesQuotesWhole) {
  v1::DiagnoseResult result = Example();
  result.mutable_evidence(0)->set_quote(std::string(40, 'q') + " " + std::string(40, 'q'));
  const std::string shown = RenderDiagnosis(result, /*cached=*/false, {.width = 50});
  EXPECT_THAT(shown, HasSubstr("root_cause  What happened: it ran out of memory at\n"
                               "            its limit of 24.0 GiB.\n"));
  EXPECT_THAT(shown, HasSubstr(result.evidence(0).quote()));
}

TEST(RenderDiagnosis, SaysHowARunStandsThatDidNotFail) {
  v1::DiagnoseResult result;
  result.mutable_display()->set_target(kExecution);
  result.mutable_display()->set_state("running");
  result.set_root_cause("The execution is still running; nothing has failed so far.");
  const std::string shown = RenderDiagnosis(result, /*cached=*/false, {});
  EXPECT_THAT(shown, HasSubstr("RESULT\nstate  The execution is still running"));
  EXPECT_THAT(shown, Not(HasSubstr("FAILURE DETECTION")));
}

class DiagnoseCommands : public testing::Test {
 protected:
  DiagnoseCommands() {
    platform_.diagnosis.set_run_id("0191e7a0-1111-7000-8000-00000000aaaa");
    platform_.diagnosis.set_status(v1::RUN_STATUS_SUCCEEDED);
    *platform_.diagnosis.mutable_result() = Example();
    harness_.SignIn(platform_);
  }
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), "diagnose");
    return harness_.Run(words);
  }

  FakePlatform platform_;
  CliHarness harness_;
  FakeTerminal& terminal_ = harness_.terminal;
};

TEST_F(DiagnoseCommands, PrintsTheAnswer) {
  ASSERT_EQ(Run({kExecution, "--no-cache"}), 0) << terminal_.err;
  EXPECT_THAT(terminal_.out, HasSubstr("FAILURE DETECTION"));
  ASSERT_EQ(platform_.diagnosed.size(), 1U);
  EXPECT_EQ(platform_.diagnosed[0].execution_id(), kExecution);
  EXPECT_TRUE(platform_.diagnosed[0].no_cache());
}

TEST_F(DiagnoseCommands, ShowsTheComputesNameWhereItIsKnown) {
  const std::string id = "0191e7a0-2222-8000-8000-00000000aaaa";
  platform_.diagnosis.mutable_result()->mutable_display()->set_compute(id);
  ASSERT_EQ(Run({kExecution}), 0) << terminal_.err;
  EXPECT_THAT(terminal_.out, HasSubstr("compute        " + id + "\n"));
  platform_.computes.emplace_back();
  platform_.computes.back().set_compute_id(id);
  platform_.computes.back().set_name("hpc-02");
  platform_.computes.back().set_state(common::v1::COMPUTE_STATE_REVOKED);
  terminal_.out.clear();
  ASSERT_EQ(Run({kExecution}), 0) << terminal_.err;
  EXPECT_THAT(terminal_.out, HasSubstr("compute        hpc-02\n"));
  terminal_.out.clear();
  ASSERT_EQ(Run({kExecution, "--json"}), 0) << terminal_.err;
  EXPECT_THAT(terminal_.out, HasSubstr("\"compute\": \"hpc-02\""));
}

TEST_F(DiagnoseCommands, PrintsThePromptAlone) {
  ASSERT_EQ(Run({kExecution, "--prompt"}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out, "Check this.\n");
  EXPECT_EQ(terminal_.err, "");
}

TEST_F(DiagnoseCommands, HasNoPromptForWhatDidNotFail) {
  platform_.diagnosis.mutable_result()->clear_agent_prompt();
  EXPECT_EQ(Run({kExecution, "--prompt"}), 1);
  EXPECT_EQ(terminal_.out, "");
  EXPECT_THAT(terminal_.err, HasSubstr("there is no prompt"));
}

TEST_F(DiagnoseCommands, SendsFurtherSourcesWithoutSecrets) {
  const std::string secret = std::string("hf") + "_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j";
  const std::string path = harness_.home.path() + "/more.py";
  ASSERT_TRUE(base::WriteFileAtomically(path, "token = '" + secret + "'\nprint(1)\n", 0644));
  ASSERT_EQ(Run({kExecution, "--source", path}), 0) << terminal_.err;
  ASSERT_EQ(platform_.diagnosed[0].files_size(), 1);
  EXPECT_THAT(platform_.diagnosed[0].files(0).data(), HasSubstr("print(1)"));
  EXPECT_THAT(platform_.diagnosed[0].files(0).data(), Not(HasSubstr(secret)));
  EXPECT_EQ(Run({kExecution, "--source", path + ".none"}), 3);
}

TEST_F(DiagnoseCommands, RefusesWhatExcludesEachOther) {
  EXPECT_EQ(Run({kExecution, "--prompt", "--json"}), 2);
  EXPECT_EQ(Run({}), 2);
  EXPECT_TRUE(platform_.diagnosed.empty());
}

}  // namespace
}  // namespace expanse::cli
