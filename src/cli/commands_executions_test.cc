#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "cli/cli_testing.h"

namespace expanse::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kTestData = std::string(EXPANSE_SOURCE_DIR) + "/testdata";

std::string Id(int n) { return "0191e7a0-0000-8000-8000-00000000000" + std::to_string(n); }

data::v1::Execution MakeExecution(int n) {
  data::v1::Execution execution;
  execution.set_execution_id(Id(n));
  execution.set_native_id(std::to_string(41980 + n));
  execution.set_source_type(common::v1::SOURCE_TYPE_HOST);
  execution.set_user("ada");
  execution.set_status(data::v1::EXECUTION_STATUS_SUCCEEDED);
  execution.set_outcome(data::v1::EXECUTION_OUTCOME_SUCCESS);
  execution.mutable_started_at()->set_seconds(1'790'000'000 + n);
  return execution;
}

class ExecutionCommands : public testing::Test {
 protected:
  ExecutionCommands() {
    for (int n = 1; n <= 3; ++n) platform_.executions.push_back(MakeExecution(n));
    auto& failed = platform_.executions[1];
    failed.set_status(data::v1::EXECUTION_STATUS_FAILED);
    failed.set_outcome(data::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
    failed.set_user(
        "b\xc3\xb6"
        "b\x1b[31m");
    failed.set_native_id("a job id that is longer than most columns would like to be");
    auto& queued = platform_.executions[2];
    queued.set_status(data::v1::EXECUTION_STATUS_QUEUED);
    queued.clear_outcome();
    queued.clear_user();
    queued.clear_started_at();
    harness_.SignIn(platform_);
  }
  void Diagnose(int n, const std::string& failure_class, const std::string& title) {
    intelligence::v1::FailureClass& known = platform_.failure_classes.emplace_back();
    known.set_execution_id(Id(n));
    known.set_failure_class(failure_class);
    known.set_title(title);
    known.set_confidence(intelligence::v1::CONFIDENCE_LABEL_HIGH);
  }
  void UseTerminal(std::size_t width) {
    terminal_.width = width;
    harness_.clock.pinned = base::FromMicros(1'790'000'301'000'000);
  }
  FakePlatform platform_;
  CliHarness harness_;
  FakeTerminal& terminal_ = harness_.terminal;
};

TEST_F(ExecutionCommands, TableInAPipeIsComplete) {
  Diagnose(2, "host_out_of_memory", "Out of host memory");
  ASSERT_EQ(harness_.Run({"executions"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "executions-pipe.txt", terminal_.out);
  EXPECT_EQ(terminal_.err, "");
  EXPECT_EQ(platform_.listed.page_size(), 25U);
}

TEST_F(ExecutionCommands, TableOnATerminalFitsAndIsColoured) {
  Diagnose(2, "host_out_of_memory", "Out of host memory");
  UseTerminal(120);
  terminal_.colour = true;
  ASSERT_EQ(harness_.Run({"executions"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "executions-terminal.txt", terminal_.out);
  UseTerminal(90);
  terminal_.colour = false;
  ASSERT_EQ(harness_.Run({"executions"}), 0) << terminal_.err;
  EXPECT_THAT(terminal_.out, Not(HasSubstr("OUTCOME"))) << "the class says more";
  EXPECT_THAT(terminal_.out, HasSubstr("  host_out_of"));
}

TEST_F(ExecutionCommands, FailedOnesShowTheirClass) {
  Diagnose(2, "site\x1b[31m_class", "t\x1b[2J");
  ASSERT_EQ(harness_.Run({"executions"}), 0) << terminal_.err;
  ASSERT_EQ(platform_.classes_asked.size(), 1U);
  ASSERT_EQ(platform_.classes_asked[0].execution_ids_size(), 2) << "what waits has not failed";
  EXPECT_EQ(platform_.classes_asked[0].execution_ids(0), Id(1));
  EXPECT_EQ(platform_.classes_asked[0].execution_ids(1), Id(2));
  EXPECT_THAT(terminal_.out, HasSubstr("14:13:22Z  site\\x1b[31m_class\n"));
  EXPECT_THAT(terminal_.out, HasSubstr("14:13:21Z  -\n"));
  ASSERT_EQ(harness_.Run({"executions", "show", Id(2)}), 0) << terminal_.err;
  EXPECT_THAT(terminal_.out, HasSubstr("site\\x1b[31m_class (high): t\\x1b[2J\n"));
  EXPECT_THAT(terminal_.out, HasSubstr("MORE          expanse diagnose " + Id(2) + "\n"));
  EXPECT_THAT(terminal_.out, Not(HasSubstr("\x1b")));
  ASSERT_EQ(harness_.Run({"executions", "show", Id(1)}), 0) << terminal_.err;
  EXPECT_THAT(terminal_.out, Not(HasSubstr("DIAGNOSIS")));
  EXPECT_EQ(platform_.classes_asked.size(), 3U);
  ASSERT_EQ(harness_.Run({"executions", "show", Id(3)}), 0) << terminal_.err;
  EXPECT_EQ(platform_.classes_asked.size(), 3U) << "nothing to ask for";
}

TEST_F(ExecutionCommands, ClassesAreAskedForInThousands) {
  platform_.executions.clear();
  for (int n = 0; n < 1001; ++n) {
    platform_.executions.push_back(MakeExecution(n % 10));
    platform_.executions.back().set_status(data::v1::EXECUTION_STATUS_FAILED);
  }
  ASSERT_EQ(harness_.Run({"executions", "--limit", "2000"}), 0) << terminal_.err;
  ASSERT_EQ(platform_.classes_asked.size(), 2U);
  EXPECT_EQ(platform_.classes_asked[0].execution_ids_size(), 1000);
  EXPECT_EQ(platform_.classes_asked[1].execution_ids_size(), 1);
}

TEST_F(ExecutionCommands, TheListIsThereWithoutTheIntelligencePlane) {
  const auto run = [&](base::Code code) {
    platform_.FailWith("ListFailureClasses",
                       {.code = code, .reason = "x", .message = "no\x1b[31m"});
    EXPECT_EQ(harness_.Run({"executions"}), 0);
    EXPECT_THAT(terminal_.out, HasSubstr("14:13:22Z  -\n"));
    return terminal_.err;
  };
  EXPECT_EQ(run(base::Code::kUnimplemented), "") << "a server older than the question";
  EXPECT_EQ(run(base::Code::kPermissionDenied), "");
  EXPECT_THAT(run(base::Code::kAborted), HasSubstr("failure classes are not known: no\\x1b["));
  platform_.has_intelligence = false;
  harness_.SignIn(platform_);
  const int refreshes = platform_.refreshes();
  EXPECT_EQ(run(base::Code::kAborted), "");
  EXPECT_EQ(platform_.refreshes(), refreshes) << "nothing to discover each time";
}

TEST_F(ExecutionCommands, LinksToTheConsoleThatIsKnown) {
  ASSERT_EQ(harness_.Run({"executions"}), 0);
  EXPECT_EQ(terminal_.out.find("CONSOLE"), std::string::npos);
  harness_.app.environment["EXPANSE_CONSOLE_URL"] = "https://console.test/";
  ASSERT_EQ(harness_.Run({"executions"}), 0);
  EXPECT_THAT(terminal_.out, HasSubstr("  https://console.test/executions/" + Id(1) + "  -\n"));
  harness_.app.environment.clear();
  platform_.console_url = "https://discovered.test";
  harness_.SignIn(platform_);
  ASSERT_EQ(harness_.Run({"executions"}), 0);
  EXPECT_NE(terminal_.out.find("https://discovered.test/executions/"), std::string::npos);
}

TEST_F(ExecutionCommands, JsonIsTheApis) {
  ASSERT_EQ(harness_.Run({"executions", "--json", "--limit", "2"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "executions.json", terminal_.out);
}

TEST_F(ExecutionCommands, PagesAreFollowedUpToTheLimit) {
  platform_.executions.clear();
  for (int n = 1; n <= 9; ++n) platform_.executions.push_back(MakeExecution(n));
  platform_.page_limit = 4;
  ASSERT_EQ(harness_.Run({"executions", "--limit", "7"}), 0);
  EXPECT_EQ(std::count(terminal_.out.begin(), terminal_.out.end(), '\n'), 8);
  EXPECT_EQ(platform_.listed.page_size(), 3U);
  EXPECT_EQ(platform_.listed.page_token(), "4");
  ASSERT_EQ(harness_.Run({"executions", "--limit", "1000"}), 0);
  EXPECT_EQ(std::count(terminal_.out.begin(), terminal_.out.end(), '\n'), 10);
}

TEST_F(ExecutionCommands, FiltersAreTheServers) {
  control::v1::Compute compute;
  compute.set_compute_id("0191e7a0-0000-7000-8000-000000000001");
  compute.set_name("gpu-box-3");
  platform_.computes = {compute};
  ASSERT_EQ(harness_.Run({"executions", "--status", "failed", "--outcome", "out_of_memory",
                          "--user", "bob", "--compute", "gpu-box-3"}),
            0)
      << terminal_.err;
  EXPECT_EQ(platform_.listed.status(), data::v1::EXECUTION_STATUS_FAILED);
  EXPECT_EQ(platform_.listed.outcome(), data::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  ASSERT_EQ(platform_.listed.users_size(), 1);
  EXPECT_EQ(platform_.listed.users(0), "bob");
  EXPECT_EQ(platform_.listed.compute_id(), compute.compute_id());
  EXPECT_EQ(harness_.Run({"executions", "--compute", "nowhere"}), 3);
}

TEST_F(ExecutionCommands, MineAreThoseOfMySubmitUsers) {
  EXPECT_EQ(harness_.Run({"executions", "--mine", "--user", "bob"}), 2);
  ASSERT_EQ(harness_.Run({"executions", "--mine"}), 0);
  EXPECT_EQ(platform_.listed.users(0), "ada");
  platform_.identity.clear_submit_users();
  harness_.SignIn(platform_);
  EXPECT_EQ(harness_.Run({"executions", "--mine"}), 6);
  harness_.app.environment["USER"] = "ada-l";
  ASSERT_EQ(harness_.Run({"executions", "--mine"}), 0);
  EXPECT_EQ(platform_.listed.users(0), "ada-l");
  EXPECT_NE(terminal_.err.find("looking for 'ada-l'"), std::string::npos);
}

TEST_F(ExecutionCommands, NothingFoundIsSaidBesideTheHeader) {
  platform_.executions.clear();
  ASSERT_EQ(harness_.Run({"executions"}), 0);
  EXPECT_EQ(terminal_.out, "EXECUTION ID  JOB ID  USER  STATUS  OUTCOME  STARTED  CLASS\n");
  EXPECT_EQ(terminal_.err, "No executions match.\n");
}

TEST_F(ExecutionCommands, ShowIsCompleteAndLeavesUnknownOut) {
  Diagnose(2, "host_out_of_memory", "Out of host memory");
  auto& execution = platform_.executions[1];
  execution.set_name("grow");
  execution.add_command("python3");
  execution.add_command("grow.py");
  execution.add_nodes("n1");
  execution.set_exit_code(137);
  execution.set_signal(9);
  execution.mutable_ended_at()->set_seconds(1'790'000'002);
  execution.mutable_ended_at()->set_nanos(250'000'000);
  execution.mutable_requested()->set_memory_bytes(200U << 20);
  execution.mutable_used()->set_memory_peak_bytes(199U << 20);
  execution.mutable_used()->set_memory_peak_basis("cgroup_peak");
  execution.mutable_used()->set_oom_kills(1);
  execution.add_capture_notes("sources: not readable");
  ASSERT_EQ(harness_.Run({"executions", "show", Id(2)}), 0) << terminal_.err;
  ExpectGolden(kTestData, "execution-show.txt", terminal_.out);
  ASSERT_EQ(harness_.Run({"executions", "show", Id(2), "--json"}), 0);
  EXPECT_NE(terminal_.out.find("\"memory_peak_bytes\": \"208666624\""), std::string::npos)
      << terminal_.out;
  EXPECT_EQ(harness_.Run({"executions", "show", Id(9)}), 3);
}

TEST_F(ExecutionCommands, ShowHasTheStepsAndTheRunsPlaceInItsJob) {
  auto& execution = platform_.executions[1];
  execution.set_native_id("41982_7");
  execution.set_parent_native_id("41982");
  execution.set_restart_count(2);
  execution.set_qos("normal");
  execution.set_native_state("OUT_OF_MEMORY");
  execution.mutable_submitted_at()->set_seconds(1'789'999'000);
  execution.mutable_eligible_at()->set_seconds(1'789'999'500);
  execution.mutable_ended_at()->set_seconds(1'790'000'090);
  execution.set_suspended_seconds(30);
  auto* batch = execution.add_steps();
  batch->set_id("batch");
  batch->set_name("batch");
  batch->set_status(data::v1::EXECUTION_STATUS_FAILED);
  batch->set_native_state("OUT_OF_MEMORY");
  batch->set_exit_code(0);
  batch->set_signal(125);
  batch->mutable_started_at()->set_seconds(1'790'000'000);
  batch->mutable_ended_at()->set_seconds(1'790'000'090);
  batch->set_task_count(1);
  batch->mutable_used()->set_cpu_seconds(12.5);
  batch->mutable_used()->set_memory_peak_bytes(199U << 20);
  auto* step = execution.add_steps();
  step->set_id("0");
  step->set_name("tr\nain\x1b[31m");
  step->set_status(data::v1::EXECUTION_STATUS_SUCCEEDED);
  ASSERT_EQ(harness_.Run({"executions", "show", Id(2)}), 0) << terminal_.err;
  ExpectGolden(kTestData, "execution-steps.txt", terminal_.out);
}

TEST_F(ExecutionCommands, ShowSaysWhatAQueuedRunWaitsForAndUntilWhen) {
  auto& execution = platform_.executions[2];
  execution.set_native_reason("QOSMaxCpuPerUserLimit");
  execution.mutable_expected_start_at()->set_seconds(1'790'003'600);
  ASSERT_EQ(harness_.Run({"executions", "show", Id(3)}), 0) << terminal_.err;
  for (const char* line :
       {"REASON          QOSMaxCpuPerUserLimit\n", "WAITS FOR       its user's limit of CPUs\n",
        "WHAT HELPS      A limit of its QOS: wait for other jobs of the user to end, or use "
        "another QOS.\n",
        "EXPECTED START  2026-09-21T15:13:20Z\n"}) {
    EXPECT_NE(terminal_.out.find(line), std::string::npos) << terminal_.out;
  }
  execution.set_status(data::v1::EXECUTION_STATUS_CANCELLED);
  ASSERT_EQ(harness_.Run({"executions", "show", Id(3)}), 0);
  EXPECT_EQ(terminal_.out.find("WHAT HELPS"), std::string::npos) << "no longer of use";
}

TEST_F(ExecutionCommands, JobIdsAreTakenWhereExecutionIdsAre) {
  ASSERT_EQ(harness_.Run({"executions", "show", "41981.batch", "--source-type", "slurm"}), 0)
      << terminal_.err;
  EXPECT_NE(terminal_.out.find(Id(1)), std::string::npos);
  ASSERT_EQ(harness_.Run({"logs", "41981"}), 0) << terminal_.err;
  EXPECT_EQ(harness_.Run({"logs", "99999"}), 3);
  EXPECT_TRUE(terminal_.err.starts_with("expanse: logs: looking for job '99999': "))
      << terminal_.err;
}

TEST_F(ExecutionCommands, LogsAreTheBytesInAPipeAndHarmlessOnATerminal) {
  data::v1::LogTailView tail;
  tail.set_stream("stdout");
  tail.set_data("one\x1b[2J\ttwo\n\xff three");
  tail.set_total_bytes(1U << 20);
  tail.set_redactions(2);
  platform_.logs = {tail};
  tail.set_stream("stderr");
  tail.set_data("late\n");
  tail.set_first_error("Traceback\n");
  tail.set_first_error_offset(17);
  platform_.logs.push_back(tail);
  ASSERT_EQ(harness_.Run({"logs", Id(1)}), 0);
  EXPECT_EQ(terminal_.out, "one\x1b[2J\ttwo\n\xff three\nTraceback\nlate\n");
  EXPECT_EQ(terminal_.err,
            "==> stdout: last 19 B of 1 MiB, 2 redactions\n"
            "==> stderr: first error, at byte 17\n"
            "==> stderr: last 5 B of 1 MiB, 2 redactions\n");
  UseTerminal(80);
  ASSERT_EQ(harness_.Run({"logs", Id(1), "--stream", "stdout"}), 0);
  EXPECT_EQ(terminal_.out, "one\\x1b[2J\ttwo\n\\xff three\n");
}

TEST_F(ExecutionCommands, RunHandsItsOptionsToTheEngine) {
  schedulers::host::RunOptions seen;
  harness_.app.run_command = [&](const schedulers::host::RunOptions& options) -> base::Result<int> {
    seen = options;
    return 143;
  };
  EXPECT_EQ(harness_.Run({"run",          "--name",     "n",           "--memory",
                          "1.5G",         "--walltime", "90s",         "--no-capture",
                          "--no-sources", "--source",   "a.py",        "--source=b.py",
                          "--comment",    "c",          "--spool-dir", "/s",
                          "--",           "sh",         "-c",          "exit 1"}),
            143);
  EXPECT_EQ(seen.command, (std::vector<std::string>{"sh", "-c", "exit 1"}));
  EXPECT_EQ(seen.name, "n");
  EXPECT_EQ(seen.memory_limit, base::MiB(1536));
  EXPECT_EQ(seen.walltime, std::chrono::seconds(90));
  EXPECT_FALSE(seen.capture_output);
  EXPECT_FALSE(seen.capture_sources);
  EXPECT_EQ(seen.sources, (std::vector<std::string>{"a.py", "b.py"}));
  EXPECT_EQ(seen.comment, "c");
  EXPECT_EQ(seen.spool_directory, "/s");
  EXPECT_EQ(terminal_.out + terminal_.err, "");
  EXPECT_EQ(harness_.Run({"run", "true"}), 143);
  EXPECT_TRUE(seen.capture_output && seen.capture_sources && seen.spool_directory.empty());
  EXPECT_FALSE(seen.memory_limit || seen.walltime);
}

TEST_F(ExecutionCommands, RunSaysWhyNothingWasRun) {
  harness_.app.run_command = [](const schedulers::host::RunOptions&) -> base::Result<int> {
    return base::Fail(base::Code::kFailedPrecondition, "run.cgroup",
                      "a memory limit needs a cgroup of its own");
  };
  EXPECT_EQ(harness_.Run({"run", "--memory", "1G", "true"}), 6);
  EXPECT_EQ(terminal_.err, "expanse: run: a memory limit needs a cgroup of its own\n");
  EXPECT_EQ(harness_.Run({"run", "--memory", "0", "true"}), 2);
  EXPECT_EQ(harness_.Run({"run", "--walltime", "0s", "true"}), 2);
}

}  // namespace
}  // namespace expanse::cli
