#include "collect/process/parse.h"

#include <gtest/gtest.h>

namespace expanse::collect {
namespace {

TEST(ProcStat, TakesTheNameUpToTheLastBracket) {
  const auto stat = ParseProcStat(
      "812 (a) R 9 (b c) S 4 812 812 34816 -1 4194304 100 0 2 0 250 50 7 3 20 0 3 0 987654 1000 "
      "2048 999\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 812);
  EXPECT_EQ(stat->name, "a) R 9 (b c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 4);
  EXPECT_EQ(stat->own(), 300U);
  EXPECT_EQ(stat->children(), 10U);
  EXPECT_EQ(stat->threads, 3U);
  EXPECT_EQ(stat->start, 987654U);
  EXPECT_EQ(stat->rss_pages, 2048U);
}

TEST(ProcStat, KeepsNamesByteExact) {
  EXPECT_EQ(ParseProcStat("5 (\xff\n) S 1 5 5 0 -1 0 0 0 0 0 1 1 -1 0 20 0 1 0 7 0 0\n")->name,
            "\xff\n");
  EXPECT_EQ(ParseProcStat("5 () S 1 5 5 0 -1 0 0 0 0 0 1 1 -1 0 20 0 1 0 7 0 0\n")->children(), 0U);
}

TEST(ProcStat, RefusesWhatIsMalformed) {
  for (const char* text :
       {"", "5", "5 (x", "5 x) S 1", ")5(", "x (a) S 1 5 5 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 7 0 0",
        "5 (a) S 1 5 5 0 -1 0 0 0 0 0 1 1 0 0 20 0",
        "-5 (a) S 1 5 5 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 7 0 0"}) {
    EXPECT_FALSE(ParseProcStat(text)) << text;
  }
}

TEST(ProcStatus, ReadsResidentMemoryByKind) {
  const auto resident = ParseProcStatus(
      "Name:\tRssAnon: 5\nVmRSS:\t9 kB\nRssAnon:\t4 kB\nRssFile:\t3 kB\nRssShmem:\t2 kB\nVmData: 1 "
      "kB\n");
  ASSERT_TRUE(resident);
  EXPECT_EQ(resident->anon, 4096U);
  EXPECT_EQ(resident->shmem, 2048U);
  EXPECT_FALSE(ParseProcStatus("Name:\tkthreadd\nThreads:\t1\n"));
}

TEST(SmapsRollup, PrefersAnonymousAndSharedParts) {
  EXPECT_EQ(ParseProportionalNeed("56-7f ---p 0 00:00 0 [rollup]\nRss: 9 kB\nPss: 8 kB\nPss_Anon: "
                                  "4 kB\nPss_File: 3 kB\nPss_Shmem: 1 kB\n"),
            5120U);
  EXPECT_EQ(ParseProportionalNeed("Rss: 9 kB\nPss: 8 kB\n"), 8192U);
  EXPECT_FALSE(ParseProportionalNeed("Rss: 9 kB\n"));
}

}  // namespace
}  // namespace expanse::collect
