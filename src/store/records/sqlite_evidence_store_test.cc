#include "store/records/sqlite_evidence_store.h"

#include <gtest/gtest.h>

#include <random>

#include "store/records/change_feed_contract.h"
#include "store/records/evidence_store_contract.h"
#include "store/records/execution_query.h"
#include "store/records/records_tables.h"
#include "store/sql/database.h"

namespace expanse::store {
namespace {

base::Result<std::unique_ptr<EvidenceStore>> OpenIn(const std::string& directory,
                                                    base::Clock& clock) {
  return SqliteEvidenceStore::Open({.path = base::JoinPath(directory, "records.db"), .readers = 2},
                                   clock);
}

INSTANTIATE_TEST_SUITE_P(Sqlite, EvidenceStoreContract, ::testing::Values(EvidenceBackend{OpenIn}));

// What is particular to this backend: damage, crashes, a full disk, the indexes of the list.
class SqliteEvidenceStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto dir = StoreDirectory();
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
  }
  std::string path() const { return base::JoinPath(dir_->path(), "records.db"); }
  std::unique_ptr<EvidenceStore> Open() {
    auto store = OpenIn(dir_->path(), clock_);
    EXPECT_TRUE(store) << (store ? "" : store.error().message);
    return store ? std::move(*store) : nullptr;
  }
  // Record n: execution "e<n>" with `padding` bytes of comment.
  static base::Status Write(EvidenceStore& store, std::uint64_t n, std::size_t padding = 0) {
    evidence::Execution execution;
    execution.status = evidence::ExecutionStatus::kRunning;
    execution.name = std::to_string(n);
    execution.comment.assign(padding, 'c');
    const EvidenceChange change{
        .sequence = n, .execution_id = "e" + std::to_string(n), .execution = execution};
    auto applied = store.Apply("org", "c", "s", std::span(&change, 1));
    if (!applied) return std::unexpected(applied.error());
    return {};
  }
  // Records 1..n are there once each, and nothing else up to n + slack.
  static void ExpectRecords(EvidenceStore& store, std::uint64_t n, std::uint64_t slack) {
    auto page = store.List({.organisation_id = "org"}, std::nullopt, n + slack + 10);
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_GE(page->executions.size(), n);
    EXPECT_LE(page->executions.size(), n + slack);
    EXPECT_EQ(store.Watermark("c", "s"), page->executions.size());
    for (std::uint64_t i = 1; i <= n; ++i) {
      ASSERT_EQ(store.Get("org", "e" + std::to_string(i))->name, std::to_string(i));
    }
  }
  std::optional<base::TempDir> dir_;
  base::FakeClock clock_;
};

TEST_F(SqliteEvidenceStoreTest, WhatWasAcknowledgedSurvivesKillingTheWriter) {
  std::mt19937_64 random(17);
  std::uint64_t acknowledged = 0;
  for (int round = 0; round < 25; ++round) {
    std::unique_ptr<EvidenceStore> mine;  // the child's: a store must not cross a fork
    auto last = WriteUntilKilled(acknowledged + 1, random, [&](std::uint64_t n) -> base::Status {
      if (mine == nullptr) mine = Open();
      return Write(*mine, n);
    });
    ASSERT_TRUE(last) << last.error().message;
    acknowledged = *last;
    auto store = Open();
    ExpectRecords(*store, acknowledged, 1);
  }
}

