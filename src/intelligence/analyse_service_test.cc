#include "intelligence/analyse_service.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "intelligence/intelligence_plane.h"
#include "intelligence/intelligence_testing.h"
#include "store/runs/memory_run_store_testing.h"
#include "store/runs/sqlite_run_store.h"
#include "store/sql/fault_testing.h"

namespace expanse::intelligence {
namespace {

using namespace std::chrono_literals;

enum class Backend : std::uint8_t { kMemory, kEmbedded };

class AnalyseServiceTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (GetParam() == Backend::kMemory) {
      runs_ = std::make_unique<store::MemoryRunStore>();
    } else {
      auto dir = store::StoreDirectory();
      ASSERT_TRUE(dir);
      directory_.emplace(std::move(*dir));
      OpenStore();
    }
    analyser_.runs = runs_.get();
    Begin();
  }
  void TearDown() override {
    analyser_.Release();
    End();
  }
  void OpenStore() {
    auto opened = store::SqliteRunStore::Open({.path = directory_->path() + "/runs.db"});
    ASSERT_TRUE(opened) << opened.error().message;
    runs_ = std::move(*opened);
  }
  void Begin(bool start = true) {
    auto created = IntelligencePlane::Create(
        options_, *runs_, {analyser_, diagnoser_, TestRunbooks()}, clock_, metrics_);
    ASSERT_TRUE(created);
    plane_ = std::move(*created);
    if (!start) return;
    ASSERT_TRUE(plane_->Start());
  }
  void End() {
    if (plane_) plane_->Stop();
    plane_.reset();
  }
  base::Result<v1::AnalyseResponse> Ask(const v1::AnalyseRequest& request,
                                        const net::CallContext& context = UserCall()) {
    return plane_->analyse().Analyse(context, request);
  }
  std::string Queue(const std::string& text, const net::CallContext& context = UserCall()) {
    auto request = RequestFor(text);
    request.set_queue(true);
    auto response = Ask(request, context);
    if (!response) return response.error().reason;
    EXPECT_EQ(response->status(), v1::RUN_STATUS_QUEUED);
    return response->run_id();
  }
  v1::Run Shown(const std::string& run_id) {
    v1::GetRunRequest request;
    request.set_run_id(run_id);
    auto response = plane_->run_service().GetRun(UserCall(), request);
    EXPECT_TRUE(response) << (response ? "" : response.error().message);
    return response ? response->run() : v1::Run();
  }
  v1::Run WaitForEnd(const std::string& run_id) {
    for (int i = 0; i < 10'000; ++i) {
      v1::Run run = Shown(run_id);
      if (run.has_finished_at()) return run;
      std::this_thread::sleep_for(1ms);  // another thread works
    }
    ADD_FAILURE() << "the run does not end";
    return {};
  }
  std::vector<store::RunRow> All() {
    return runs_->List({.scope = {"org-1", std::nullopt}}, std::nullopt, 100)->runs;
  }

  IntelligenceOptions options_;
  base::FakeClock clock_;
  base::MetricRegistry metrics_;
  std::optional<base::TempDir> directory_;
  std::unique_ptr<store::RunStore> runs_;
  FakeAnalyser analyser_;
  FakeDiagnoser diagnoser_;
  std::unique_ptr<IntelligencePlane> plane_;
};

