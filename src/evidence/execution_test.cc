#include "evidence/execution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

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
  seen.used.memory_peak_basis = "cgroup_peak";
  EXPECT_EQ(Merge(known, seen).used.memory_peak_basis, "sampled") << "a basis without a peak";
  seen.used.memory_peak_bytes = 12;
  EXPECT_EQ(Merge(known, seen).used.memory_peak_basis, "cgroup_peak");
  EXPECT_EQ(Merge(known, seen).used.memory_peak_bytes, 12U);
}

TEST(Merge, NeverLetsAMemoryPeakGiveWayToOneOfAWeakerBasis) {
  const char* const weakest_first[] = {"", "rss", "rusage", "sampled", "cgroup_peak"};
  for (std::size_t known = 0; known < std::size(weakest_first); ++known) {
    for (std::size_t seen = 0; seen < std::size(weakest_first); ++seen) {
      Execution first;
      first.used = {.memory_peak_bytes = 10, .memory_peak_basis = weakest_first[known]};
      Execution second;
      second.used = {.memory_peak_bytes = 7, .memory_peak_basis = weakest_first[seen]};
      SCOPED_TRACE(first.used.memory_peak_basis + " then " + second.used.memory_peak_basis);
      EXPECT_EQ(Merge(first, second).used, seen >= known ? second.used : first.used);
    }
  }
}

TEST(Merge, ForgetsWhatBelongsToWaitingOnceItRuns) {
  Execution queued = Seen(ExecutionStatus::kQueued);
  queued.native_reason = "Resources";
  queued.expected_start_at = At(60);
  queued.eligible_at = At(1);
  Execution running = Seen(ExecutionStatus::kRunning);
  running.started_at = At(5);
  for (const Execution& merged : {Merge(queued, running), Merge(running, queued)}) {
    EXPECT_EQ(merged.expected_start_at, std::nullopt);
    EXPECT_EQ(merged.native_reason, "");
    EXPECT_EQ(merged.eligible_at, At(1));
  }
}

TEST(Merge, TakesTheLatestWordOnTheExpectedStart) {
  Execution queued = Seen(ExecutionStatus::kQueued);
  queued.expected_start_at = At(60);
  Execution silent;
  silent.comment = "no word on its state";
  EXPECT_EQ(Merge(queued, silent).expected_start_at, At(60));
  Execution later = Seen(ExecutionStatus::kQueued);
  later.expected_start_at = At(90);
  EXPECT_EQ(Merge(queued, later).expected_start_at, At(90));
  EXPECT_EQ(Merge(queued, Seen(ExecutionStatus::kQueued)).expected_start_at, std::nullopt)
      << "the scheduler has no estimate any more";
}

Step StepOf(const std::string& id, ExecutionStatus status = ExecutionStatus::kSucceeded) {
  Step step;
  step.id = id;
  step.status = status;
  return step;
}

std::vector<std::string> Ids(const std::vector<Step>& steps) {
  std::vector<std::string> ids;
  for (const Step& step : steps) ids.push_back(step.id);
  return ids;
}

TEST(MergeSteps, UnitesThemByIdInTheirOrder) {
  Execution known;
  known.steps = {StepOf("10"), StepOf("2", ExecutionStatus::kRunning), StepOf("batch")};
  known.steps[1].name = "train";
  known.steps[1].used = {.memory_peak_bytes = 10, .memory_peak_basis = "cgroup_peak"};
  Execution seen;
  seen.steps = {StepOf("2", ExecutionStatus::kFailed), StepOf("0+1"), StepOf("extern")};
  seen.steps[0].exit_code = 3;
  seen.steps[0].used = {.cpu_s = 4, .memory_peak_bytes = 99, .memory_peak_basis = "rss"};
  const Execution merged = Merge(known, seen);
  EXPECT_EQ(Ids(merged.steps), (std::vector<std::string>{"batch", "extern", "0+1", "2", "10"}));
  const Step& united = merged.steps[3];
  EXPECT_EQ(united.name, "train");
  EXPECT_EQ(united.status, ExecutionStatus::kFailed);
  EXPECT_EQ(united.exit_code, 3);
  EXPECT_EQ(united.used.cpu_s, 4.0);
  EXPECT_EQ(united.used.memory_peak_bytes, 10U) << "of the stronger basis";
  EXPECT_EQ(Merge(merged, seen), merged);
}

TEST(MergeSteps, NeverGoBack) {
  Execution known;
  known.steps = {StepOf("0", ExecutionStatus::kFailed)};
  known.steps[0].native_state = "OUT_OF_MEMORY";
  known.steps[0].exit_code = 0;
  known.steps[0].signal = 125;
  Execution late;
  late.steps = {StepOf("0", ExecutionStatus::kRunning)};
  late.steps[0].native_state = "RUNNING";
  late.steps[0].signal = 0;
  late.steps[0].started_at = At(1);
  const Execution merged = Merge(known, late);
  EXPECT_EQ(merged.steps[0].status, ExecutionStatus::kFailed);
  EXPECT_EQ(merged.steps[0].native_state, "OUT_OF_MEMORY");
  EXPECT_EQ(merged.steps[0].signal, 125);
  EXPECT_EQ(merged.steps[0].started_at, At(1)) << "what the late observation adds";
}

TEST(MergeSteps, BelongToOneRun) {
  Execution known = Seen(ExecutionStatus::kFailed);
  known.steps = {StepOf("batch", ExecutionStatus::kFailed)};
  known.suspended_s = 9;
  Execution again = Seen(ExecutionStatus::kRunning, 1);
  again.steps = {StepOf("extern", ExecutionStatus::kRunning)};
  EXPECT_EQ(Ids(Merge(known, again).steps), (std::vector<std::string>{"extern"}));
  EXPECT_EQ(Merge(known, again).suspended_s, std::nullopt);
}

