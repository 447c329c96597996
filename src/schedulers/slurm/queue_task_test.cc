#include "schedulers/slurm/queue_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedulers/slurm/commands/fake_runner_testing.h"
#include "schedulers/slurm/commands/squeue_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class Queue : public testing::Test {
 protected:
  Queue() {
    runner.On(Program::kSqueue, [this](const std::vector<std::string>& arguments) {
      ++runs;
      std::string out;
      for (const auto& [id, row] : rows) out += QueueLine(QueueSeparatorOf(arguments), row);
      out.resize(out.size() - std::min(out.size(), torn_by));
      return FakeRunner::Answer{.out = std::move(out), .status = status};
    });
  }

  // Ids of the rows that were passed on.
  std::vector<std::uint32_t> Run(std::vector<std::uint32_t> job_ids = {}) {
    QueueTask task;
    task.job_ids = std::move(job_ids);
    RunQueueTask(task, runner, state, mailbox, {});
    std::vector<std::uint32_t> passed;
    while (auto report = mailbox.Take()) {
      if (auto* batch = std::get_if<RowBatch>(&*report)) {
        for (const RowBatch::Row& row : batch->rows) {
          passed.push_back(row.job_id);
          const auto job = ParseQueueRow(batch->BytesOf(row), "aurora");
          EXPECT_TRUE(job && job->job_id == row.job_id);
        }
      } else {
        done = std::get<QueueDone>(std::move(*report));
      }
    }
    return passed;
  }

  FakeRunner runner;
  QueueState state;
  Mailbox mailbox{1U << 20};
  std::map<std::uint32_t, QueueValues> rows = {{1, RunningJob(1)}, {2, PendingJob(2)}};
  base::Status status;
  std::size_t torn_by = 0;
  int runs = 0;
  QueueDone done;
};

TEST_F(Queue, PassesOnWhatIsNewAndWhatIsGone) {
  EXPECT_THAT(Run(), ElementsAre(1, 2));
  EXPECT_TRUE(done.is_listing);
  EXPECT_EQ(done.rows, 2U);
  EXPECT_THAT(Run(), IsEmpty());
  rows[2][QueueField::kReason] = "Resources";
  rows[3] = PendingJob(3);
  EXPECT_THAT(Run(), ElementsAre(2, 3));
  rows.erase(1);
  EXPECT_THAT(Run(), IsEmpty());
  EXPECT_THAT(done.gone, ElementsAre(1));
}

TEST_F(Queue, TheSeparatorOfTheRunDoesNotCount) {
  (void)Run();
  const auto first = runner.commands.at(0).arguments;
  (void)Run();
  EXPECT_NE(QueueSeparatorOf(first), QueueSeparatorOf(runner.commands.at(1).arguments));
  EXPECT_EQ(done.rows, 2U);
}

TEST_F(Queue, ABrokenAnswerEndsNothing) {
  (void)Run();
  status = base::Fail(base::Code::kDeadlineExceeded, "slurm.timeout", "late");
  rows.erase(1);
  EXPECT_THAT(Run(), IsEmpty());
  EXPECT_EQ(done.status.error().reason, "slurm.timeout");
  EXPECT_THAT(done.gone, IsEmpty());
  status = {};
  torn_by = 5;
  EXPECT_THAT(Run(), IsEmpty());
  EXPECT_EQ(done.status.error().reason, "slurm.torn");
  EXPECT_THAT(done.gone, IsEmpty());
  torn_by = 0;
  (void)Run();
  EXPECT_THAT(done.gone, ElementsAre(1));
}

TEST_F(Queue, AnEmptyListIsBelievedTheSecondTime) {
  (void)Run();
  rows.clear();
  (void)Run();
  EXPECT_TRUE(done.unbelieved);
  EXPECT_THAT(done.gone, IsEmpty());
  (void)Run();
  EXPECT_FALSE(done.unbelieved);
  EXPECT_THAT(done.gone, UnorderedElementsAre(1, 2));
  (void)Run();
  EXPECT_FALSE(done.unbelieved) << "there was nothing before";
}

TEST_F(Queue, RowsWithoutRoomComeAgain) {
  for (std::uint32_t id = 10; id < 3000; ++id) rows[id] = PendingJob(id);
  const auto passed = Run();
  EXPECT_LT(passed.size(), rows.size());
  EXPECT_EQ(done.not_taken, rows.size() - passed.size());
  EXPECT_EQ(Run().size(), rows.size() - passed.size());
  EXPECT_EQ(done.not_taken, 0U);
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(Queue, LookUpsTellWhoIsNotThere) {
  (void)Run();
  rows[2][QueueField::kState] = "RUNNING";
  runs = 0;
  rows.erase(1);
  EXPECT_THAT(Run({1, 2}), ElementsAre(2));
  EXPECT_FALSE(done.is_listing);
  EXPECT_THAT(done.gone, ElementsAre(1));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(runner.commands.back().arguments.back(), "--jobs=1,2");
}

TEST_F(Queue, AmongManyJobsEachIsAskedForByItself) {
  (void)Run();
  state.last_rows = 100'000;
  runner.On(Program::kSqueue, [this](const std::vector<std::string>& arguments) {
    if (arguments.back() == "--jobs=7") {
      return FakeRunner::Answer{
          .out = {}, .status = base::Fail(base::Code::kNotFound, "slurm.job_not_found", "no")};
    }
    rows[2][QueueField::kState] = "RUNNING";
    return FakeRunner::Answer{.out = QueueLine(QueueSeparatorOf(arguments), rows[2]), .status = {}};
  });
  EXPECT_THAT(Run({7, 2}), ElementsAre(2));
  EXPECT_TRUE(done.status);
  EXPECT_EQ(done.runs, 2U);
  EXPECT_THAT(done.gone, ElementsAre(7));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