TEST_F(SqliteEvidenceStoreTest, AFullDiskIsSaidAndLosesNothing) {
  auto store = Open();
  std::uint64_t n = 0;
  base::Status last;
  {
    const FileSizeLimit limit(400'000);
    while (last && n < 10'000) {
      last = Write(*store, n + 1, 2000);
      if (last) ++n;
    }
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, base::Code::kResourceExhausted);
  EXPECT_EQ(last.error().reason, "store.disk_full");
  ASSERT_GT(n, 0U);
  ExpectRecords(*store, n, 0);
  ASSERT_TRUE(Write(*store, n + 1));  // space is back
  store = Open();
  ExpectRecords(*store, n + 1, 0);
}

TEST_F(SqliteEvidenceStoreTest, ADamagedRecordHidesNoOther) {
  auto store = Open();
  for (std::uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(Write(*store, n));
  {
    auto database = sql::Database::Open({.path = path()}, records::RecordMigrations());
    ASSERT_TRUE(database);
    ASSERT_EQ((*database)->WithWrite([](sql::Transaction& tx) {
      return tx.Execute("UPDATE execution SET detail = x'ffff01' WHERE execution_id = 'e2'");
    }),
              1);
  }
  auto got = store->Get("org", "e2");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, base::Code::kDataLoss);
  auto page = store->List({.organisation_id = "org"}, std::nullopt, 10);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->executions.size(), 3U);
  ASSERT_TRUE(Write(*store, 4));
  evidence::Execution again;
  again.name = "again";
  const EvidenceChange change{.sequence = 5, .execution_id = "e2", .execution = again};
  ASSERT_EQ(store->Apply("org", "c", "s", std::span(&change, 1)), 5U);  // ingest goes on
  EXPECT_EQ(store->Get("org", "e2")->name, "again");
}

