#include "intelligence/history/execution_run.h"

#include <gtest/gtest.h>

#include <random>

namespace expanse::intelligence::history {
namespace {

using evidence::Execution;
using evidence::ExecutionStatus;
using evidence::Outcome;
using predict::Ending;

base::WallTime At(std::int64_t seconds) {
  return base::WallTime(std::chrono::seconds(1'700'000'000 + seconds));
}

Execution Over() {
  Execution e;
  e.execution_id = "id";
  e.compute_id = "c";
  e.source_type = evidence::SourceType::kSlurm;
  e.native_id = "4711_12";
  e.name = "train";
  e.user = "mara";
  e.command = {"/home/mara/job.sh --n 5 --out x"};
  e.status = ExecutionStatus::kSucceeded;
  e.outcome = Outcome::kSuccess;
  e.submitted_at = At(0);
  e.started_at = At(10);
  e.ended_at = At(110);
  e.suspended_s = 20;
  e.requested = {
      .cpu_cores = 4, .memory_bytes = 100, .gpu_count = 2, .gpu_type = "a100", .walltime_s = 3600};
  e.allocated = {.cpu_cores = 8, .memory_bytes = 0, .gpu_type = "h100"};
  e.used = {.cpu_s = 160, .memory_peak_bytes = 77, .memory_peak_basis = "cgroup_peak"};
  return e;
}

TEST(ToIndexedRun, TakesWhatWasReallyApplied) {
  const IndexedRun indexed = ToIndexedRun(Over());
  const predict::Run& run = indexed.run;
  EXPECT_EQ(run.requested.cpu_cores, 8) << "allocated before requested";
  EXPECT_EQ(run.requested.memory_bytes, 100) << "zero is no limit";
  EXPECT_EQ(run.requested.gpu_count, 2);
  EXPECT_EQ(run.requested.walltime_s, 3600);
  EXPECT_EQ(run.gpu_type, "h100");
  EXPECT_EQ(run.runtime_s, 80) << "without suspension";
  EXPECT_EQ(run.cpu_mean_cores, 2);
  EXPECT_EQ(run.memory_peak_bytes, 77);
  EXPECT_FALSE(run.memory_is_floor);
  EXPECT_EQ(run.submitted_micros, base::ToMicros(At(0)));
  EXPECT_EQ(indexed.array_index, 12);
  EXPECT_EQ(indexed.numbers, std::vector<double>{5});
  EXPECT_EQ(indexed.arguments_hash, MakeArgumentsPrint(std::vector<std::string>{"--n", "5"}).hash);
}

TEST(ToIndexedRun, WeakerPeaksAreFloorsAndTheUnknownStaysUnknown) {
  for (const char* basis : {"sampled", "rss", "rusage", ""}) {
    Execution e = Over();
    e.used.memory_peak_basis = basis;
    EXPECT_TRUE(ToIndexedRun(e).run.memory_is_floor) << basis;
  }
  Execution e;
  e.status = ExecutionStatus::kFailed;
  const predict::Run run = ToIndexedRun(e).run;
  EXPECT_FALSE(run.memory_peak_bytes || run.runtime_s || run.cpu_mean_cores ||
               run.requested.gpu_count);
  EXPECT_FALSE(run.memory_is_floor);
  e.started_at = At(10);
  e.ended_at = At(5);
  e.used.cpu_s = 3;
  EXPECT_FALSE(ToIndexedRun(e).run.runtime_s) << "clocks that disagree";
  e.ended_at = e.started_at;
  EXPECT_FALSE(ToIndexedRun(e).run.cpu_mean_cores) << "no time, no rate";
}

TEST(EndingOf, NodesAndPreemptionSayNothingOfTheWorkload) {
  const auto ending = [](Outcome outcome, const char* state,
                         ExecutionStatus status = ExecutionStatus::kFailed) {
    Execution e;
    e.status = status;
    e.outcome = outcome;
    e.native_state = state;
    return EndingOf(e);
  };
  EXPECT_EQ(ending(Outcome::kSuccess, "COMPLETED"), Ending::kSuccess);
  EXPECT_EQ(ending(Outcome::kFailure, "FAILED"), Ending::kFailure);
  EXPECT_EQ(ending(Outcome::kFailure, "NODE_FAIL"), Ending::kInfrastructure);
  EXPECT_EQ(ending(Outcome::kCancelled, "PREEMPTED"), Ending::kInfrastructure);
  EXPECT_EQ(ending(Outcome::kUnknown, "BOOT_FAIL+"), Ending::kInfrastructure);
  EXPECT_EQ(ending(Outcome::kCancelled, "CANCELLED by 1000"), Ending::kCancelled);
  EXPECT_EQ(ending(Outcome::kTimeout, "TIMEOUT"), Ending::kTimeout);
  EXPECT_EQ(ending(Outcome::kOutOfMemory, "OUT_OF_MEMORY"), Ending::kOutOfMemory);
  EXPECT_EQ(ending(Outcome::kUnspecified, "", ExecutionStatus::kSucceeded), Ending::kSuccess);
  EXPECT_EQ(ending(Outcome::kUnspecified, "", ExecutionStatus::kCancelled), Ending::kCancelled);
  EXPECT_EQ(ending(Outcome::kUnknown, "", ExecutionStatus::kFailed), Ending::kFailure);
  EXPECT_EQ(ending(Outcome::kUnknown, "", ExecutionStatus::kUnknown), Ending::kUnknown);
  Execution killed;
  killed.outcome = Outcome::kFailure;
  killed.used.oom_kills = 1;
  EXPECT_EQ(EndingOf(killed), Ending::kOutOfMemory);
  EXPECT_FALSE(TellsSomething(killed)) << "goes on";
}

TEST(ArgumentsOf, AreTheWordsBehindTheScript) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(ArgumentsOf({"/x/job.sh --n 5"}), (Words{"--n", "5"}));
  EXPECT_EQ(ArgumentsOf({"/x/job.sh"}), Words{});
  EXPECT_EQ(ArgumentsOf({"python3", "-u", "train.py", "--n", "5"}), (Words{"--n", "5"}));
  EXPECT_EQ(ArgumentsOf({"./a.out", "in put", "5"}), (Words{"in put", "5"}));
  EXPECT_EQ(ArgumentsOf({"python3 train.py 5"}), Words{"5"});
  EXPECT_EQ(ArgumentsOf({"bash"}), Words{});
  EXPECT_EQ(ArgumentsOf({}), Words{});
  EXPECT_EQ(ArgumentsOf({""}), Words{});
}

TEST(OwnerOf, ComesFromLabels) {
  Execution e;
  EXPECT_EQ(OwnerOf(e), "");
  e.labels = {{"owner.kind", "CronJob"}, {"owner.namespace", "etl"}, {"owner.name", "load"}};
  EXPECT_EQ(OwnerOf(e), OwnerName("CronJob", "etl", "load"));
  e.labels = {{"nomad.job", "etl"}, {"nomad.group", "load"}};
  EXPECT_EQ(OwnerOf(e), OwnerName("nomad", "etl", "load"));
}

TEST(RunCodec, GivesBackWhatItWasGiven) {
  IndexedRun run = ToIndexedRun(Over());
  run.execution_id.clear();  // a column of its own
  run.run.execution_id.clear();
  run.run.submitted_micros = -5;
  run.run.gpu_memory_peak_bytes = 3e10;
  run.run.gpus_active = 0;
  run.user = std::string("\xFF\0x", 3);
  EXPECT_EQ(DecodeRun(EncodeRun(run)), run);
  EXPECT_EQ(DecodeRun(EncodeRun({})), IndexedRun{});
}

TEST(RunCodec, RefusesWhatIsCutOrChanged) {
  const std::string good = EncodeRun(ToIndexedRun(Over()));
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(DecodeRun(good.substr(0, cut))) << cut;
  EXPECT_FALSE(DecodeRun(good + "x"));
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    (void)DecodeRun(bad);  // must not crash
  }
}

}  // namespace
}  // namespace expanse::intelligence::history
