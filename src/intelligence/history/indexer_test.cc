// What becomes of changes in the evidence store.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "intelligence/history/history_tables.h"
#include "intelligence/history/history_testing.h"

namespace expanse::intelligence::history {
namespace {

using Names = std::vector<std::string>;

std::vector<TestFile> Script(const std::string& name = "one") {
  return {{.path = "/home/mara/job.sh",
           .role = "script",
           .data = "#!/bin/bash\nmodule load " + name + "\nsrun ./" + name + " --input data\n"}};
}

class IndexerTest : public HistoryWorld {
 protected:
  // A run that goes on, or ended just now, with series.
  evidence::Execution Fresh(const TestJob& job) {
    evidence::Execution e = ExecutionOf(job);
    e.submitted_at = clock_.Now() - std::chrono::minutes(11);
    e.started_at = clock_.Now() - std::chrono::minutes(10);
    if (e.ended_at) e.ended_at = clock_.Now();
    e.used = {};
    return e;
  }
  struct Sampled {
    std::string metric;
    std::string node = "n1";
    std::optional<std::uint32_t> gpu = {};
    std::string attribution = {};
  };
  // One value a minute from the start on.
  void Sample(const std::string& id, const Sampled& series, const std::vector<double>& values) {
    std::vector<base::WallTime> times;
    for (std::size_t i = 0; i < values.size(); ++i)
      times.push_back(clock_.Now() - std::chrono::minutes(10) + std::chrono::minutes(i));
    const store::SeriesAppend append{
        .key = {.compute_id = "c1",
                .scope = id,
                .metric = series.metric,
                .source = "test",
                .node = series.node,
                .gpu_index = series.gpu,
                .gpu_uuid = series.gpu ? "GPU-" + series.node + std::to_string(*series.gpu) : ""},
        .unit = "",
        .attribution = series.attribution,
        .times = times,
        .values = values};
    const auto added =
        series_->Append({.compute_id = "c1", .stream_id = "samples", .sequence = ++appended_},
                        std::span(&append, 1));
    ASSERT_TRUE(added) << added.error().message;
  }
  predict::Run Only(const std::vector<TestFile>& files) {
    const Found found = Find(Ask(files));
    EXPECT_EQ(found.runs.size(), 1U);
    return found.runs.empty() ? predict::Run{} : found.runs[0];
  }
  std::uint64_t appended_ = 0;
};

TEST_F(IndexerTest, ARunCountsOnceItIsOver) {
  TestJob job{.id = "r",
              .status = evidence::ExecutionStatus::kRunning,
              .outcome = evidence::Outcome::kUnspecified,
              .files = Script()};
  Put(job);
  CatchUp();
  EXPECT_TRUE(Find(Ask(Script())).runs.empty());
  job.status = evidence::ExecutionStatus::kSucceeded;
  job.outcome = evidence::Outcome::kSuccess;
  job.files.clear();  // told already
  Put(job);
  CatchUp();
  EXPECT_EQ(Ids(Find(Ask(Script()))), Names{"r"});
  CatchUp();
  EXPECT_EQ(history_->Size()->runs, 1U);
}

TEST_F(IndexerTest, ARunThatBeginsAgainCountsNoMore) {
  const TestJob job{.id = "r", .files = Script()};
  auto changes = std::vector{Change(job)};
  changes[0].source_type = evidence::SourceType::kHost;
  changes[0].execution = ExecutionOf(job);
  Apply(job, changes);
  CatchUp();
  ASSERT_EQ(history_->Size()->runs, 1U);
  evidence::Execution again;
  again.restart_count = 1;
  again.status = evidence::ExecutionStatus::kRunning;
  changes[0].sequence = ++sequence_;
  changes[0].execution = again;
  Apply(job, changes);
  ASSERT_EQ(records_->Get("org", "r")->status, evidence::ExecutionStatus::kRunning);
  CatchUp();
  EXPECT_EQ(history_->Size()->runs, 0U);
}

TEST_F(IndexerTest, WhatRetentionRemovesLeavesTheIndexWithItsBundle) {
  Put({.id = "old", .files = Script("old")});
  Put({.id = "old2", .files = Script("old")});
  const auto both_over = start_ + std::chrono::hours(2) + std::chrono::minutes(30);
  Put({.id = "young", .files = Script("young")});
  CatchUp();
  EXPECT_EQ(history_->Size()->bundles, 2U);
  ASSERT_EQ(records_->DropExecutionsBefore(both_over, 1), 1U);
  CatchUp();
  EXPECT_EQ(Ids(Find(Ask(Script("old")))), Names{"old2"});
  EXPECT_EQ(history_->Size()->bundles, 2U);
  ASSERT_EQ(records_->DropExecutionsBefore(both_over, 10), 1U);
  CatchUp();
  EXPECT_EQ(Find(Ask(Script("old"))).basis, predict::Basis::kNone);
  EXPECT_EQ(history_->Size()->runs, 1U);
  EXPECT_EQ(history_->Size()->bundles, 1U);
  Put({.id = "again", .files = Script("old")});
  CatchUp();
  EXPECT_EQ(Ids(Find(Ask(Script("old")))), Names{"again"});
  Open();
  EXPECT_EQ(Ids(Find(Ask(Script("old")))), Names{"again"});
  EXPECT_EQ(history_->Size()->bundles, 2U);
}

// Tasks of an array share their source: only the first brings it, the others its hash.
TEST_F(IndexerTest, RunsMayBeToldBeforeTheSourceTheyShare) {
  const TestJob first{.id = "first",
                      .status = evidence::ExecutionStatus::kRunning,
                      .outcome = evidence::Outcome::kUnspecified,
                      .files = Script()};
  const std::string hash = BundleOf(first).bundle_hash;
  const auto sharing = [&](const char* id) {
    evidence::Execution e = ExecutionOf({.id = id});
    e.bundle_hash = hash;
    Put({.id = id}, e);
  };
  sharing("early");
  CatchUp();
  EXPECT_TRUE(Find(Ask(Script())).runs.empty());
  Put(first);  // goes on, but its bundle is known from now on
  CatchUp();
  EXPECT_EQ(Ids(Find(Ask(Script()))), Names{"early"});
  sharing("late");
  CatchUp();
  EXPECT_EQ(Ids(Find(Ask(Script()))), (Names{"early", "late"}));
}

TEST_F(IndexerTest, ASharedHashOfAnotherOrganisationIsNotTaken) {
  const TestJob theirs{.id = "theirs", .organisation = "org2", .compute = "c2", .files = Script()};
  const std::string hash = BundleOf(theirs).bundle_hash;
  Put(theirs);
  evidence::Execution e = ExecutionOf({.id = "mine"});
  e.bundle_hash = hash;
  Put({.id = "mine"}, e);
  CatchUp();
  EXPECT_EQ(history_->Size()->bundles, 1U);
  EXPECT_TRUE(Find(Ask(Script())).runs.empty());
}

TEST_F(IndexerTest, ABundleOnlyDifferingInRequestsIsTheSameOne) {
  for (const char* memory : {"1G", "2G"}) {
    std::vector<TestFile> files = Script();
    files[0].data = std::string("#SBATCH --mem=") + memory + "\n" + files[0].data;
    Put({.id = memory, .files = files});
  }
  CatchUp();
  EXPECT_EQ(history_->Size()->bundles, 1U);
  EXPECT_EQ(Find(Ask(Script())).runs.size(), 2U);
}

TEST_F(IndexerTest, SourceThatTellsNothingIsReadOnce) {
  const std::vector<TestFile> blank = {{.path = "j.sh", .role = "script", .data = "# nothing\n"}};
  const TestJob first{.id = "r1", .files = blank};
  Put(first);
  evidence::Execution second = ExecutionOf({.id = "r2"});
  second.bundle_hash = BundleOf(first).bundle_hash;
  Put({.id = "r2"}, second);
  CatchUp();
  EXPECT_EQ(history_->Size()->runs, 2U);
  EXPECT_EQ(history_->Size()->bundles, 0U);
  EXPECT_EQ(Find(Ask(blank)).basis, predict::Basis::kNone);
  Query named = Ask(blank);
  named.local_user = "mara";
  named.job_name = "train";
  EXPECT_EQ(Find(named).runs.size(), 2U);
  Open();
  EXPECT_EQ(Find(named).runs.size(), 2U);
}

TEST_F(IndexerTest, ALostBlobCostsThatFileOnly) {
  TestJob job{.id = "r", .files = Script()};
  job.files.push_back({.path = "x.py", .role = "import", .data = "import os\n"});
  store::BundleRow row = BundleOf(job);
  row.files[1].blob = "sha256:" + std::string(64, '0');
  auto changes = std::vector{Change(job), Change(job)};
  changes[0].execution = ExecutionOf(job);
  changes[1].bundle = row;
  Apply(job, changes);
  CatchUp();
  EXPECT_EQ(Ids(Find(Ask(Script()))), Names{"r"});
}

TEST_F(IndexerTest, SamplesTellOfDevicesAndCores) {
  const TestJob job{.id = "r", .files = Script()};
  const double gib = 1ULL << 30;
  Sample("r", {.metric = "cpu"}, {1, 3, 2});
  Sample("r", {.metric = "cpu", .node = "n2"}, {1, 2, 5});
  Sample("r", {.metric = "memory"}, {1 * gib, 4 * gib, 2 * gib});
  Sample("r", {.metric = "gpu-memory-used", .gpu = 0, .attribution = "exclusive"},
         {10 * gib, 30 * gib});
  Sample("r", {.metric = "gpu-memory-used", .gpu = 1, .attribution = "exclusive"}, {1 * gib});
  Sample("r", {.metric = "gpu-memory-total", .gpu = 0}, {80 * gib});
  Sample("r", {.metric = "gpu-memory-total", .gpu = 1}, {40 * gib});
  Sample("r", {.metric = "gpu-util", .gpu = 0, .attribution = "exclusive"}, {90, 70});
  Sample("r", {.metric = "gpu-util", .gpu = 1, .attribution = "idle_held"}, {0, 0});
  Sample("r", {.metric = "gpu-util", .gpu = 2, .attribution = "shared"}, {100, 100});
  Sample("r", {.metric = "gpu-processes", .gpu = 1, .attribution = "idle_held"}, {0});
  Put(job, Fresh(job));
  CatchUp();
  const predict::Run run = Only(Script());
  EXPECT_EQ(run.cpu_peak_cores, 7) << "the highest minute, nodes added up";
  EXPECT_EQ(run.memory_peak_bytes, 4 * gib);
  EXPECT_TRUE(run.memory_is_floor);
  EXPECT_EQ(run.gpu_memory_peak_bytes, 30 * gib);
  EXPECT_EQ(run.gpu_memory_available_bytes, 80 * gib);
  EXPECT_EQ(run.gpu_utilisation_pct, 40) << "not of the shared device";
  EXPECT_EQ(run.gpus_active, 1);
}

// Minutes are put together where there are too many: a peak of one minute then counts by its part.
TEST_F(IndexerTest, SamplesOfAWeekFitIntoMemory) {
  const TestJob job{.id = "r", .files = Script()};
  std::vector<double> values(7 * 24 * 60, 1.0);
  values[5000] = 100;
  Sample("r", {.metric = "cpu"}, values);
  Sample("r", {.metric = "gpu-memory-used", .gpu = 0}, values);
  Put(job, Fresh(job));
  CatchUp();
  const predict::Run run = Only(Script());
  EXPECT_EQ(run.gpu_memory_peak_bytes, 100);
  EXPECT_NEAR(run.cpu_peak_cores.value_or(0), 10, 1) << "a minute among eleven";
}

TEST_F(IndexerTest, SamplesThatComeAfterTheEndAreTakenIn) {
  const TestJob job{.id = "r", .files = Script()};
  Put(job, Fresh(job));
  CatchUp();
  EXPECT_EQ(Only(Script()).cpu_peak_cores, std::nullopt);
  const std::string before = Find(Ask(Script())).version;
  Sample("r", {.metric = "cpu"}, {2});
  CatchUp();
  EXPECT_EQ(Only(Script()).cpu_peak_cores, std::nullopt) << "not looked at in every round";
  clock_.Advance(std::chrono::seconds(30));
  CatchUp();
  EXPECT_EQ(Only(Script()).cpu_peak_cores, 2);
  EXPECT_NE(Find(Ask(Script())).version, before);
  clock_.Advance(-std::chrono::seconds(30));
  Sample("r", {.metric = "cpu", .node = "n2"}, {3});
  clock_.Advance(std::chrono::minutes(7));
  CatchUp();
  EXPECT_EQ(Only(Script()).cpu_peak_cores, 5);
  clock_.Advance(-std::chrono::minutes(7));
  Sample("r", {.metric = "cpu", .node = "n3"}, {9});
  clock_.Advance(std::chrono::hours(7));
  CatchUp();
  EXPECT_EQ(Only(Script()).cpu_peak_cores, 5) << "settled";
}

TEST_F(IndexerTest, StartsOverWhereRemovalsWereForgottenOrTheStoreWasReplaced) {
  for (int i = 0; i < 3; ++i) Put({.id = "r" + std::to_string(i), .files = Script()});
  CatchUp();
  EXPECT_EQ(history_->Size()->runs, 3U);
  history_.reset();
  records_.reset();
  ASSERT_TRUE(base::RemoveFile(base::JoinPath(dir_->path(), "records.db")));
  auto records = store::SqliteEvidenceStore::Open(
      {.path = base::JoinPath(dir_->path(), "records.db")}, clock_);
  ASSERT_TRUE(records);
  records_ = std::move(*records);
  sequence_ = 0;
  Put({.id = "new", .files = Script()});
  Open();
  CatchUp();
  EXPECT_EQ(Ids(Find(Ask(Script()))), Names{"new"});
}

TEST_F(IndexerTest, AnIndexOfAnotherVersionIsMadeAgain) {
  Put({.id = "r", .files = Script()});
  CatchUp();
  history_.reset();
  {
    auto database = store::sql::Database::Open({.path = base::JoinPath(dir_->path(), "history.db")},
                                               HistoryMigrations());
    ASSERT_TRUE(database);
    ASSERT_TRUE((*database)->WithWrite([](store::sql::Transaction& tx) {
      return tx.Execute("UPDATE state SET value = 1 WHERE name = 'version'");
    }));
  }
  Open();
  EXPECT_EQ(history_->Size()->runs, 0U);
  CatchUp();
  EXPECT_EQ(Ids(Find(Ask(Script()))), Names{"r"});
}

// Killed anywhere, the index goes on where it was and ends as one that is made anew.
TEST_F(IndexerTest, IsTheSameAfterACrash) {
  const auto script = [](std::uint64_t n) { return Script("s" + std::to_string(n % 7)); };
  const auto versions = [&] {
    Names all;
    for (std::uint64_t n = 0; n < 7; ++n) all.push_back(Find(Ask(script(n))).version);
    return all;
  };
  std::mt19937_64 random(11);
  std::uint64_t next = 1;
  for (int round = 0; round < 6; ++round) {
    history_.reset();
    const auto last = store::WriteUntilKilled(next, random, [&](std::uint64_t n) -> base::Status {
      if (!history_) Open();
      Put({.id = "r" + std::to_string(n), .files = script(n)});
      if (n % 5 == 0) {
        EXPANSE_RETURN_IF_ERROR(
            records_->DropExecutionsBefore(start_ + std::chrono::hours(hour_ - 20), 10));
      }
      return history_->CatchUp();
    });
    ASSERT_TRUE(last) << last.error().message;
    next = *last + 2;  // the one at work may be there or not
    sequence_ = *records_->Watermark("c1", "s");
    hour_ += static_cast<int>(next);
    Open();
    CatchUp();
    const Names after_crash = versions();
    const auto size = *history_->Size();
    history_.reset();
    for (const char* ending : {"", "-wal", "-shm"})
      ASSERT_TRUE(base::RemoveFile(base::JoinPath(dir_->path(), "history.db") + ending));
    Open();
    CatchUp();
    EXPECT_EQ(versions(), after_crash);
    EXPECT_EQ(history_->Size()->runs, size.runs);
    EXPECT_EQ(history_->Size()->bundles, size.bundles);
    EXPECT_GT(size.runs, 0U);
  }
}

}  // namespace
}  // namespace expanse::intelligence::history
