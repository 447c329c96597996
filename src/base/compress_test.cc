#include "base/compress.h"

#include <gtest/gtest.h>

#include "base/crypto.h"

namespace expanse::base {
namespace {

struct Format {
  const char* name;
  std::string (*compress)(std::string_view, int);
  Result<std::string> (*decompress)(std::string_view, std::size_t);
};

class CompressTest : public testing::TestWithParam<Format> {
 protected:
  std::string Compress(std::string_view data) const { return GetParam().compress(data, 3); }
  Result<std::string> Decompress(std::string_view data, std::size_t limit = 16U << 20) const {
    return GetParam().decompress(data, limit);
  }
};

TEST_P(CompressTest, RoundTrips) {
  for (std::size_t size : {0UL, 1UL, 1000UL, 65535UL, 65536UL, 65537UL, 3000000UL}) {
    const std::string zeros(size, 'z');
    const std::string noise = RandomBytes(size);
    EXPECT_TRUE(Decompress(Compress(zeros)) == zeros) << size;
    EXPECT_TRUE(Decompress(Compress(noise)) == noise) << size;
  }
}

TEST_P(CompressTest, StopsAtTheLimit) {
  const std::string bomb = Compress(std::string(50U << 20, '\0'));
  EXPECT_LT(bomb.size(), 1U << 20);
  EXPECT_EQ(Decompress(bomb, 1000).error().reason, "compress.too_large");
  EXPECT_TRUE(Decompress(Compress("12345"), 5));
  EXPECT_EQ(Decompress(Compress("12345"), 4).error().reason, "compress.too_large");
}

TEST_P(CompressTest, RefusesWhatIsNotOneWholeStream) {
  const std::string whole = Compress("some text that is long enough to be cut");
  EXPECT_EQ(Decompress("").error().reason, "compress.corrupt");
  EXPECT_EQ(Decompress("not compressed at all").error().reason, "compress.corrupt");
  EXPECT_EQ(Decompress(whole + "x").error().reason, "compress.corrupt");
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    EXPECT_EQ(Decompress(std::string_view(whole).substr(0, cut)).error().reason, "compress.corrupt")
        << cut;
  }
}

TEST_P(CompressTest, SurvivesDamage) {
  std::string whole = Compress(std::string(5000, 'a') + RandomBytes(200));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    whole[i] = static_cast<char>(whole[i] ^ 0x55);
    (void)Decompress(whole);
    whole[i] = static_cast<char>(whole[i] ^ 0x55);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompressTest,
                         testing::Values(Format{"gzip", GzipCompress, GzipDecompress},
                                         Format{"zstd", ZstdCompress, ZstdDecompress}),
                         [](const auto& format) { return format.param.name; });

}  // namespace
}  // namespace expanse::base
