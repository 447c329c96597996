#include "store/sql/database.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <limits>
#include <thread>

#include "base/files.h"
#include "store/sql/fault_testing.h"

namespace expanse::store::sql {
namespace {

using base::Code;

const std::vector<Migration>& Schema() {
  static const std::vector<Migration> schema = {
      {1,
       "things",
       {"CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size {real}, raw "
        "{bytes})"}},
      {2,
       "parts",
       {"CREATE TABLE part (thing_id {int64} NOT NULL REFERENCES thing (id), label TEXT NOT NULL)",
        "CREATE INDEX part_by_thing ON part (thing_id)"}},
      {3, "colour", {"ALTER TABLE thing ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'"}},
  };
  return schema;
}

class DatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto dir = StoreDirectory();
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
  }
  std::string path() const { return base::JoinPath(dir_->path(), "a store.db"); }
  base::Result<std::unique_ptr<Database>> Open(std::span<const Migration> migrations) {
    return Database::Open(
        {.path = path(), .readers = 2, .busy_timeout = std::chrono::milliseconds(200)}, migrations);
  }
  std::optional<base::TempDir> dir_;
};

base::Result<std::int64_t> Count(Database& database) {
  return database.WithRead([](Transaction& tx) -> base::Result<std::int64_t> {
    EXPANSE_ASSIGN_OR_RETURN(auto count, tx.QueryInt("SELECT COUNT(*) FROM thing"));
    return count.value_or(-1);
  });
}

base::Status Add(Database& database, std::string_view name) {
  return database.WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(tx.Execute("INSERT INTO thing (name) VALUES (:name)", {name}));
    return {};
  });
}

TEST_F(DatabaseTest, KeepsEveryKindOfValueExactly) {
  auto database = Open(Schema());
  ASSERT_TRUE(database) << database.error().message;
  std::string raw;
  for (int i = 0; i < 256; ++i) raw += static_cast<char>(i);
  const double size = 0.1 + std::numeric_limits<double>::epsilon();
  for (int round = 0; round < 3; ++round) {  // the prepared statement is used again
    const std::string name = "zwölf " + std::to_string(round);
    auto id = (*database)->WithWrite([&](Transaction& tx) -> base::Result<std::int64_t> {
      EXPANSE_ASSIGN_OR_RETURN(
          auto made,
          tx.QueryInt(
              "INSERT INTO thing (name, size, raw) VALUES (:name, :size, :raw) RETURNING id",
              {name, round == 1 ? std::optional<double>() : size,
               Bytes{round == 2 ? std::string_view() : raw}}));
      return made.value_or(0);
    });
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(*id, round + 1);
    int rows = 0;
    auto read = (*database)->WithRead([&](Transaction& tx) {
      return tx.Query("SELECT id, name, size, raw FROM thing WHERE id = :id", {*id},
                      {Column::kInt, Column::kText, Column::kReal, Column::kBytes},
                      [&](const Row& row) {
                        ++rows;
                        EXPECT_EQ(row.Int(0), *id);
                        EXPECT_EQ(row.Text(1), name);
                        EXPECT_EQ(row.IsNull(2), round == 1);
                        EXPECT_EQ(row.Real(2), round == 1 ? 0 : size);
                        EXPECT_EQ(row.Blob(3), round == 2 ? "" : raw);
                      });
    });
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(rows, 1);
  }
}

TEST_F(DatabaseTest, KeepsLargestIntegers) {
  auto database = Open(Schema());
  ASSERT_TRUE(database);
  const std::int64_t extremes[] = {std::numeric_limits<std::int64_t>::min(), -1,
                                   std::numeric_limits<std::int64_t>::max()};
  for (std::int64_t value : extremes) {
    auto back = (*database)->WithRead(
        [&](Transaction& tx) { return tx.QueryInt("SELECT :value", {value}); });
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, value);
  }
}

TEST_F(DatabaseTest, RollsBackWhenTheBodyFails) {
  auto database = Open(Schema());
  ASSERT_TRUE(database);
  auto failed = (*database)->WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(tx.Execute("INSERT INTO thing (name) VALUES (:name)", {"lost"}));
    return base::Fail(Code::kAborted, "test.stop", "stop");
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().reason, "test.stop");
  EXPECT_EQ(Count(**database), 0);
  EXPECT_TRUE(Add(**database, "kept"));
  EXPECT_EQ(Count(**database), 1);
}

