#include "store/series/chunk.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

namespace expanse::store::series {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kStart = 1'800'000'000 * kSecond;

Points Regular(std::size_t count, double first, double step) {
  Points points;
  for (std::size_t i = 0; i < count; ++i) {
    points.times.push_back(kStart + static_cast<std::int64_t>(i) * kSecond);
    points.values.push_back(first + step * static_cast<double>(i));
  }
  return points;
}

void ExpectSameBits(const Points& a, const Points& b) {
  ASSERT_EQ(a.times, b.times);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(a.values[i]), std::bit_cast<std::uint64_t>(b.values[i]))
        << i;
  }
}

TEST(SeriesChunk, GivesBackEveryBit) {
  Points odd;
  const double values[] = {0.0,
                           -0.0,
                           1.5,
                           0.1 + 0.2,
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::denorm_min(),
                           std::numeric_limits<double>::max(),
                           9007199254740993.0,
                           -1e300,
                           37.25};
  for (double value : values) {
    odd.times.push_back(odd.times.empty() ? std::numeric_limits<std::int64_t>::min()
                                          : Points(odd).times.back() / 2 + kSecond);
    odd.values.push_back(value);
  }
  odd.times.back() = std::numeric_limits<std::int64_t>::max();
  for (const Points& points :
       {odd, Regular(1, 5, 0), Regular(512, 97.25, 0.25), Regular(512, 64e9, 4096),
        Regular(300, 0.1, 0.1), Regular(7, -3, -1)}) {
    auto packed = DecodeChunk(PackChunk(points));
    ASSERT_TRUE(packed) << packed.error().message;
    ExpectSameBits(*packed, points);
    std::string chunk = EmptyChunk();
    chunk += EncodeSegment(points.Slice(0, 1), /*pack=*/false);
    if (points.size() > 1) chunk += EncodeSegment(points.Slice(1, points.size()), /*pack=*/false);
    auto grown = DecodeChunk(chunk);
    ASSERT_TRUE(grown) << grown.error().message;
    ExpectSameBits(*grown, points);
  }
}

TEST(SeriesChunk, RandomPointsSurvive) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    Points points;
    std::int64_t time = kStart;
    const auto count = 1 + random() % 700;
    for (std::size_t i = 0; i < count; ++i) {
      time += 1 + static_cast<std::int64_t>(random() % (round % 2 ? 3 : 2'000'000));
      points.times.push_back(time);
      points.values.push_back(round % 3 == 0 ? std::bit_cast<double>(random() >> 2)
                                             : static_cast<double>(random() % 100'000) /
                                                   (round % 3 == 1 ? 100 : 7));
    }
    auto back = DecodeChunk(PackChunk(points));
    ASSERT_TRUE(back);
    ExpectSameBits(*back, points);
  }
}

TEST(SeriesChunk, PacksRegularSamplesSmall) {
  EXPECT_LT(PackChunk(Regular(512, 40, 0)).size(), 100U);
  EXPECT_LT(PackChunk(Regular(512, 64e9, 4096)).size(), 512U);
}

TEST(SeriesChunk, AnyFlippedBitIsFound) {
  std::string chunk = EmptyChunk();
  chunk += EncodeSegment(Regular(20, 1.25, 0.5), /*pack=*/false);
  const Points all = Regular(60, 1.25, 0.5);
  chunk += EncodeSegment(all.Slice(20, 60), /*pack=*/true);
  EXPECT_EQ(CountSegments(chunk), 2U);
  for (std::size_t bit = 0; bit < chunk.size() * 8; ++bit) {
    std::string damaged = chunk;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    auto decoded = DecodeChunk(damaged);
    EXPECT_FALSE(decoded) << "bit " << bit;
    if (!decoded) {
      EXPECT_EQ(decoded.error().reason, "series.corrupt");
    }
  }
}

TEST(SeriesChunk, ATornChunkIsFound) {
  const std::string chunk = PackChunk(Regular(50, 1.25, 0.5));
  for (std::size_t size = 0; size < chunk.size(); ++size) {
    auto decoded = DecodeChunk(std::string_view(chunk).substr(0, size));
    if (size == 1) {
      EXPECT_TRUE(decoded && decoded->empty());  // cut between segments; the row's count tells
    } else {
      EXPECT_FALSE(decoded) << size;
    }
  }
}

TEST(SeriesChunk, RefusesSegmentsOutOfOrder) {
  std::string chunk = EmptyChunk();
  chunk += EncodeSegment(Regular(5, 1, 1), /*pack=*/false);
  chunk += EncodeSegment(Regular(5, 1, 1), /*pack=*/false);
  EXPECT_FALSE(DecodeChunk(chunk));
}

TEST(SeriesChunk, MergeTakesTheNewerOfEqualTimes) {
  const Points older{{1, 3, 5, 9}, {1, 3, 5, 9}};
  const Points newer{{0, 3, 4, 9, 10}, {100, 103, 104, 109, 110}};
  EXPECT_EQ(MergePoints(older, newer),
            (Points{{0, 1, 3, 4, 5, 9, 10}, {100, 1, 103, 104, 5, 109, 110}}));
  EXPECT_EQ(MergePoints({}, newer), newer);
  EXPECT_EQ(MergePoints(older, {}), older);
}

}  // namespace
}  // namespace expanse::store::series
