#include "intelligence/diagnose/agent_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "intelligence/diagnose/diagnose.h"

namespace expanse::intelligence::diagnose {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kGiB = 1024.0 * 1024 * 1024;

const RunbookSet& Set() {
  static const auto set = *RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
  return *set;
}

Case Failed() {
  Case of;
  of.execution.execution_id = "7f3e";
  of.execution.name = "train";
  of.execution.native_id = "4411";
  of.execution.source_type = evidence::SourceType::kSlurm;
  of.execution.status = evidence::ExecutionStatus::kFailed;
  of.execution.native_state = "FAILED";
  of.execution.exit_code = 1;
  of.execution.command = {"sbatch", "train.sh"};
  of.logs.push_back(
      {.stream = "stderr", .data = "epoch 1\nModuleNotFoundError: No module named 'pandas'\n"});
  return of;
}

std::string PromptOf(const Case& of) { return Diagnose(of, Set()).agent_prompt; }

TEST(AgentPromptSections, SayWhatTheJobWasAndWhatToDo) {
  const std::string prompt = PromptOf(Failed());
  EXPECT_THAT(prompt, HasSubstr("- name: `train`"));
  EXPECT_THAT(prompt, HasSubstr("`4411` (slurm)"));
  EXPECT_THAT(prompt, HasSubstr("- class: import_error"));
  EXPECT_THAT(prompt, HasSubstr("No module named 'pandas'"));
  EXPECT_THAT(prompt, HasSubstr("1. Confirm the cause"));
  EXPECT_THAT(prompt, HasSubstr("None were captured."));
  EXPECT_LT(prompt.find("## Job"), prompt.find("## Diagnosis"));
  EXPECT_LT(prompt.find("## Diagnosis"), prompt.find("## Task"));
}

TEST(AgentPromptSections, CompareRequestsWithPeaks) {
  Case of = Failed();
  of.snapshot.host_ram_requested_bytes = 24 * kGiB;
  of.snapshot.host_ram_observed_peak_bytes = 3.25 * kGiB;
  of.snapshot.gpu_count = 2;
  of.snapshot.gpu_type = "NVIDIA H100";
  const std::string prompt = PromptOf(of);
  EXPECT_THAT(prompt, HasSubstr("- memory limit: 24.0 GiB\n- memory peak: 3.3 GiB\n"));
  EXPECT_THAT(prompt, HasSubstr("- GPUs: 2 x `NVIDIA H100`"));
  EXPECT_THAT(prompt, HasSubstr("- run time: unknown"));
}

TEST(AgentPromptSections, NameTheNewestRunsThatSucceeded) {
  Case of = Failed();
  for (int i = 0; i < 9; ++i) {
    SimilarRun& similar = of.similar.emplace_back();
    similar.run.execution_id = "run" + std::to_string(i);
    similar.run.ending = i == 8 ? predict::Ending::kFailure : predict::Ending::kSuccess;
  }
  const std::string prompt = PromptOf(of);
  EXPECT_THAT(prompt, HasSubstr("run7"));
  EXPECT_THAT(prompt, HasSubstr("run3"));
  EXPECT_THAT(prompt, Not(HasSubstr("run8")));
  EXPECT_THAT(prompt, Not(HasSubstr("run2")));
}

TEST(AgentPromptSections, KeepTheEndOfALongLogByWholeLines) {
  Case of = Failed();
  std::string log;
  for (int i = 0; i < 5000; ++i) log += "line number " + std::to_string(i) + "\n";
  of.logs[0].data = log + of.logs[0].data;
  const std::string prompt = PromptOf(of);
  EXPECT_LE(prompt.size(), kMaxPrompt);
  EXPECT_THAT(prompt, HasSubstr("\nline number 4999\n"));
  EXPECT_THAT(prompt, Not(HasSubstr("\nline number 1000\n")));
  EXPECT_THAT(prompt, Not(HasSubstr("\nne number")));
}

TEST(AgentPromptSections, StayWithinTheBoundWhateverThereIs) {
  Case of = Failed();
  of.execution.command.assign(10'000, "--option=" + std::string(100, 'x'));
  of.execution.native_state = std::string(100'000, 's');
  of.execution.working_directory = std::string(100'000, 'd');
  of.compute_name = std::string(100'000, 'c');
  for (int i = 0; i < 500; ++i) {
    of.sources.push_back({.path = std::string(5'000, 'p'), .role = "import", .data = "\n\n"});
    of.logs.push_back({.stream = "s" + std::to_string(i), .data = std::string(2'000, '\x01')});
  }
  const std::string prompt = PromptOf(of);
  EXPECT_LE(prompt.size(), kMaxPrompt);
  EXPECT_THAT(prompt, HasSubstr("## Task"));
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
