#include "store/series/sqlite_series_store.h"

#include <gtest/gtest.h>

#include <random>

#include "store/series/series_store_contract.h"
#include "store/series/series_tables.h"
#include "store/sql/database.h"
#include "store/sql/fault_testing.h"

namespace expanse::store {
namespace {

base::Result<std::unique_ptr<SeriesStore>> OpenIn(const std::string& directory,
                                                  std::size_t max_series) {
  return SqliteSeriesStore::Open({.path = base::JoinPath(directory, "series.db"),
                                  .max_series_per_scope = max_series,
                                  .readers = 2});
}

INSTANTIATE_TEST_SUITE_P(Sqlite, SeriesStoreContract, ::testing::Values(SeriesBackend{OpenIn}));

// What is particular to this backend: damage, crashes, a full disk, a second process.
class SqliteSeriesStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto dir = StoreDirectory();
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
  }
  std::unique_ptr<SeriesStore> Open() {
    auto store = OpenIn(dir_->path(), 100);
    EXPECT_TRUE(store) << (store ? "" : store.error().message);
    return store ? std::move(*store) : nullptr;
  }
  // Point n of metric m: n seconds, value n.
  static base::Result<bool> Append(SeriesStore& store, std::uint64_t n,
                                   const std::string& metric = "m") {
    const std::vector<base::WallTime> times = {base::WallTime(std::chrono::seconds(n))};
    const std::vector<double> values = {static_cast<double>(n)};
    const SeriesAppend append{.key = {.compute_id = "c",
                                      .scope = "e",
                                      .metric = metric,
                                      .source = "",
                                      .node = "n",
                                      .gpu_index = {},
                                      .gpu_uuid = ""},
                              .unit = "",
                              .attribution = "",
                              .times = times,
                              .values = values};
    return store.Append({.compute_id = "c", .stream_id = metric, .sequence = n},
                        std::span(&append, 1));
  }
  static base::Result<std::vector<SeriesResult>> Query(SeriesStore& store, std::uint64_t from,
                                                       std::uint64_t to,
                                                       const std::string& metric = "m") {
    return store.Query({.compute_id = "c",
                        .scope = "e",
                        .metric = metric,
                        .source = "",
                        .gpu_index = {},
                        .from = base::WallTime(std::chrono::seconds(from)),
                        .to = base::WallTime(std::chrono::seconds(to)),
                        .interval = std::chrono::seconds(0),
                        .max_points = 1'000'000});
  }
  void Sql(const std::string& statement) {
    auto database = sql::Database::Open({.path = base::JoinPath(dir_->path(), "series.db")},
                                        series::SeriesMigrations());
    ASSERT_TRUE(database);
    auto changed =
        (*database)->WithWrite([&](sql::Transaction& tx) { return tx.Execute(statement); });
    ASSERT_TRUE(changed) << changed.error().message;
    ASSERT_GT(*changed, 0);
  }
  // Points 1..last are there once each, with their values.
  static void ExpectPoints(SeriesStore& store, std::uint64_t last, std::uint64_t at_most) {
    auto results = Query(store, 0, last + 1000);
    ASSERT_TRUE(results) << results.error().message;
    ASSERT_EQ(results->size(), last == 0 && results->empty() ? 0U : 1U);
    if (results->empty()) return;
    const auto& buckets = results->front().buckets;
    EXPECT_GE(buckets.size(), last);
    EXPECT_LE(buckets.size(), at_most);
    for (std::size_t i = 0; i < buckets.size(); ++i)
      ASSERT_EQ(buckets[i].last, static_cast<double>(i + 1));
    EXPECT_EQ(results->front().info.point_count, buckets.size());
  }
  std::optional<base::TempDir> dir_;
};

TEST_F(SqliteSeriesStoreTest, ADamagedChunkFailsOnlyTheWindowsThatTouchIt) {
  {
    auto store = Open();
    for (std::uint64_t n = 1; n <= 1200; ++n) ASSERT_EQ(Append(*store, n), true);
    for (std::uint64_t n = 1; n <= 10; ++n) ASSERT_EQ(Append(*store, n, "other"), true);
  }
  Sql("UPDATE chunk SET data = substr(data, 1, length(data) - 1) || x'00' WHERE first = 1000000");
  auto store = Open();
  auto damaged = Query(*store, 0, 100);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, base::Code::kDataLoss);
  EXPECT_EQ(damaged.error().reason, "series.corrupt");
  EXPECT_NE(damaged.error().message.find("series m"), std::string::npos) << damaged.error().message;
  auto after = Query(*store, 600, 2000);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->at(0).buckets.size(), 601U);
  EXPECT_EQ(Query(*store, 0, 100, "other")->at(0).buckets.size(), 10U);
  // Retention takes the damaged chunk once all of it is old.
  EXPECT_EQ(store->DropBefore(base::WallTime(std::chrono::seconds(100)), {}),
            10U);  // "other" alone
  EXPECT_EQ(store->DropBefore(base::WallTime(std::chrono::seconds(600)), {}), 599U);
  EXPECT_EQ(Query(*store, 0, 2000)->at(0).buckets.size(), 601U);
}

TEST_F(SqliteSeriesStoreTest, ADamagedTailDoesNotStopIngest) {
  {
    auto store = Open();
    for (std::uint64_t n = 1; n <= 20; ++n) ASSERT_EQ(Append(*store, n), true);
  }
  Sql("UPDATE series SET tail_data = x'0102'");
  auto store = Open();
  for (std::uint64_t n = 21; n <= 60; ++n) ASSERT_EQ(Append(*store, n), true);
  EXPECT_FALSE(Query(*store, 0, 15));
}

