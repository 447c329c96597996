#include "schedulers/host/outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

namespace expanse::schedulers::host {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;

EndFacts Exited(int code) { return {.command = {"prog"}, .wait_status = code << 8}; }
EndFacts Killed(int signal) { return {.command = {"prog"}, .wait_status = signal}; }
constexpr std::uint64_t Bit(int signal) { return std::uint64_t{1} << signal; }

TEST(Judge, TellsSuccessFromFailure) {
  EXPECT_EQ(Judge(Exited(0)).status, ExecutionStatus::kSucceeded);
  EXPECT_EQ(Judge(Exited(0)).outcome, Outcome::kSuccess);
  const Verdict failed = Judge(Exited(3));
  EXPECT_EQ(failed.status, ExecutionStatus::kFailed);
  EXPECT_EQ(failed.outcome, Outcome::kFailure);
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_FALSE(failed.signal);
  EXPECT_EQ(ShellExitCode(Exited(3)), 3);
}

TEST(Judge, NamesTheSignal) {
  const Verdict verdict = Judge(Killed(SIGSEGV));
  EXPECT_EQ(verdict.outcome, Outcome::kFailure);
  EXPECT_EQ(verdict.signal, SIGSEGV);
  EXPECT_FALSE(verdict.exit_code);
  EXPECT_EQ(verdict.native_reason, "SIGSEGV");
  EXPECT_EQ(ShellExitCode(Killed(SIGSEGV)), 139);
}

TEST(Judge, SaysWhatCouldNotBeStarted) {
  EndFacts facts;
  facts.exec_error = ENOENT;
  EXPECT_EQ(ShellExitCode(facts), 127);
  EXPECT_EQ(Judge(facts).native_reason, "command not found");
  facts.exec_error = EACCES;
  EXPECT_EQ(ShellExitCode(facts), 126);
  EXPECT_EQ(Judge(facts).exit_code, 126);
}

TEST(Judge, BlamesTheMemoryLimitWhenTheKernelDid) {
  EndFacts facts = Killed(SIGKILL);
  facts.oom_kills = 1;
  EXPECT_EQ(Judge(facts).outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(Judge(facts).status, ExecutionStatus::kFailed);
  facts = Exited(1);  // a shell whose child was killed
  facts.oom_kills = 2;
  EXPECT_EQ(Judge(facts).outcome, Outcome::kOutOfMemory);
  facts = Killed(SIGKILL);
  facts.oom_kills = 0;
  EXPECT_EQ(Judge(facts).outcome, Outcome::kFailure);
}

TEST(Judge, NotesAnOomKillThatTheCommandSurvived) {
  EndFacts facts = Exited(0);
  facts.oom_kills = 1;
  const Verdict verdict = Judge(facts);
  EXPECT_EQ(verdict.status, ExecutionStatus::kSucceeded);
  ASSERT_EQ(verdict.notes.size(), 1U);
}

TEST(Judge, KnowsTimeouts) {
  EndFacts facts = Killed(SIGTERM);
  facts.walltime_reached = true;
  EXPECT_EQ(Judge(facts).outcome, Outcome::kTimeout);
  facts = Exited(124);
  EXPECT_EQ(Judge(facts).outcome, Outcome::kFailure);
  facts.command = {"/usr/bin/timeout", "1", "sleep", "9"};
  EXPECT_EQ(Judge(facts).outcome, Outcome::kTimeout);
  EXPECT_EQ(Judge(facts).status, ExecutionStatus::kFailed);
}

TEST(Judge, CallsARequestedEndCancelled) {
  EndFacts facts = Killed(SIGTERM);
  EXPECT_EQ(Judge(facts).status, ExecutionStatus::kFailed);  // somebody else's signal
  facts.signals_received = Bit(SIGTERM);
  EXPECT_EQ(Judge(facts).status, ExecutionStatus::kCancelled);
  EXPECT_EQ(Judge(facts).outcome, Outcome::kCancelled);
  facts = Exited(143);
  facts.signals_received = Bit(SIGTERM);
  EXPECT_EQ(Judge(facts).status, ExecutionStatus::kCancelled);
  facts = Exited(0);  // it finished its work in spite of it
  facts.signals_received = Bit(SIGTERM);
  EXPECT_EQ(Judge(facts).status, ExecutionStatus::kSucceeded);
  for (EndFacts typed : {Killed(SIGINT), Exited(130)}) {
    EXPECT_EQ(Judge(typed).status, ExecutionStatus::kFailed);
    typed.on_terminal = true;
    EXPECT_EQ(Judge(typed).status, ExecutionStatus::kCancelled);
  }
}

}  // namespace
}  // namespace expanse::schedulers::host
