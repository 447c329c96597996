#include "bench/predict_parts/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace expanse::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kGiB = 1024.0 * 1024 * 1024;

TraceRun MemoryRun(double start_s, double gib) {
  TraceRun run;
  run.group = "g";
  run.same_source = true;
  run.submit_s = start_s;
  run.end_s = start_s + 5;
  run.runtime_s = 3600;
  run.memory_bytes = gib * kGiB;
  run.requested_memory_bytes = 32 * kGiB;
  return run;
}

TEST(Replay, KnowsOnlyWhatHadEnded) {
  Trace trace{.name = "t", .runs = {}};
  // The second and third are submitted while the first runs.
  for (const double start : {0, 1, 2, 100}) trace.runs.push_back(MemoryRun(start, 4));
  std::vector<std::size_t> known;
  std::vector<double> ours;
  ReplayOptions options;
  options.on_run = [&](const PlayedRun& played) {
    if (played.resource != Resource::kMemory) return;
    known.push_back(played.known);
    ours.push_back(played.limits.at(0).first / kGiB);
  };
  const TraceScore score = Replay(trace, options);
  EXPECT_THAT(known, ElementsAre(0, 0, 0, 3));
  EXPECT_THAT(ours, ElementsAre(32, 32, 32, testing::AllOf(testing::Ge(4), testing::Lt(8))));
  const ResourceScore& memory = score.resources.at(0);
  EXPECT_EQ(memory.policies.at(0).policy, "ours");
  EXPECT_EQ(memory.policies.at(0).runs, 4U);
  EXPECT_EQ(memory.policies.at(0).failed_first, 0U);
  EXPECT_EQ(memory.policies.at(1).allocated, 4 * 32);  // the user's, an hour each
  EXPECT_EQ(memory.used, 4 * 4);
}

TEST(Replay, AFailedTryIsPaidFor) {
  Trace trace{.name = "t", .runs = {}};
  for (const double start : {0, 100, 200, 300}) trace.runs.push_back(MemoryRun(start, 4));
  trace.runs.push_back(MemoryRun(400, 20));
  const TraceScore score = Replay(trace, {});
  const PolicyScore& ours = score.resources.at(0).policies.at(0);
  EXPECT_EQ(ours.failed_first, 1U);
  EXPECT_GT(ours.tries, 5U);
  EXPECT_GT(ours.allocated, 32 + 3 * 4 + 20);
}

TEST(Replay, HalvesShareTheGroups) {
  Trace trace{.name = "t", .runs = {}};
  for (int i = 0; i < 40; ++i) {
    trace.runs.push_back(MemoryRun(i, 4));
    trace.runs.back().group = "g" + std::to_string(i);
  }
  ReplayOptions options;
  options.half = Half::kTuned;
  const std::size_t tuned = Replay(trace, options).groups;
  options.half = Half::kHeld;
  const std::size_t held = Replay(trace, options).groups;
  EXPECT_EQ(tuned + held, 40U);
  EXPECT_GT(tuned, 5U);
  EXPECT_GT(held, 5U);
}

TEST(DominatedBy, OnlyWhoIsBetterInBothForTheSameRuns) {
  ResourceScore score;
  score.policies = {{.policy = "ours", .runs = 10, .failed_first = 2, .allocated = 100},
                    {.policy = "cheaper", .runs = 10, .failed_first = 2, .allocated = 90},
                    {.policy = "safer", .runs = 10, .failed_first = 1, .allocated = 100},
                    {.policy = "both", .runs = 10, .failed_first = 1, .allocated = 90},
                    {.policy = "of fewer", .runs = 9, .failed_first = 1, .allocated = 50}};
  EXPECT_THAT(DominatedBy(score), ElementsAre("both"));
  score.policies.resize(3);
  EXPECT_THAT(DominatedBy(score), IsEmpty());
}

TEST(ReadTraces, FollowsTheIndex) {
  const auto folder = base::TempDir::Create("traces");
  ASSERT_TRUE(folder);
  const auto write = [&](const char* name, std::string_view text) {
    ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(folder->path(), name), text, 0644));
  };
  const std::string_view table = "rule\ts\tmax_rss\nsort\t1\t100\nsort\t2\t100\n";
  write("index.csv", "file,what\na.tsv,benchmarks\nb.txt,text\n");
  write("a.tsv", table);
  write("b.txt", "nothing of the kind\n");
  write("c.tsv", table);  // not in the index
  const auto traces = ReadTraces(folder->path());
  ASSERT_TRUE(traces);
  ASSERT_EQ(traces->traces.size(), 1U);
  EXPECT_EQ(traces->traces[0].name, "a.tsv");
  ASSERT_EQ(traces->traces[0].runs.size(), 2U);
  // Without times each ends before the next is submitted.
  EXPECT_LT(traces->traces[0].runs[0].end_s, traces->traces[0].runs[1].submit_s);
  EXPECT_EQ(traces->skipped.size(), 1U);
  EXPECT_FALSE(ReadTraces(folder->path() + "/none"));
}

}  // namespace
}  // namespace expanse::bench
