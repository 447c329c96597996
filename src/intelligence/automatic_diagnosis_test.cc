#include "intelligence/automatic_diagnosis.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "intelligence/diagnose_work.h"
#include "intelligence/history/history_testing.h"
#include "intelligence/intelligence_testing.h"
#include "store/runs/memory_run_store_testing.h"

namespace expanse::intelligence {
namespace {

using namespace std::chrono_literals;
using history::TestJob;

// Passes on to another, unless told to fail.
class FailingDiagnoser final : public Diagnoser {
 public:
  explicit FailingDiagnoser(Diagnoser& real) : real_(real) {}
  base::Result<evidence::Execution> Find(const std::string& organisation_id,
                                         const ExecutionName& name) override {
    return real_.Find(organisation_id, name);
  }
  base::Result<DiagnoseOutcome> Do(const DiagnoseTask& task) override {
    if (fails) return base::Fail(base::Code::kUnavailable, "store.busy", "not now");
    return real_.Do(task);
  }
  bool fails = false;

 private:
  Diagnoser& real_;
};

class AutomaticDiagnosisTest : public history::HistoryWorld {
 protected:
  void SetUp() override {
    HistoryWorld::SetUp();
    work_ = std::make_unique<DiagnoseWork>(
        diagnose_case::Stores{*records_, *blobs_, *series_, *history_}, TestRunbooks(), runs_);
    diagnoser_ = std::make_unique<FailingDiagnoser>(*work_);
    options_.auto_diagnose_age = std::chrono::hours(24 * 3650);
    MakeAutomatic();
  }
  void MakeAutomatic() {
    automatic_ = std::make_unique<AutomaticDiagnosis>(
        options_, AutomaticDiagnosis::Parts{runs_, *records_, *diagnoser_, clock_, metrics_},
        [] { return false; });
  }
  static TestJob Failed(const std::string& id,
                        evidence::Outcome outcome = evidence::Outcome::kOutOfMemory) {
    TestJob job{.id = id};
    job.status = outcome == evidence::Outcome::kCancelled ? evidence::ExecutionStatus::kCancelled
                                                          : evidence::ExecutionStatus::kFailed;
    job.outcome = outcome;
    return job;
  }
  void PutLog(const TestJob& job, const std::string& text) {
    std::vector<store::EvidenceChange> changes = {Change(job)};
    const auto blob = blobs_->Put(text);
    ASSERT_TRUE(blob);
    changes[0].log_tail =
        store::LogTailRow{.stream = "stderr", .data_blob = *blob, .total_bytes = text.size()};
    Apply(job, changes);
  }
  void FollowAll() {
    for (auto more = automatic_->Follow();; more = automatic_->Follow()) {
      ASSERT_TRUE(more) << more.error().message;
      if (!*more) return;
    }
  }
  // Works off all that is due; how many.
  int WorkAll() {
    for (int done = 0;; ++done) {
      const auto more = automatic_->WorkOne();
      EXPECT_TRUE(more) << (more ? "" : more.error().message);
      if (!more || !*more) return done;
    }
  }
  // After `pause`, all that is due by then.
  int WorkAfter(base::Duration pause) {
    clock_.Advance(pause);
    return WorkAll();
  }
  std::string ClassOf(const std::string& id) {
    const auto labels = runs_.labels().Get("org", {id});
    EXPECT_TRUE(labels);
    return labels && !labels->empty() ? labels->front().failure_class : "";
  }
  std::vector<store::RunRow> Runs() {
    return runs_.List({.scope = {"org", std::string(store::kSystemUser)}}, std::nullopt, 100)->runs;
  }
  double Counted(const std::string& result) {
    return metrics_.GetCounter("expanse_automatic_diagnoses_total", "", {{"result", result}})
        .value();
  }

  IntelligenceOptions options_;
  store::MemoryRunStore runs_;
  std::unique_ptr<DiagnoseWork> work_;
  std::unique_ptr<FailingDiagnoser> diagnoser_;
  std::unique_ptr<AutomaticDiagnosis> automatic_;
};

TEST_F(AutomaticDiagnosisTest, DiagnosesWhatFailedOnceTheEvidenceHasSettled) {
  Put(Failed("e1"));
  Put(Failed("e2", evidence::Outcome::kTimeout));
  Put(Failed("e3", evidence::Outcome::kCancelled));
  Put({.id = "good"});
  TestJob running{.id = "runs", .status = evidence::ExecutionStatus::kRunning};
  running.outcome = evidence::Outcome::kUnspecified;
  Put(running);
  FollowAll();
  EXPECT_EQ(WorkAll(), 0);
  EXPECT_EQ(WorkAfter(5s), 3);
  EXPECT_EQ(ClassOf("e1"), "host_out_of_memory");
  EXPECT_EQ(ClassOf("e2"), "walltime_exceeded");
  EXPECT_NE(ClassOf("e3"), "");
  EXPECT_EQ(ClassOf("good"), "");
  const auto runs = Runs();
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].kind, store::RunKind::kDiagnose);
  EXPECT_EQ(runs[0].status, store::RunStatus::kSucceeded);
  EXPECT_EQ(Counted("diagnosed"), 3);
  // Asked by somebody, the answer is there already.
  const auto asked = work_->Do({.execution = work_->Find("org", {.execution_id = "e1"}).value(),
                                .organisation_id = "org",
                                .user_id = "user-1"});
  ASSERT_TRUE(asked);
  ASSERT_TRUE(asked->cached);
  EXPECT_EQ(asked->cached->user_id, store::kSystemUser);
  EXPECT_EQ(asked->failure_class, "host_out_of_memory");
}

