#include "intelligence/diagnose/log_lines.h"

#include <gtest/gtest.h>

namespace expanse::intelligence::diagnose {
namespace {

std::string MessageOf(std::string_view raw) {
  LogLine line;
  StripLine(raw, &line);
  return line.message;
}

TEST(StripLine, TakesStampsOff) {
  EXPECT_EQ(MessageOf("2026-03-01T10:00:00.123Z error: no"), "error: no");
  EXPECT_EQ(MessageOf("[2026-03-01 10:00:00,123] error: no"), "error: no");
  EXPECT_EQ(MessageOf("2026/03/01 10:00:00 error: no"), "error: no");
  EXPECT_EQ(MessageOf("10:00:00 error: no"), "error: no");
  EXPECT_EQ(MessageOf("Mar  1 10:00:00 node07 kernel: oops"), "node07 kernel: oops");
  EXPECT_EQ(MessageOf("[ 1234.567890] NVRM: Xid"), "NVRM: Xid");
  EXPECT_EQ(MessageOf("[2021-03-25T02:43:36+0000] [main] gone"), "[main] gone");
}

TEST(StripLine, KeepsWhatIsNoStamp) {
  EXPECT_EQ(MessageOf("12 files"), "12 files");
  EXPECT_EQ(MessageOf("10:x"), "10:x");
  EXPECT_EQ(MessageOf("2026 was a year"), "2026 was a year");
  EXPECT_EQ(MessageOf("java.lang.OutOfMemoryError: Java heap space"),
            "java.lang.OutOfMemoryError: Java heap space");
  EXPECT_EQ(MessageOf("utf8: bad"), "bad");  // reads like a host; nothing is lost of the message
  EXPECT_EQ(MessageOf("srun: error: node01: task 3: Killed"),
            "srun: error: node01: task 3: Killed");
}

TEST(StripLine, TakesRanksAndNodesOff) {
  LogLine line;
  StripLine("[rank3]: RuntimeError: no", &line);
  EXPECT_EQ(line.message, "RuntimeError: no");
  EXPECT_EQ(line.rank, 3U);
  LogLine tagged;
  StripLine("[1,12]<stderr>:boom", &tagged);
  EXPECT_EQ(tagged.message, "boom");
  EXPECT_EQ(tagged.rank, 12U);
  LogLine labelled;
  StripLine("5: 2026-03-01T10:00:00 boom", &labelled);
  EXPECT_EQ(labelled.message, "boom");
  EXPECT_EQ(labelled.rank, 5U);
  EXPECT_EQ(labelled.stamp, "2026-03-01T10:00:00");
  LogLine node;
  StripLine("gpu07: boom", &node);
  EXPECT_EQ(node.message, "boom");
  EXPECT_EQ(node.node, "gpu07");
}

TEST(StripLine, TakesLoggersPrefixesOff) {
  EXPECT_EQ(MessageOf("(EngineCore_DP0 pid=469) ERROR 03-11 17:57:10 [multiproc_executor.py:783] "
                      "ValueError: heads"),
            "ValueError: heads");
  EXPECT_EQ(MessageOf("(RayTrainWorker pid=4, ip=10.0.0.1) KeyError: 'x'"), "KeyError: 'x'");
  EXPECT_EQ(MessageOf("(raylet) [2025-04-02 01:12:44,119 E 3 3] manager.cc:3: x"),
            "[2025-04-02 01:12:44,119 E 3 3] manager.cc:3: x");
  EXPECT_EQ(MessageOf("ERROR 03-21 10:12:01 utils.py:120] Worker died"), "Worker died");
  EXPECT_EQ(MessageOf("ERROR:__main__:TypeError: no"), "TypeError: no");
  EXPECT_EQ(MessageOf("E0301 02:11:10.001000 140001 torch/api.py:897] failed"), "failed");
  EXPECT_EQ(MessageOf("2025-01-01 10:00:00 ERROR [core.py:7] no"), "ERROR [core.py:7] no");
}

TEST(StripLine, KeepsWhatIsNoLoggersPrefix) {
  EXPECT_EQ(MessageOf("ERROR: no"), "ERROR: no");
  EXPECT_EQ(MessageOf("ERROR no"), "ERROR no");
  EXPECT_EQ(MessageOf("ERROR 12 items"), "ERROR 12 items");
  EXPECT_EQ(MessageOf("ERROR:root"), "ERROR:root");
  EXPECT_EQ(MessageOf("(core dumped) x"), "(core dumped) x");
  EXPECT_EQ(MessageOf("(x pid=1"), "(x pid=1");
  EXPECT_EQ(MessageOf("E0301 x"), "E0301 x");
  EXPECT_EQ(MessageOf("[12] x"), "[12] x");
  EXPECT_EQ(MessageOf("train.py:12] x"), "x");
  EXPECT_EQ(MessageOf("train.py:12: x"), "train.py:12: x");
}

TEST(StripLine, TakesTerminalEscapesOff) {
  EXPECT_EQ(MessageOf("\x1b[31merror\x1b[0m: no"), "error: no");
  EXPECT_EQ(MessageOf("\x1b]0;title\aerror"), "error");
  EXPECT_EQ(MessageOf(" 1%\r 50%\r100% done\r"), "100% done");
  EXPECT_EQ(MessageOf(std::string_view("a\0b", 3)), "ab");
}

TEST(ReduceLog, CollapsesEqualLines) {
  const Reduced reduced = ReduceLog("a\nb\na\na\nc");
  ASSERT_EQ(reduced.lines.size(), 3U);
  EXPECT_EQ(reduced.lines[0].raw, "a");
  EXPECT_EQ(reduced.lines[0].count, 3U);
  EXPECT_EQ(reduced.lines[0].number, 1U);
  EXPECT_EQ(reduced.lines[0].last, 4U);
  EXPECT_EQ(reduced.total_lines, 5U);
}

TEST(ReduceLog, KeepsTheFirstOfATemplateAndTheLast) {
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += "step " + std::to_string(i) + " done\n";
  const Reduced reduced = ReduceLog(text);
  ASSERT_EQ(reduced.lines.size(), 21U);
  EXPECT_EQ(reduced.lines.front().raw, "step 1 done");
  EXPECT_EQ(reduced.lines.back().raw, "step 1000 done");
  EXPECT_EQ(reduced.lines.back().count, 980U);
}

TEST(ReduceLog, BoundsALineThatNeverEnds) {
  const std::string text = "start " + std::string(5U << 20, 'x') + " MemoryError";
  const Reduced reduced = ReduceLog(text);
  ASSERT_EQ(reduced.lines.size(), 1U);
  EXPECT_LE(reduced.lines[0].message.size(), kMaxMessage + 1);
  EXPECT_TRUE(reduced.lines[0].message.ends_with("MemoryError"));
}

TEST(ReduceLog, KeepsTheEndWhereThereIsTooMuch) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += std::string(1, static_cast<char>('a' + i % 26)) +
            std::string(static_cast<std::size_t>(i / 26), 'z') + "\n";
  const Reduced reduced = ReduceLog(text, /*most=*/100);
  EXPECT_EQ(reduced.lines.size(), 100U);
  EXPECT_EQ(reduced.dropped, 900U);
  EXPECT_EQ(reduced.lines.front().number, 1U);
  EXPECT_EQ(reduced.lines.back().number, 1000U);
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