TEST_F(SqliteSeriesStoreTest, LatePointsStandBesideADamagedChunk) {
  {
    auto store = Open();
    for (std::uint64_t n = 10; n <= 1200; ++n) ASSERT_EQ(Append(*store, n), true);
  }
  Sql("UPDATE chunk SET data = x'01' WHERE first = 10000000");
  auto store = Open();
  ASSERT_EQ(Append(*store, 5, "late"), true);
  const std::vector<base::WallTime> times = {base::WallTime(std::chrono::seconds(2)),
                                             base::WallTime(std::chrono::seconds(50)),
                                             base::WallTime(std::chrono::seconds(700))};
  const std::vector<double> values = {2, 50, 7};
  const SeriesAppend append{.key = {.compute_id = "c",
                                    .scope = "e",
                                    .metric = "m",
                                    .source = "",
                                    .node = "n",
                                    .gpu_index = {},
                                    .gpu_uuid = ""},
                            .unit = "",
                            .attribution = "",
                            .times = times,
                            .values = values};
  ASSERT_EQ(
      store->Append({.compute_id = "c", .stream_id = "x", .sequence = 1}, std::span(&append, 1)),
      true);
  auto whole = Query(*store, 600, 2000);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->at(0).buckets.size(), 601U);
  EXPECT_EQ(whole->at(0).buckets[100].last, 7);
  EXPECT_FALSE(Query(*store, 11, 60));
}

TEST_F(SqliteSeriesStoreTest, WhatWasAcknowledgedSurvivesKillingTheWriter) {
  std::mt19937_64 random(3);
  std::uint64_t acknowledged = 0;
  for (int round = 0; round < 25; ++round) {
    // A store must not cross a fork: the child opens its own.
    std::unique_ptr<SeriesStore> mine;
    auto last = WriteUntilKilled(acknowledged + 1, random, [&](std::uint64_t n) -> base::Status {
      if (mine == nullptr) mine = Open();
      auto taken = Append(*mine, n);
      if (!taken) return std::unexpected(taken.error());
      return {};  // false after a crash: it was in before the acknowledgement got out
    });
    ASSERT_TRUE(last) << last.error().message;
    acknowledged = *last;
    auto store = Open();
    ASSERT_NE(store, nullptr);
    ExpectPoints(*store, acknowledged, acknowledged + 1);
  }
}

TEST_F(SqliteSeriesStoreTest, AFullDiskIsSaidAndLosesNothing) {
  auto store = Open();
  std::uint64_t n = 0;
  base::Result<bool> last = true;
  {
    const FileSizeLimit limit(300'000);
    while (last && n < 100'000) {
      last = Append(*store, n + 1);
      if (last) ++n;
    }
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, base::Code::kResourceExhausted);
  EXPECT_EQ(last.error().reason, "store.disk_full");
  ExpectPoints(*store, n, n);
  EXPECT_EQ(Append(*store, n + 1), true);  // space is back
  ExpectPoints(*store, n + 1, n + 1);
  store = Open();
  ExpectPoints(*store, n + 1, n + 1);
}

TEST_F(SqliteSeriesStoreTest, TwoStoresOnOneFileSeeEachOther) {
  auto one = Open();
  auto two = Open();
  for (std::uint64_t n = 1; n <= 700; ++n) ASSERT_EQ(Append(n % 3 ? *one : *two, n), true);
  ExpectPoints(*one, 700, 700);
  ASSERT_EQ(one->DropBefore(base::WallTime(std::chrono::seconds(10'000)), {}), 700U);
  ASSERT_EQ(Append(*two, 701), true);
  EXPECT_EQ(Query(*one, 0, 1000)->at(0).buckets.size(), 1U);
}

TEST_F(SqliteSeriesStoreTest, SortsAnAppendAndKeepsTheLastOfEqualTimes) {
  auto store = Open();
  std::vector<base::WallTime> times;
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) {
    times.emplace_back(std::chrono::seconds(1 + (i * 7) % 10));
    values.push_back(i);
  }
  const SeriesAppend append{
      .key = {.compute_id = "c", .scope = "e", .metric = "m", .source = "", .node = "n"},
      .times = times,
      .values = values};
  ASSERT_EQ(
      store->Append({.compute_id = "c", .stream_id = "s", .sequence = 1}, std::span(&append, 1)),
      true);
  auto results = Query(*store, 0, 100);
  ASSERT_TRUE(results);
  ASSERT_EQ(results->at(0).buckets.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    const double value = results->at(0).buckets[i].last;
    EXPECT_GE(value, 30);  // of the last round of ten
    EXPECT_EQ(1 + (static_cast<int>(value) * 7) % 10, static_cast<int>(i) + 1);
  }
}

TEST_F(SqliteSeriesStoreTest, RefusesKeysAndColumnsThatMakeNoSense) {
  auto store = Open();
  const std::vector<base::WallTime> times = {base::WallTime()};
  SeriesAppend append{.key = {.compute_id = "c",
                              .scope = "e",
                              .metric = std::string("a\0b", 3),
                              .source = "",
                              .node = "",
                              .gpu_index = {},
                              .gpu_uuid = ""},
                      .unit = "",
                      .attribution = "",
                      .times = times,
                      .values = {}};
  EXPECT_EQ(
      store->Append({.compute_id = "c", .stream_id = "s", .sequence = 1}, std::span(&append, 1))
          .error()
          .reason,
      "series.key");
  append.key.metric = "m";
  EXPECT_EQ(
      store->Append({.compute_id = "c", .stream_id = "s", .sequence = 1}, std::span(&append, 1))
          .error()
          .reason,
      "series.columns");
}

}  // namespace
}  // namespace expanse::store