TEST_P(AnalyseServiceTest, AnswersAndKeepsTheRunWithItsArtefact) {
  const auto response = Ask(RequestFor("echo hi"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status(), v1::RUN_STATUS_SUCCEEDED);
  EXPECT_FALSE(response->cached());
  EXPECT_EQ(response->result().recommended_resources().rationale(), "echo hi");
  const v1::Run run = Shown(response->run_id());
  EXPECT_EQ(run.kind(), v1::RUN_KIND_ANALYSE);
  EXPECT_EQ(run.status(), v1::RUN_STATUS_SUCCEEDED);
  EXPECT_EQ(run.target(), "train.sh");
  EXPECT_EQ(run.job_name(), "job of train.sh");
  EXPECT_EQ(run.user_id(), "user-1");
  EXPECT_EQ(run.analyse().SerializeAsString(), response->result().SerializeAsString());
  EXPECT_EQ(run.created_at().seconds(), 1'800'000'000);
  v1::GetArtifactRequest get;
  get.set_artifact_id(response->result().artifacts(0).artifact_id());
  const auto artifact = plane_->run_service().GetArtifact(UserCall(), get);
  ASSERT_TRUE(artifact);
  EXPECT_EQ(artifact->artifact().data(), "--- diff of echo hi");
  EXPECT_EQ(artifact->artifact().artifact_type(), v1::ARTIFACT_TYPE_UNIFIED_DIFF);
  EXPECT_EQ(artifact->artifact().source_hash(), "sha256:s");
}

TEST_P(AnalyseServiceTest, TheEngineIsToldWhoAsks) {
  auto request = RequestFor("x");
  request.set_compute_id("compute-a");
  request.set_no_cache(true);
  ASSERT_TRUE(Ask(request));
  ASSERT_TRUE(Ask(RequestFor("x"), UserCall("user-2", "org-2", {"intelligence.use"})));
  const auto tasks = analyser_.tasks();
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0].organisation_id, "org-1");
  EXPECT_EQ(tasks[0].user_id, "user-1");
  EXPECT_EQ(tasks[0].compute_id, "compute-a");
  EXPECT_TRUE(tasks[0].reads_executions);
  EXPECT_FALSE(tasks[0].use_cache);
  EXPECT_EQ(tasks[1].organisation_id, "org-2");
  EXPECT_FALSE(tasks[1].reads_executions);
  EXPECT_TRUE(tasks[1].use_cache);
}

TEST_P(AnalyseServiceTest, AnEqualQuestionOverEqualHistoryIsAnsweredFromTheEarlierRun) {
  const auto first = Ask(RequestFor("a"));
  const auto second = Ask(RequestFor("a"));
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(second->cached());
  EXPECT_EQ(second->run_id(), first->run_id());
  EXPECT_EQ(second->status(), v1::RUN_STATUS_SUCCEEDED);
  EXPECT_EQ(second->result().SerializeAsString(), first->result().SerializeAsString());
  EXPECT_EQ(All().size(), 1U);
  // Another user's is not shown to them.
  const auto colleague = Ask(RequestFor("a"), UserCall("user-2"));
  ASSERT_TRUE(colleague);
  EXPECT_FALSE(colleague->cached());
  auto anew = RequestFor("a");
  anew.set_no_cache(true);
  const auto third = Ask(anew);
  ASSERT_TRUE(third);
  EXPECT_FALSE(third->cached());
  EXPECT_NE(third->run_id(), first->run_id());
  analyser_.version = "later";
  EXPECT_FALSE(Ask(RequestFor("a"))->cached());
}

