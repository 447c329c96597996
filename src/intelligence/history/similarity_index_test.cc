#include "intelligence/history/similarity_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "intelligence/history/shingles.h"

namespace expanse::intelligence::history {
namespace {

// Signatures of sets of 200 numbers, `shared` of which are the same for equal `family`.
Signature Of(std::uint64_t family, std::uint64_t own, std::size_t shared) {
  std::vector<std::uint64_t> set;
  std::mt19937_64 common(family);
  std::mt19937_64 other(own * 1'000'003 + family + 77);
  for (std::size_t i = 0; i < 200; ++i) set.push_back(i < shared ? common() : other());
  return MinHash(set);
}

TEST(SimilarityIndex, FindsWhatIsNearAndNothingElse) {
  SimilarityIndex index;
  for (std::int64_t i = 1; i <= 300; ++i)
    index.Put(i, Of(static_cast<std::uint64_t>(i) % 30, static_cast<std::uint64_t>(i), 170));
  const Signature asked = Of(7, 9'999, 190);
  const auto found = index.Find(asked, 0.5, 100);
  ASSERT_EQ(found.size(), 10U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].bundle_id % 30, 7);
    EXPECT_EQ(found[i].similarity, index.SimilarityTo(found[i].bundle_id, asked));
    EXPECT_GT(found[i].similarity, 0.55);
    EXPECT_TRUE(i == 0 || found[i].similarity <= found[i - 1].similarity);
  }
  EXPECT_EQ(index.Find(asked, 0.5, 3).size(), 3U);
  EXPECT_TRUE(index.Find(asked, 0.99, 100).empty());
  EXPECT_TRUE(index.Find({}, 0, 100).empty());
  EXPECT_TRUE(index.Find(Of(1'000, 1, 200), 0.5, 100).empty());
}

TEST(SimilarityIndex, ReplacesAndRemoves) {
  SimilarityIndex index;
  const Signature a = Of(1, 1, 200);
  const Signature b = Of(2, 2, 200);
  index.Put(5, a);
  index.Put(6, a);
  EXPECT_EQ(index.Find(a, 0.5, 9), (std::vector<SimilarBundle>{{6, 1}, {5, 1}})) << "newer first";
  index.Put(5, b);
  EXPECT_EQ(index.Find(a, 0.5, 9), (std::vector<SimilarBundle>{{6, 1}}));
  EXPECT_EQ(index.Find(b, 0.5, 9), (std::vector<SimilarBundle>{{5, 1}}));
  index.Remove(5);
  index.Remove(5);
  index.Remove(77);
  EXPECT_TRUE(index.Find(b, 0.5, 9).empty());
  EXPECT_EQ(index.SimilarityTo(5, b), 0);
  index.Put(8, {});
  EXPECT_EQ(index.size(), 1U);
}

// Random changes against a plain list; removed ones give their room back.
TEST(SimilarityIndex, StaysRightUnderChanges) {
  std::mt19937_64 random(3);
  SimilarityIndex index;
  std::map<std::int64_t, Signature> known;
  std::size_t most = 0;
  for (int step = 0; step < 6000; ++step) {
    const auto id = static_cast<std::int64_t>(random() % 200 + 1);
    if (random() % 3 == 0 || (step > 4000 && known.size() > 10)) {
      index.Remove(id);
      known.erase(id);
    } else {
      index.Put(id, known[id] = Of(random() % 20, random() % 1000, 190));
    }
    most = std::max(most, index.memory_bytes());
  }
  ASSERT_EQ(index.size(), known.size());
  for (std::uint64_t family = 0; family < 20; ++family) {
    const Signature asked = Of(family, 5'000, 195);
    std::size_t expected = 0;
    for (const auto& [id, signature] : known)
      expected += Similarity(asked, signature) >= 0.7 ? 1 : 0;
    EXPECT_EQ(index.Find(asked, 0.7, 1000).size(), expected) << family;
  }
  EXPECT_LT(most, 200 * 4 * 1024U) << "removed ones are forgotten";
}

TEST(SimilarityIndex, ManyEqualOnesAreNoTrouble) {
  SimilarityIndex index;
  const Signature same = Of(1, 1, 200);
  for (std::int64_t i = 1; i <= 20'000; ++i) index.Put(i, same);
  const auto found = index.Find(same, 0.5, 5);
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[0].bundle_id, 20'000);
  for (std::int64_t i = 1; i <= 20'000; ++i) index.Remove(i);
  EXPECT_EQ(index.size(), 0U);
  EXPECT_TRUE(index.Find(same, 0.5, 5).empty());
}

}  // namespace
}  // namespace expanse::intelligence::history
