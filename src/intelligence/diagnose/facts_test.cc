#include "intelligence/diagnose/facts.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace expanse::intelligence::diagnose {
namespace {

using evidence::ExecutionStatus;
using evidence::SourceType;

constexpr double kGiB = 1024.0 * 1024 * 1024;

class FactsTest : public testing::Test {
 protected:
  Facts Of() { return Facts::Of(case_, &ledger_); }
  // The text of the item that shows a fact; empty: none does.
  std::string Shown(const Facts& facts, std::string_view name) {
    const Fact* fact = facts.Find(name);
    if (fact == nullptr || !fact->item) return {};
    return ledger_[*fact->item].text;
  }
  static Condition Is(std::string fact, std::vector<std::string> words) {
    return {.fact = std::move(fact), .words = std::move(words)};
  }
  static Condition Between(std::string fact, std::optional<double> least,
                           std::optional<double> most) {
    return {.fact = std::move(fact), .words = {}, .at_least = least, .at_most = most};
  }

  Case case_;
  Ledger ledger_;
};

TEST_F(FactsTest, UnknownFactsSatisfyNothing) {
  const Facts facts = Of();
  for (const std::string_view name : Facts::Names()) {
    EXPECT_FALSE(facts.Holds(Between(std::string(name), -1e300, 1e300))) << name;
    EXPECT_FALSE(facts.Holds(Is(std::string(name), {"*"}))) << name;
  }
}

TEST_F(FactsTest, EveryFactThatIsSetHasAName) {
  const std::set<std::string_view> names(Facts::Names().begin(), Facts::Names().end());
  EXPECT_EQ(names.size(), Facts::Names().size());
  for (const char* name : {"masks_exit", "ends_in_failure", "oom_kills", "memory_ratio"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST_F(FactsTest, SayWhatTheSchedulerSays) {
  case_.execution.source_type = SourceType::kSlurm;
  case_.execution.status = ExecutionStatus::kCancelled;
  case_.execution.native_state = "CANCELLED by 1000";
  case_.execution.native_reason = "AssocGrpCpuLimit";
  case_.execution.exit_code = 0;
  case_.execution.signal = 15;
  case_.execution.labels = {{"slurm.cancelled_by", "1000"}, {"slurm.uid", "1000"}};
  Facts facts = Of();
  EXPECT_TRUE(facts.Holds(Is("scheduler", {"nomad", "slurm"})));
  EXPECT_TRUE(facts.Holds(Is("state", {"CANCELLED"})));
  EXPECT_EQ(Shown(facts, "state"), "state CANCELLED by 1000");
  EXPECT_TRUE(facts.Holds(Is("reason", {"AssocGrp*"})));
  EXPECT_FALSE(facts.Holds(Is("reason", {"AssocGrp", "assocgrp*"})));
  EXPECT_TRUE(facts.Holds(Is("exit_code", {"0"})));
  EXPECT_TRUE(facts.Holds(Between("signal", 15, 15)));
  EXPECT_FALSE(facts.Holds(Between("signal", {}, {})));
  EXPECT_TRUE(facts.Holds(Is("cancelled_by", {"user"})));
  case_.execution.labels["slurm.cancelled_by"] = "0";
  EXPECT_TRUE(Of().Holds(Is("cancelled_by", {"other"})));
  case_.execution.labels = {{"slurm.cancelled_by", "1000"}};  // of whom the job is, is not known
  EXPECT_EQ(Of().Find("cancelled_by"), nullptr);
}

TEST_F(FactsTest, CiteTheFirstStepThatFailed) {
  case_.execution.steps = {{.id = "batch", .native_state = "COMPLETED", .exit_code = 0},
                           {.id = "0", .native_state = "FAILED", .exit_code = 1},
                           {.id = "1", .native_state = "FAILED", .exit_code = 0, .signal = 11}};
  const Facts facts = Of();
  EXPECT_TRUE(facts.Holds(Is("step_exit_code", {"1"})));
  EXPECT_TRUE(facts.Holds(Is("step_signal", {"11"})));
  EXPECT_FALSE(facts.Holds(Is("step_signal", {"0"})));
  EXPECT_EQ(Shown(facts, "step_exit_code"), "step 0 FAILED, exit code 1");
}

TEST_F(FactsTest, CompareMeasurementsWithLimits) {
  case_.snapshot.host_ram_observed_peak_bytes = 12 * kGiB;
  case_.snapshot.host_ram_requested_bytes = 16 * kGiB;
  case_.snapshot.runtime_s = 100;
  case_.snapshot.walltime_s = 0;  // no limit
  const Facts facts = Of();
  EXPECT_TRUE(facts.Holds(Between("memory_ratio", 0.75, 0.75)));
  EXPECT_EQ(Shown(facts, "memory_ratio"), "peak memory 12 GiB of 16 GiB");
  EXPECT_EQ(facts.Find("runtime_ratio"), nullptr);
}

TEST_F(FactsTest, NumbersThatAreNoneAreUnknown) {
  case_.snapshot.host_ram_observed_peak_bytes = std::numeric_limits<double>::quiet_NaN();
  case_.snapshot.host_ram_requested_bytes = 1;
  case_.snapshot.idle_tail_s = std::numeric_limits<double>::infinity();
  const Facts facts = Of();
  EXPECT_EQ(facts.Find("memory_ratio"), nullptr);
  EXPECT_EQ(facts.Find("idle_tail_s"), nullptr);
}

TEST_F(FactsTest, ExcludeOnlyByWhatIsKnown) {
  Runbook runbook;
  runbook.only = {Is("scheduler", {"slurm"})};
  EXPECT_FALSE(Facts().Exclude(runbook));
  case_.execution.source_type = SourceType::kNomad;
  EXPECT_TRUE(Of().Exclude(runbook));
  case_.execution.source_type = SourceType::kSlurm;
  EXPECT_FALSE(Of().Exclude(runbook));
}

TEST_F(FactsTest, KnowTheScriptAndWhatItAsksFor) {
  case_.sources = {{.path = "lib.py", .role = "import", .data = "x = 1\n"},
                   {.path = "a\x1b.sh",
                    .role = "script",
                    .data = "#!/bin/bash\n#SBATCH --mem=1G\n./a || true\n"}};
  const Facts facts = Of();
  EXPECT_EQ(ScriptOf(case_), &case_.sources[1]);
  EXPECT_TRUE(facts.Holds(Is("masks_exit", {"or_true"})));
  EXPECT_EQ(Shown(facts, "masks_exit"), "./a || true");
  ASSERT_TRUE(facts.requests().contains(workload::Quantity::kMemory));
  const RequestItem& request = facts.requests().at(workload::Quantity::kMemory);
  EXPECT_EQ(request.option, "--mem");
  EXPECT_EQ(ledger_[request.item].where, "a\\x1b.sh line 2");
  case_.sources[1].data = "#!/bin/bash\n./a\n";
  EXPECT_TRUE(Of().Holds(Is("masks_exit", {"none"})));
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