TEST_F(DatabaseTest, NamesConstraintsAndHidesSql) {
  auto database = Open(Schema());
  ASSERT_TRUE(database);
  ASSERT_TRUE(Add(**database, "one"));
  auto again = Add(**database, "one");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kAlreadyExists);
  EXPECT_EQ(again.error().reason, "store.constraint");
  auto orphan = (*database)->WithWrite([&](Transaction& tx) -> base::Status {
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("INSERT INTO part (thing_id, label) VALUES (:t, :l)", {99, "x"}));
    return {};
  });
  EXPECT_FALSE(orphan);  // foreign keys are on
  auto wrong = (*database)->WithRead(
      [](Transaction& tx) { return tx.QueryInt("SELECT secret FROM nowhere"); });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kInternal);
  EXPECT_EQ(wrong.error().reason, "store.sql");
  EXPECT_EQ(wrong.error().message.find("nowhere"), std::string::npos);
}

TEST_F(DatabaseTest, ReadersCannotWrite) {
  auto database = Open(Schema());
  ASSERT_TRUE(database);
  auto written =
      (*database)->WithRead([](Transaction& tx) { return tx.Execute("DELETE FROM thing"); });
  EXPECT_FALSE(written);
}

TEST_F(DatabaseTest, ReaderSeesOneStateWhileAWriterCommits) {
  auto database = Open(Schema());
  ASSERT_TRUE(database);
  auto read = (*database)->WithRead([&](Transaction& tx) -> base::Status {
    EXPECT_EQ(*tx.QueryInt("SELECT COUNT(*) FROM thing"), 0);
    EXPECT_TRUE(Add(**database, "meanwhile"));
    EXPECT_EQ(*tx.QueryInt("SELECT COUNT(*) FROM thing"), 0);
    return {};
  });
  EXPECT_TRUE(read);
  EXPECT_EQ(Count(**database), 1);
}

TEST_F(DatabaseTest, AQueryThatStopsEarlyLeavesNoSnapshotOpen) {
  auto database = Open(Schema());
  ASSERT_TRUE(database);
  ASSERT_TRUE(Add(**database, "a"));
  ASSERT_TRUE(Add(**database, "b"));
  auto stopped = (*database)->WithRead([](Transaction& tx) {
    return tx.Query("SELECT name FROM thing", {}, {Column::kText}, [](const Row&) -> base::Status {
      return base::Fail(Code::kAborted, "test.stop", "");
    });
  });
  EXPECT_FALSE(stopped);
  ASSERT_TRUE(Add(**database, "c"));
  EXPECT_EQ(Count(**database), 3);
}

TEST_F(DatabaseTest, AQueryCanEndWell) {
  auto database = Open(Schema());
  ASSERT_TRUE(database);
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(Add(**database, name));
  std::string seen;
  ASSERT_TRUE((*database)->WithRead([&](Transaction& tx) {
    return tx.Query("SELECT name FROM thing ORDER BY name", {}, {Column::kText},
                    [&](const Row& row) {
                      seen += row.Text(0);
                      return seen.size() < 2;
                    });
  }));
  EXPECT_EQ(seen, "ab");
}

TEST_F(DatabaseTest, UndoRunsOnlyWhenNothingWasCommitted) {
  auto database = Open(Schema());
  ASSERT_TRUE(database);
  int undone = 0;
  ASSERT_TRUE((*database)->WithWrite([&](Transaction& tx) -> base::Status {
    tx.OnRollback([&] { ++undone; });
    return {};
  }));
  EXPECT_EQ(undone, 0);
  EXPECT_FALSE((*database)->WithWrite([&](Transaction& tx) -> base::Status {
    tx.OnRollback([&] { ++undone; });
    return base::Fail(Code::kAborted, "test.stop", "");
  }));
  EXPECT_EQ(undone, 1);
}

TEST_F(DatabaseTest, AnotherConnectionHoldingTheLockIsBusy) {
  auto one = Open(Schema());
  auto two = Open(Schema());
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  auto held = (*one)->WithWrite([&](Transaction&) -> base::Status {
    auto blocked = Add(**two, "late");
    EXPECT_FALSE(blocked);
    EXPECT_EQ(blocked.error().code, Code::kUnavailable);
    EXPECT_EQ(blocked.error().reason, "store.busy");
    auto same = Add(**one, "nested");  // the writer is lent: ends with busy, not with a deadlock
    EXPECT_FALSE(same);
    return {};
  });
  EXPECT_TRUE(held);
  EXPECT_TRUE(Add(**two, "late"));
}

