// How sacct is asked: which of its fields, in which order, for which jobs. Nothing is run here.
//
// Field names and what they hold: man 1 sacct. Versions 20.11 to 26.05 differ in the fields they
// know, and sacct fails on one that it does not, so what is asked for is our list cut to what
// `sacct --helpformat` names.
//
// Rows come with a separator that is random in each invocation: names, comments and command lines
// may hold pipes, newlines and any other bytes, and nobody can write the separator into them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "schedulers/slurm/commands/runner.h"

namespace expanse::schedulers::slurm {

// In the order in which they are asked for. kJobIdRaw is last: it never holds a newline, so a row
// ends at the first newline behind its last separator.
enum class SacctField : std::uint8_t {
  kJobId,
  kDbIndex,
  kSluid,
  kCluster,
  kUser,
  kUid,
  kAccount,
  kPartition,
  kQos,
  kJobName,
  kState,
  kReason,
  kExitCode,
  kDerivedExitCode,
  kSubmit,
  kEligible,
  kStart,
  kEnd,
  kSuspended,
  kElapsedRaw,
  kTimelimitRaw,
  kRestarts,
  kReqCpus,
  kReqMem,
  kReqNodes,
  kReqTres,
  kAllocCpus,
  kAllocTres,
  kNodeCount,
  kNodeList,
  kTaskCount,
  kTotalCpu,
  kUserCpu,
  kSystemCpu,
  kMaxRss,
  kAveRss,
  kTresUsageInTot,
  kTresUsageInAve,
  kTresUsageOutTot,
  kConsumedEnergyRaw,
  kWorkDir,
  kComment,
  kConstraints,
  kReservation,
  kWcKey,
  kContainer,
  kFailedNode,
  kSubmitLine,
  kStdOut,
  kStdErr,
  kJobIdRaw,
};
inline constexpr std::size_t kSacctFields = static_cast<std::size_t>(SacctField::kJobIdRaw) + 1;

// As sacct spells it: "JobIDRaw".
std::string_view Name(SacctField field);

// The columns of one version of sacct. A small value; copy it.
class SacctFormat {
 public:
  // `help` is what `sacct --helpformat` printed. Fails with slurm.sacct_format when it lacks the
  // fields without which a run cannot be recognised (JobIDRaw, Submit, State).
  static base::Result<SacctFormat> FromHelp(std::string_view help);
  // All fields that we know; what the newest version has.
  static SacctFormat Full();

  const std::vector<SacctField>& columns() const& { return columns_; }
  std::vector<SacctField> columns() && { return std::move(columns_); }
  bool Has(SacctField field) const { return column_of_[static_cast<std::size_t>(field)] >= 0; }
  // Of a field that Has.
  std::size_t ColumnOf(SacctField field) const {
    return static_cast<std::size_t>(column_of_[static_cast<std::size_t>(field)]);
  }
  // The value of --format.
  std::string Argument() const;

 private:
  explicit SacctFormat(std::vector<SacctField> columns);
  std::vector<SacctField> columns_;
  std::array<std::int8_t, kSacctFields> column_of_{};
};

// Runs that ended from `from` to `to`, both seconds included.
struct SacctWindow {
  base::WallTime from{};
  base::WallTime to{};
};

// All runs of these job ids (raw ids), also those of other jobs that once had the id: whoever asks
// compares the submit times.
struct SacctJobs {
  std::vector<std::uint32_t> ids;       // at most kMaxSacctJobs
  std::optional<base::WallTime> since;  // leaves out runs that ended before
};
inline constexpr std::size_t kMaxSacctJobs = 1000;

// A separator that nobody could know before: a control character and 72 random bits.
std::string NewSacctSeparator();

// Arguments behind the program's name. Times are in UTC: the program must run with TZ=UTC.
std::vector<std::string> SacctArguments(const SacctFormat& format, std::string_view separator,
                                        const SacctWindow& window);
std::vector<std::string> SacctArguments(const SacctFormat& format, std::string_view separator,
                                        const SacctJobs& jobs);

// Asks the installed sacct for its fields. Fails like FromHelp and like the runner:
// slurm.no_accounting where the cluster keeps none, slurm.unreachable while slurmdbd is away
// (sacct talks to it before it prints its help). Blocks as long as that takes, 30 s at most.
base::Result<SacctFormat> AskSacctFormat(CommandRunner& runner, std::stop_token stop);

}  // namespace expanse::schedulers::slurm
