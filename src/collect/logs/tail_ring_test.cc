#include "collect/logs/tail_ring.h"

#include <gtest/gtest.h>

namespace expanse::collect {
namespace {

TailOptions Small() { return {.tail = 64, .context = 64, .error_before = 32, .error_after = 48}; }

TEST(TailRing, KeepsAShortStreamWhole) {
  TailRing ring;
  ring.Append("one\n");
  ring.Append("two");
  const auto tail = ring.Snapshot(/*final=*/true);
  EXPECT_EQ(tail.data, "one\ntwo");
  EXPECT_EQ(tail.offset, 0U);
  EXPECT_EQ(tail.total_bytes, 7U);
  EXPECT_TRUE(tail.first_error.empty());
}

TEST(TailRing, KeepsTheEndOfALongOne) {
  TailRing ring(Small());
  std::string all;
  for (int i = 0; i < 500; ++i) all += "line " + std::to_string(i) + "\n";
  for (std::size_t at = 0; at < all.size(); at += 7)
    ring.Append(std::string_view(all).substr(at, 7));
  const auto tail = ring.Snapshot(/*final=*/true);
  EXPECT_EQ(tail.total_bytes, all.size());
  EXPECT_EQ(tail.data, all.substr(tail.offset));
  EXPECT_LE(tail.data.size(), 64U);
  EXPECT_GE(tail.data.size(), 48U);
}

TEST(TailRing, TakesChunksLargerThanItself) {
  TailRing ring(Small());
  const std::string big(10'000, 'x');
  ring.Append(big + "\nend of it\n");
  const auto tail = ring.Snapshot(/*final=*/true);
  EXPECT_TRUE(tail.data.ends_with("end of it\n"));
  EXPECT_EQ(tail.total_bytes, 10'011U);
}

TEST(TailRing, RedactsASecretThatCameInPieces) {
  for (std::size_t piece = 1; piece < 12; ++piece) {
    TailRing ring;
    const std::string text = "a\npassword=hunter2\nb\n";
    for (std::size_t at = 0; at < text.size(); at += piece) ring.Append(text.substr(at, piece));
    const auto tail = ring.Snapshot(/*final=*/true);
    EXPECT_EQ(tail.data, "a\npassword=[redacted]\nb\n");
    EXPECT_EQ(tail.redactions, 1U);
    EXPECT_EQ(tail.total_bytes, text.size());
  }
}

TEST(TailRing, NeverShowsHalfASecretAtItsBeginning) {
  const std::string secret = "hunter2hunter2hunter2";
  for (std::size_t filler = 0; filler < 160; ++filler) {
    TailRing ring(Small());
    ring.Append("password=" + secret + "\n" + std::string(filler, '.') + "\n");
    const auto tail = ring.Snapshot(/*final=*/true);
    EXPECT_EQ(tail.data.find("unter2"), std::string::npos) << filler << ": " << tail.data;
  }
}

TEST(TailRing, HoldsBackAnUnfinishedLineUntilTheEnd) {
  TailRing ring;
  ring.Append("done\nclone with ghp_Ab3dEf6h");
  EXPECT_EQ(ring.Snapshot(/*final=*/false).data, "done\n");
  ring.Append("Ij9lMn2pQr5tUv8xYz1bCd4fGh7j\n");
  EXPECT_EQ(ring.Snapshot(/*final=*/false).data, "done\nclone with [redacted]\n");
}

TEST(TailRing, KeepsTheFirstErrorThatScrolledAway) {
  for (std::size_t piece : {1U, 5U, 1000U}) {
    TailRing ring(Small());
    std::string all = "starting up\nloading model\nRuntimeError: CUDA is gone\n";
    const std::size_t at_error = all.find("RuntimeError");
    for (int i = 0; i < 200; ++i) all += "filler number " + std::to_string(i) + "\n";
    for (std::size_t at = 0; at < all.size(); at += piece) ring.Append(all.substr(at, piece));
    const auto tail = ring.Snapshot(/*final=*/true);
    EXPECT_NE(tail.first_error.find("RuntimeError: CUDA is gone\n"), std::string::npos) << piece;
    EXPECT_LE(tail.first_error_offset, at_error);
    EXPECT_EQ(all.substr(tail.first_error_offset, tail.first_error.size()), tail.first_error);
  }
}

TEST(TailRing, RedactsTheErrorRegionToo) {
  TailRing ring(Small());
  ring.Append("error: password=hunter2\n" + std::string(40, 'b') + "\n");
  for (int i = 0; i < 100; ++i) ring.Append("quiet line\n");
  const auto tail = ring.Snapshot(/*final=*/true);
  EXPECT_EQ(tail.first_error.find("hunter2"), std::string::npos);
  EXPECT_NE(tail.first_error.find("error: password=[redacted]"), std::string::npos);
}

TEST(TailRing, CountsSkippedBytes) {
  TailRing ring;
  ring.Skip(1000);
  ring.Append("partial line\nwhole line\n");
  const auto tail = ring.Snapshot(/*final=*/true);
  EXPECT_EQ(tail.total_bytes, 1024U);
  EXPECT_EQ(tail.data, "whole line\n");
  EXPECT_EQ(tail.offset, 1013U);
}

TEST(TailRing, FindsErrorWordsButNotTheirAbsence) {
  for (std::string_view text :
       {"Traceback (most recent call last):", "ValueError: x", "fatal: no", "Killed",
        "E: command not found", "[ERROR] disk", "Segmentation fault (core dumped)"}) {
    EXPECT_NE(FindErrorWord(text), std::string_view::npos) << text;
  }
  for (std::string_view text :
       {"0 errors found", "no error here", "error_rate=0.5", "all good", "mirror: x"}) {
    EXPECT_EQ(FindErrorWord(text), std::string_view::npos) << text;
  }
}

}  // namespace
}  // namespace expanse::collect
