// Runs that the scheduler calls successful although their output ends in a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "intelligence/diagnose/case_file.h"
#include "intelligence/diagnose/diagnose.h"

namespace expanse::intelligence::diagnose {
namespace {

using testing::HasSubstr;

const RunbookSet& Set() {
  static const auto set = *RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
  return *set;
}

constexpr std::string_view kCrash =
    "epoch 1 loss 0.3\n"
    "Traceback (most recent call last):\n"
    "  File \"train.py\", line 7, in <module>\n"
    "ModuleNotFoundError: No module named 'pandas'\n";

Case Succeeded(std::string_view log, std::string_view script) {
  Case of;
  of.execution.execution_id = "e";
  of.execution.source_type = evidence::SourceType::kSlurm;
  of.execution.status = evidence::ExecutionStatus::kSucceeded;
  of.execution.outcome = evidence::Outcome::kSuccess;
  of.execution.native_state = "COMPLETED";
  of.execution.exit_code = 0;
  of.logs.push_back({.stream = "stderr", .data = std::string(log)});
  of.sources.push_back({.path = "train.sh", .role = "script", .data = std::string(script)});
  return of;
}

TEST(HiddenFailure, IsNamedWithTheLineOfTheOutputAndOfTheScript) {
  const Case of = Succeeded(kCrash, "#!/bin/bash\npython train.py || true\n");
  const Diagnosis said = Diagnose(of, Set());
  EXPECT_EQ(said.failure_class, "scheduler_state_masks_failure");
  EXPECT_EQ(said.confidence, predict::Confidence::kMedium);
  ASSERT_GE(said.evidence.size(), 2U);
  EXPECT_EQ(said.evidence[0].origin, "source");
  EXPECT_EQ(said.evidence[0].where, "train.sh line 2");
  EXPECT_EQ(said.evidence[0].quote, "python train.py || true");
  EXPECT_EQ(said.evidence[1].origin, "log");
  EXPECT_EQ(said.evidence[1].quote, "ModuleNotFoundError: No module named 'pandas'");
  EXPECT_THAT(said.root_cause, HasSubstr("import_error"));
  EXPECT_THAT(said.root_cause, HasSubstr("python train.py || true"));
}

TEST(HiddenFailure, IsNoneWhereTheScriptWouldHaveFailed) {
  EXPECT_EQ(Diagnose(Succeeded(kCrash, "#!/bin/bash\npython train.py\n"), Set()).failure_class, "");
}

TEST(HiddenFailure, IsNoneWhereTheScriptIsNotKnown) {
  Case of = Succeeded(kCrash, "");
  of.sources.clear();
  EXPECT_EQ(Diagnose(of, Set()).failure_class, "");
}

TEST(HiddenFailure, WhatKeepsHouseMayFail) {
  const char* script = "#!/bin/bash\n./filter\nrm old/*.tmp\necho finished\n";
  EXPECT_EQ(
      Diagnose(Succeeded("kept 120\nrm: cannot remove 'old/*.tmp': No such file or directory\n"
                         "finished\n",
                         script),
               Set())
          .failure_class,
      "");
  EXPECT_EQ(Diagnose(Succeeded("kept 120\nfilter: rules.txt: No such file or directory\nfinished\n",
                               script),
                     Set())
                .failure_class,
            "scheduler_state_masks_failure");
}

TEST(HiddenFailure, IsNoneWhereTheProgramGoesOn) {
  const std::string log =
      std::string(kCrash) + "retrying without it\ntraining finished, saved a.pt\n";
  EXPECT_EQ(Diagnose(Succeeded(log, "#!/bin/bash\n./a || true\n"), Set()).failure_class, "");
  for (const char* good : {"  accuracy: 0.93\n", "exiting normally\n", "finished with 0 errors\n",
                           "ignoring the error\n", "Normal termination of the program\n"})
    EXPECT_EQ(Diagnose(Succeeded(std::string(kCrash) + good, "#!/bin/bash\n./a || true\n"), Set())
                  .failure_class,
              "")
        << good;
  std::string later(kCrash);
  for (int i = 0; i < 10; ++i) later += "epoch " + std::string(1, char('a' + i)) + " fine\n";
  EXPECT_EQ(Diagnose(Succeeded(later, "#!/bin/bash\n./a || true\n"), Set()).failure_class, "");
}

TEST(HiddenFailure, TheScriptsOwnLastWordIsNoWordOfSuccess) {
  const std::string log = std::string(kCrash) + "job finished at Mon Mar  2\n";
  const Case of =
      Succeeded(log, "#!/bin/bash\npython train.py\necho \"job finished at $(date)\"\n");
  EXPECT_EQ(Diagnose(of, Set()).failure_class, "scheduler_state_masks_failure");
}

TEST(HiddenFailure, MoreOfTheFailureIsNoWordOfSuccess) {
  const std::string log =
      "Exception in thread \"main\" java.lang.NullPointerException: x\n\tat a.B.run(B.java:7)\n"
      "\tat a.B.main(B.java:3)\nsrun: error: n1: task 0: Exited with exit code 1\n";
  EXPECT_EQ(Diagnose(Succeeded(log, "#!/bin/bash\njava a.B | tee log\n"), Set()).failure_class,
            "scheduler_state_masks_failure");
  EXPECT_EQ(Diagnose(Succeeded("step 1\n/var/spool/slurmd/job7/slurm_script: line 3:  4411 "
                               "Segmentation fault      (core dumped) ./crash\n",
                               "#!/bin/bash\n./crash || true\n"),
                     Set())
                .failure_class,
            "scheduler_state_masks_failure");
}

TEST(HiddenFailure, AKillAtTheMemoryLimitIsTheBetterAnswer) {
  const Case of = Succeeded(
      "slurmstepd: error: Detected 1 oom_kill event in StepId=8.batch. Some of the step tasks have "
      "been OOM Killed.\n",
      "#!/bin/bash\n./a || true\n");
  EXPECT_EQ(Diagnose(of, Set()).failure_class, "host_out_of_memory");
}

TEST(HiddenFailure, ARunThatFailedHasItsOwnCause) {
  Case of = Succeeded(kCrash, "#!/bin/bash\npython train.py || true\n./b\n");
  of.execution.status = evidence::ExecutionStatus::kFailed;
  of.execution.exit_code = 1;
  EXPECT_EQ(Diagnose(of, Set()).failure_class, "import_error");
}

// Whatever the scripts of healthy runs hide: their output does not end in a failure.
TEST(HiddenFailure, NothingIsFoundInHealthyRunsOfScriptsThatHide) {
  const std::filesystem::path folder =
      std::filesystem::path(EXPANSE_SOURCE_DIR) / "../../tests/corpus/diagnose/healthy";
  auto cases = ReadCases(folder);
  ASSERT_TRUE(cases) << cases.error().message;
  for (LabelledCase& labelled : *cases) {
    labelled.what.sources = {
        {.path = "a.sh", .role = "script", .data = "#!/bin/bash\n./run 2>&1 | tee log\n"}};
    EXPECT_EQ(Diagnose(labelled.what, Set()).failure_class, "") << labelled.id;
  }
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
