#include <gtest/gtest.h>

#include <random>

#include "store/runs/label_store_contract.h"
#include "store/runs/memory_run_store_testing.h"
#include "store/runs/run_store_contract.h"
#include "store/runs/sqlite_run_store.h"

namespace expanse::store {
namespace {

base::Result<std::unique_ptr<RunStore>> OpenSqlite(const std::string& directory) {
  return SqliteRunStore::Open({.path = base::JoinPath(directory, "runs.db"), .readers = 2});
}
base::Result<std::unique_ptr<RunStore>> OpenMemory(const std::string&) {
  return std::make_unique<MemoryRunStore>();
}

INSTANTIATE_TEST_SUITE_P(Sqlite, RunStoreContract, ::testing::Values(&OpenSqlite));
INSTANTIATE_TEST_SUITE_P(Memory, RunStoreContract, ::testing::Values(&OpenMemory));
INSTANTIATE_TEST_SUITE_P(Sqlite, LabelStoreContract, ::testing::Values(&OpenSqlite));
INSTANTIATE_TEST_SUITE_P(Memory, LabelStoreContract, ::testing::Values(&OpenMemory));

RunRow Queued(std::uint64_t n) {
  return {.run_id = "r" + std::to_string(n),
          .organisation_id = "o",
          .user_id = "u",
          .created_at = base::FromMicros(static_cast<std::int64_t>(n))};
}

TEST(SqliteRunStore, WhatWasAcknowledgedSurvivesKillingTheWriter) {
  const auto dir = StoreDirectory();
  ASSERT_TRUE(dir);
  std::mt19937_64 random(5);
  std::uint64_t acknowledged = 0;
  for (int round = 0; round < 10; ++round) {
    std::unique_ptr<RunStore> mine;  // the child's: a store must not cross a fork
    auto last = WriteUntilKilled(acknowledged + 1, random, [&](std::uint64_t n) -> base::Status {
      if (mine == nullptr) mine = OpenSqlite(dir->path()).value();
      return mine->Enqueue(Queued(n), {.per_user = 1'000'000, .in_all = 1'000'000});
    });
    ASSERT_TRUE(last) << last.error().message;
    acknowledged = *last;
    const auto store = OpenSqlite(dir->path()).value();
    const auto count = store->CountQueued();
    ASSERT_TRUE(count);
    EXPECT_GE(*count, acknowledged);
    EXPECT_LE(*count, acknowledged + 1);
    acknowledged = *count;
  }
}

TEST(SqliteRunStore, AFullDiskIsSaid) {
  const auto dir = StoreDirectory();
  ASSERT_TRUE(dir);
  const auto store = OpenSqlite(dir->path()).value();
  base::Status last;
  {
    const FileSizeLimit limit(300'000);
    for (std::uint64_t n = 1; last && n < 10'000; ++n) {
      RunRow run = Queued(n);
      run.answer.assign(2000, 'a');
      last = store->Add(run, {});
    }
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().reason, "store.disk_full");
  EXPECT_TRUE(store->Add(Queued(20'000), {}));
}

}  // namespace
}  // namespace expanse::store
