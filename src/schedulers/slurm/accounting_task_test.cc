#include "schedulers/slurm/accounting_task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "schedulers/slurm/commands/fake_runner_testing.h"
#include "schedulers/slurm/commands/sacct_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

class Accounting : public testing::Test {
 protected:
  Accounting() {
    runner.On(Program::kSacct, [this](const std::vector<std::string>& arguments) {
      if (std::ranges::find(arguments, "--helpformat") != arguments.end()) {
        ++helps;
        std::string fields = SacctFormat::Full().Argument();
        std::ranges::replace(fields, ',', ' ');
        return FakeRunner::Answer{.out = std::move(fields), .status = help_status};
      }
      constexpr std::string_view kOption = "--delimiter=";
      const auto delimiter = std::ranges::find_if(
          arguments, [&](const std::string& one) { return one.starts_with(kOption); });
      std::string out;
      for (int i = 0; i < jobs; ++i) {
        const std::string id = std::to_string(4711 + i);
        out += SacctLine(SacctFormat::Full(), delimiter->substr(kOption.size()),
                         JobCells({{SacctField::kJobIdRaw, id}}));
      }
      out.resize(out.size() - std::min(out.size(), torn_by));
      return FakeRunner::Answer{.out = std::move(out), .status = status};
    });
    task.cluster = "aurora";
    task.window = {.from = base::WallTime(1'790'000'000s), .to = base::WallTime(1'790'000'600s)};
  }
  std::size_t Run() {
    RunAccountingTask(task, runner, state, mailbox, {});
    std::size_t taken = 0;
    while (auto report = mailbox.Take()) {
      if (auto* runs = std::get_if<AccountingRuns>(&*report)) {
        taken += runs->jobs.size();
      } else {
        done = std::get<AccountingDone>(std::move(*report));
      }
    }
    return taken;
  }

  FakeRunner runner;
  AccountingState state;
  Mailbox mailbox{64U << 20};
  AccountingTask task;
  base::Status status;
  base::Status help_status;
  int jobs = 200;
  int helps = 0;
  std::size_t torn_by = 0;
  AccountingDone done;
};

TEST_F(Accounting, AsksForTheFieldsOnceAndReadsAWindow) {
  EXPECT_EQ(Run(), 200U);
  EXPECT_TRUE(done.is_window);
  EXPECT_EQ(done.jobs, 200U);
  EXPECT_EQ(done.runs, 2U);
  EXPECT_EQ(done.read_to_s, 1'790'000'600);
  EXPECT_EQ(Run(), 200U);
  EXPECT_EQ(done.runs, 1U);
  EXPECT_EQ(helps, 1);
}

// A field that the new version no longer has makes sacct fail; only asking again helps.
TEST_F(Accounting, AsksForTheFieldsAgainAfterAFailureThatAnUpgradeMayExplain) {
  EXPECT_EQ(Run(), 200U);
  status = base::Fail(base::Code::kUnavailable, "slurm.unreachable", "no slurmdbd");
  (void)Run();
  status = base::Fail(base::Code::kUnknown, "slurm.command_failed",
                      "sacct: error: Invalid field requested: \"Container\"");
  (void)Run();
  EXPECT_EQ(helps, 1);
  status = {};
  EXPECT_EQ(Run(), 200U);
  EXPECT_EQ(helps, 2);
}

TEST_F(Accounting, ALookUpMovesNoCursor) {
  task.job_ids = {4711};
  jobs = 1;
  EXPECT_EQ(Run(), 1U);
  EXPECT_FALSE(done.is_window);
  EXPECT_EQ(done.read_to_s, 0);
  EXPECT_EQ(done.job_ids, task.job_ids);
}

TEST_F(Accounting, WhatFailsIsNotRead) {
  help_status = base::Fail(base::Code::kUnavailable, "slurm.unreachable", "away");
  EXPECT_EQ(Run(), 0U);
  EXPECT_EQ(done.status.error().reason, "slurm.unreachable");
  help_status = {};
  status = base::Fail(base::Code::kDeadlineExceeded, "slurm.timeout", "late");
  (void)Run();
  EXPECT_EQ(done.status.error().reason, "slurm.timeout");
  EXPECT_EQ(done.read_to_s, 0);
  status = {};
  torn_by = 3;
  (void)Run();
  EXPECT_EQ(done.status.error().reason, "slurm.torn");
  EXPECT_EQ(done.read_to_s, 0);
}

TEST_F(Accounting, WaitsForTheCaptureThread) {
  Mailbox small{300'000};  // a batch and a half
  std::jthread lane([&] { RunAccountingTask(task, runner, state, small, {}); });
  std::size_t taken = 0;
  bool is_done = false;
  while (!is_done) {
    auto report = small.Take();
    if (!report) {
      std::this_thread::yield();
      continue;
    }
    if (auto* runs = std::get_if<AccountingRuns>(&*report)) taken += runs->jobs.size();
    is_done = std::holds_alternative<AccountingDone>(*report);
    if (is_done) {
      EXPECT_TRUE(std::get<AccountingDone>(*report).status);
    }
  }
  EXPECT_EQ(taken, 200U);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
