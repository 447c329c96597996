#include "evidence/execution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "base/crypto.h"

namespace expanse::evidence {
namespace {

base::WallTime At(int seconds) {
  return base::WallTime(std::chrono::seconds(1'800'000'000 + seconds));
}

Execution Seen(ExecutionStatus status, std::uint32_t restarts = 0) {
  Execution execution;
  execution.status = status;
  execution.restart_count = restarts;
  return execution;
}

TEST(Names, ReadBackAsWritten) {
  for (const auto type :
       {SourceType::kSlurm, SourceType::kKubernetes, SourceType::kNomad, SourceType::kHost}) {
    EXPECT_EQ(ParseSourceType(Name(type)), type);
  }
  for (const auto status :
       {ExecutionStatus::kQueued, ExecutionStatus::kRunning, ExecutionStatus::kSucceeded,
        ExecutionStatus::kFailed, ExecutionStatus::kCancelled, ExecutionStatus::kUnknown}) {
    EXPECT_EQ(ParseStatus(Name(status)), status);
  }
  for (const auto outcome : {Outcome::kSuccess, Outcome::kFailure, Outcome::kCancelled,
                             Outcome::kTimeout, Outcome::kOutOfMemory, Outcome::kUnknown}) {
    EXPECT_EQ(ParseOutcome(Name(outcome)), outcome);
  }
}

TEST(Names, AreThoseOfTheCommandLine) {
  EXPECT_EQ(Name(SourceType::kHost), "host");
  EXPECT_EQ(Name(ExecutionStatus::kCancelled), "cancelled");
  EXPECT_EQ(Name(Outcome::kOutOfMemory), "out_of_memory");
}

TEST(Names, RefuseOtherSpellings) {
  EXPECT_EQ(ParseStatus("Running"), std::nullopt);
  EXPECT_EQ(ParseStatus(""), std::nullopt);
  EXPECT_EQ(ParseOutcome("oom"), std::nullopt);
  EXPECT_EQ(ParseSourceType("slurm "), std::nullopt);
}

TEST(ExecutionId, IsAUuidOfVersionEight) {
  const std::string id = ExecutionId("compute-a", {SourceType::kSlurm, "4711@1800000000+0"});
  EXPECT_TRUE(base::IsUuid(id)) << id;
  EXPECT_EQ(id[14], '8');
  EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos) << id;
}

TEST(ExecutionId, NeverChangesForWhatIsStoredAlready) {
  // SHA-256 of the three texts with a NUL between them, worked out with another tool, version and
  // variant bits set. A change here would give every stored execution a second self.
  EXPECT_EQ(ExecutionId("compute-a", {SourceType::kSlurm, "4711@1800000000+0"}),
            "40a5312f-da2a-8f2d-90d8-9ccd9670a8c9");
}

TEST(ExecutionId, DiffersByComputeSourceAndIdentity) {
  const ExecutionKey key{SourceType::kSlurm, "7"};
  const std::string id = ExecutionId("a", key);
  EXPECT_EQ(ExecutionId("a", key), id);
  EXPECT_NE(ExecutionId("b", key), id);
  EXPECT_NE(ExecutionId("a", {SourceType::kNomad, "7"}), id);
  EXPECT_NE(ExecutionId("a", {SourceType::kSlurm, "8"}), id);
}

TEST(Merge, TakesWhatIsSetAndKeepsTheRest) {
  Execution known = Seen(ExecutionStatus::kRunning);
  known.name = "train";
  known.requested.memory_bytes = 1024;
  known.labels = {{"team", "vision"}, {"tier", "low"}};
  Execution seen;
  seen.user = "ada";
  seen.requested.cpu_cores = 2;
  seen.labels = {{"tier", "high"}};
  const Execution merged = Merge(known, seen);
  EXPECT_EQ(merged.name, "train");
  EXPECT_EQ(merged.user, "ada");
  EXPECT_EQ(merged.requested.memory_bytes, 1024U);
  EXPECT_EQ(merged.requested.cpu_cores, 2.0);
  EXPECT_EQ(merged.labels,
            (std::map<std::string, std::string>{{"team", "vision"}, {"tier", "high"}}));
  EXPECT_EQ(merged.status, ExecutionStatus::kRunning);
}

TEST(Merge, HoldsLabelsToTheirBoundHoweverManyObservationsComeTogether) {
  Execution known;
  for (int i = 0; i < 10; ++i) {
    Execution seen;
    for (int j = 0; j < 50; ++j) seen.labels["k" + std::to_string(50 * i + j)] = "v";
    known = Merge(std::move(known), seen);
  }
  EXPECT_EQ(known.labels.size(), kMaxLabels);
  Execution seen;
  seen.labels = {{"k0", "new"}, {"another", "v"}};
  known = Merge(std::move(known), seen);
  EXPECT_EQ(known.labels.at("k0"), "new");
  EXPECT_FALSE(known.labels.contains("another"));
}

TEST(Merge, IsIdempotent) {
  Execution seen = Seen(ExecutionStatus::kFailed, 1);
  seen.exit_code = 3;
  seen.started_at = At(1);
  seen.ended_at = At(2);
  seen.used.memory_peak_bytes = 9;
  seen.capture_notes = {"no cgroup"};
  const Execution once = Merge({}, seen);
  EXPECT_EQ(Merge(once, seen), once);
}

TEST(Merge, NeverGoesBackFromATerminalStatus) {
  Execution failed = Seen(ExecutionStatus::kFailed);
  failed.outcome = Outcome::kTimeout;
  failed.native_state = "TIMEOUT";
  for (const auto late :
       {ExecutionStatus::kQueued, ExecutionStatus::kRunning, ExecutionStatus::kUnknown}) {
    Execution seen = Seen(late);
    seen.native_state = "LATE";
    seen.outcome = Outcome::kUnknown;
    const Execution merged = Merge(failed, seen);
    EXPECT_EQ(merged.status, ExecutionStatus::kFailed);
    EXPECT_EQ(merged.outcome, Outcome::kTimeout);
    EXPECT_EQ(merged.native_state, "TIMEOUT");
  }
}

TEST(Merge, LetsAGuessedEndGiveWayToTheRealOne) {
  Execution guess = Seen(ExecutionStatus::kUnknown);
  guess.outcome = Outcome::kUnknown;
  guess.native_state = "lost";
  guess.native_reason = "ended, exit code not seen";
  guess.ended_at = At(90);
  guess.capture_notes = {"the end is a guess"};
  Execution real = Seen(ExecutionStatus::kSucceeded);
  real.outcome = Outcome::kSuccess;
  real.native_state = "exited";
  real.ended_at = At(50);
  for (const Execution& merged : {Merge(guess, real), Merge(real, guess)}) {
    EXPECT_EQ(merged.status, ExecutionStatus::kSucceeded);
    EXPECT_EQ(merged.outcome, Outcome::kSuccess);
    EXPECT_EQ(merged.native_reason, "");
    EXPECT_EQ(merged.ended_at, At(50));
    EXPECT_TRUE(merged.capture_notes.empty());
  }
}

TEST(Merge, NeverGoesBackFromRunningToQueued) {
  Execution running = Seen(ExecutionStatus::kRunning);
  running.started_at = At(10);
  Execution queued = Seen(ExecutionStatus::kQueued);
  queued.submitted_at = At(0);
  const Execution merged = Merge(running, queued);
  EXPECT_EQ(merged.status, ExecutionStatus::kRunning);
  EXPECT_EQ(merged.started_at, At(10));
  EXPECT_EQ(merged.submitted_at, At(0)) << "what the late observation adds is still taken";
}

TEST(Merge, EndsTheSameInEveryOrder) {
  Execution queued = Seen(ExecutionStatus::kQueued);
  queued.submitted_at = At(0);
  queued.updated_at = At(0);
  Execution running = Seen(ExecutionStatus::kRunning);
  running.started_at = At(5);
  running.updated_at = At(5);
  Execution done = Seen(ExecutionStatus::kSucceeded);
  done.outcome = Outcome::kSuccess;
  done.ended_at = At(9);
  done.exit_code = 0;
  done.updated_at = At(9);
  const Execution expected = Merge(Merge(Merge({}, queued), running), done);
  const Execution* all[] = {&queued, &running, &done};
  std::sort(std::begin(all), std::end(all));
  do {
    Execution merged;
    for (const Execution* seen : all) merged = Merge(merged, *seen);
    EXPECT_EQ(merged, expected);
  } while (std::next_permutation(std::begin(all), std::end(all)));
}

TEST(Merge, TakesAccountingsFinalTruthOverAFirstGuess) {
  Execution known = Seen(ExecutionStatus::kFailed);
  known.outcome = Outcome::kFailure;
  Execution seen = Seen(ExecutionStatus::kFailed);
  seen.outcome = Outcome::kOutOfMemory;
  EXPECT_EQ(Merge(known, seen).outcome, Outcome::kOutOfMemory);
}

TEST(Merge, TakesAnExitCodeThatComesWithoutAStatus) {
  Execution seen;
  seen.exit_code = 137;
  EXPECT_EQ(Merge(Seen(ExecutionStatus::kFailed), seen).exit_code, 137);
  EXPECT_EQ(Merge(Seen(ExecutionStatus::kFailed), seen).status, ExecutionStatus::kFailed);
}

TEST(Merge, StartsOverOnARequeue) {
  Execution known = Seen(ExecutionStatus::kFailed);
  known.name = "train";
  known.submitted_at = At(0);
  known.started_at = At(1);
  known.ended_at = At(2);
  known.exit_code = 1;
  known.signal = 9;
  known.outcome = Outcome::kFailure;
  known.used.cpu_s = 12;
  const Execution merged = Merge(known, Seen(ExecutionStatus::kQueued, 1));
  EXPECT_EQ(merged.status, ExecutionStatus::kQueued);
  EXPECT_EQ(merged.restart_count, 1U);
  EXPECT_EQ(merged.outcome, Outcome::kUnspecified);
  EXPECT_EQ(merged.exit_code, std::nullopt);
  EXPECT_EQ(merged.signal, std::nullopt);
  EXPECT_EQ(merged.started_at, std::nullopt);
  EXPECT_EQ(merged.ended_at, std::nullopt);
  EXPECT_EQ(merged.used, Usage{});
  EXPECT_EQ(merged.name, "train");
  EXPECT_EQ(merged.submitted_at, At(0));
}

TEST(Merge, DropsWhatAnEarlierRunSaysLate) {
  Execution known = Seen(ExecutionStatus::kRunning, 2);
  known.started_at = At(100);
  Execution late = Seen(ExecutionStatus::kFailed, 1);
  late.ended_at = At(50);
  late.started_at = At(40);
  late.exit_code = 1;
  late.used.cpu_s = 5;
  const Execution merged = Merge(known, late);
  EXPECT_EQ(merged, known);
}

TEST(Merge, KeepsMemoryPeakAndItsBasisTogether) {
  Execution known;
  known.used.memory_peak_bytes = 10;
  known.used.memory_peak_basis = "sampled";
  Execution seen;
  seen.used.memory_peak_basis = "rss";
  EXPECT_EQ(Merge(known, seen).used.memory_peak_basis, "sampled");
  seen.used.memory_peak_bytes = 12;
  EXPECT_EQ(Merge(known, seen).used.memory_peak_basis, "rss");
}

TEST(Merge, NeverTakesUpdatedAtBack) {
  Execution known;
  known.updated_at = At(9);
  Execution seen;
  seen.updated_at = At(3);
  EXPECT_EQ(Merge(known, seen).updated_at, At(9));
  EXPECT_EQ(Merge(known, {}).updated_at, At(9));
  EXPECT_EQ(Merge({}, seen).updated_at, At(3));
}

}  // namespace
}  // namespace expanse::evidence
