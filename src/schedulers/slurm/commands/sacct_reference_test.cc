// Captures of sacct on real clusters, of other people's tools: in their columns and with a plain
// separator. Each row is put into our columns and read as if our sacct had printed it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "schedulers/slurm/commands/reference_testing.h"
#include "schedulers/slurm/commands/sacct.h"
#include "schedulers/slurm/commands/sacct_testing.h"

namespace expanse::schedulers::slurm {
namespace {

// "|", or "|#" as one of the tools asks for.
std::string SeparatorOf(std::string_view header) {
  return header.find("|#") != std::string_view::npos ? "|#" : "|";
}

// Rows of a capture by field. A row goes on over line breaks until it has all its cells, so only
// captures whose last column is plain can be read; rows with other separators in them are left out.
std::vector<SacctCells> RowsOf(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  const std::string separator = SeparatorOf(header);
  std::map<std::string, SacctField> known;
  for (const SacctField field : SacctFormat::Full().columns()) known.emplace(Name(field), field);
  std::vector<std::optional<SacctField>> columns;
  for (std::string_view left = header;;) {
    const std::size_t end = left.find(separator);
    const auto found = known.find(std::string(left.substr(0, end)));
    columns.push_back(found == known.end() ? std::nullopt : std::optional(found->second));
    if (end == std::string_view::npos) break;
    left.remove_prefix(end + separator.size());
  }
  std::vector<SacctCells> rows;
  text.remove_prefix(std::min(header.size() + 1, text.size()));
  while (!text.empty()) {
    SacctCells cells;
    bool whole = true;
    for (std::size_t i = 0; i < columns.size() && whole; ++i) {
      const bool last = i + 1 == columns.size();
      const std::size_t end = text.find(last ? std::string_view("\n") : separator);
      whole = last || end != std::string_view::npos;
      if (columns[i]) cells[*columns[i]] = text.substr(0, end);
      text.remove_prefix(std::min(text.size(), end + (last ? 1 : separator.size())));
      if (end == std::string_view::npos) text = {};
    }
    if (whole) rows.push_back(std::move(cells));
  }
  // Some captures were sorted; sacct prints a job before its steps.
  const auto job_of = [](const SacctCells& cells) {
    const std::string& id = cells.at(SacctField::kJobIdRaw);
    return base::ParseInt<std::uint64_t>(id.substr(0, id.find('.'))).value_or(0);
  };
  std::erase_if(rows,
                [](const SacctCells& cells) { return !cells.contains(SacctField::kJobIdRaw); });
  std::ranges::sort(rows, [&](const SacctCells& a, const SacctCells& b) {
    return std::pair(job_of(a), a.at(SacctField::kJobIdRaw).size()) <
           std::pair(job_of(b), b.at(SacctField::kJobIdRaw).size());
  });
  return rows;
}

struct Reading {
  std::vector<Job> runs;
  SacctFigures figures;
};

Reading ReadCapture(const std::string& path) {
  Reading reading;
  const SacctFormat format = SacctFormat::Full();
  SacctReader reader(format, std::string(kTestSeparator), {.cluster = "captured"},
                     [&](Job run) { reading.runs.push_back(std::move(run)); });
  for (const SacctCells& row : RowsOf(base::ReadFile(path).value()))
    reader.Feed(SacctLine(format, kTestSeparator, row));
  reader.Finish(/*whole=*/true);
  reading.figures = reader.figures();
  return reading;
}

void ExpectPlausible(const Job& run, const std::string& path) {
  const evidence::Execution& execution = run.execution;
  const std::string what = path + " " + execution.native_id;
  EXPECT_TRUE(KeyOf(run)) << what;
  EXPECT_NE(execution.status, evidence::ExecutionStatus::kUnspecified) << what;
  EXPECT_FALSE(execution.native_state.empty()) << what;
  if (execution.started_at && execution.ended_at) {
    EXPECT_LE(*execution.started_at, *execution.ended_at) << what;
  }
  if (execution.started_at) {
    EXPECT_EQ(execution.nodes.size(), execution.allocated.node_count.value_or(0)) << what;
  }
  std::uint64_t largest_task = 0;
  for (const evidence::Step& step : execution.steps) {
    EXPECT_FALSE(step.id.empty()) << what;
    largest_task = std::max(largest_task, step.memory_peak_task_bytes.value_or(0));
  }
  EXPECT_GE(execution.used.memory_peak_bytes.value_or(0), largest_task) << what;
}

TEST(SacctReference, ReadsCapturesOfRealClusters) {
  std::vector<std::string> paths = ReferenceTexts("sacct_dump");
  for (const char* part :
       {"sample-sacct-output.txt", "sample-sacct-one-multiline.txt",
        "sample-sacct-multiple-multiline.txt", "sample-sacct-fake-line-break.txt",
        "sample-sacct-running-output.txt", "sacct_submitline_multiline"}) {
    for (const std::string& path : ReferenceTexts(part)) paths.push_back(path);
  }
  if (paths.empty()) GTEST_SKIP() << "no reference inputs at " << ReferenceTextDirectory();
  std::size_t runs = 0;
  std::size_t steps = 0;
  std::size_t several_lines = 0;
  for (const std::string& path : paths) {
    const Reading reading = ReadCapture(path);
    // Two of the captures hold steps alone; three have rows that were broken on purpose.
    EXPECT_GT(reading.runs.size() + reading.figures.orphan_steps, 0U) << path;
    EXPECT_LE(reading.figures.bad_rows, 3U) << path;
    for (const Job& run : reading.runs) {
      ExpectPlausible(run, path);
      ++runs;
      steps += run.execution.steps.size();
      if (!run.execution.command.empty())
        several_lines += run.execution.command[0].find('\n') != std::string::npos;
    }
  }
  EXPECT_GE(paths.size(), 7U);
  EXPECT_GE(runs, 20U);
  EXPECT_GE(steps, 8U);
  EXPECT_GE(several_lines, 1U);
}

TEST(SacctReference, KeepsBytesThatAreNotUtf8) {
  const auto paths = ReferenceTexts("sacct-output-invalid-utf8");
  if (paths.empty()) GTEST_SKIP() << "no reference inputs at " << ReferenceTextDirectory();
  for (const std::string& path : paths) {
    const std::string text = base::ReadFile(path).value();
    ASSERT_FALSE(base::IsValidUtf8(text));
    const Reading reading = ReadCapture(path);
    EXPECT_FALSE(reading.runs.empty());
    for (const Job& run : reading.runs) ExpectPlausible(run, path);
  }
}

}  // namespace
}  // namespace expanse::schedulers::slurm