TEST(MergeSteps, AreHeldToTheirBoundAndKeepTheFailedOnes) {
  Execution known;
  for (int i = 0; i < 500; ++i) known.steps.push_back(StepOf(std::to_string(i)));
  known.steps.push_back(StepOf("batch"));
  Execution seen;
  for (int i = 500; i < 1000; ++i) seen.steps.push_back(StepOf(std::to_string(i)));
  seen.steps.back().status = ExecutionStatus::kFailed;
  seen.steps[300].exit_code = 1;
  const Execution merged = Merge(known, seen);
  ASSERT_EQ(merged.steps.size(), kMaxSteps);
  EXPECT_EQ(merged.steps[0].id, "batch");
  EXPECT_EQ(merged.steps[1].id, "0");
  EXPECT_EQ(merged.steps[509].id, "508") << "the first ones";
  EXPECT_EQ(merged.steps[510].id, "800");
  EXPECT_EQ(merged.steps[511].id, "999");
  ASSERT_EQ(merged.capture_notes.size(), 1U);
  EXPECT_EQ(Merge(merged, seen).capture_notes.size(), 1U) << "said once";
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

TEST(Merge, OfASlurmRunTheRestartCountOnlyTells) {
  Execution queue;
  queue.source_type = SourceType::kSlurm;
  queue.restart_count = 1;
  queue.status = ExecutionStatus::kRunning;
  queue.started_at = At(5);
  Execution accounting;  // does not know the count
  accounting.source_type = SourceType::kSlurm;
  accounting.status = ExecutionStatus::kFailed;
  accounting.exit_code = 3;
  for (const Execution& merged : {Merge(queue, accounting), Merge(accounting, queue)}) {
    EXPECT_EQ(merged.restart_count, 1U);
    EXPECT_EQ(merged.status, ExecutionStatus::kFailed);
    EXPECT_EQ(merged.exit_code, 3);
    EXPECT_EQ(merged.started_at, At(5));
  }
}

TEST(Merge, LossyTextNeverReplacesExactText) {
  Execution exact;
  exact.name = "say \"hi\"";
  Execution lossy;
  lossy.name = "say `hi`";
  lossy.comment = "from accounting";
  lossy.lossy_text = true;
  const Execution kept = Merge(Merge({}, exact), lossy);
  EXPECT_EQ(kept.name, exact.name);
  EXPECT_EQ(kept.comment, lossy.comment) << "a gap is filled";
  EXPECT_FALSE(kept.lossy_text);

  const Execution replaced = Merge(Merge({}, lossy), exact);
  EXPECT_EQ(replaced.name, exact.name);
  EXPECT_FALSE(replaced.lossy_text);
  EXPECT_TRUE(Merge({}, lossy).lossy_text);
  Execution no_text;
  no_text.status = ExecutionStatus::kRunning;
  EXPECT_TRUE(Merge(Merge({}, lossy), no_text).lossy_text) << "says nothing about text";
  EXPECT_TRUE(Merge(Merge({}, no_text), lossy).lossy_text);
}

TEST(Merge, ARunThatGoesOnHasNoGuessedEnd) {
  const auto at = [](int s) { return base::WallTime(std::chrono::seconds(s)); };
  Execution running;
  running.status = ExecutionStatus::kRunning;
  running.started_at = at(100);
  running.updated_at = at(110);
  Execution guess;
  guess.status = ExecutionStatus::kUnknown;
  guess.outcome = Outcome::kUnknown;
  guess.native_reason = "left the queue, end not seen";
  guess.ended_at = at(200);
  guess.updated_at = at(800);
  guess.capture_notes = {"no record of its end"};
  const Execution guessed = Merge(running, guess);
  EXPECT_EQ(guessed.status, ExecutionStatus::kUnknown);
  EXPECT_EQ(Merge(guessed, running).status, ExecutionStatus::kUnknown) << "told late";
  running.updated_at = at(900);
  const Execution back = Merge(guessed, running);
  EXPECT_EQ(back.status, ExecutionStatus::kRunning);
  EXPECT_EQ(back.outcome, Outcome::kUnspecified);
  EXPECT_FALSE(back.ended_at);
  EXPECT_EQ(back.native_reason, "");
  EXPECT_TRUE(back.capture_notes.empty());
}

TEST(Merge, AnExitCodeWithoutIts128IsNoNewOne) {
  Execution known;
  known.status = ExecutionStatus::kFailed;
  known.exit_code = 143;
  Execution of_accounting = known;
  of_accounting.exit_code = 15;
  of_accounting.lossy_text = true;
  EXPECT_EQ(Merge(known, of_accounting).exit_code, 143);
  EXPECT_EQ(Merge(of_accounting, known).exit_code, 143);
  of_accounting.exit_code = 14;
  EXPECT_EQ(Merge(known, of_accounting).exit_code, 14);
  of_accounting.exit_code = 15;
  of_accounting.lossy_text = false;
  EXPECT_EQ(Merge(known, of_accounting).exit_code, 15);
}

TEST(Merge, CaptureNotesAddUpToABound) {
  Execution known;
  known.capture_notes = {"logs: off"};
  Execution seen;
  seen.capture_notes = {"logs: off", "sources: too large"};
  EXPECT_EQ(Merge(known, seen).capture_notes,
            (std::vector<std::string>{"logs: off", "sources: too large"}));
  for (int i = 0; i < 100; ++i) seen.capture_notes.push_back(std::to_string(i));
  EXPECT_EQ(Merge(known, seen).capture_notes.size(), kMaxNotes);
}

}  // namespace
}  // namespace expanse::evidence
