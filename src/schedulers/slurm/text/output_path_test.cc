#include "schedulers/slurm/text/output_path.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

OutputNames Batch() {
  return {.job_id = 5021,
          .node = "fir07",
          .user = "mira",
          .job_name = "sweep",
          .working_directory = "/home/mira/run"};
}

OutputNames ArrayTask() {
  OutputNames names = Batch();
  names.array_job_id = 5000;
  names.array_task = 21;
  return names;
}

std::string PathOf(std::string_view pattern, const OutputNames& names) {
  const OutputPath path = ExpandOutputPath(pattern, names);
  EXPECT_EQ(path.kind, OutputPath::Kind::kFile) << pattern;
  return path.path;
}

TEST(OutputPath, ExpandsEveryPattern) {
  EXPECT_EQ(PathOf("/l/%j-%x-%u-%N.out", Batch()), "/l/5021-sweep-mira-fir07.out");
  EXPECT_EQ(PathOf("/l/%A_%a.%b", ArrayTask()), "/l/5000_21.1");
  EXPECT_EQ(PathOf("/l/%n.%t.%s.%J", Batch()), "/l/0.0.batch.5021");
  OutputNames step = Batch();
  step.step = "3";
  step.task = 7;
  step.node_index = 2;
  EXPECT_EQ(PathOf("/l/%J.%s.%t.%n", step), "/l/5021.3.3.7.2");
  EXPECT_EQ(PathOf("/l/100%%", Batch()), "/l/100%");
}

// What sites see in the names of files when %A_%a is used outside an array.
TEST(OutputPath, HasSlurmsNumberForNoTask) {
  EXPECT_EQ(PathOf("/l/%A_%a", Batch()), "/l/5021_4294967294");
}

TEST(OutputPath, PadsNumbersOnly) {
  EXPECT_EQ(PathOf("/l/%6j", Batch()), "/l/005021");
  EXPECT_EQ(PathOf("/l/%2j", Batch()), "/l/5021");
  EXPECT_EQ(PathOf("/l/%99j", Batch()), "/l/0000005021");
  EXPECT_EQ(PathOf("/l/%8x", Batch()), "/l/sweep");
  EXPECT_EQ(PathOf("/l/%4a", ArrayTask()), "/l/0021");
}

TEST(OutputPath, IsRelativeToTheWorkingDirectory) {
  EXPECT_EQ(PathOf("logs/%j.out", Batch()), "/home/mira/run/logs/5021.out");
  OutputNames names = Batch();
  names.working_directory = "/";
  EXPECT_EQ(PathOf("o", names), "/o");
  names.working_directory = "";
  EXPECT_EQ(ExpandOutputPath("o", names).kind, OutputPath::Kind::kUnknown);
}

TEST(OutputPath, ABackslashSwitchesExpansionOff) {
  EXPECT_EQ(PathOf("/l/\\%j", Batch()), "/l/%j");
  EXPECT_EQ(PathOf("/l/%j/\\%x", Batch()), "/l/%j/%x");
  EXPECT_EQ(PathOf("/l/n\\a%x\\\\b", Batch()), "/l/na%x\\b");
}

TEST(OutputPath, KeepsWhatStandsForNothing) {
  EXPECT_EQ(PathOf("/l/%q-%", Batch()), "/l/%q-%");
  EXPECT_EQ(PathOf("/l/%4q", Batch()), "/l/4q");
  EXPECT_EQ(PathOf("/l/%%%%j", Batch()), "/l/%%j");
}

TEST(OutputPath, KnowsWhichVersionsHaveTheModulo) {
  OutputNames names = ArrayTask();
  names.version = Version{22, 5, 8};
  EXPECT_EQ(PathOf("/l/%b%4b", names), "/l/%b4b");
  names.version = Version{24, 11, 0};
  EXPECT_EQ(PathOf("/l/%b%4b", names), "/l/10001");
}

TEST(OutputPath, TellsNoneFromDiscarded) {
  EXPECT_EQ(ExpandOutputPath("/dev/null", Batch()).kind, OutputPath::Kind::kDiscarded);
  EXPECT_EQ(ExpandOutputPath("", Batch()).kind, OutputPath::Kind::kUnknown);
  EXPECT_EQ(ExpandOutputPath("(null)", Batch()).kind, OutputPath::Kind::kUnknown);
}

TEST(OutputPath, HasSlurmsDefault) {
  EXPECT_EQ(PathOf(DefaultOutputPattern(Batch()), Batch()), "/home/mira/run/slurm-5021.out");
  EXPECT_EQ(PathOf(DefaultOutputPattern(ArrayTask()), ArrayTask()),
            "/home/mira/run/slurm-5000_21.out");
}

// A name cannot smuggle a pattern in: values are not expanded again.
TEST(OutputPath, DoesNotExpandWhatItInserted) {
  OutputNames names = Batch();
  names.job_name = "%u%j";
  EXPECT_EQ(PathOf("/l/%x", names), "/l/%u%j");
  EXPECT_EQ(AsOutputPath("/l/%u%j", names.working_directory).path, "/l/%u%j");
}

}  // namespace
}  // namespace expanse::schedulers::slurm
