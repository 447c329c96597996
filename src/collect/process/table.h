// The processes of the host as /proc shows them, looked at again every tick as cheaply as possible:
// files stay open, and a process that belongs to no workload is read once and then only now and
// then.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "collect/kernel_file.h"
#include "collect/process/parse.h"

namespace expanse::collect {

// Not thread-safe.
class ProcessTable {
 public:
  struct Entry {
    ProcStat stat;
    bool fresh = false;  // read in this round
    bool alive = true;   // false: was not there any more in this round
    base::MonoTime asked_at{};
    KernelFile stat_file;
    KernelFile status_file;
    // Share of the resident anonymous and shared memory that is not shared with others: Pss / RSS.
    std::optional<double> share;
    std::uint64_t share_rss = 0;
    base::MonoTime share_at{};
  };

  ProcessTable(std::string root, std::size_t open_files)
      : root_(std::move(root)), fds_(open_files) {}
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // A new tick: entries are stale until asked for again; those nobody asked for in the last rounds
  // go.
  void NextRound(base::MonoTime now);
  // The process as of this round; null if it is gone. At most one system call.
  Entry* Refresh(pid_t pid);
  // Like Refresh, but content with an older reading: for processes that only might matter.
  Entry* Look(pid_t pid);
  // All pids of the host, ascending. Lists /proc at most once a round.
  const std::vector<pid_t>& Pids();

  // Memory that this process needs (anonymous and shared), in bytes. Pages that it shares with
  // others count in part if `shared` and we may look (smaps_rollup, which walks the page tables:
  // for small processes always, for large ones once a minute and scaled in between).
  struct Need {
    std::uint64_t anon = 0;
    std::uint64_t shmem = 0;
    bool exact = true;  // false: shared pages are counted in full
  };
  std::optional<Need> ReadNeed(Entry& entry, bool shared);

  // False where other users' processes are hidden (mount option hidepid) or /proc is not there.
  bool SeesOthers();
  std::uint64_t round() const { return round_; }
  std::size_t size() const { return entries_.size(); }
  const std::string& root() const { return root_; }

 private:
  std::string Path(pid_t pid, const char* file) const;
  std::string root_;
  FdBudget fds_;
  std::unordered_map<pid_t, Entry> entries_;
  std::vector<pid_t> pids_;
  std::uint64_t pids_round_ = 0;
  std::uint64_t round_ = 1;
  base::MonoTime now_{};
  std::string buffer_;
};

}  // namespace expanse::collect