TEST_P(AnalyseServiceTest, KeepsNoRunOfWhatCannotBeRead) {
  const auto refused = Ask(RequestFor("unreadable"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "analyse.unknown_format");
  EXPECT_EQ(Queue("unreadable"), "analyse.unknown_format");
  EXPECT_TRUE(All().empty());
}

TEST_P(AnalyseServiceTest, KeepsARunOfWhatFailedWithoutWhatIsInside) {
  const auto failed = Ask(RequestFor("broken"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().reason, "engine.broken");
  ASSERT_EQ(All().size(), 1U);
  EXPECT_EQ(All()[0].status, store::RunStatus::kFailed);
  EXPECT_EQ(All()[0].error_reason, "engine.broken");
  EXPECT_EQ(All()[0].error.find("SELECT"), std::string::npos);
  const v1::Run queued = WaitForEnd(Queue("broken"));
  EXPECT_EQ(queued.status(), v1::RUN_STATUS_FAILED);
  EXPECT_EQ(queued.error_reason(), "engine.broken");
  EXPECT_EQ(queued.error().find("SELECT"), std::string::npos);
}

TEST_P(AnalyseServiceTest, ARunThatTakesTooLongIsFailed) {
  analyser_.Hold();
  auto context = UserCall();
  context.deadline = std::chrono::steady_clock::now() + 30ms;
  const auto late = Ask(RequestFor("slow"), context);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, base::Code::kDeadlineExceeded);
  ASSERT_EQ(All().size(), 1U);
  EXPECT_EQ(All()[0].status, store::RunStatus::kFailed);
  EXPECT_EQ(All()[0].error_reason, "run.timeout");
  analyser_.Release();
  // The work that went on leaves nothing behind.
  End();
  EXPECT_EQ(All().size(), 1U);
  EXPECT_EQ(All()[0].status, store::RunStatus::kFailed);
}

TEST_P(AnalyseServiceTest, AQueuedRunThatTakesTooLongIsFailed) {
  End();
  options_.run_timeout = 30ms;
  Begin();
  analyser_.Hold();
  const v1::Run run = WaitForEnd(Queue("slow"));
  EXPECT_EQ(run.status(), v1::RUN_STATUS_FAILED);
  EXPECT_EQ(run.error_reason(), "run.timeout");
}

TEST_P(AnalyseServiceTest, WorksOffTheQueueAndItsAnswersServeLaterQuestions) {
  const std::string id = Queue("q1");
  const v1::Run run = WaitForEnd(id);
  EXPECT_EQ(run.status(), v1::RUN_STATUS_SUCCEEDED);
  EXPECT_EQ(run.analyse().recommended_resources().rationale(), "q1");
  EXPECT_EQ(run.job_name(), "job of train.sh");
  const auto later = Ask(RequestFor("q1"));
  ASSERT_TRUE(later);
  EXPECT_TRUE(later->cached());
  EXPECT_EQ(later->run_id(), id);
}

TEST_P(AnalyseServiceTest, AQueuedRunRemembersWhatItsAskerMightSee) {
  (void)WaitForEnd(Queue("a"));
  const auto blind = UserCall("user-1", "org-1", {"intelligence.use"});
  (void)WaitForEnd(Queue("b", blind));
  const auto tasks = analyser_.tasks();
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_TRUE(tasks[0].reads_executions);
  EXPECT_FALSE(tasks[1].reads_executions);
}

TEST_P(AnalyseServiceTest, OneUserDoesNotTakeAllWorkers) {
  End();
  options_.running_per_user = 1;
  options_.queue_workers = 2;
  Begin();
  analyser_.Hold();
  const std::string first = Queue("a1");
  analyser_.WaitForBegun(1);
  const std::string second = Queue("a2");
  const std::string other = Queue("b1", UserCall("user-2"));
  analyser_.WaitForBegun(2);  // the other user's, although it came later
  EXPECT_EQ(Shown(second).status(), v1::RUN_STATUS_QUEUED);
  EXPECT_EQ(runs_->Get({"org-1", std::nullopt}, other)->status, store::RunStatus::kRunning);
  analyser_.Release();
  EXPECT_EQ(WaitForEnd(second).status(), v1::RUN_STATUS_SUCCEEDED);
  EXPECT_EQ(WaitForEnd(first).status(), v1::RUN_STATUS_SUCCEEDED);
}

TEST_P(AnalyseServiceTest, BoundsWhatOneUserHasOpen) {
  End();
  options_.running_per_user = 2;
  options_.queued_per_user = 1;
  Begin(/*start=*/false);
  analyser_.Hold();
  std::vector<std::jthread> askers;
  for (int i = 0; i < 2; ++i) askers.emplace_back([&] { EXPECT_TRUE(Ask(RequestFor("held"))); });
  analyser_.WaitForBegun(2);
  const auto third = Ask(RequestFor("more"));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, base::Code::kResourceExhausted);
  EXPECT_EQ(third.error().reason, "run.user_busy");
  analyser_.Release();
  askers.clear();
  EXPECT_TRUE(Ask(RequestFor("more")));
  EXPECT_EQ(Queue("waits").size(), 36U);
  EXPECT_EQ(Queue("one too many"), "run.queue_user");
  EXPECT_EQ(Queue("of another", UserCall("user-2")).size(), 36U);
}