TEST_F(DatabaseTest, FileIsPrivate) {
  ASSERT_TRUE(Open(Schema()));
  struct stat info{};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_FALSE(Database::Open({.path = "/nonexistent-dir/x.db"}, Schema()));
}

TEST_F(DatabaseTest, RefusesAFileThatIsNotADatabase) {
  ASSERT_TRUE(base::WriteFileAtomically(path(), std::string(8192, 'x'), 0600));
  auto opened = Open(Schema());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kDataLoss);
  EXPECT_EQ(opened.error().reason, "store.corrupt");
}

TEST_F(DatabaseTest, MigratesFromEveryEarlierVersionAndKeepsRows) {
  for (std::size_t from = 0; from <= Schema().size(); ++from) {
    SetUp();
    {
      auto old = Open(std::span(Schema()).first(from));
      ASSERT_TRUE(old);
      EXPECT_EQ((*old)->schema_version(), static_cast<int>(from));
      if (from > 0) {
        ASSERT_TRUE(Add(**old, "before"));
      }
    }
    auto now = Open(Schema());
    ASSERT_TRUE(now) << now.error().message;
    EXPECT_EQ((*now)->schema_version(), 3);
    EXPECT_EQ(Count(**now), from > 0 ? 1 : 0);
    EXPECT_TRUE((*now)->WithRead(
        [](Transaction& tx) { return tx.QueryInt("SELECT COUNT(colour) FROM thing"); }));
    auto applied = (*now)->WithRead(
        [](Transaction& tx) { return tx.QueryInt("SELECT COUNT(*) FROM schema_migrations"); });
    EXPECT_EQ(applied.value(), 3);
  }
}

TEST_F(DatabaseTest, RefusesANewerSchema) {
  ASSERT_TRUE(Open(Schema()));
  auto opened = Open(std::span(Schema()).first(2));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(opened.error().reason, "store.newer");
}

TEST_F(DatabaseTest, AFailedMigrationLeavesTheOldSchema) {
  ASSERT_TRUE(Open(std::span(Schema()).first(1)));
  std::vector<Migration> broken(Schema().begin(), Schema().begin() + 2);
  broken[1].statements.emplace_back("CREATE TABLE thing (again INTEGER)");
  auto opened = Open(broken);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("version 2"), std::string::npos);
  auto old = Open(std::span(Schema()).first(1));
  ASSERT_TRUE(old) << old.error().message;
}

TEST_F(DatabaseTest, OpenersAtOnceMigrateOnce) {
  constexpr int kOpeners = 6;
  std::vector<std::thread> threads;
  std::vector<std::string> errors(kOpeners);
  for (int i = 0; i < kOpeners; ++i) {
    threads.emplace_back([&, i] {
      auto opened = Database::Open({.path = path()}, Schema());
      if (!opened) errors[static_cast<std::size_t>(i)] = opened.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST_F(DatabaseTest, AWriterInALoopDoesNotKeepOthersWaiting) {
  auto database = Open(Schema());
  ASSERT_TRUE(database);
  std::atomic<bool> stop = false;
  std::atomic<int> turns = 0;
  std::thread loop([&] {  // as retention does: one short transaction after the other
    while (!stop) {
      ASSERT_TRUE((*database)->WithWrite([](Transaction&) -> base::Status {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return {};
      }));
      ++turns;
    }
  });
  while (turns == 0) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    int began = 0;
    const int asked = turns;
    ASSERT_TRUE((*database)->WithWrite([&](Transaction&) -> base::Status {
      began = turns;
      return {};
    }));
    EXPECT_LE(began - asked, 2);  // the one at work, and one that was before us
  }
  stop = true;
  loop.join();
}

TEST_F(DatabaseTest, ManyReadersAndWritersAtOnce) {
  auto database = Database::Open({.path = path(), .readers = 2}, Schema());
  ASSERT_TRUE(database);
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < 25; ++i) {
        if (!Add(**database, std::to_string(writer) + "/" + std::to_string(i))) ++failures;
      }
    });
  }
  for (int reader = 0; reader < 3; ++reader) {
    threads.emplace_back([&] {
      std::int64_t last = 0;
      for (int i = 0; i < 50; ++i) {
        auto count = Count(**database);
        if (!count || *count < last) {
          ++failures;
          continue;
        }
        last = *count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Count(**database), 50);
}

}  // namespace
}  // namespace expanse::store::sql
