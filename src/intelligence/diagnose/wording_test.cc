#include "intelligence/diagnose/wording.h"

#include <gtest/gtest.h>

#include <limits>

namespace expanse::intelligence::diagnose {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

TEST(Fill, PutsValuesIn) {
  const Values values = {{"a", "1"}, {"b", "2"}};
  EXPECT_EQ(Fill("x {a} y {b}", values), "x 1 y 2");
  EXPECT_EQ(Fill("x {c}", values), "x unknown");
  EXPECT_EQ(Fill("", values), "");
}

TEST(Fill, LeavesOutWhatIsNotKnown) {
  const Values values = {{"a", "1"}};
  EXPECT_EQ(Fill("x[[ {a}]][[ {b}]]!", values), "x 1!");
  EXPECT_EQ(Fill("[[{a} {b}]]", values), "");
}

TEST(Fill, NestsBrackets) {
  const Values values = {{"a", "1"}};
  EXPECT_EQ(Fill("[[{a}[[ and {b}]].]]", values), "1.");
  EXPECT_EQ(Fill("[[{b}[[ and {a}]].]]", values), "");
  EXPECT_EQ(Fill("[[x [[y [[{b}]]]]]]", values), "x y ");
}

TEST(Fill, AsksWhetherAValueIsKnown) {
  const Values values = {{"a", "1"}};
  EXPECT_EQ(Fill("[[{?a}yes]][[{!a}no]]", values), "yes");
  EXPECT_EQ(Fill("[[{?b}yes]][[{!b}no]]", values), "no");
  EXPECT_EQ(Fill("{?b}x{!a}", values), "x");
}

TEST(Fill, TakesAnyText) {
  const Values values = {{"a", "[[{b}]]"}};
  EXPECT_EQ(Fill("{a}", values), "[[{b}]]") << "values are not read as templates";
  EXPECT_EQ(Fill("]] }{ [", values), "]] }{ [");
  EXPECT_EQ(Fill("[[x", values), "x");
  EXPECT_EQ(Fill("[[{b", values), "{b");
  EXPECT_EQ(Fill("[[{c} x", values), "");
}

TEST(SignalName, KnowsTheUsualOnes) {
  EXPECT_EQ(SignalName(9), "SIGKILL");
  EXPECT_EQ(SignalName(11), "SIGSEGV");
  EXPECT_EQ(SignalName(64), "signal 64");
}

class ValuesTest : public testing::Test {
 protected:
  Values Of(const Case& of, std::string_view line = {}) {
    Ledger ledger;
    const Facts facts = Facts::Of(of, &ledger);
    Finding finding;
    finding.runbook = set_->IndexOf("no_space_left");
    if (!line.empty()) {
      const auto item = ledger.Add({.origin = Origin::kText,
                                    .where = "stderr line 1",
                                    .node = "n1",
                                    .rank = 3,
                                    .text = std::string(line)});
      finding.marks.push_back(
          {.item = *item, .origin = Origin::kText, .strength = Strength::kStrong});
    }
    return ValuesOf({.of = of, .runbooks = *set_, .facts = facts, .ledger = ledger}, finding);
  }
  std::string At(const Values& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "-" : found->second;
  }
  std::shared_ptr<const RunbookSet> set_ =
      *RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
};

TEST_F(ValuesTest, KnowsNothingOfNothing) {
  const Values values = Of({});
  for (const char* name : {"memory_limit", "memory_peak", "runtime", "exit_code", "signal", "quote",
                           "node", "similar_peak", "memory_option", "shown", "decisive"})
    EXPECT_EQ(At(values, name), "-") << name;
}

TEST_F(ValuesTest, TellsAPeakThatTheKernelKeptFromASampledOne) {
  Case of;
  of.snapshot.host_ram_observed_peak_bytes = 2 * kGiB;
  of.snapshot.host_ram_requested_bytes = 8 * kGiB;
  Values values = Of(of);
  EXPECT_EQ(At(values, "memory_peak_sampled"), "2.0 GiB");
  EXPECT_EQ(At(values, "memory_peak_exact"), "-");
  EXPECT_EQ(At(values, "memory_share"), "25 %");
  EXPECT_EQ(At(values, "memory_peak_low"), "2.0 GiB");
  of.execution.used.memory_peak_basis = "cgroup_peak";
  of.execution.used.memory_peak_bytes = std::uint64_t{2} << 30U;
  values = Of(of);
  EXPECT_EQ(At(values, "memory_peak_exact"), "2.0 GiB");
  of.execution.used.memory_peak_bytes = std::uint64_t{1} << 30U;  // of something else
  EXPECT_EQ(At(Of(of), "memory_peak_exact"), "-");
}

TEST_F(ValuesTest, ComparesSimilarRunsWithTheLimits) {
  Case of;
  of.snapshot.host_ram_requested_bytes = 8 * kGiB;
  of.snapshot.walltime_s = 3600;
  SimilarRun run;
  run.run.ending = predict::Ending::kSuccess;
  run.run.memory_peak_bytes = 9 * kGiB;
  run.run.runtime_s = 1800;
  of.similar = {run};
  run.run.ending = predict::Ending::kFailure;
  run.run.memory_peak_bytes = 90 * kGiB;
  of.similar.push_back(run);
  const Values values = Of(of);
  EXPECT_EQ(At(values, "similar_successes"), "1");
  EXPECT_EQ(At(values, "similar_peak_above"), "9.0 GiB");
  EXPECT_EQ(At(values, "similar_peak_below"), "-");
  EXPECT_EQ(At(values, "similar_runtime_below"), "30 min");
  EXPECT_EQ(At(values, "similar_runtime_above"), "-");
}

TEST_F(ValuesTest, TakesTheSignalOutOfAnExitCode) {
  Case of;
  of.execution.exit_code = 137;
  EXPECT_EQ(At(Of(of), "signal_name"), "SIGKILL");
  of.execution.exit_code = 128;
  EXPECT_EQ(At(Of(of), "signal"), "-");
  of.execution.exit_code = 1;
  of.execution.signal = 11;
  EXPECT_EQ(At(Of(of), "signal_name"), "SIGSEGV");
}

TEST_F(ValuesTest, QuotesTheLineAndNamesItsFile) {
  const Values values = Of({}, "OSError: [Errno 28] No space left on device: '/tmp/a b'");
  EXPECT_EQ(At(values, "quote"), "OSError: [Errno 28] No space left on device: '/tmp/a b'");
  EXPECT_EQ(At(values, "path"), "/tmp/a b");
  EXPECT_EQ(At(values, "quoted_from"), "output");
  EXPECT_EQ(At(values, "node"), "n1");
  EXPECT_EQ(At(values, "rank"), "3");
  EXPECT_EQ(At(Of({}, "tee: /out/x.log: No space left on device"), "path"), "/out/x.log");
  EXPECT_EQ(At(Of({}, "write \"./a.bin\" failed: No space left on device"), "path"), "./a.bin");
  EXPECT_EQ(At(Of({}, "No space left on device"), "path"), "-");
}

TEST_F(ValuesTest, KnowsNoAmountsThatAreNone) {
  Case of;
  of.snapshot.host_ram_observed_peak_bytes = std::numeric_limits<double>::quiet_NaN();
  of.snapshot.host_ram_requested_bytes = -1;
  of.snapshot.runtime_s = std::numeric_limits<double>::infinity();
  const Values values = Of(of);
  for (const char* name : {"memory_peak", "memory_limit", "memory_share", "runtime"})
    EXPECT_EQ(At(values, name), "-") << name;
}

TEST_F(ValuesTest, CutsALongQuoteBetweenCharacters) {
  std::string line(239, 'x');
  line += "\xc3\xa9 No space left on device";
  EXPECT_EQ(At(Of({}, line), "quote"), std::string(239, 'x'));
}

TEST_F(ValuesTest, NamesTheOptionThatTheSourceSpells) {
  Case of;
  of.execution.source_type = evidence::SourceType::kSlurm;
  EXPECT_EQ(At(Of(of), "memory_option"), "--mem");
  of.sources = {
      {.path = "a.sh", .role = "script", .data = "#!/bin/sh\n#SBATCH --mem-per-cpu=1G\n./a\n"}};
  EXPECT_EQ(At(Of(of), "memory_option"), "--mem-per-cpu");
  EXPECT_EQ(At(Of(of), "walltime_option"), "--time");
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
