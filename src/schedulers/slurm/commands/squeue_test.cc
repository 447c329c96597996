#include "schedulers/slurm/commands/squeue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/slurm/commands/squeue_testing.h"
#include "schedulers/slurm/text/separator.h"

namespace expanse::schedulers::slurm {
namespace {

using testing::ElementsAre;
using enum QueueField;

constexpr std::string_view kSeparator = "~aB3-_xYz";

struct Read {
  std::vector<std::uint32_t> ids;
  std::vector<std::string> rows;
  std::vector<std::string> stable;
  std::uint64_t malformed = 0;
  bool whole = false;
};

Read ReadAll(std::string_view output, std::size_t chunk = 1U << 16,
             std::string_view separator = kSeparator) {
  Read read;
  QueueReader reader(std::string(separator), [&](const QueueRow& row) {
    read.ids.push_back(row.job_id);
    read.rows.emplace_back(row.bytes);
    read.stable.emplace_back(row.stable);
  });
  for (; !output.empty(); output.remove_prefix(std::min(chunk, output.size()))) {
    reader.Feed(output.substr(0, chunk));
  }
  read.malformed = reader.malformed();
  read.whole = reader.Finish();
  EXPECT_EQ(reader.rows(), read.ids.size());
  return read;
}

std::string Line(const QueueValues& values) { return QueueLine(kSeparator, values); }

std::string RowOf(const QueueValues& values) {
  const Read read = ReadAll(Line(values));
  EXPECT_EQ(read.rows.size(), 1);
  return read.rows.empty() ? "" : read.rows[0];
}

TEST(QueueArguments, AsksForAllJobsAndEveryField) {
  const auto arguments = QueueArguments("~s", Version{26, 5, 0});
  EXPECT_THAT(arguments, testing::Contains("--states=all"));
  EXPECT_THAT(arguments, testing::Contains("--noheader"));
  EXPECT_THAT(arguments,
              testing::Contains(testing::StartsWith("--Format=JobID:~s,JobArrayID:~s,")));
  EXPECT_THAT(arguments, testing::Contains(testing::EndsWith(",StartTime:~s,EndTime:~s")));
  EXPECT_EQ(QueueSeparatorOf(arguments), "~s");
}

TEST(QueueArguments, LeavesOutWhatAVersionDoesNotHave) {
  const auto format = [](std::optional<Version> version) {
    return QueueArguments("~s", version)[5];
  };
  EXPECT_THAT(format(Version{26, 5, 0}), testing::HasSubstr(",STDERR:~s,Sluid:~s,Reason:~s,"));
  EXPECT_THAT(format(std::nullopt), testing::HasSubstr(",Sluid:~s,"));
  // Its separator stays, so that rows have the same fields in every version.
  EXPECT_THAT(format(Version{22, 5, 8}), testing::HasSubstr(",STDERR:~s~s,Reason:~s,"));
}

TEST(QueueArguments, AsksForSomeJobs) {
  const std::vector<std::uint32_t> ids = {7, 4294967295};
  EXPECT_THAT(QueueArguments("~s", std::nullopt, ids), testing::Contains("--jobs=7,4294967295"));
}

TEST(Separator, IsNewEachTimeAndSafeInFormats) {
  const std::string separator = NewSeparator();
  EXPECT_EQ(separator.size(), 9);
  EXPECT_EQ(separator.front(), kSeparatorLead);
  EXPECT_EQ(separator.find_first_of(" ,%:\n"), std::string::npos);
  EXPECT_NE(separator, NewSeparator());
}

TEST(QueueReader, CutsRowsWhereverChunksEnd) {
  QueueValues odd = RunningJob(8);
  odd[kName] = "line one\nline two|~aB3-_xY\n";  // all but the last character of a separator
  const std::string output = Line(RunningJob(7)) + Line(odd) + Line(PendingJob(9));
  const Read whole = ReadAll(output);
  EXPECT_THAT(whole.ids, ElementsAre(7, 8, 9));
  EXPECT_TRUE(whole.whole);
  for (std::size_t chunk : {1, 2, 3, 7, 64, 1000}) {
    const Read read = ReadAll(output, chunk);
    EXPECT_EQ(read.rows, whole.rows) << chunk;
    EXPECT_EQ(read.stable, whole.stable) << chunk;
    EXPECT_EQ(read.malformed, 0) << chunk;
    EXPECT_TRUE(read.whole) << chunk;
  }
}

TEST(QueueReader, RowsDoNotDependOnTheSeparator) {
  const Read one = ReadAll(Line(RunningJob(7)));
  const Read other = ReadAll(QueueLine("~zzzzzzzz", RunningJob(7)), 100, "~zzzzzzzz");
  EXPECT_EQ(one.rows, other.rows);
  EXPECT_EQ(one.stable, other.stable);
}

TEST(QueueReader, StablePartIgnoresWhatChangesWhileAJobWaits) {
  const Read before = ReadAll(Line(PendingJob(7)));
  QueueValues later = PendingJob(7);
  later[kReason] = "Resources";
  later[kPriority] = "4294901000";
  later[kStartTime] = "1790009999";
  later[kEndTime] = "1790019999";
  const Read after = ReadAll(Line(later));
  EXPECT_EQ(before.stable, after.stable);
  EXPECT_NE(before.rows, after.rows);
  later[kState] = "RUNNING";
  EXPECT_NE(before.stable, ReadAll(Line(later)).stable);
}

// A field that ends where the next begins must not look like one that ends elsewhere.
TEST(QueueReader, RowsWithBytesMovedBetweenFieldsDiffer) {
  QueueValues one = RunningJob(7);
  one[kName] = "ab";
  one[kComment] = "c";
  QueueValues other = one;
  other[kName] = "a";
  other[kComment] = "bc";
  EXPECT_NE(RowOf(one), RowOf(other));
}

TEST(QueueReader, SaysWhenTheOutputIsTorn) {
  const std::string output = Line(RunningJob(7)) + Line(RunningJob(8));
  const Read read = ReadAll(output.substr(0, output.size() - 1));
  EXPECT_THAT(read.ids, ElementsAre(7));
  EXPECT_FALSE(read.whole);
}

TEST(QueueReader, GoesOnBehindWhatIsNoRow) {
  std::string too_many(kSeparator);
  too_many += Line(RunningJob(6));
  const std::string output = too_many + "slurm: notice\n" + Line(RunningJob(7)) +
                             Line(RunningJob(8)) + Line({{kJobId, "x"}}) + Line(RunningJob(9));
  for (std::size_t chunk : {1, 5, 100000}) {
    const Read read = ReadAll(output, chunk);
    EXPECT_THAT(read.ids, ElementsAre(8, 9)) << chunk;
    EXPECT_EQ(read.malformed, 3) << chunk;
    EXPECT_TRUE(read.whole) << chunk;
  }
}

TEST(QueueReader, BoundsARow) {
  QueueValues huge = RunningJob(7);
  huge[kComment] = std::string(2 * QueueReader::kMaxRow, 'x');
  const Read read = ReadAll(Line(huge) + Line(RunningJob(8)));
  EXPECT_THAT(read.ids, ElementsAre(8));
  EXPECT_EQ(read.malformed, 1);
  EXPECT_TRUE(read.whole);
}

// Trap 11: nobody can write a field that is another's, since nobody knows the separator.
TEST(QueueReader, KeepsBytesExact) {
  const std::string name =
      "a|b\"c'\n<b>\xF0\x9F\x9A\x80 \xFF\xFE ~aB3-_xY0 \t\x1b[2J RUNNING\n123~\\n";
  QueueValues values = RunningJob(7);
  values[kName] = name;
  values[kComment] = std::string("\x01\x7F|") + name;
  values[kWorkDir] = "/data/a|b c\n";
  const auto job = ParseQueueRow(RowOf(values), "alder");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->execution.name, name);
  EXPECT_EQ(job->execution.comment, std::string("\x01\x7F|") + name);
  EXPECT_EQ(job->execution.working_directory, "/data/a|b c\n");
  EXPECT_EQ(job->execution.native_state, "RUNNING");
}

}  // namespace
}  // namespace expanse::schedulers::slurm
