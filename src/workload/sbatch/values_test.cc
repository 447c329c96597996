#include "workload/sbatch/values.h"

#include <gtest/gtest.h>

namespace expanse::workload::sbatch {
namespace {

std::int64_t Seconds(std::string_view text) {
  const auto time = ParseTime(text);
  if (!time) return -1;
  return time->unlimited ? 0 : time->seconds;
}

TEST(SbatchValues, ReadsTimesAsSbatchDoes) {
  EXPECT_EQ(Seconds("90"), 5400);
  EXPECT_EQ(Seconds("1:30"), 120);
  EXPECT_EQ(Seconds("0:30"), 60);
  EXPECT_EQ(Seconds("90:00"), 5400);
  EXPECT_EQ(Seconds("1:2:3"), 3780);
  EXPECT_EQ(Seconds("00:90:00"), 5400);
  EXPECT_EQ(Seconds("1-"), 86400);
  EXPECT_EQ(Seconds("1-2"), 93600);
  EXPECT_EQ(Seconds("1-2:3"), 93780);
  EXPECT_EQ(Seconds("1-2:3:4"), 93840);
  EXPECT_EQ(Seconds("1-30:90"), 2 * 86400 + 7 * 3600 + 30 * 60);
  for (const char* unlimited : {"0", "-1", "UNLIMITED", "infinite", "0:0"})
    EXPECT_EQ(Seconds(unlimited), 0) << unlimited;
  for (const char* wrong : {"", "1:", ":5", "1-0:", "1-2:3:4:5", "1:2:3:4", "+5", "5.5", "1h", "5 ",
                            "1--2", "01:00:00,", "99999999999999"})
    EXPECT_EQ(Seconds(wrong), -1) << wrong;
}

constexpr std::uint64_t kMiB = 1 << 20;

TEST(SbatchValues, ReadsSizesAsSbatchDoes) {
  EXPECT_EQ(ParseMemory("512"), 512 * kMiB);
  EXPECT_EQ(ParseMemory("010"), 10 * kMiB);
  EXPECT_EQ(ParseMemory("+5"), 5 * kMiB);
  EXPECT_EQ(ParseMemory("4G"), 4096 * kMiB);
  EXPECT_EQ(ParseMemory("4g"), 4096 * kMiB);
  EXPECT_EQ(ParseMemory("4Gb"), 4096 * kMiB);
  EXPECT_EQ(ParseMemory("100mB"), 100 * kMiB);
  EXPECT_EQ(ParseMemory("1k"), kMiB);
  EXPECT_EQ(ParseMemory("1025K"), 2 * kMiB);
  EXPECT_EQ(ParseMemory("4T"), 4096 * 1024 * kMiB);
  EXPECT_EQ(ParseMemory("0G"), 0U);
  for (const char* wrong : {"", "G", "4GiB", "4Gx", "4 G", "1.5G", "100B", "-5", "1P", "+",
                            "99999999999999999999", "999999999999999999T"})
    EXPECT_EQ(ParseMemory(wrong), std::nullopt) << wrong;
}

TEST(SbatchValues, ReadsCounts) {
  EXPECT_EQ(ParseCount("4"), 4U);
  EXPECT_EQ(ParseCount("+3"), 3U);
  EXPECT_EQ(ParseCount("010"), 10U);
  for (const char* wrong : {"", "0", "-1", "3x", "1k", "0x10", "1e2", "3 ", "4294967296"})
    EXPECT_EQ(ParseCount(wrong), std::nullopt) << wrong;
}

TEST(SbatchValues, ReadsNodeCounts) {
  EXPECT_EQ(ParseNodes("4")->min, 4U);
  EXPECT_EQ(ParseNodes("2 ")->max, 2U);
  EXPECT_EQ(ParseNodes("1k")->min, 1024U);
  EXPECT_EQ(ParseNodes("-2")->min, 1U);
  const NodeCount range = *ParseNodes("2-4");
  EXPECT_EQ(range.min, 2U);
  EXPECT_EQ(range.max, 4U);
  EXPECT_EQ(range.min_end, 1U);
  for (const char* wrong : {"", "1,3", "1:2", "3-2", "1-", "x", "-"})
    EXPECT_EQ(ParseNodes(wrong), std::nullopt) << wrong;
}

std::string Gres(std::string_view text, bool gpus) {
  const auto items = ParseGres(text, gpus);
  if (!items) return "wrong";
  std::string all;
  for (const GresItem& item : *items) {
    if (!all.empty()) all += ' ';
    all.append(item.name).append("|").append(item.type).append("|");
    all += item.count ? std::to_string(*item.count) : "-";
    all += "@" + std::string(text.substr(item.count_begin, item.count_end - item.count_begin));
  }
  return all;
}

TEST(SbatchValues, ReadsGenericResources) {
  EXPECT_EQ(Gres("gpu", false), "gpu||-@");
  EXPECT_EQ(Gres("gpu:2", false), "gpu||2@2");
  EXPECT_EQ(Gres("gpu:a100", false), "gpu|a100|-@");
  EXPECT_EQ(Gres("gpu:a100:2(S:0-1),shard:4", false), "gpu|a100|2@2 shard||4@4");
  EXPECT_EQ(Gres("gpu:1k", false), "gpu||1024@1k");
  EXPECT_EQ(Gres("gpu:1:2", false), "gpu|1|2@2");
  EXPECT_EQ(Gres("gres:gpu:2", false), "gpu||2@2");
  EXPECT_EQ(Gres("gres/gpu:h100=2", false), "gpu|h100|2@2");
  EXPECT_EQ(Gres("gpu:3g.20gb:1", false), "gpu|3g.20gb|1@1");
  EXPECT_EQ(Gres("gpu:2g", false), "gpu|2g|-@");
  EXPECT_EQ(Gres("2", true), "||2@2");
  EXPECT_EQ(Gres("a100", true), "|a100|-@");
  EXPECT_EQ(Gres("a:1,b:2", true), "|a|1@1 |b|2@2");
  for (const char* wrong : {"gpu:", "gpu::2", "", ",", "gpu:a:b:1"})
    EXPECT_EQ(Gres(wrong, false), "wrong") << wrong;
}

TEST(SbatchValues, CountsArrays) {
  EXPECT_EQ(ParseArraySize("7"), 1U);
  EXPECT_EQ(ParseArraySize("0-15%4"), 16U);
  EXPECT_EQ(ParseArraySize("1,3,5-7"), 5U);
  EXPECT_EQ(ParseArraySize("0-9:2%3"), 5U);
  EXPECT_EQ(ParseArraySize("[1-3]"), 3U);
  for (const char* wrong : {"", "3-1", "x", "1-", "1-3:0", "0-99999999999"})
    EXPECT_EQ(ParseArraySize(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace expanse::workload::sbatch
