// One look at slurmctld's queue: what squeue is asked for, how its output is cut into rows while it
// comes, and what a row says of a job. The format is that of `squeue -O`, squeue(1) of Slurm 20.11
// to 26.05; a field that a version does not know comes out empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/slurm/job.h"
#include "schedulers/slurm/text/version.h"

namespace expanse::schedulers::slurm {

// In the order in which they are asked for. Nothing that changes by itself (time used, time left)
// is among them: a row changes only when the job does.
enum class QueueField : std::uint8_t {
  kJobId,       // raw
  kJobArrayId,  // as users see it: 12, 12_3, 12_[4-9%2], 12+1
  kState,
  kSubmitTime,
  kEligibleTime,
  kTimeLimit,
  kUserId,
  kUserName,
  kAccount,
  kPartition,
  kQos,
  kNumNodes,
  kNumCpus,
  kNumTasks,
  kCpusPerTask,
  kMinMemory,  // per node or per CPU; squeue does not say which
  kTresAlloc,  // of a waiting job what it asked for
  kTresPerJob,
  kTresPerNode,
  kTresPerTask,
  kNodeList,
  kBatchHost,
  kBatchFlag,
  kRestartCount,
  kExitCode,  // a wait(2) status
  kDerivedExitCode,
  kReservation,
  kFeatures,
  kDependency,
  kLicenses,
  kName,
  kComment,
  kWorkDir,
  kCommand,
  kStdout,
  kStderr,
  kSluid,  // Slurm 26.05 and later
  // From here on: what changes while a job only waits, some of it all the time.
  kReason,
  kPriority,
  kStartTime,  // of a waiting job the expected one
  kEndTime,    // of one that has not ended the latest
};
inline constexpr std::size_t kQueueFields = 41;
inline constexpr QueueField kFirstVolatile = QueueField::kReason;

// The arguments of one run: jobs of all states, those that ended within slurmctld's MinJobAge
// included; only `job_ids`, if any are given. An id that slurmctld does not know makes squeue fail
// when it is the only one. Of several, slurmctld sends all jobs to squeue in every version up to
// 26.05, so a look-up of a few costs it as much as a listing.
std::vector<std::string> QueueArguments(std::string_view separator, std::optional<Version> version,
                                        std::span<const std::uint32_t> job_ids = {});

// One row, in a form that does not depend on the run's separator: each field behind its length.
// Views into the reader; good during the callback only, but `bytes` may be copied and kept.
struct QueueRow {
  std::uint32_t job_id = 0;
  std::string_view bytes;
  // Its beginning, up to kFirstVolatile: unchanged while a job only waits.
  std::string_view stable;
};

// Cuts output into rows. Not thread-safe. Memory: the row at hand and the chunk given.
class QueueReader {
 public:
  // Longer rows are malformed; comments and scripts' arguments end far below.
  static constexpr std::size_t kMaxRow = 1U << 20;

  QueueReader(std::string separator, std::function<void(const QueueRow&)> on_row);
  QueueReader(const QueueReader&) = delete;
  QueueReader& operator=(const QueueReader&) = delete;

  void Feed(std::string_view chunk);
  // True if the output ended at the end of a row. Whether the list is complete only squeue's exit
  // status tells.
  bool Finish() const { return buffer_.empty() && !skipping_; }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t malformed() const { return malformed_; }

 private:
  bool TakeRow();
  std::size_t FindSeparator();
  void EmitRow();
  bool Drop();
  bool Skip();

  const std::string separator_;
  const std::string row_end_;  // separator and newline
  const std::function<void(const QueueRow&)> on_row_;
  std::string buffer_;
  // Offsets into it: where the row at hand begins, and before which no further separator does.
  std::size_t row_start_ = 0;
  std::size_t scanned_ = 0;
  std::vector<std::size_t> ends_;  // of the row's fields, as far as found; from row_start_
  std::string row_;
  bool skipping_ = false;
  std::uint64_t rows_ = 0;
  std::uint64_t malformed_ = 0;
};

// What the names of output files depend on, besides the job.
struct QueueNaming {
  std::optional<Version> version;
  // The host name of a node; where the two differ, %N in a path is the host's. Empty function: the
  // node's name is taken.
  std::function<std::string(std::string_view node)> host_of;
};

// What a row says. Nothing if it is not one of QueueReader's or has no job id. `cluster` names the
// cluster, which squeue does not tell outside federations.
std::optional<Job> ParseQueueRow(std::string_view bytes, std::string_view cluster,
                                 const QueueNaming& naming = {});

}  // namespace expanse::schedulers::slurm