TEST_F(SqliteEvidenceStoreTest, ADamagedFileIsDataLossNotACrash) {
  {
    auto store = Open();
    for (std::uint64_t n = 1; n <= 200; ++n) ASSERT_TRUE(Write(*store, n, 300));
  }
  const std::string whole = base::ReadFile(path()).value();
  std::mt19937_64 random(5);
  int refused = 0;
  for (int round = 0; round < 40; ++round) {
    std::string damaged = whole;
    const std::size_t page = 4096 * (round % 4 == 0 ? 0 : random() % (whole.size() / 4096));
    for (int i = 0; i < 600; ++i) damaged[page + random() % 4096] = static_cast<char>(random());
    if (round % 5 == 1) damaged.resize(whole.size() / 2 + random() % 4096);  // torn
    for (const char* log : {"-wal", "-shm"}) ASSERT_TRUE(base::RemoveFile(path() + log));
    ASSERT_TRUE(base::WriteFileAtomically(path(), damaged, 0600));
    auto store = OpenIn(dir_->path(), clock_);
    if (!store) {
      EXPECT_TRUE(store.error().code == base::Code::kDataLoss ||
                  store.error().reason == "store.sql")
          << store.error().message;
      ++refused;
      continue;
    }
    auto page_read = (*store)->List({.organisation_id = "org"}, std::nullopt, 1000);
    if (!page_read) {
      EXPECT_EQ(page_read.error().code, base::Code::kDataLoss) << page_read.error().message;
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);
}

TEST_F(SqliteEvidenceStoreTest, PagesOfHugeExecutionsEndEarlyAndLeaveNothingOut) {
  auto store = Open();
  constexpr std::uint64_t kAll = 7;
  for (std::uint64_t n = 1; n <= kAll; ++n) {
    evidence::Execution execution;
    execution.user = n % 3 == 0 ? "b" : "a";
    execution.started_at = clock_.Now() + std::chrono::seconds(n);
    execution.comment.assign(12U << 20, 'c');
    const EvidenceChange change{
        .sequence = n, .execution_id = "e" + std::to_string(n), .execution = execution};
    ASSERT_TRUE(store->Apply("org", "c", "s", std::span(&change, 1)));
  }
  for (const ExecutionFilter& filter :
       {ExecutionFilter{.organisation_id = "org"},
        ExecutionFilter{.organisation_id = "org", .users = {"a", "b"}}}) {
    std::uint64_t expected = kAll;
    std::optional<ExecutionCursor> after;
    do {
      auto page = store->List(filter, after, 100);
      ASSERT_TRUE(page) << page.error().message;
      ASSERT_GE(page->executions.size(), 1U);
      EXPECT_LE(page->executions.size(), 2U);
      for (const evidence::Execution& execution : page->executions)
        EXPECT_EQ(execution.execution_id, "e" + std::to_string(expected--));
      after = page->next;
    } while (after);
    EXPECT_EQ(expected, 0U);
  }
}

TEST_F(SqliteEvidenceStoreTest, ForgetsTheNodeSilentForLongestBeyondTheBound) {
  auto store = SqliteEvidenceStore::Open({.path = path(), .max_health_nodes = 2}, clock_);
  ASSERT_TRUE(store);
  const auto put = [&](const std::string& node, int seconds) {
    const evidence::HealthReport report{
        .daemon_version = "", .node = node, .started_at = clock_.Now(), .rows = {}};
    ASSERT_TRUE(
        (*store)->PutHealth("org", "c", report, clock_.Now() + std::chrono::seconds(seconds)));
  };
  put("a", 1);
  put("b", 2);
  put("a", 3);  // known: nobody has to go
  ASSERT_EQ((*store)->Health("org", "c")->size(), 2U);
  put("c", 4);
  const auto nodes = (*store)->Health("org", "c");
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ(nodes->at(0).report.node, "a");
  EXPECT_EQ(nodes->at(1).report.node, "c");
}

TEST_F(SqliteEvidenceStoreTest, AReaderBehindForgottenRemovalsStartsOver) {
  auto opened = SqliteEvidenceStore::Open({.path = path(), .max_removals = 3}, clock_);
  ASSERT_TRUE(opened);
  SqliteEvidenceStore& store = **opened;
  for (std::uint64_t n = 1; n <= 8; ++n) {
    evidence::Execution over;
    over.status = evidence::ExecutionStatus::kSucceeded;
    over.ended_at = clock_.Now() + std::chrono::seconds(n);
    const EvidenceChange change{
        .sequence = n, .execution_id = "e" + std::to_string(n), .execution = over};
    ASSERT_TRUE(store.Apply("org", "c", "s", std::span(&change, 1)));
  }
  const auto restarts = [&](std::uint64_t change, std::uint64_t began = 1) {
    auto page = store.Changed({.change = change, .began = began}, 100);
    return page && page->restart;
  };
  const auto drop = [&](std::size_t count) {
    ASSERT_EQ(store.DropExecutionsBefore(clock_.Now() + std::chrono::hours(1), count), count);
  };
  drop(3);  // changes 9, 10, 11
  EXPECT_FALSE(restarts(8));
  drop(2);  // 12, 13; forgotten: 9 and 10
  EXPECT_TRUE(restarts(8));
  EXPECT_TRUE(restarts(9));
  EXPECT_FALSE(restarts(10));
  EXPECT_FALSE(restarts(0)) << "who knows nothing misses nothing";
  EXPECT_FALSE(restarts(7, 11)) << "what went before it began it never saw";
  FeedPlace after{.change = 10, .began = 1};
  EXPECT_EQ(FeedIds(ReadFeed(store, &after, 2)), (FeedNames{"-e3", "-e4", "-e5"}));
  after = {};
  EXPECT_EQ(FeedIds(ReadFeed(store, &after, 2)),
            (FeedNames{"e6", "e7", "e8", "-e3", "-e4", "-e5"}));
}

TEST_F(SqliteEvidenceStoreTest, TheFeedEndsPagesOfHugeExecutionsEarlyAndPassesDamagedOnes) {
  auto store = Open();
  for (std::uint64_t n = 1; n <= 3; ++n) {
    evidence::Execution execution;
    execution.comment.assign(12U << 20, 'c');
    const EvidenceChange change{
        .sequence = n, .execution_id = "e" + std::to_string(n), .execution = execution};
    ASSERT_TRUE(store->Apply("org", "c", "s", std::span(&change, 1)));
  }
  auto page = store->Changed({}, 100);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->changes.size(), 1U);
  auto database = sql::Database::Open({.path = path()}, records::RecordMigrations());
  ASSERT_TRUE(database);
  ASSERT_EQ((*database)->WithWrite([](sql::Transaction& tx) {
    return tx.Execute("UPDATE execution SET detail = x'ffff01' WHERE execution_id = 'e2'");
  }),
            1);
  FeedPlace after;
  const auto all = ReadFeed(*store, &after, 100);
  EXPECT_EQ(FeedIds(all), (FeedNames{"e1", "e2", "e3"}));
  EXPECT_EQ(all.at(1).execution.execution_id, "e2");
  EXPECT_FALSE(all.at(1).execution.capture_notes.empty());
}

