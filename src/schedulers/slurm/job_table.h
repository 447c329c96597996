// What the controller remembers of each run that is not over: enough to know what changed, what
// ended without a final record, and which run a raw job id meant at a time. A run costs about 150
// bytes, a waiting one 200 more, so that 100,000 of them fit into 60 MiB. Survives restarts in a
// file (docs/formats/slurm-state.md). Not thread-safe; the capture thread owns it.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "evidence/execution.h"

namespace expanse::schedulers::slurm {

// One run within a cluster. Times of Slurm are whole seconds.
struct RunId {
  std::uint32_t job_id = 0;
  std::int64_t submitted_s = 0;
  auto operator<=>(const RunId&) const = default;
};

RunId RunIdOf(std::uint32_t job_id, base::WallTime submitted);

enum class RunPhase : std::uint8_t { kQueued = 1, kRunning = 2, kEnded = 3 };

// What the queue view shows of a run that waits. Names are indexes into JobTable's.
struct WaitingDetail {
  std::string native_id;
  std::string name;
  std::string reason;
  std::uint32_t user = 0;
  std::uint32_t account = 0;
  double priority = -1;  // below zero: unknown
  std::int64_t eligible_s = 0;
  std::int64_t expected_start_s = 0;
  evidence::Resources requested;
};

struct TrackedRun {
  // In the state file. Times are epoch seconds, 0 for unknown.
  std::uint64_t row_hash = 0;    // of the row of squeue that was emitted last
  std::uint64_t final_hash = 0;  // of the record of sacct that was emitted last
  std::int64_t started_s = 0;
  std::int64_t ended_s = 0;
  std::int64_t emitted_s = 0;    // when a row was emitted last
  std::int64_t gone_s = 0;       // since when squeue does not list it; 0: it does
  std::uint32_t node_count = 0;  // allocated; 0: unknown
  RunPhase phase = RunPhase::kQueued;
  bool final = false;    // accounting has told its end
  bool guessed = false;  // an end that nobody saw was emitted
  bool bundled = false;  // its sources were taken
  // In memory alone, told again by the first rows after a restart.
  bool followed = false;       // its files are, or were
  std::uint8_t exit_code = 0;  // of an ended one, as squeue told it
  std::optional<std::uint32_t> restarts;
  std::uint32_t partition = 0;
  std::vector<std::uint32_t> nodes;  // of one that has started
  bool owes_update = false;          // `waiting` has changed and was not told since
  std::unique_ptr<WaitingDetail> waiting;
};

// Strings as small numbers; 0 is "". Never shrinks: users, accounts, partitions and nodes are few.
class NamePool {
 public:
  NamePool() { (void)Index(""); }
  std::uint32_t Index(std::string_view name);
  const std::string& operator[](std::uint32_t index) const { return *names_[index]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> indexes_;
  std::vector<const std::string*> names_;
};

// Beside the runs: how far sacct was read, and what makes row hashes comparable over restarts.
struct TableMarks {
  std::uint64_t hash_seed = 0;
  std::int64_t accounting_cursor_s = 0;  // all that ended before it was read; 0: nothing yet
  bool operator==(const TableMarks&) const = default;
};

class JobTable {
 public:
  using Runs = std::map<RunId, TrackedRun>;

  explicit JobTable(std::string cluster);

  const std::string& cluster() const { return cluster_; }
  evidence::ExecutionKey KeyOf(RunId id) const;

  TrackedRun* Find(RunId id);
  TrackedRun& FindOrAdd(RunId id) { return runs_[id]; }
  // The run with the newest submit time under a raw id.
  Runs::iterator Newest(std::uint32_t job_id);
  Runs& runs() { return runs_; }
  const Runs& runs() const { return runs_; }

  // The run that a raw id meant at `at`: the newest that was submitted by then, unless that was
  // over for more than two minutes.
  std::optional<RunId> At(std::uint32_t job_id, base::WallTime at) const;
  void NoteSluid(std::string_view sluid, RunId id);
  std::optional<RunId> BySluid(std::string_view sluid) const;

  // Drops runs that are over, final or guessed, and out of squeue for `keep`. Returns how many.
  std::size_t Forget(base::WallTime now, std::chrono::seconds keep);

  NamePool& names() { return names_; }
  const NamePool& names() const { return names_; }

  TableMarks marks;

  // The state file's bytes, and back: table.corrupt, table.version, or table.cluster when the file
  // is of another cluster.
  std::string Encode() const;
  base::Status Decode(std::string_view bytes);
  // Whose jobs such bytes are about; "" when they are not whole.
  static std::string ClusterOf(std::string_view bytes);

 private:
  const std::string cluster_;
  Runs runs_;
  NamePool names_;
  std::unordered_map<std::string, RunId> sluids_;
};

}  // namespace expanse::schedulers::slurm