TEST_F(AutomaticDiagnosisTest, LooksAgainAndKeepsOnlyWhatIsNew) {
  const TestJob job = Failed("e1", evidence::Outcome::kFailure);
  Put(job);
  FollowAll();
  ASSERT_EQ(WorkAfter(5s), 1);
  const std::string first = ClassOf("e1");
  EXPECT_NE(first, "no_space_left");
  PutLog(job, "write error: No space left on device\n");
  EXPECT_EQ(WorkAfter(24s), 0);
  EXPECT_EQ(WorkAfter(1s), 1);
  EXPECT_EQ(ClassOf("e1"), "no_space_left");
  EXPECT_EQ(Runs().size(), 2U);
  EXPECT_EQ(WorkAfter(6min), 1);
  EXPECT_EQ(Runs().size(), 2U);
  EXPECT_EQ(Counted("unchanged"), 1);
  EXPECT_EQ(WorkAfter(std::chrono::hours(24)), 0);
  EXPECT_EQ(runs_.diagnoses().Waiting(), 0U);
}

TEST_F(AutomaticDiagnosisTest, ARecordThatSaysNothingNewMakesNoNewRun) {
  const TestJob job = Failed("e1");
  evidence::Execution execution = ExecutionOf(job);
  execution.updated_at = start_;
  Put(job, execution);
  FollowAll();
  ASSERT_EQ(WorkAfter(std::chrono::hours(1)), 1);
  execution.updated_at = start_ + 1min;
  Put(job, execution);
  FollowAll();
  EXPECT_EQ(WorkAfter(5s), 1);
  EXPECT_EQ(Counted("unchanged"), 1);
  EXPECT_EQ(Runs().size(), 1U);
}

TEST_F(AutomaticDiagnosisTest, ALaterRecordIsDiagnosedToo) {
  TestJob job = Failed("e1", evidence::Outcome::kFailure);
  Put(job);
  FollowAll();
  ASSERT_EQ(WorkAfter(std::chrono::hours(1)), 1);
  job.outcome = evidence::Outcome::kOutOfMemory;
  Put(job);
  FollowAll();
  ASSERT_EQ(WorkAfter(5s), 1);
  EXPECT_EQ(ClassOf("e1"), "host_out_of_memory");
}

TEST_F(AutomaticDiagnosisTest, WhatTurnsOutNotToHaveFailedLosesItsClass) {
  TestJob job = Failed("e1");
  Put(job);
  FollowAll();
  ASSERT_EQ(WorkAfter(5s), 1);
  ASSERT_NE(ClassOf("e1"), "");
  evidence::Execution again = ExecutionOf(job);
  again.status = evidence::ExecutionStatus::kRunning;
  again.outcome = evidence::Outcome::kUnspecified;
  again.ended_at.reset();
  again.restart_count = 1;
  std::vector<store::EvidenceChange> changes = {Change(job)};
  changes[0].execution = again;
  changes[0].source_type = evidence::SourceType::kKubernetes;
  Apply(job, changes);
  ASSERT_NE(records_->Get("org", "e1")->status, evidence::ExecutionStatus::kFailed);
  FollowAll();
  EXPECT_EQ(WorkAfter(5s), 1);
  EXPECT_EQ(ClassOf("e1"), "");
  EXPECT_EQ(Counted("no_failure"), 1);
}

TEST_F(AutomaticDiagnosisTest, ARemovedExecutionLosesItsClass) {
  Put(Failed("e1"));
  FollowAll();
  ASSERT_EQ(WorkAfter(5s), 1);
  ASSERT_EQ(records_->DropExecutionsBefore(clock_.Now(), 10), 1U);
  FollowAll();
  EXPECT_EQ(ClassOf("e1"), "");
  EXPECT_EQ(WorkAfter(std::chrono::hours(1)), 0);
}

