// What every backend of RunStore does, as tests. A backend's test file includes this once and says
//   INSTANTIATE_TEST_SUITE_P(Sqlite, RunStoreContract, ::testing::Values(&OpenIn));
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/time.h"
#include "store/runs/run_store.h"
#include "store/sql/fault_testing.h"

namespace expanse::store {

// Opens the store whose data is in the directory.
using OpenRunStore = base::Result<std::unique_ptr<RunStore>> (*)(const std::string& directory);

class RunStoreContract : public ::testing::TestWithParam<OpenRunStore> {
 protected:
  void SetUp() override {
    auto dir = StoreDirectory();
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
    auto opened = GetParam()(dir_->path());
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  static base::WallTime At(std::int64_t seconds) {
    return base::WallTime(std::chrono::seconds(1'700'000'000 + seconds));
  }
  static RunRow Queued(const std::string& id, std::int64_t at, const std::string& user = "u1") {
    return {.run_id = id,
            .organisation_id = "o1",
            .user_id = user,
            .target = "job.sh",
            .created_at = At(at),
            .request = "asked " + id};
  }
  static RunRow Over(const std::string& id, std::int64_t at, const std::string& user = "u1") {
    RunRow run = Queued(id, at, user);
    run.status = RunStatus::kSucceeded;
    run.finished_at = At(at);
    run.request = {};
    run.answer = "answer of " + id;
    return run;
  }
  static RunArtifactRow Diff(const std::string& id) {
    return {.artifact_id = id,
            .content_hash = "sha256:c",
            .source_file = "dir/caf\xE9.sh",
            .source_hash = "sha256:s",
            .data = std::string("--- a\0\xFF\n", 8),
            .created_at = At(3)};
  }
  base::Status Enqueue(const RunRow& run) {
    return store_->Enqueue(run, {.per_user = 100, .in_all = 1000});
  }
  std::string Take(std::size_t per_user = 10) {
    auto run = store_->TakeQueued(per_user);
    if (!run) return "error: " + run.error().message;
    return *run ? (*run)->run_id : "";
  }
  std::vector<std::string> Ids(const RunFilter& filter, std::size_t limit = 100) {
    std::vector<std::string> ids;
    std::optional<RunCursor> after;
    do {
      auto page = store_->List(filter, after, limit);
      EXPECT_TRUE(page) << page.error().message;
      if (!page) return {};
      EXPECT_LE(page->runs.size(), limit);
      for (const RunRow& run : page->runs) ids.push_back(run.run_id);
      after = page->next;
    } while (after);
    return ids;
  }

  const RunScope scope_{.organisation_id = "o1", .user_id = std::nullopt};
  std::optional<base::TempDir> dir_;
  std::unique_ptr<RunStore> store_;
};

using Names = std::vector<std::string>;

TEST_P(RunStoreContract, KeepsEveryFieldOfARun) {
  RunRow run = Over("r1", 5);
  run.kind = RunKind::kDiagnose;
  run.status = RunStatus::kFailed;
  run.target = std::string("caf\xE9\0x", 6);
  run.job_name = "j\xFF";
  run.compute_id = "c1";
  run.finished_at = At(6) + std::chrono::microseconds(1);
  run.error = "no";
  run.error_reason = "run.no";
  run.cache_key = "k";
  run.request = std::string("\0r", 2);
  run.answer = std::string("\0a", 2);
  ASSERT_TRUE(store_->Add(run, {}));
  const auto got = store_->Get(scope_, "r1");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->kind, run.kind);
  EXPECT_EQ(got->status, run.status);
  EXPECT_EQ(got->target, run.target);
  EXPECT_EQ(got->job_name, run.job_name);
  EXPECT_EQ(got->compute_id, "c1");
  EXPECT_EQ(got->user_id, "u1");
  EXPECT_EQ(got->organisation_id, "o1");
  EXPECT_EQ(got->created_at, At(5));
  EXPECT_EQ(got->finished_at, run.finished_at);
  EXPECT_EQ(got->error, "no");
  EXPECT_EQ(got->error_reason, "run.no");
  EXPECT_EQ(got->cache_key, "k");
  EXPECT_EQ(got->request, run.request);
  EXPECT_EQ(got->answer, run.answer);
  const auto again = store_->Add(run, {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, base::Code::kAlreadyExists);
}

TEST_P(RunStoreContract, ShowsRunsAndArtefactsInTheirScopeOnly) {
  ASSERT_TRUE(store_->Add(Over("r1", 1), {Diff("a1")}));
  for (const RunScope& scope :
       {RunScope{"o2", std::nullopt}, RunScope{"o2", "u1"}, RunScope{"o1", "u2"}}) {
    EXPECT_EQ(store_->Get(scope, "r1").error().reason, "run.not_found");
    EXPECT_EQ(store_->GetArtifact(scope, "a1").error().reason, "artifact.not_found");
    EXPECT_EQ(Ids({.scope = scope}), Names());
  }
  for (const RunScope& scope : {RunScope{"o1", std::nullopt}, RunScope{"o1", "u1"}}) {
    EXPECT_TRUE(store_->Get(scope, "r1"));
    EXPECT_EQ(Ids({.scope = scope}), Names({"r1"}));
    const auto artifact = store_->GetArtifact(scope, "a1");
    ASSERT_TRUE(artifact);
    EXPECT_EQ(artifact->run_id, "r1");
    EXPECT_EQ(artifact->data, Diff("a1").data);
    EXPECT_EQ(artifact->source_file, Diff("a1").source_file);
    EXPECT_EQ(artifact->source_hash, "sha256:s");
    EXPECT_EQ(artifact->content_hash, "sha256:c");
    EXPECT_EQ(artifact->created_at, At(3));
  }
  EXPECT_EQ(store_->Get(scope_, "r2").error().reason, "run.not_found");
  EXPECT_EQ(store_->GetArtifact(scope_, "a2").error().reason, "artifact.not_found");
}

TEST_P(RunStoreContract, ListsNewestFirstInPagesWithoutAnswers) {
  for (int i = 0; i < 7; ++i) {
    RunRow run = Over("r" + std::to_string(i), i / 2, i % 2 == 0 ? "u1" : "u2");
    if (i == 3) run.kind = RunKind::kDiagnose;
    if (i > 4) run.compute_id = "c1";
    ASSERT_TRUE(store_->Add(run, {}));
  }
  const Names all = {"r6", "r5", "r4", "r3", "r2", "r1", "r0"};
  for (const std::size_t limit : {1U, 2U, 3U, 7U, 8U})
    EXPECT_EQ(Ids({.scope = scope_}, limit), all) << limit;
  EXPECT_EQ(Ids({.scope = {"o1", "u2"}}, 1), Names({"r5", "r3", "r1"}));
  EXPECT_EQ(Ids({.scope = scope_, .kind = RunKind::kDiagnose}), Names({"r3"}));
  EXPECT_EQ(Ids({.scope = scope_, .compute_id = "c1"}), Names({"r6", "r5"}));
  const auto page = store_->List({.scope = scope_}, std::nullopt, 1);
  EXPECT_EQ(page->runs.front().answer, "");
  EXPECT_EQ(page->runs.front().target, "job.sh");
}

TEST_P(RunStoreContract, TakesWhatHasWaitedLongestButNotTooManyOfOneUser) {
  ASSERT_TRUE(Enqueue(Queued("a1", 1, "u1")));
  ASSERT_TRUE(Enqueue(Queued("a2", 2, "u1")));
  ASSERT_TRUE(Enqueue(Queued("b1", 3, "u2")));
  EXPECT_EQ(store_->CountQueued(), 3U);
  const auto first = store_->TakeQueued(1);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->run_id, "a1");
  EXPECT_EQ((*first)->status, RunStatus::kRunning);
  EXPECT_EQ((*first)->request, "asked a1");
  EXPECT_EQ(store_->Get(scope_, "a1")->status, RunStatus::kRunning);
  EXPECT_EQ(Take(1), "b1");
  EXPECT_EQ(Take(1), "");
  EXPECT_EQ(Take(2), "a2");
  EXPECT_EQ(Take(2), "");
  EXPECT_EQ(store_->CountQueued(), 0U);
}

TEST_P(RunStoreContract, BoundsTheQueuePerUserAndInAll) {
  const QueueBounds bounds{.per_user = 2, .in_all = 3};
  EXPECT_TRUE(store_->Enqueue(Queued("a1", 1), bounds));
  EXPECT_TRUE(store_->Enqueue(Queued("a2", 2), bounds));
  const auto third = store_->Enqueue(Queued("a3", 3), bounds);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, base::Code::kResourceExhausted);
  EXPECT_EQ(third.error().reason, "run.queue_user");
  EXPECT_TRUE(store_->Enqueue(Queued("b1", 4, "u2"), bounds));
  EXPECT_EQ(store_->Enqueue(Queued("c1", 5, "u3"), bounds).error().reason, "run.queue_full");
  EXPECT_EQ(Take(), "a1");  // what runs does not wait
  EXPECT_TRUE(store_->Enqueue(Queued("a3", 6), bounds));
}

TEST_P(RunStoreContract, FinishesARunOnceWithItsArtefacts) {
  RunOutcome outcome{.finished_at = At(9),
                     .job_name = "train",
                     .cache_key = "k",
                     .answer = "yes",
                     .artifacts = {Diff("a1")}};
  ASSERT_TRUE(Enqueue(Queued("r1", 1)));
  EXPECT_EQ(store_->Finish("r1", outcome).error().reason, "run.not_running");
  ASSERT_EQ(Take(), "r1");
  ASSERT_TRUE(store_->Finish("r1", outcome));
  const auto run = store_->Get(scope_, "r1");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->status, RunStatus::kSucceeded);
  EXPECT_EQ(run->finished_at, At(9));
  EXPECT_EQ(run->job_name, "train");
  EXPECT_EQ(run->answer, "yes");
  EXPECT_EQ(run->request, "");
  EXPECT_EQ(store_->GetArtifact(scope_, "a1")->run_id, "r1");
  EXPECT_EQ(store_->Finish("r1", outcome).error().reason, "run.not_running");
  EXPECT_EQ(store_->Finish("r2", outcome).error().reason, "run.not_running");
}

TEST_P(RunStoreContract, FailsWhatRanWhenTheProcessDiedAndKeepsWhatWaited) {
  ASSERT_TRUE(Enqueue(Queued("r1", 1)));
  ASSERT_TRUE(Enqueue(Queued("r2", 2)));
  ASSERT_TRUE(store_->Add(Over("r3", 3), {}));
  ASSERT_EQ(Take(), "r1");
  EXPECT_EQ(store_->FailRunning(At(7), "the server stopped", "run.interrupted"), 1U);
  const auto run = store_->Get(scope_, "r1");
  EXPECT_EQ(run->status, RunStatus::kFailed);
  EXPECT_EQ(run->error, "the server stopped");
  EXPECT_EQ(run->error_reason, "run.interrupted");
  EXPECT_EQ(run->finished_at, At(7));
  EXPECT_EQ(store_->FailRunning(At(8), "x", "y"), 0U);
  EXPECT_EQ(store_->Get(scope_, "r3")->status, RunStatus::kSucceeded);
  EXPECT_EQ(Take(), "r2");
}

TEST_P(RunStoreContract, FindsTheNewestAnswerOfTheSameUserToTheSameQuestion) {
  const auto add = [&](const std::string& id, std::int64_t at, const std::string& key,
                       RunStatus status = RunStatus::kSucceeded, const std::string& user = "u1") {
    RunRow run = Over(id, at, user);
    run.cache_key = key;
    run.status = status;
    ASSERT_TRUE(store_->Add(run, {}));
  };
  const auto find = [&](const std::string& key, const std::string& user = "u1",
                        const std::string& organisation = "o1") -> std::string {
    auto run = store_->FindCached(organisation, user, key);
    if (!run) return "error: " + run.error().message;
    return *run ? (*run)->run_id : "";
  };
  add("r1", 1, "k");
  add("r2", 2, "k");
  add("r3", 3, "k", RunStatus::kFailed);
  add("r4", 4, "k", RunStatus::kSucceeded, "u2");
  add("r5", 5, "");
  EXPECT_EQ(find("k"), "r2");
  EXPECT_EQ(store_->FindCached("o1", "u1", "k")->value().answer, "answer of r2");
  EXPECT_EQ(find("k", "u2"), "r4");
  EXPECT_EQ(find("k", "u3"), "");
  EXPECT_EQ(find("k", "u1", "o2"), "");
  EXPECT_EQ(find("other"), "");
  EXPECT_EQ(find(""), "");
}

TEST_P(RunStoreContract, DropsWhatIsOldInSteps) {
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(store_->Add(Over("r" + std::to_string(i), i), {Diff("a" + std::to_string(i))}));
  ASSERT_TRUE(Enqueue(Queued("q", 0)));
  EXPECT_EQ(store_->DropBefore(At(3), 2), 2U);
  EXPECT_EQ(store_->DropBefore(At(3), 2), 1U);
  EXPECT_EQ(store_->DropBefore(At(3), 2), 0U);
  EXPECT_EQ(Ids({.scope = scope_}), Names({"r4", "r3", "q"}));
  EXPECT_FALSE(store_->GetArtifact(scope_, "a2"));
  EXPECT_TRUE(store_->GetArtifact(scope_, "a3"));
}

TEST_P(RunStoreContract, KeepsOnlyTheNewestOfEachUser) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(store_->Add(Over("a" + std::to_string(i), i), {}));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(store_->Add(Over("b" + std::to_string(i), i, "u2"), {}));
  ASSERT_TRUE(Enqueue(Queued("q", -1)));
  EXPECT_EQ(store_->DropBeyond(2, 2), 2U);
  EXPECT_EQ(store_->DropBeyond(2, 2), 1U);
  EXPECT_EQ(store_->DropBeyond(2, 2), 0U);
  EXPECT_EQ(Ids({.scope = scope_}), Names({"a4", "a3", "b1", "b0", "q"}));
}

