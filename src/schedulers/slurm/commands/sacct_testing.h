// Output of sacct for tests and benches: rows given by field, in the columns of a format.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "schedulers/slurm/commands/sacct_query.h"

namespace expanse::schedulers::slurm {

inline constexpr std::string_view kTestSeparator = "\x1fsEpArAtOr01_";

using SacctCells = std::map<SacctField, std::string>;

inline std::string SacctLine(const SacctFormat& format, std::string_view separator,
                             const SacctCells& cells) {
  std::string line;
  for (const SacctField field : format.columns()) {
    if (field != format.columns().front()) line += separator;
    if (const auto cell = cells.find(field); cell != cells.end()) line += cell->second;
  }
  return line + "\n";
}

// A job that completed; what a test is about is given on top.
inline SacctCells JobCells(SacctCells special = {}) {
  SacctCells cells = {{SacctField::kJobIdRaw, "4711"},
                      {SacctField::kDbIndex, "90001"},
                      {SacctField::kCluster, "aurora"},
                      {SacctField::kUser, "ines"},
                      {SacctField::kUid, "2001"},
                      {SacctField::kAccount, "bio"},
                      {SacctField::kPartition, "batch"},
                      {SacctField::kQos, "normal"},
                      {SacctField::kJobName, "fold"},
                      {SacctField::kState, "COMPLETED"},
                      {SacctField::kReason, "None"},
                      {SacctField::kExitCode, "0:0"},
                      {SacctField::kDerivedExitCode, "0:0"},
                      {SacctField::kSubmit, "1790000000"},
                      {SacctField::kEligible, "1790000000"},
                      {SacctField::kStart, "1790000060"},
                      {SacctField::kEnd, "1790000160"},
                      {SacctField::kSuspended, "00:00:00"},
                      {SacctField::kElapsedRaw, "100"},
                      {SacctField::kTimelimitRaw, "60"},
                      {SacctField::kReqTres, "billing=4,cpu=4,mem=8192M,node=1"},
                      {SacctField::kAllocTres, "billing=4,cpu=4,mem=8192M,node=1"},
                      {SacctField::kNodeList, "c01"},
                      {SacctField::kNodeCount, "1"},
                      {SacctField::kTotalCpu, "03:10.500"},
                      {SacctField::kUserCpu, "03:00.250"},
                      {SacctField::kSystemCpu, "00:10.250"}};
  for (auto& [field, value] : special) cells[field] = std::move(value);
  if (!special.contains(SacctField::kJobId))
    cells[SacctField::kJobId] = cells[SacctField::kJobIdRaw];
  return cells;
}

// A step of such a job: "batch", "0".
inline SacctCells StepCells(const std::string& step, SacctCells special = {}) {
  SacctCells cells = {{SacctField::kJobIdRaw, "4711." + step},
                      {SacctField::kJobId, "4711." + step},
                      {SacctField::kDbIndex, "90001"},
                      {SacctField::kCluster, "aurora"},
                      {SacctField::kJobName, step},
                      {SacctField::kState, "COMPLETED"},
                      {SacctField::kExitCode, "0:0"},
                      {SacctField::kSubmit, "1790000060"},
                      {SacctField::kStart, "1790000060"},
                      {SacctField::kEnd, "1790000160"},
                      {SacctField::kElapsedRaw, "100"},
                      {SacctField::kNodeList, "c01"},
                      {SacctField::kNodeCount, "1"},
                      {SacctField::kTaskCount, "1"}};
  for (auto& [field, value] : special) cells[field] = std::move(value);
  return cells;
}

}  // namespace expanse::schedulers::slurm
