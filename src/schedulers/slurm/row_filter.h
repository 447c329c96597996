// Tells changed rows of squeue from those that were seen before, by a hash per job, so that of
// 110,000 rows only the few that changed are looked at. Used by the thread that reads squeue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace expanse::schedulers::slurm {

// 64 bits over `bytes`, fast (several bytes a cycle) and good enough to tell rows apart; with a
// secret seed nobody can write a row that looks like another. Equal on all machines.
std::uint64_t HashBytes(std::uint64_t seed, std::string_view bytes);

// Not thread-safe.
class RowFilter {
 public:
  // A listing of all jobs begins.
  void BeginListing() { ++listing_; }
  // The row of `job_id` was read; true if it is not the one that was seen last.
  bool IsNew(std::uint32_t job_id, std::uint64_t hash);
  // The new row could not be passed on: it counts as new again the next time.
  void NotTaken(std::uint32_t job_id);
  // The listing was complete: jobs that were there before and not in it, forgotten hereby.
  std::vector<std::uint32_t> EndListing();
  // A job that is known from before the daemon started: if no listing has it, it is gone.
  void Expect(std::uint32_t job_id) { rows_.try_emplace(job_id); }
  void Forget(std::uint32_t job_id) { rows_.erase(job_id); }
  std::size_t size() const { return rows_.size(); }

 private:
  struct Row {
    std::uint64_t hash = 0;
    std::uint32_t listing = 0;  // the last one that had it
  };
  std::unordered_map<std::uint32_t, Row> rows_;
  std::uint32_t listing_ = 0;
};

}  // namespace expanse::schedulers::slurm