// A store of the version before the feed: what is there is told in the order in which it came.
TEST_F(SqliteEvidenceStoreTest, ExecutionsFromBeforeTheFeedAreInIt) {
  const auto all = records::RecordMigrations();
  {
    auto database = sql::Database::Open({.path = path()}, all.first(3));
    ASSERT_TRUE(database) << database.error().message;
    ASSERT_TRUE((*database)->WithWrite([](sql::Transaction& tx) -> base::Status {
      for (const auto& [id, first_seen] : {std::pair{"late", 30}, {"early", 10}, {"mid", 20}}) {
        EXPANSE_RETURN_IF_ERROR(tx.Execute(
            "INSERT INTO execution (execution_id, organisation_id, compute_id, source_type, "
            "status, outcome, first_seen, sort_at) VALUES (:id, 'org', 'c', 1, 0, 0, :seen, 1)",
            {id, first_seen}));
      }
      return {};
    }));
  }
  auto store = Open();
  FeedPlace after;
  EXPECT_EQ(FeedIds(ReadFeed(*store, &after, 2)), (FeedNames{"early", "mid", "late"}));
  EXPECT_EQ(after.change, 3U);
  ASSERT_TRUE(Write(*store, 1));
  EXPECT_EQ(ReadFeed(*store, &after, 2).size(), 1U);
  EXPECT_EQ(after.change, 4U);
}

TEST_F(SqliteEvidenceStoreTest, EveryFilterReadsItsIndexInOrder) {
  auto store = Open();
  auto database = sql::Database::Open({.path = path()}, records::RecordMigrations());
  ASSERT_TRUE(database);
  using evidence::ExecutionStatus;
  using evidence::Outcome;
  const std::string user = "u";
  const base::WallTime start = clock_.Now();
  const std::pair<ExecutionFilter, const char*> filters[] = {
      {{}, "execution_newest"},
      {{.started_after = start, .started_before = start}, "execution_newest"},
      {{.status = ExecutionStatus::kSucceeded, .compute_id = "c"}, "execution_by_compute"},
      {{.status = ExecutionStatus::kRunning, .users = {user}, .compute_id = "c"},
       "execution_by_user"},
      {{.status = ExecutionStatus::kRunning, .compute_id = "c"}, "execution_by_status"},
      {{.outcome = Outcome::kOutOfMemory, .source_type = evidence::SourceType::kSlurm},
       "execution_by_outcome"},
      {{.outcome = Outcome::kSuccess}, "execution_by_outcome"},
      {{.source_type = evidence::SourceType::kSlurm, .started_after = start},
       "execution_by_source"},
      {{.users = {user}, .compute_id = "c", .native_id = "1"}, "execution_by_native_id"},
  };
  for (const auto& [filter, index] : filters) {
    const std::optional<ExecutionCursor> after = ExecutionCursor{9, "x"};  // the page refers to it
    const auto page = records::BuildPage(filter, filter.users.empty() ? nullptr : &user, after, 10);
    std::string plan;
    auto explained = (*database)->WithRead([&](sql::Transaction& tx) {
      return tx.Query("EXPLAIN QUERY PLAN " + page.sql, page.params,
                      {sql::Column::kInt, sql::Column::kInt, sql::Column::kInt, sql::Column::kText},
                      [&](const sql::Row& row) { plan += row.Text(3) + "\n"; });
    });
    ASSERT_TRUE(explained) << explained.error().message;
    EXPECT_NE(plan.find(index), std::string::npos) << page.sql << ": " << plan;
    EXPECT_EQ(plan.find("TEMP B-TREE"), std::string::npos) << page.sql << ": " << plan;
  }
}

}  // namespace
}  // namespace expanse::store
