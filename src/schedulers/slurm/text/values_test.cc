#include "schedulers/slurm/text/values.h"

#include <gtest/gtest.h>

#include <vector>

namespace expanse::schedulers::slurm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SlurmValues, KnowsTheWordsForNothing) {
  for (std::string_view text : {"", "  ", "(null)", "N/A", "n/a", "None", "Unknown", "NOT_SET",
                                "None assigned", "INVALID"}) {
    EXPECT_TRUE(IsAbsent(text)) << text;
  }
  for (std::string_view text : {"0", "none-such", "node", "None assigned yet", "-"}) {
    EXPECT_FALSE(IsAbsent(text)) << text;
  }
}

TEST(SlurmElapsed, ReadsEverySpelling) {
  EXPECT_EQ(ParseElapsed("1-02:00:00"), seconds(26 * 3600));
  EXPECT_EQ(ParseElapsed("02:00"), seconds(120));
  EXPECT_EQ(ParseElapsed("0:07"), seconds(7));
  EXPECT_EQ(ParseElapsed("10:00.123"), seconds(600) + milliseconds(123));
  EXPECT_EQ(ParseElapsed("00:00:00"), seconds(0));
  EXPECT_EQ(ParseElapsed("123:04:05"), seconds(123 * 3600 + 4 * 60 + 5));
  EXPECT_EQ(ParseElapsed("3-04"), seconds(76 * 3600));
  EXPECT_EQ(ParseElapsed("3-04:30"), seconds(76 * 3600 + 1800));
  EXPECT_EQ(ParseElapsed("17"), seconds(17));
  EXPECT_EQ(ParseElapsed(" 5:00 "), seconds(300));
  EXPECT_EQ(ParseElapsed("00:01.5"), milliseconds(1500));
}

TEST(SlurmElapsed, IsAbsentForWordsAndNonsense) {
  for (std::string_view text : {"",
                                "INVALID",
                                "UNLIMITED",
                                "Partition_Limit",
                                "N/A",
                                "-1:00",
                                "1--2",
                                "1:2:3:4",
                                ":",
                                "1:",
                                "1:00.",
                                "1:00.x",
                                "1-",
                                "-",
                                "1:-2",
                                "1:+2",
                                "99999999999",
                                "9999999999-00:00:00",
                                "9999999999:00:00",
                                "1.5:00"}) {
    EXPECT_EQ(ParseElapsed(text), std::nullopt) << text;
  }
}

TEST(SlurmTimeLimit, TellsNoLimitFromThePartitions) {
  EXPECT_EQ(ParseTimeLimit("1:00:00"),
            (TimeLimit{.kind = TimeLimit::Kind::kLimited, .limit = seconds(3600)}));
  EXPECT_EQ(ParseTimeLimit("UNLIMITED"),
            (TimeLimit{.kind = TimeLimit::Kind::kUnlimited, .limit = seconds(0)}));
  EXPECT_EQ(ParseTimeLimit("Partition_Limit"),
            (TimeLimit{.kind = TimeLimit::Kind::kPartition, .limit = seconds(0)}));
  for (std::string_view text : {"", "NOT_SET", "INVALID", "soon"}) {
    EXPECT_EQ(ParseTimeLimit(text), std::nullopt) << text;
  }
}

