// What the threads that talk to Slurm report to the capture thread, and the box that holds it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "evidence/cluster_state.h"
#include "schedulers/slurm/commands/ledger.h"
#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/commands/scontrol_config.h"
#include "schedulers/slurm/job.h"
#include "schedulers/slurm/node/node_claim.h"

namespace expanse::schedulers::slurm {

// Rows of squeue that are new or have changed; one allocation for hundreds of them.
struct RowBatch {
  struct Row {
    std::uint32_t job_id = 0;
    std::uint64_t hash = 0;         // of all of it
    std::uint64_t stable_hash = 0;  // of what does not change while a job only waits
    std::size_t begin = 0;
    std::size_t size = 0;
  };
  std::string bytes;
  std::vector<Row> rows;
  std::string_view BytesOf(const Row& row) const {
    return std::string_view(bytes).substr(row.begin, row.size);
  }
};

struct QueueDone {
  bool is_listing = false;  // of all jobs; else a look-up
  base::Status status;
  CommandCost cost;
  std::uint64_t runs = 1;
  std::uint64_t rows = 0;
  std::uint64_t malformed = 0;
  std::uint64_t not_taken = 0;      // new rows for which there was no room; they come again
  bool unbelieved = false;          // empty, though there were jobs a moment ago
  std::vector<std::uint32_t> gone;  // jobs that are not in slurmctld any more
};

struct AccountingRuns {
  std::vector<Job> jobs;
};

struct AccountingDone {
  bool is_window = false;  // else a look-up of `job_ids`
  base::Status status;
  CommandCost cost;
  std::uint64_t runs = 1;
  std::uint64_t jobs = 0;
  std::uint64_t bad_rows = 0;
  std::int64_t read_to_s = 0;  // of a window that was read to its end
  std::vector<std::uint32_t> job_ids;
};

struct ConfigDone {
  base::Status status;
  CommandCost cost;
  SlurmConfig config;
};

struct NodesDone {
  base::Status status;
  CommandCost cost;
  base::WallTime at{};
  std::vector<evidence::ClusterNode> nodes;
  std::map<std::string, std::string, std::less<>> hosts;  // by node, where they are told
};

struct PartitionsDone {
  base::Status status;
  CommandCost cost;
  base::WallTime at{};
  std::vector<evidence::ClusterPartition> partitions;
};

struct ScriptDone {
  std::uint32_t job_id = 0;  // whose run asked for it
  std::int64_t submitted_s = 0;
  base::Status status;              // slurm.no_script: the job has none
  std::optional<CommandCost> cost;  // where scontrol was asked
  std::string script;
};

struct StateWritten {
  base::Status status;
  std::size_t bytes = 0;
};

struct ClaimDone {
  base::Status status;
  std::shared_ptr<NodeClaim> claim;  // this host is ours to sample while it lives
};

using Report = std::variant<RowBatch, QueueDone, AccountingRuns, AccountingDone, ConfigDone,
                            NodesDone, PartitionsDone, ScriptDone, StateWritten, ClaimDone>;

// Thread-safe. Bounded by the bytes of what is bulky (rows, runs, scripts).
class Mailbox {
 public:
  explicit Mailbox(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // False: no room. Reports of 0 bytes are always taken: there is one per command.
  [[nodiscard]] bool Put(Report report, std::size_t bytes) {
    std::scoped_lock lock(mutex_);
    if (bytes > 0 && bytes_ > 0 && bytes_ + bytes > most_bytes_) return false;
    bytes_ += bytes;
    reports_.push_back({std::move(report), bytes});
    return true;
  }
  void PutDone(Report report) { (void)Put(std::move(report), 0); }
  // Waits for room, for `patience` at most.
  [[nodiscard]] bool PutWaiting(Report report, std::size_t bytes, const std::stop_token& stop,
                                std::chrono::milliseconds patience) {
    {
      std::unique_lock lock(mutex_);
      (void)room_.wait_for(lock, stop, patience,
                           [&] { return bytes_ == 0 || bytes_ + bytes <= most_bytes_; });
    }
    return Put(std::move(report), bytes);
  }

  std::optional<Report> Take() {
    std::scoped_lock lock(mutex_);
    if (reports_.empty()) return std::nullopt;
    Entry entry = std::move(reports_.front());
    reports_.pop_front();
    bytes_ -= entry.bytes;
    if (entry.bytes > 0) room_.notify_all();
    return std::move(entry.report);
  }
  std::size_t bytes() const {
    std::scoped_lock lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    Report report;
    std::size_t bytes = 0;
  };
  const std::size_t most_bytes_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any room_;
  std::deque<Entry> reports_;
  std::size_t bytes_ = 0;
};

}  // namespace expanse::schedulers::slurm