TEST_F(AutomaticDiagnosisTest, EachOrganisationHasItsOwn) {
  Put(Failed("e1"));
  TestJob theirs = Failed("e2", evidence::Outcome::kTimeout);
  theirs.organisation = "org-2";
  theirs.compute = "c2";
  Put(theirs);
  FollowAll();
  ASSERT_EQ(WorkAfter(5s), 2);
  EXPECT_EQ(ClassOf("e1"), "host_out_of_memory");
  EXPECT_EQ(ClassOf("e2"), "") << "of another organisation";
  const auto labels = runs_.labels().Get("org-2", {"e1", "e2"});
  ASSERT_TRUE(labels && labels->size() == 1);
  EXPECT_EQ(labels->front().failure_class, "walltime_exceeded");
  EXPECT_EQ(Runs().size(), 1U);
  EXPECT_FALSE(runs_.Get({"org", std::nullopt}, labels->front().run_id));
}

TEST_F(AutomaticDiagnosisTest, ExecutionsOfLongAgoAreLeftAlone) {
  options_.auto_diagnose_age = std::chrono::hours(24);
  MakeAutomatic();
  Put(Failed("e1"));
  FollowAll();
  EXPECT_EQ(runs_.diagnoses().Waiting(), 0U);
}

TEST_F(AutomaticDiagnosisTest, TriesAgainAfterAPauseAndGivesUpAtLast) {
  Put(Failed("e1"));
  FollowAll();
  diagnoser_->fails = true;
  EXPECT_EQ(WorkAfter(5s), 1);
  EXPECT_EQ(WorkAfter(29s), 0);
  EXPECT_EQ(WorkAfter(1s), 1);
  diagnoser_->fails = false;
  EXPECT_EQ(WorkAfter(60s), 1);
  EXPECT_EQ(ClassOf("e1"), "host_out_of_memory");
  EXPECT_EQ(Counted("failed"), 2);

  // One whose diagnosis takes the process down is not begun for ever.
  Put(Failed("e2"));
  FollowAll();
  clock_.Advance(5s);
  for (std::uint32_t i = 0; i < AutomaticDiagnosis::kMostTries; ++i) {
    const auto taken = runs_.diagnoses().Take(clock_.Now(), clock_.Now() + 1s);
    ASSERT_TRUE(taken && *taken);
    clock_.Advance(1s);
  }
  EXPECT_EQ(WorkAll(), 1);
  EXPECT_EQ(Counted("given_up"), 1);
  EXPECT_EQ(ClassOf("e2"), "");
}

TEST_F(AutomaticDiagnosisTest, BeginsAgainWhereTheFeedWasReplaced) {
  ASSERT_TRUE(runs_.diagnoses().Follow({}, {.change = 1'000'000, .began = 1'000'000}, {}));
  Put(Failed("e1"));
  FollowAll();
  EXPECT_EQ(WorkAfter(5s), 1);
  EXPECT_EQ(ClassOf("e1"), "host_out_of_memory");
}

TEST_F(AutomaticDiagnosisTest, ReadsOnWhenThereIsRoom) {
  std::vector<store::DiagnosisChange> many;
  for (std::size_t i = 0; i < AutomaticDiagnosis::kMostWaiting; ++i) {
    many.push_back({.organisation_id = "org",
                    .execution_id = "gone-" + std::to_string(i),
                    .due = clock_.Now() + std::chrono::hours(1)});
  }
  ASSERT_TRUE(runs_.diagnoses().Follow(many, {}, clock_.Now()));
  Put(Failed("e1"));
  EXPECT_EQ(automatic_->Follow(), false);
  EXPECT_EQ(runs_.diagnoses().Place(), store::FeedPlace());
  // Those are no longer there: each is dropped when its turn comes.
  clock_.Advance(std::chrono::hours(1));
  EXPECT_EQ(automatic_->WorkOne(), true);
  EXPECT_EQ(automatic_->Follow(), true);
  EXPECT_EQ(Counted("failed"), 0);
}

TEST_F(AutomaticDiagnosisTest, WorksByItselfWhenStarted) {
  options_.auto_diagnose_settle = 0ms;
  options_.auto_diagnose_workers = 2;
  MakeAutomatic();
  automatic_->Start();
  Put(Failed("e1"));
  automatic_->Notify();
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (ClassOf("e1").empty() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(ClassOf("e1"), "host_out_of_memory");
  automatic_->Stop();
  automatic_->Stop();
}

TEST_F(AutomaticDiagnosisTest, DoesNothingWhereItIsTurnedOff) {
  options_.auto_diagnose = false;
  MakeAutomatic();
  automatic_->Start();
  Put(Failed("e1"));
  automatic_->Notify();
  automatic_->Stop();
  EXPECT_EQ(runs_.diagnoses().Place(), store::FeedPlace());
}

}  // namespace
}  // namespace expanse::intelligence
