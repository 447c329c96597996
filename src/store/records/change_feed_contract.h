// What every backend's change feed does, as tests of the suite in evidence_store_contract.h; a
// backend's test file includes both.
#pragma once

#include <map>
#include <set>

#include "store/records/evidence_store_contract.h"

namespace expanse::store {

// Reads the feed from `*after` to its end, in pages of `page`; "id@change", removals with a minus.
inline std::vector<ChangedExecution> ReadFeed(EvidenceStore& store, FeedPlace* after,
                                              std::size_t page) {
  std::vector<ChangedExecution> all;
  while (true) {
    auto read = store.Changed(*after, page);
    if (!read) {
      ADD_FAILURE() << read.error().message;
      return all;
    }
    if (read->restart) {
      ADD_FAILURE() << "told to start over";
      return all;
    }
    EXPECT_LE(read->changes.size(), page);
    if (read->changes.empty()) {
      EXPECT_EQ(read->next.change, after->change);
      *after = read->next;
      return all;
    }
    for (ChangedExecution& changed : read->changes) {
      EXPECT_GT(changed.change, after->change) << "ascending";
      after->change = changed.change;
      all.push_back(std::move(changed));
    }
    EXPECT_EQ(read->next.change, after->change);
    *after = read->next;
  }
}

inline std::vector<std::string> FeedIds(const std::vector<ChangedExecution>& changes) {
  std::vector<std::string> ids;
  for (const ChangedExecution& changed : changes)
    ids.push_back((changed.removed ? "-" : "") + changed.execution_id);
  return ids;
}

using FeedNames = std::vector<std::string>;

TEST_P(EvidenceStoreContract, TheFeedTellsEachExecutionOnceAtItsLastChange) {
  FeedPlace after;
  EXPECT_TRUE(ReadFeed(*store_, &after, 10).empty());
  EXPECT_EQ(after.change, 0U);
  Put("a", Running(1));
  Put("b", Running(2));
  evidence::Execution named = Running(1);
  named.name = "renamed";
  Put("a", named);
  Put("c", Running(3));
  for (std::size_t page : {1U, 2U, 3U, 50U}) {
    after = {};
    const auto changes = ReadFeed(*store_, &after, page);
    EXPECT_EQ(FeedIds(changes), (FeedNames{"b", "a", "c"}));
    ASSERT_EQ(changes.size(), 3U);
    EXPECT_EQ(changes[1].organisation_id, "org");
    EXPECT_EQ(changes[1].execution.name, "renamed");
    EXPECT_EQ(changes[1].execution, *store_->Get("org", "a"));
  }
  Reopen();
  EXPECT_TRUE(ReadFeed(*store_, &after, 10).empty()) << "numbers survive";
  Put("b", Running(2));
  EXPECT_EQ(FeedIds(ReadFeed(*store_, &after, 10)), FeedNames{"b"});
}

TEST_P(EvidenceStoreContract, TheFeedHasAllOrganisationsUnderTheirNames) {
  const EvidenceChange one = Seen(1, "one", Running(1));
  const EvidenceChange two = Seen(1, "two", Running(1));
  ASSERT_TRUE(store_->Apply("org1", "c1", "s", std::span(&one, 1)));
  ASSERT_TRUE(store_->Apply("org2", "c2", "s", std::span(&two, 1)));
  FeedPlace after;
  const auto changes = ReadFeed(*store_, &after, 10);
  ASSERT_EQ(FeedIds(changes), (FeedNames{"one", "two"}));
  EXPECT_EQ(changes[0].organisation_id, "org1");
  EXPECT_EQ(changes[1].organisation_id, "org2");
  EXPECT_EQ(changes[1].execution.compute_id, "c2");
}

TEST_P(EvidenceStoreContract, ABundleIsAChangeOfItsExecution) {
  const auto bundle = [&](const std::string& id) {
    return EvidenceChange{.sequence = ++sequence_,
                          .execution_id = id,
                          .bundle = BundleRow{.bundle_hash = "h", .files = {{.path = "f"}}}};
  };
  const auto apply = [&](std::vector<EvidenceChange> changes) {
    ASSERT_EQ(store_->Apply("org", "c1", "put", changes), sequence_);
  };
  Put("a", Running(1));
  Put("b", Running(1));
  FeedPlace after;
  EXPECT_EQ(ReadFeed(*store_, &after, 10).size(), 2U);
  apply({bundle("a")});
  EXPECT_EQ(FeedIds(ReadFeed(*store_, &after, 10)), FeedNames{"a"});
  // Before its execution: told with it, and what else is in the batch is told once.
  apply({bundle("early"), bundle("b")});
  EXPECT_EQ(FeedIds(ReadFeed(*store_, &after, 10)), FeedNames{"b"});
  Put("early", Running(2));
  EXPECT_EQ(FeedIds(ReadFeed(*store_, &after, 10)), FeedNames{"early"});
  EXPECT_TRUE(store_->Bundle("early")->has_value());
  apply({EvidenceChange{.sequence = ++sequence_,
                        .execution_id = "a",
                        .log_tail = LogTailRow{.stream = "stdout", .data_blob = "x"}}});
  EXPECT_TRUE(ReadFeed(*store_, &after, 10).empty()) << "a tail is none";
}

TEST_P(EvidenceStoreContract, ABatchThatFailsOrWasAppliedChangesNoNumbers) {
  const EvidenceChange once = Seen(1, "a", Running(1));
  ASSERT_TRUE(store_->Apply("org", "c1", "s", std::span(&once, 1)));
  FeedPlace after;
  EXPECT_EQ(ReadFeed(*store_, &after, 10).size(), 1U);
  ASSERT_TRUE(store_->Apply("org", "c1", "s", std::span(&once, 1)));
  const EvidenceChange foreign[] = {Seen(2, "new", Running(1)), Seen(3, "a", Running(1))};
  ASSERT_FALSE(store_->Apply("org", "c2", "s2", foreign));
  EXPECT_TRUE(ReadFeed(*store_, &after, 10).empty());
}

TEST_P(EvidenceStoreContract, TheFeedTellsWhatRetentionRemoved) {
  evidence::Execution over = Running(1);
  over.status = evidence::ExecutionStatus::kSucceeded;
  over.ended_at = At(2);
  Put("gone1", over);
  Put("stays", Running(1));
  Put("gone2", over);
  FeedPlace after;
  EXPECT_EQ(ReadFeed(*store_, &after, 10).size(), 3U);
  const FeedPlace before_removal = after;
  ASSERT_EQ(store_->DropExecutionsBefore(At(500), 10), 2U);
  Put("late", Running(5));
  Put("gone1", over);  // a late record brings it back
  for (std::size_t page : {1U, 2U, 10U}) {
    after = before_removal;
    FeedNames ids = FeedIds(ReadFeed(*store_, &after, page));
    ASSERT_EQ(ids.size(), 4U) << page;
    std::sort(ids.begin(), ids.begin() + 2);  // the order of removal is the backend's
    EXPECT_EQ(ids, (FeedNames{"-gone1", "-gone2", "late", "gone1"})) << page;
  }
}

TEST_P(EvidenceStoreContract, AReaderOfAnotherFeedStartsOver) {
  Put("a", Running(1));
  auto page = store_->Changed({.change = 1'000'000, .began = 5}, 10);
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->restart);
  EXPECT_TRUE(page->changes.empty());
  EXPECT_EQ(page->next, FeedPlace{});
}

TEST_P(EvidenceStoreContract, AReaderOfTheFeedMissesNothingOfWritersAtOnce) {
  constexpr int kWriters = 4;
  constexpr std::uint64_t kBatches = 50;
  std::atomic<int> running{kWriters};
  std::atomic<int> failures{0};
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      for (std::uint64_t i = 0; i < kBatches; ++i) {
        std::vector<EvidenceChange> batch;
        for (std::uint64_t k = 1; k <= 3; ++k)
          batch.push_back(
              Seen(3 * i + k, std::to_string(w) + "/" + std::to_string(3 * i + k), Running(1)));
        if (!store_->Apply("org", "c1", "s" + std::to_string(w), batch)) ++failures;
      }
      --running;
    });
  }
  std::set<std::string> seen;
  FeedPlace after;
  while (true) {
    const bool last = running == 0;
    for (const ChangedExecution& changed : ReadFeed(*store_, &after, 7))
      EXPECT_TRUE(seen.insert(changed.execution_id).second) << "each was written once";
    if (last) break;
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(seen.size(), kWriters * kBatches * 3);
}

}  // namespace expanse::store
