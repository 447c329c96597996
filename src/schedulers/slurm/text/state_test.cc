#include "schedulers/slurm/text/state.h"

#include <gtest/gtest.h>

#include <array>

namespace expanse::schedulers::slurm {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;

struct Expected {
  std::string_view compact;
  std::string_view name;
  ExecutionStatus status;
  Outcome outcome;
  bool final;
};

constexpr std::array kStates = {
    Expected{"PD", "PENDING", ExecutionStatus::kQueued, Outcome::kUnspecified, false},
    Expected{"R", "RUNNING", ExecutionStatus::kRunning, Outcome::kUnspecified, false},
    Expected{"S", "SUSPENDED", ExecutionStatus::kRunning, Outcome::kUnspecified, false},
    Expected{"CD", "COMPLETED", ExecutionStatus::kSucceeded, Outcome::kSuccess, true},
    Expected{"CA", "CANCELLED", ExecutionStatus::kCancelled, Outcome::kCancelled, true},
    Expected{"F", "FAILED", ExecutionStatus::kFailed, Outcome::kFailure, true},
    Expected{"TO", "TIMEOUT", ExecutionStatus::kFailed, Outcome::kTimeout, true},
    Expected{"NF", "NODE_FAIL", ExecutionStatus::kFailed, Outcome::kFailure, true},
    Expected{"PR", "PREEMPTED", ExecutionStatus::kCancelled, Outcome::kCancelled, true},
    Expected{"BF", "BOOT_FAIL", ExecutionStatus::kFailed, Outcome::kFailure, true},
    Expected{"DL", "DEADLINE", ExecutionStatus::kFailed, Outcome::kTimeout, true},
    Expected{"OOM", "OUT_OF_MEMORY", ExecutionStatus::kFailed, Outcome::kOutOfMemory, true},
    Expected{"CG", "COMPLETING", ExecutionStatus::kRunning, Outcome::kUnspecified, false},
    Expected{"CF", "CONFIGURING", ExecutionStatus::kRunning, Outcome::kUnspecified, false},
    Expected{"RS", "RESIZING", ExecutionStatus::kRunning, Outcome::kUnspecified, false},
    Expected{"SI", "SIGNALING", ExecutionStatus::kRunning, Outcome::kUnspecified, false},
    Expected{"SO", "STAGE_OUT", ExecutionStatus::kRunning, Outcome::kUnspecified, false},
    Expected{"ST", "STOPPED", ExecutionStatus::kRunning, Outcome::kUnspecified, false},
    Expected{"RQ", "REQUEUED", ExecutionStatus::kCancelled, Outcome::kCancelled, true},
    Expected{"RF", "REQUEUE_FED", ExecutionStatus::kQueued, Outcome::kUnspecified, false},
    Expected{"RH", "REQUEUE_HOLD", ExecutionStatus::kQueued, Outcome::kUnspecified, false},
    Expected{"SE", "SPECIAL_EXIT", ExecutionStatus::kQueued, Outcome::kUnspecified, false},
    Expected{"RD", "RESV_DEL_HOLD", ExecutionStatus::kQueued, Outcome::kUnspecified, false},
    Expected{"RV", "REVOKED", ExecutionStatus::kCancelled, Outcome::kCancelled, true},
};

TEST(SlurmJobState, KnowsEveryWordLongAndShort) {
  for (const Expected& expected : kStates) {
    for (std::string_view word : {expected.name, expected.compact}) {
      const JobState state = ParseJobState(word);
      EXPECT_EQ(state.name, expected.name) << word;
      EXPECT_EQ(state.status, expected.status) << word;
      EXPECT_EQ(state.outcome, expected.outcome) << word;
      EXPECT_EQ(state.final, expected.final) << word;
      EXPECT_TRUE(state.flags.empty()) << word;
    }
  }
}

TEST(SlurmJobState, KnowsTheWordsOfNewerVersions) {
  EXPECT_EQ(ParseJobState("LAUNCH_FAILED").status, ExecutionStatus::kQueued);
  EXPECT_EQ(ParseJobState("RECONFIG_FAIL").status, ExecutionStatus::kQueued);
  EXPECT_EQ(ParseJobState("POWER_UP_NODE").status, ExecutionStatus::kRunning);
  EXPECT_EQ(ParseJobState("EXPEDITING").status, ExecutionStatus::kQueued);
}

TEST(SlurmJobState, SaysWhoCancelled) {
  const JobState state = ParseJobState("CANCELLED by 1234");
  EXPECT_EQ(state.name, "CANCELLED");
  EXPECT_EQ(state.cancelled_by, 1234);
  EXPECT_TRUE(state.final);
  EXPECT_EQ(ParseJobState("CANCELLED by somebody").cancelled_by, std::nullopt);
}

TEST(SlurmJobState, UnderstandsWordsCutByAColumn) {
  EXPECT_EQ(ParseJobState("CANCELLED+").name, "CANCELLED");
  EXPECT_EQ(ParseJobState("OUT_OF_ME+").outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(ParseJobState("NODE_FAIL+").name, "NODE_FAIL");
}

TEST(SlurmJobState, IsNotFinalWhileNodesCleanUp) {
  const JobState state = ParseJobState("COMPLETED+COMPLETING");
  EXPECT_EQ(state.name, "COMPLETED");
  EXPECT_EQ(state.status, ExecutionStatus::kSucceeded);
  EXPECT_FALSE(state.final);
  EXPECT_EQ(state.flags, std::vector<std::string>{"COMPLETING"});
  EXPECT_FALSE(ParseJobState("FAILED,STAGE_OUT").final);
}

TEST(SlurmJobState, TakesListsInAnyOrder) {
  const std::array<std::string_view, 2> flag_first = {"CONFIGURING", "RUNNING"};
  const JobState state = JobStateFromWords(flag_first);
  EXPECT_EQ(state.name, "RUNNING");
  EXPECT_EQ(state.flags, std::vector<std::string>{"CONFIGURING"});
  const std::array<std::string_view, 2> held = {"PENDING", "REQUEUE_HOLD"};
  EXPECT_EQ(JobStateFromWords(held).status, ExecutionStatus::kQueued);
  const std::array<std::string_view, 2> requeued = {"PENDING", "REQUEUED"};
  EXPECT_EQ(JobStateFromWords(requeued).status, ExecutionStatus::kQueued);
  EXPECT_FALSE(JobStateFromWords(requeued).final);
  EXPECT_EQ(JobStateFromWords({}), JobState{});
}

TEST(SlurmJobState, KeepsUnknownWordsAndConcludesNothingFromThem) {
  const JobState state = ParseJobState("Levitating");
  EXPECT_EQ(state.name, "Levitating");
  EXPECT_EQ(state.status, ExecutionStatus::kUnspecified);
  EXPECT_FALSE(state.final);
  const JobState both = ParseJobState("RUNNING+LEVITATING");
  EXPECT_EQ(both.name, "RUNNING");
  EXPECT_EQ(both.flags, std::vector<std::string>{"LEVITATING"});
}

struct NodeCase {
  std::string_view text;
  std::string_view base;
  std::vector<std::string> flags;
  bool usable;
};

TEST(SlurmNodeState, ReadsScontrolsAndSinfosWords) {
  const std::vector<NodeCase> cases = {
      {"IDLE", "IDLE", {}, true},
      {"IDLE+DRAIN", "IDLE", {"DRAIN"}, false},
      {"mixed*", "MIXED", {"NOT_RESPONDING"}, false},
      {"DOWN$", "DOWN", {"MAINTENANCE"}, false},
      {"ALLOCATED+PLANNED", "ALLOCATED", {"PLANNED"}, true},
      {"idle~", "IDLE", {"POWERED_DOWN"}, false},
      {"idle#", "IDLE", {"POWERING_UP"}, true},
      {"mixed-", "MIXED", {"PLANNED"}, true},
      {"DOWN*+DRAIN+INVALID_REG", "DOWN", {"NOT_RESPONDING", "DRAIN", "INVALID_REG"}, false},
      {"MIXED+CLOUD", "MIXED", {"CLOUD"}, true},
      {"IDLE+CLOUD+POWERED_DOWN", "IDLE", {"CLOUD", "POWERED_DOWN"}, false},
      {"drained", "IDLE", {"DRAIN"}, false},
      {"drng", "ALLOCATED", {"DRAIN"}, false},
      {"drain*", "IDLE", {"NOT_RESPONDING", "DRAIN"}, false},
      {"alloc", "ALLOCATED", {}, true},
      {"allocated+", "ALLOCATED", {"COMPLETING"}, true},
      {"mix", "MIXED", {}, true},
      {"comp", "ALLOCATED", {"COMPLETING"}, true},
      {"maint", "IDLE", {"MAINTENANCE"}, false},
      {"resv", "IDLE", {"RESERVED"}, true},
      {"plnd", "IDLE", {"PLANNED"}, true},
      {"reboot^", "IDLE", {"REBOOT_ISSUED"}, false},
      {"unk*", "UNKNOWN", {"NOT_RESPONDING"}, false},
      {"futr", "FUTURE", {}, false},
      {"inval", "DOWN", {"INVALID_REG"}, false},
      {"", "", {}, false},
  };
  for (const NodeCase& one : cases) {
    const NodeState state = ParseNodeState(one.text);
    EXPECT_EQ(state.base, one.base) << one.text;
    EXPECT_EQ(state.flags, one.flags) << one.text;
    EXPECT_EQ(state.usable, one.usable) << one.text;
  }
}

TEST(SlurmNodeState, KeepsWordsOfLaterVersions) {
  const NodeState state = ParseNodeState("IDLE+DYNAMIC_NORM+HUMMING");
  EXPECT_EQ(state.base, "IDLE");
  EXPECT_TRUE(state.Has("HUMMING"));
  EXPECT_TRUE(state.usable);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