TEST_P(RunStoreContract, BoundsTheSystemsRunsApart) {
  const std::string system(kSystemUser);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(store_->Add(Over("a" + std::to_string(i), i), {}));
    ASSERT_TRUE(store_->Add(Over("s" + std::to_string(i), i, system), {}));
  }
  EXPECT_EQ(store_->DropBeyond(1, 100), 3U);
  EXPECT_EQ(Ids({.scope = {"o1", system}}), Names({"s3", "s2", "s1", "s0"}));
  EXPECT_EQ(store_->DropSystemBeyond(2, 1), 1U);
  EXPECT_EQ(store_->DropSystemBeyond(2, 100), 1U);
  EXPECT_EQ(store_->DropSystemBeyond(2, 100), 0U);
  EXPECT_EQ(Ids({.scope = scope_}), Names({"s3", "a3", "s2"}));
}

TEST_P(RunStoreContract, GivesARunToOneWorkerAlone) {
  constexpr int kRuns = 60;
  for (int i = 0; i < kRuns; ++i) ASSERT_TRUE(Enqueue(Queued("r" + std::to_string(i), i)));
  std::vector<Names> taken(3);
  {
    std::vector<std::jthread> workers;
    for (Names& mine : taken) {
      workers.emplace_back([&] {
        for (std::string id = Take(kRuns); !id.empty(); id = Take(kRuns)) mine.push_back(id);
      });
    }
  }
  std::set<std::string> distinct;
  std::size_t all = 0;
  for (const Names& mine : taken) {
    all += mine.size();
    distinct.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all, std::size_t{kRuns});
  EXPECT_EQ(distinct.size(), std::size_t{kRuns});
}

}  // namespace expanse::store
