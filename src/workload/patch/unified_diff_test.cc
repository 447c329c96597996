#include "workload/patch/unified_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

namespace expanse::workload {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

void ExpectRoundTrip(std::string_view before, std::string_view after) {
  const std::string diff = MakeUnifiedDiff("f", before, after);
  const auto applied = ApplyUnifiedDiff(diff, before);
  ASSERT_TRUE(applied.has_value()) << applied.error().message << "\n" << diff;
  EXPECT_EQ(*applied, after) << diff;
  EXPECT_EQ(diff.empty(), before == after);
}

std::string Reason(std::string_view diff, std::string_view before) {
  const auto applied = ApplyUnifiedDiff(diff, before);
  return applied ? "applied: " + *applied : applied.error().reason;
}

TEST(UnifiedDiff, WritesWhatDiffWrites) {
  EXPECT_EQ(
      MakeUnifiedDiff("job.sh", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
      "--- a/job.sh\n+++ b/job.sh\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(UnifiedDiff, JoinsChangesUpToSixLinesApart) {
  const std::string before = "a\n1\n2\n3\n4\n5\n6\nb\n";
  EXPECT_EQ(MakeUnifiedDiff("f", before, "A\n1\n2\n3\n4\n5\n6\nB\n"),
            "--- a/f\n+++ b/f\n@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
  EXPECT_EQ(MakeUnifiedDiff("f", "a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n"),
            "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n"
            "-b\n+B\n");
}

TEST(UnifiedDiff, MarksAMissingLastNewline) {
  EXPECT_EQ(MakeUnifiedDiff("f", "a\nb", "a\nb\n"),
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
  EXPECT_EQ(MakeUnifiedDiff("f", "a\nb", "A\nb"),
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n");
}

TEST(UnifiedDiff, EmptyFilesAndEnds) {
  EXPECT_EQ(MakeUnifiedDiff("f", "", "a\nb\n"), "--- a/f\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(MakeUnifiedDiff("f", "a\n", ""), "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n");
  EXPECT_EQ(MakeUnifiedDiff("f", "same\n", "same\n"), "");
  ExpectRoundTrip("", "");
  ExpectRoundTrip("", "x");
  ExpectRoundTrip("x", "");
  ExpectRoundTrip("b\n", "a\nb\n");
  ExpectRoundTrip("b\n", "b\nc\n");
  ExpectRoundTrip("b", "b\nc");
}

TEST(UnifiedDiff, KeepsCarriageReturnsAndAnyBytes) {
  ExpectRoundTrip("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n");
  ExpectRoundTrip(std::string("\0\xff\n\\ x\n--- a\n", 14),
                  std::string("\0\xfe\n\\ x\n+++ b\n", 14));
  ExpectRoundTrip("\\\n\\", "\\\n\\\n");
}

TEST(UnifiedDiff, QuotesOddNames) {
  EXPECT_THAT(MakeUnifiedDiff("my job.sh", "a\n", "b\n"),
              StartsWith("--- a/my job.sh\t\n+++ b/my job.sh\t\n"));
  EXPECT_THAT(MakeUnifiedDiff("a\n+++ \"x\"", "a\n", "b\n"),
              StartsWith("--- \"a/a\\012+++ \\\"x\\\"\"\n+++ \"b/"));
}

TEST(UnifiedDiff, ApplyIsStrict) {
  const std::string diff = MakeUnifiedDiff("f", "1\n2\n3\n4\n5\n", "1\n2\nthree\n4\n5\n");
  EXPECT_EQ(Reason(diff, "1\n2\n3\n4\n5\n"), "applied: 1\n2\nthree\n4\n5\n");
  EXPECT_EQ(Reason(diff, "0\n1\n2\n3\n4\n5\n"), "diff.mismatch");  // moved by a line
  EXPECT_EQ(Reason(diff, "1\n2\n3!\n4\n5\n"), "diff.mismatch");
  EXPECT_EQ(Reason(diff, "1\n2!\n3\n4\n5\n"), "diff.mismatch");
  EXPECT_EQ(Reason(diff, "1\n2\n3\n4\n5"), "diff.mismatch");
  EXPECT_EQ(Reason(diff, ""), "diff.mismatch");
}

TEST(UnifiedDiff, ApplyRefusesWhatIsNoDiff) {
  EXPECT_EQ(Reason("hello\n", "x"), "diff.syntax");
  EXPECT_EQ(Reason("--- a/f\n+++ b/f\n", "x"), "diff.syntax");
  EXPECT_EQ(Reason("--- a/f\n+++ b/f\n@@ x @@\n", "x"), "diff.syntax");
  EXPECT_EQ(Reason("--- a/f\n+++ b/f\n@@ -1 +1 @@\n", "x"), "diff.syntax");
  EXPECT_EQ(Reason("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y", "x\n"), "diff.syntax");
  EXPECT_EQ(Reason("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n-x\n", "x\nx\n"), "diff.syntax");
  EXPECT_EQ(Reason("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n\n", "x\n"), "diff.syntax");
  EXPECT_EQ(Reason("--- a/f\n+++ b/f\n@@ -99999999999999999999 +1 @@\n", "x"), "diff.syntax");
  EXPECT_EQ(Reason("--- a/f\n+++ b/f\n@@ -9,99999999 +9 @@\n-x\n", "x\n"), "diff.mismatch");
  // A new line without newline before lines that are kept.
  EXPECT_EQ(
      Reason("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n\\ No newline at end of file\n", "x\nz\n"),
      "diff.mismatch");
  // Says that the new lines begin elsewhere than they do.
  EXPECT_EQ(Reason("--- a/f\n+++ b/f\n@@ -1 +5 @@\n-x\n+y\n", "x\n"), "diff.mismatch");
}

TEST(UnifiedDiff, FindsFewChanges) {
  std::string before;
  std::string after;
  for (int i = 0; i < 1000; ++i) {
    before += std::to_string(i) + "\n";
    if (i % 100 != 7) after += std::to_string(i) + "\n";
    if (i % 100 == 50) after += "new\n";
  }
  const std::string diff = MakeUnifiedDiff("f", before, after);
  EXPECT_EQ(std::count(diff.begin(), diff.end(), '-') - 3 - 20, 10);  // header, 20 hunks
  EXPECT_THAT(diff, HasSubstr("+new\n"));
  ExpectRoundTrip(before, after);
}

TEST(UnifiedDiff, HugeFilesThatDifferEverywhereEndSoon) {
  std::string before;
  std::string after;
  std::mt19937 random(5);
  for (int i = 0; i < 400'000; ++i) {
    before += random() % 2 == 0 ? "a\n" : "b\n";
    after += random() % 2 == 0 ? "a\n" : "b\n";
  }
  const auto begin = std::chrono::steady_clock::now();
  ExpectRoundTrip(before, after);
  ExpectRoundTrip(before + "x\n" + before, before + "y\n" + before);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace expanse::workload