TEST_P(AnalyseServiceTest, TurnsQuestionsAwayWhenTooMuchIsToBeDone) {
  End();
  options_.workers = 1;
  options_.backlog = 1;
  options_.running_per_user = 10;
  Begin();
  analyser_.Hold();
  std::vector<std::jthread> askers;
  askers.emplace_back([&] { EXPECT_TRUE(Ask(RequestFor("held"))); });
  analyser_.WaitForBegun(1);
  auto hurried = UserCall();
  hurried.deadline = std::chrono::steady_clock::now() + 5ms;
  EXPECT_EQ(Ask(RequestFor("waits"), hurried).error().reason, "run.timeout");
  const auto shed = Ask(RequestFor("shed"));
  ASSERT_FALSE(shed);
  EXPECT_EQ(shed.error().reason, "run.overloaded");
  analyser_.Release();
}

INSTANTIATE_TEST_SUITE_P(Backends, AnalyseServiceTest,
                         testing::Values(Backend::kMemory, Backend::kEmbedded),
                         [](const auto& test) {
                           return test.param == Backend::kMemory ? "Memory" : "Embedded";
                         });

// What a restart finds: the store is what remains.
class RestartTest : public AnalyseServiceTest {};

TEST_P(RestartTest, WhatWaitedIsDoneAndWhatWasWorkedOnIsFailed) {
  End();
  Begin(/*start=*/false);
  const std::string waited = Queue("waited");
  const std::string worked_on = Queue("worked on");
  // As a server leaves it that died: the second run was taken, nobody ended it.
  store::RunRow interrupted = *runs_->Get({"org-1", std::nullopt}, worked_on);
  interrupted.run_id = "0193a8b2-0000-7000-8000-000000000001";
  interrupted.status = store::RunStatus::kRunning;
  ASSERT_TRUE(runs_->Add(interrupted, {}));
  End();
  if (GetParam() == Backend::kEmbedded) {
    runs_.reset();
    OpenStore();
    analyser_.runs = runs_.get();
  }
  Begin();
  EXPECT_EQ(WaitForEnd(waited).status(), v1::RUN_STATUS_SUCCEEDED);
  EXPECT_EQ(WaitForEnd(waited).analyse().recommended_resources().rationale(), "waited");
  EXPECT_EQ(WaitForEnd(worked_on).status(), v1::RUN_STATUS_SUCCEEDED);
  const v1::Run failed = Shown(interrupted.run_id);
  EXPECT_EQ(failed.status(), v1::RUN_STATUS_FAILED);
  EXPECT_EQ(failed.error_reason(), "run.interrupted");
}

TEST_P(RestartTest, StoppingLetsTheWorkAtHandEnd) {
  analyser_.Hold();
  const std::string id = Queue("at hand");
  analyser_.WaitForBegun(1);
  std::jthread release([&] {
    std::this_thread::sleep_for(5ms);
    analyser_.Release();
  });
  End();
  release.join();
  EXPECT_EQ(runs_->Get({"org-1", std::nullopt}, id)->status, store::RunStatus::kSucceeded);
}

TEST_P(RestartTest, ARequestThatCannotBeReadAnyMoreFailsItsRunOnly) {
  End();
  ASSERT_TRUE(runs_->Enqueue({.run_id = "0193a8b2-0000-7000-8000-000000000002",
                              .organisation_id = "org-1",
                              .user_id = "user-1",
                              .created_at = clock_.Now(),
                              .request = "r\xFF\xFF"},
                             {.per_user = 9, .in_all = 9}));
  Begin();
  const v1::Run run = WaitForEnd("0193a8b2-0000-7000-8000-000000000002");
  EXPECT_EQ(run.status(), v1::RUN_STATUS_FAILED);
  EXPECT_EQ(run.error_reason(), "run.request");
  EXPECT_EQ(WaitForEnd(Queue("next")).status(), v1::RUN_STATUS_SUCCEEDED);
}

INSTANTIATE_TEST_SUITE_P(Backends, RestartTest,
                         testing::Values(Backend::kMemory, Backend::kEmbedded),
                         [](const auto& test) {
                           return test.param == Backend::kMemory ? "Memory" : "Embedded";
                         });

}  // namespace
}  // namespace expanse::intelligence
