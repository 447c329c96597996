#include "schedulers/slurm/job_table.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include "base/crypto.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

base::WallTime At(std::int64_t s) { return base::WallTime(std::chrono::seconds(s)); }

TEST(JobTable, KeysAreClusterIdAndSubmitTime) {
  const JobTable table("mole");
  EXPECT_EQ(table.KeyOf(RunIdOf(77, At(1'800'000'000) + 400ms)).identity, "mole/77@1800000000");
}

TEST(JobTable, ResolvesRecycledIdsByTime) {
  JobTable table("mole");
  TrackedRun& old = table.FindOrAdd({.job_id = 7, .submitted_s = 1000});
  old.phase = RunPhase::kEnded;
  old.ended_s = 5000;
  table.FindOrAdd({.job_id = 8, .submitted_s = 1000});
  EXPECT_EQ(table.At(7, At(3000)), (RunId{7, 1000}));
  EXPECT_EQ(table.At(7, At(5060)), (RunId{7, 1000})) << "its epilog";
  EXPECT_EQ(table.At(7, At(9000)), std::nullopt) << "of a run that is not known yet";
  table.FindOrAdd({.job_id = 7, .submitted_s = 8000});
  EXPECT_EQ(table.At(7, At(9000)), (RunId{7, 8000}));
  EXPECT_EQ(table.At(7, At(7997)), (RunId{7, 8000})) << "clocks differ a little";
  EXPECT_EQ(table.At(7, At(4000)), (RunId{7, 1000})) << "arrived late";
  EXPECT_EQ(table.At(7, At(500)), std::nullopt);
  EXPECT_EQ(table.At(6, At(9000)), std::nullopt);
  EXPECT_EQ(table.At(9, At(9000)), std::nullopt);
}

TEST(JobTable, FindsTheNewestRunOfAnId) {
  JobTable table("mole");
  EXPECT_EQ(table.Newest(7), table.runs().end());
  table.FindOrAdd({.job_id = 7, .submitted_s = 1000});
  table.FindOrAdd({.job_id = 7, .submitted_s = 2000});
  table.FindOrAdd({.job_id = 9, .submitted_s = 100});
  EXPECT_EQ(table.Newest(7)->first, (RunId{7, 2000}));
  EXPECT_EQ(table.Newest(8), table.runs().end());
  EXPECT_EQ(table.Newest(9)->first, (RunId{9, 100}));
}

TEST(JobTable, ForgetsWhatIsOverAndOutOfTheQueueForLong) {
  JobTable table("mole");
  auto add = [&](std::uint32_t id, RunPhase phase, bool final, std::int64_t gone) {
    TrackedRun& run = table.FindOrAdd({.job_id = id, .submitted_s = 1});
    run.phase = phase;
    run.final = final;
    run.gone_s = gone;
  };
  add(1, RunPhase::kEnded, true, 1000);
  add(2, RunPhase::kEnded, true, 9000);   // not for long
  add(3, RunPhase::kEnded, true, 0);      // squeue lists it still
  add(4, RunPhase::kEnded, false, 1000);  // its final record is wanted
  add(5, RunPhase::kRunning, false, 1000);
  table.NoteSluid("s0000000000001", {1, 1});
  table.NoteSluid("s0000000000004", {4, 1});
  EXPECT_EQ(table.Forget(At(10'000), 3600s), 1U);
  EXPECT_EQ(table.Find({1, 1}), nullptr);
  EXPECT_EQ(table.runs().size(), 4U);
  EXPECT_EQ(table.BySluid("s0000000000001"), std::nullopt);
  EXPECT_EQ(table.BySluid("s0000000000004"), (RunId{4, 1}));
}

JobTable Filled() {
  JobTable table("mole");
  TrackedRun& run = table.FindOrAdd({.job_id = 4'000'000'000U, .submitted_s = 1'800'000'000});
  run.row_hash = 0xfedcba9876543210ULL;
  run.final_hash = 5;
  run.started_s = 1'800'000'010;
  run.ended_s = 1'800'000'020;
  run.emitted_s = 1'800'000'021;
  run.gone_s = 1'800'000'330;
  run.phase = RunPhase::kEnded;
  run.guessed = true;
  run.bundled = true;
  table.FindOrAdd({.job_id = 12, .submitted_s = 1'700'000'000});
  table.NoteSluid("s0123456789abc", {12, 1'700'000'000});
  table.marks = {.hash_seed = 99, .accounting_cursor_s = 1'799'999'999};
  return table;
}

TEST(JobTable, SurvivesARestart) {
  const JobTable before = Filled();
  JobTable after("mole");
  ASSERT_TRUE(after.Decode(before.Encode()));
  EXPECT_EQ(after.Encode(), before.Encode());
  EXPECT_EQ(after.marks, before.marks);
  const TrackedRun* run = after.Find({4'000'000'000U, 1'800'000'000});
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->row_hash, 0xfedcba9876543210ULL);
  EXPECT_EQ(run->gone_s, 1'800'000'330);
  EXPECT_EQ(run->phase, RunPhase::kEnded);
  EXPECT_TRUE(run->guessed && run->bundled && !run->final);
  EXPECT_EQ(after.BySluid("s0123456789abc"), (RunId{12, 1'700'000'000}));
}

TEST(JobTable, RefusesDamageAndOtherClusters) {
  const std::string good = Filled().Encode();
  for (std::size_t size = 0; size < good.size(); ++size) {
    JobTable table("mole");
    EXPECT_FALSE(table.Decode(good.substr(0, size))) << size;
    std::string flipped = good;
    flipped[size] = static_cast<char>(flipped[size] ^ 0x40);
    EXPECT_FALSE(table.Decode(flipped)) << size;
    EXPECT_TRUE(table.runs().empty());
  }
  JobTable other("vole");
  EXPECT_EQ(other.Decode(good).error().reason, "table.cluster");
}

TEST(JobTable, ClaimsOfSizeAreNotBelieved) {
  std::string bytes = JobTable("mole").Encode();
  // The number of runs stands before that of SLUIDs and the checksum.
  bytes.replace(bytes.size() - 12, 4, "\xff\xff\x0f\x00", 4);
  bytes.resize(bytes.size() - 4);
  const std::uint32_t crc = base::Crc32c(bytes);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(crc >> shift);
  JobTable table("mole");
  EXPECT_EQ(table.Decode(bytes).error().reason, "table.corrupt");
}

TEST(JobTable, HoldsALargeClusterInSixtyMebibytes) {
  const std::size_t before = ::mallinfo2().uordblks;
  JobTable table("mole");
  for (std::uint32_t i = 1; i <= 110'000; ++i) {
    TrackedRun& run = table.FindOrAdd({.job_id = 5'000'000 + i, .submitted_s = 1'800'000'000 + i});
    run.partition = table.names().Index("partition" + std::to_string(i % 12));
    if (i <= 10'000) {
      run.phase = RunPhase::kRunning;
      for (std::uint32_t node = 0; node < 4; ++node)
        run.nodes.push_back(table.names().Index("node" + std::to_string((i * 4 + node) % 2000)));
      continue;
    }
    run.waiting = std::make_unique<WaitingDetail>();
    run.waiting->native_id = std::to_string(5'000'000 + i);
    run.waiting->name = "a job name of usual length " + std::to_string(i);
    run.waiting->reason = "QOSMaxCpuPerUserLimit";
    run.waiting->user = table.names().Index("user" + std::to_string(i % 800));
  }
  EXPECT_LT(::mallinfo2().uordblks - before, 60U << 20);
  EXPECT_LT(table.Encode().size(), 8U << 20);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