TEST(SlurmTimestamp, ReadsEpochAndIso) {
  const base::WallTime time(seconds(1'790'000'000));
  EXPECT_EQ(ParseTimestamp("1790000000"), time);
  EXPECT_EQ(ParseTimestamp("2026-09-21T14:13:20"), time);
  EXPECT_EQ(ParseTimestamp("2026-09-21T14:13:20Z"), time);
  EXPECT_EQ(ParseTimestamp("2026-09-21T16:13:20+0200"), time);
  EXPECT_EQ(ParseTimestamp("2026-09-21T09:43:20-04:30"), time);
  EXPECT_EQ(ParseTimestamp(" 2026-09-21 14:13:20 "), time);
  EXPECT_EQ(ParseTimestamp("253402300799"), ParseTimestamp("9999-12-31T23:59:59"));
  EXPECT_NE(ParseTimestamp("253402300799"), std::nullopt);
}

// Trap 12: the two times with one spelling in the hour that comes twice are one time here, since no
// zone with such an hour is ever asked for.
TEST(SlurmTimestamp, HasNoZoneOfItsOwn) {
  EXPECT_EQ(ParseTimestamp("2026-10-25T02:30:00"), base::WallTime(seconds(1'792'895'400)));
  EXPECT_EQ(*ParseTimestamp("2026-10-25T03:30:00") - *ParseTimestamp("2026-10-25T02:30:00"),
            std::chrono::hours(1));
}

TEST(SlurmTimestamp, IsNeverTheEpochNorYearOne) {
  for (std::string_view text : {"",
                                "0",
                                "None",
                                "Unknown",
                                "N/A",
                                "(null)",
                                "4294967294",
                                "4294967295",
                                "1969-12-31T19:00:00",
                                "1970-01-01T00:00:00",
                                "1970-01-01T01:00:00",
                                "0001-01-01T00:00:00",
                                "2026-13-01T00:00:00",
                                "2026-02-30T00:00:00",
                                "2026-01-01T24:00:00",
                                "2026-01-01",
                                "2026-01-01T00:00:00+",
                                "2026-01-01T00:00:00+99:00",
                                "1790000000000",
                                "-1790000000",
                                "253402300800",
                                "501790000600",
                                "Tomorr 10:00",
                                "12:30"}) {
    EXPECT_EQ(ParseTimestamp(text), std::nullopt) << text;
  }
}

struct MemoryCase {
  std::string_view text;
  std::uint64_t bytes;
  MemoryScope scope;
};

TEST(SlurmMemory, ReadsEverySpelling) {
  constexpr std::uint64_t kGiB = kMebibyte * 1024;
  const std::vector<MemoryCase> cases = {
      {"4Gc", 4 * kGiB, MemoryScope::kPerCpu},
      {"1Mc", kMebibyte, MemoryScope::kPerCpu},
      {"0n", 0, MemoryScope::kPerNode},
      {"0c", 0, MemoryScope::kPerCpu},
      {"16000Mn", 16000 * kMebibyte, MemoryScope::kPerNode},
      {"1.50T", 1536 * kGiB, MemoryScope::kTotal},
      {"62.5G", 64000 * kMebibyte, MemoryScope::kTotal},
      {"4000M", 4000 * kMebibyte, MemoryScope::kTotal},
      {"4000", 4000 * kMebibyte, MemoryScope::kTotal},
      {"1947276K", 1947276 * kKibibyte, MemoryScope::kTotal},
      {"0", 0, MemoryScope::kTotal},
      {"9223372036854779904", 4096 * kMebibyte, MemoryScope::kPerCpu},
      {"2P", 2048 * 1024 * kGiB, MemoryScope::kTotal},
  };
  for (const MemoryCase& one : cases) {
    EXPECT_EQ(ParseMemory(one.text, kMebibyte), (Memory{.bytes = one.bytes, .scope = one.scope}))
        << one.text;
  }
  EXPECT_EQ(ParseMemory("512", kBytes)->bytes, 512);
}

TEST(SlurmMemory, RefusesNonsenseAndOverflow) {
  for (std::string_view text : {"",
                                "N/A",
                                "n",
                                "c",
                                "G",
                                "-4G",
                                "+4G",
                                "4X",
                                "4GG",
                                "1e3G",
                                "inf",
                                "nanG",
                                "0x10M",
                                "18446744073709551614",
                                "18446744073709551615",
                                "99999999999999P",
                                "8E",
                                "8796093022208",
                                "1..5G",
                                ".5G"}) {
    EXPECT_EQ(ParseMemory(text, kMebibyte), std::nullopt) << text;
  }
}

TEST(SlurmMemory, TotalNeedsTheCountsThatItIsPer) {
  EXPECT_EQ(TotalBytes({.bytes = 10, .scope = MemoryScope::kPerCpu}, 8, 2), 80);
  EXPECT_EQ(TotalBytes({.bytes = 10, .scope = MemoryScope::kPerNode}, 8, 2), 20);
  EXPECT_EQ(TotalBytes({.bytes = 10, .scope = MemoryScope::kTotal}, std::nullopt, std::nullopt),
            10);
  EXPECT_EQ(TotalBytes({.bytes = 10, .scope = MemoryScope::kPerCpu}, std::nullopt, 2),
            std::nullopt);
  EXPECT_EQ(TotalBytes({.bytes = 10, .scope = MemoryScope::kPerNode}, 8, 0), std::nullopt);
  EXPECT_EQ(TotalBytes({.bytes = 0, .scope = MemoryScope::kPerNode}, 8, 2), std::nullopt);
  EXPECT_EQ(TotalBytes({.bytes = 1ULL << 62, .scope = MemoryScope::kPerCpu}, 2, 2), std::nullopt)
      << "more than a record holds";
}

TEST(SlurmCount, ReadsShortenedOnesAndRanges) {
  EXPECT_EQ(ParseCount("12"), 12);
  EXPECT_EQ(ParseCount("4K"), 4096);
  EXPECT_EQ(ParseCount("1.5M"), 1536 * 1024);
  EXPECT_EQ(ParseCount("2-4"), 2);
  EXPECT_EQ(ParseCount("65534"), 65534);
  for (std::string_view text :
       {"", "N/A", "-1", "*", "4294967294", "4294967295", "18446744073709551615",
        "9223372036854775808", "8E", "K", "1KK", "1 2"}) {
    EXPECT_EQ(ParseCount(text), std::nullopt) << text;
  }
}

TEST(SlurmExitCode, TellsCodesFromSignals) {
  EXPECT_EQ(ParseExitCode("0:0"), ExitStatus{});
  EXPECT_EQ(ParseExitCode("2:0"), (ExitStatus{.exit_code = 2}));
  EXPECT_EQ(ParseExitCode("0:9"), (ExitStatus{.signal = 9}));
  EXPECT_EQ(ParseExitCode("7"), (ExitStatus{.exit_code = 7}));
}

// Trap 14: a step that ran out of memory is 0:125.
TEST(SlurmExitCode, KnowsSlurmsSignalForOutOfMemory) {
  EXPECT_EQ(ParseExitCode("0:125"), (ExitStatus{.signal = 125, .out_of_memory = true}));
  EXPECT_EQ(ParseExitCode("0:253"), (ExitStatus{.signal = 125, .out_of_memory = true}));
}

TEST(SlurmExitCode, UnderstandsSignalsAbove128) {
  EXPECT_EQ(ParseExitCode("0:139"), (ExitStatus{.signal = 11, .core_dumped = true}));
  EXPECT_EQ(ParseExitCode("137:0"), (ExitStatus{.exit_code = 137}));
}

TEST(SlurmExitCode, RefusesWhatIsNone) {
  for (std::string_view text : {"", ":", "0:", ":9", "N/A", "-1:0", "1:2:3", "99999999:0"}) {
    EXPECT_EQ(ParseExitCode(text), std::nullopt) << text;
  }
}

TEST(SlurmExitCode, ReadsAWaitStatus) {
  EXPECT_EQ(ExitStatusFromWait(0), ExitStatus{});
  EXPECT_EQ(ExitStatusFromWait(3 << 8), (ExitStatus{.exit_code = 3}));
  EXPECT_EQ(ExitStatusFromWait(9), (ExitStatus{.signal = 9}));
  // The batch script's output could not be opened: 0:53 in sacct.
  EXPECT_EQ(ExitStatusFromWait(3893), (ExitStatus{.signal = 53}));
  EXPECT_EQ(ExitStatusFromWait(139), (ExitStatus{.signal = 11, .core_dumped = true}));
  EXPECT_EQ(ExitStatusFromWait(253), (ExitStatus{.signal = 125, .out_of_memory = true}));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
