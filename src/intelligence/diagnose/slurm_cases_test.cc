// Cases as a real Slurm 22.05 shows them; tests/e2e/diagnose_slurm_test.py makes the same ones
// live.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "intelligence/diagnose/diagnose.h"

namespace expanse::intelligence::diagnose {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;
using predict::Confidence;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

constexpr double kMiB = 1024.0 * 1024;

Diagnosis Say(const Case& of) {
  static const std::shared_ptr<const RunbookSet> set =
      *RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
  return Diagnose(of, *set);
}

Case Failed(const std::string& state, const std::string& reason) {
  Case of;
  of.execution.execution_id = "e1";
  of.execution.source_type = evidence::SourceType::kSlurm;
  of.execution.status = ExecutionStatus::kFailed;
  of.execution.outcome = Outcome::kFailure;
  of.execution.native_state = state;
  of.execution.native_reason = reason;
  of.execution.exit_code = 0;
  return of;
}

Case Exited(int code, const std::string& output) {
  Case of = Failed("FAILED", "NonZeroExitCode");
  of.execution.exit_code = code;
  of.logs.push_back({.stream = "combined", .data = output});
  return of;
}

// slurmctld gives this reason to whatever a signal ended.
TEST(SlurmCases, AScriptThatASignalEndedWasLaunched) {
  Case of = Failed("FAILED", "JobLaunchFailure");
  of.execution.signal = 4;
  const Diagnosis said = Say(of);
  EXPECT_EQ(said.failure_class, "illegal_instruction");
  EXPECT_TRUE(said.alternatives.empty());
  of.execution.signal.reset();
  EXPECT_EQ(Say(of).failure_class, "launch_failed");
}

TEST(SlurmCases, ARequeuedRunWasNotCancelled) {
  Case of = Failed("REQUEUED", "None");
  of.execution.status = ExecutionStatus::kCancelled;
  of.execution.outcome = Outcome::kCancelled;
  EXPECT_EQ(Say(of).failure_class, "requeued");
}

TEST(SlurmCases, SentencesThatAreLeftOutLeaveNoGap) {
  const Diagnosis said = Say(Failed("NODE_FAIL", "NodeDown"));
  EXPECT_EQ(said.failure_class, "node_failure");
  EXPECT_THAT(said.root_cause, Not(HasSubstr("  ")));
}

TEST(SlurmCases, ASampledPeakRefutesNoKill) {
  Case of = Failed("OUT_OF_MEMORY", "OutOfMemory");
  of.execution.outcome = Outcome::kOutOfMemory;
  of.execution.signal = 125;
  of.execution.used.oom_kills = 0;  // the last look came before
  of.snapshot.host_ram_observed_peak_bytes = 2 * kMiB;
  of.snapshot.host_ram_requested_bytes = 60 * kMiB;
  const Diagnosis said = Say(of);
  EXPECT_EQ(said.failure_class, "host_out_of_memory");
  EXPECT_EQ(said.confidence, Confidence::kHigh);
  EXPECT_THAT(said.root_cause, HasSubstr("limit of 60 MiB"));
  EXPECT_THAT(said.root_cause, HasSubstr("2 MiB is a floor"));
  EXPECT_THAT(said.root_cause, Not(HasSubstr("refused")));
}

TEST(SlurmCases, ARefusedAllocationIsNoKillAtTheLimit) {
  Case of =
      Exited(1, "Traceback (most recent call last):\n  File \"eat.py\", line 3\nMemoryError\n");
  of.snapshot.host_ram_observed_peak_bytes = 20 * kMiB;
  of.snapshot.host_ram_requested_bytes = 1000 * kMiB;
  const Diagnosis said = Say(of);
  EXPECT_EQ(said.failure_class, "host_out_of_memory");
  EXPECT_NE(said.confidence, Confidence::kHigh);
  EXPECT_THAT(said.root_cause, HasSubstr("peak of 20 MiB it was refused"));
  EXPECT_THAT(said.root_cause, Not(HasSubstr("at its limit")));
  EXPECT_THAT(said.root_cause, Not(HasSubstr("a kill at the limit")));
}

// Of several failed steps the one is cited that shows it.
TEST(SlurmCases, TheStepThatASignalEndedIsCited) {
  Case of = Failed("FAILED", "NonZeroExitCode");
  of.execution.exit_code = 1;
  for (const auto& [id, code, signal] :
       {std::tuple{"batch", 1, 0}, std::tuple{"0", 2, 0}, std::tuple{"1", 0, 11}}) {
    evidence::Step step;
    step.id = id;
    step.native_state = "FAILED";
    step.exit_code = code;
    if (signal != 0) step.signal = signal;
    of.execution.steps.push_back(step);
  }
  const Diagnosis said = Say(of);
  EXPECT_EQ(said.failure_class, "segmentation_fault");
  ASSERT_EQ(said.evidence.size(), 1U);
  EXPECT_EQ(said.evidence[0].quote, "step 1 FAILED, exit code 0, signal 11");
}

TEST(SlurmCases, StepsThatFailedInASuccessfulRunAreSaid) {
  Case of = Failed("COMPLETED", "None");
  of.execution.status = ExecutionStatus::kSucceeded;
  of.execution.outcome = Outcome::kSuccess;
  EXPECT_THAT(Say(of).root_cause, HasSubstr("no failure to explain"));
  for (int index = 0; index < 6; ++index) {
    evidence::Step step;
    step.id = std::to_string(index);
    step.native_state = "FAILED";
    step.exit_code = index == 0 ? 0 : 4;
    if (index == 0) step.signal = 11;
    of.execution.steps.push_back(step);
  }
  const Diagnosis said = Say(of);
  EXPECT_EQ(said.failure_class, "");
  EXPECT_EQ(said.root_cause,
            "The execution succeeded as a whole, but not step 0 (SIGSEGV), step 1 (exit code 4), "
            "step 2 (exit code 4), step 3 (exit code 4) and 2 more: its script went on.");
}

TEST(SlurmCases, WhoCancelledIsSaid) {
  Case of = Failed("CANCELLED", "None");
  of.execution.status = ExecutionStatus::kCancelled;
  of.execution.outcome = Outcome::kCancelled;
  of.execution.labels = {{"slurm.cancelled_by", "0"}, {"slurm.uid", "1000"}};
  Diagnosis said = Say(of);
  EXPECT_EQ(said.failure_class, "cancelled_by_user");
  EXPECT_THAT(said.root_cause, HasSubstr("cancelled by another user (root)"));
  EXPECT_THAT(said.root_cause, Not(HasSubstr("administrator")));
  of.execution.labels["slurm.cancelled_by"] = "1000";
  said = Say(of);
  EXPECT_THAT(said.root_cause, HasSubstr("cancelled by its own user (uid 1000)"));
  of.execution.labels.clear();
  EXPECT_THAT(Say(of).root_cause, HasSubstr("a user or an administrator ended it"));
}

// srun ends the other ranks in the same words as scancel does.
TEST(SlurmCases, AStepThatSrunEndedWasNotCancelled) {
  const Diagnosis said = Say(
      Exited(1, "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-02T03:04:05 ***\n"));
  EXPECT_NE(said.failure_class, "cancelled_by_user");
  EXPECT_TRUE(said.alternatives.empty());
}

TEST(SlurmCases, ExitCodeTwoIsNoMissingCommand) {
  const Diagnosis said =
      Say(Exited(2,
                 "python3: can't open file '/home/u/tran.py': [Errno 2] No such file or directory\n"
                 "srun: error: n1: task 0: Exited with exit code 2\n"));
  EXPECT_EQ(said.failure_class, "file_not_found");
}

TEST(SlurmCases, CommandsThatDashDoesNotFind) {
  const Diagnosis said =
      Say(Exited(127, "/var/spool/slurmd/job7/slurm_script: 3: solver: not found\n"));
  EXPECT_EQ(said.failure_class, "command_not_found");
  EXPECT_EQ(said.confidence, Confidence::kHigh);
  EXPECT_THAT(said.root_cause, HasSubstr("solver"));
}

TEST(SlurmCases, CarriageReturnsAreFoundInTheOutput) {
  const Diagnosis said =
      Say(Exited(127, "/usr/bin/env: \u2018bash\\r\u2019: No such file or directory\n"));
  EXPECT_EQ(said.failure_class, "bad_interpreter_crlf");
  EXPECT_EQ(said.confidence, Confidence::kHigh);
}

TEST(SlurmCases, CarriageReturnsAreFoundInTheSource) {
  Case of = Exited(127, "/var/spool/slurmd/job7/slurm_script: 2: ./run.sh: not found\n");
  of.sources.push_back({.path = "job.sh", .role = "script", .data = "#!/bin/sh\n./run.sh\n"});
  of.sources.push_back({.path = "run.sh", .role = "argument", .data = "#!/bin/bash\r\necho a\r\n"});
  Diagnosis said = Say(of);
  EXPECT_EQ(said.failure_class, "bad_interpreter_crlf");
  EXPECT_THAT(said.evidence, Contains(Field(&CitedEvidence::where, "run.sh line 1")));
  EXPECT_THAT(said.evidence, Contains(Field(&CitedEvidence::quote, "#!/bin/bash\r")));
  // Data may have them, and so may a script in a job that fails of something else.
  of.sources[1].path = "table.csv";
  of.sources[1].data = "a,b\r\n1,2\r\n";
  EXPECT_EQ(Say(of).failure_class, "command_not_found");
  of.sources[1] = {
      .path = "run.py", .role = "argument", .data = "#!/usr/bin/python3\r\nopen('x')\r\n"};
  of.execution.exit_code = 1;
  of.logs[0].data = "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n";
  EXPECT_EQ(Say(of).failure_class, "file_not_found");
}

TEST(SlurmCases, AnInterpreterThatIsNotThere) {
  const Diagnosis said =
      Say(Exited(127, "bash: line 1: ./run.sh: cannot execute: required file not found\n"));
  EXPECT_EQ(said.failure_class, "bad_shebang_or_no_exec_bit");
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
