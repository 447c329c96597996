#include "schedulers/slurm/commands/sacct_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/crypto.h"
#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::array<std::string_view, kSacctFields> kNames = {"JobID",
                                                               "DBIndex",
                                                               "SLUID",
                                                               "Cluster",
                                                               "User",
                                                               "UID",
                                                               "Account",
                                                               "Partition",
                                                               "QOS",
                                                               "JobName",
                                                               "State",
                                                               "Reason",
                                                               "ExitCode",
                                                               "DerivedExitCode",
                                                               "Submit",
                                                               "Eligible",
                                                               "Start",
                                                               "End",
                                                               "Suspended",
                                                               "ElapsedRaw",
                                                               "TimelimitRaw",
                                                               "Restarts",
                                                               "ReqCPUS",
                                                               "ReqMem",
                                                               "ReqNodes",
                                                               "ReqTRES",
                                                               "AllocCPUS",
                                                               "AllocTRES",
                                                               "NNodes",
                                                               "NodeList",
                                                               "NTasks",
                                                               "TotalCPU",
                                                               "UserCPU",
                                                               "SystemCPU",
                                                               "MaxRSS",
                                                               "AveRSS",
                                                               "TRESUsageInTot",
                                                               "TRESUsageInAve",
                                                               "TRESUsageOutTot",
                                                               "ConsumedEnergyRaw",
                                                               "WorkDir",
                                                               "Comment",
                                                               "Constraints",
                                                               "Reservation",
                                                               "WCKey",
                                                               "Container",
                                                               "FailedNode",
                                                               "SubmitLine",
                                                               "StdOut",
                                                               "StdErr",
                                                               "JobIDRaw"};

// States in which a run is over, by the short names that every version takes.
constexpr std::string_view kEndedStates = "BF,CA,CD,DL,F,NF,OOM,PR,RQ,TO";

// What sacct reads back in any time zone setting of ours; it knows no fractions.
std::string SacctTime(base::WallTime time) {
  std::string text = base::FormatRfc3339(std::chrono::floor<std::chrono::seconds>(time));
  text.pop_back();  // the Z
  return text;
}

std::vector<std::string> CommonArguments(const SacctFormat& format, std::string_view separator) {
  // --local: a federated cluster would answer for its siblings too. --noconvert: exact amounts.
  return {"--allusers",
          "--duplicates",
          "--local",
          "--noheader",
          "--parsable2",
          "--noconvert",
          fmt::format("--delimiter={}", separator),
          fmt::format("--format={}", format.Argument())};
}

}  // namespace

std::string_view Name(SacctField field) { return kNames[static_cast<std::size_t>(field)]; }

SacctFormat::SacctFormat(std::vector<SacctField> columns) : columns_(std::move(columns)) {
  column_of_.fill(-1);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    column_of_[static_cast<std::size_t>(columns_[i])] = static_cast<std::int8_t>(i);
  }
}

SacctFormat SacctFormat::Full() {
  std::vector<SacctField> columns;
  for (std::size_t i = 0; i < kSacctFields; ++i) columns.push_back(static_cast<SacctField>(i));
  return SacctFormat(std::move(columns));
}

base::Result<SacctFormat> SacctFormat::FromHelp(std::string_view help) {
  std::vector<std::string> known;
  for (const std::string_view word : base::SplitSpaces(help)) known.push_back(base::ToLower(word));
  std::sort(known.begin(), known.end());
  std::vector<SacctField> columns;
  for (std::size_t i = 0; i < kSacctFields; ++i) {
    if (std::binary_search(known.begin(), known.end(), base::ToLower(kNames[i])))
      columns.push_back(static_cast<SacctField>(i));
  }
  SacctFormat format(std::move(columns));
  for (const SacctField needed : {SacctField::kJobIdRaw, SacctField::kSubmit, SacctField::kState}) {
    if (!format.Has(needed)) {
      return base::Fail(base::Code::kFailedPrecondition, "slurm.sacct_format",
                        fmt::format("sacct --helpformat does not name {}", Name(needed)));
    }
  }
  return format;
}

std::string SacctFormat::Argument() const {
  std::string text;
  for (const SacctField field : columns_) {
    if (!text.empty()) text += ',';
    text += Name(field);
  }
  return text;
}

std::string NewSacctSeparator() { return "\x1f" + base::Base64UrlEncode(base::RandomBytes(9)); }

std::vector<std::string> SacctArguments(const SacctFormat& format, std::string_view separator,
                                        const SacctWindow& window) {
  std::vector<std::string> arguments = CommonArguments(format, separator);
  arguments.push_back(fmt::format("--state={}", kEndedStates));
  arguments.push_back(fmt::format("--starttime={}", SacctTime(window.from)));
  arguments.push_back(fmt::format("--endtime={}", SacctTime(window.to)));
  return arguments;
}

std::vector<std::string> SacctArguments(const SacctFormat& format, std::string_view separator,
                                        const SacctJobs& jobs) {
  EXPANSE_CHECK(!jobs.ids.empty() && jobs.ids.size() <= kMaxSacctJobs);
  std::vector<std::string> arguments = CommonArguments(format, separator);
  arguments.push_back(fmt::format("--jobs={}", fmt::join(jobs.ids, ",")));
  if (jobs.since) arguments.push_back(fmt::format("--starttime={}", SacctTime(*jobs.since)));
  return arguments;
}

base::Result<SacctFormat> AskSacctFormat(CommandRunner& runner, std::stop_token stop) {
  const CommandOutcome outcome =
      runner.Run({.program = Program::kSacct, .arguments = {"--helpformat"}}, std::move(stop));
  if (!outcome.status) return std::unexpected(outcome.status.error());
  return SacctFormat::FromHelp(outcome.out);
}

}  // namespace expanse::schedulers::slurm
