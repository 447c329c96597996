// What becomes of runs: unites what squeue, sacct and hooks tell into observations, decides which
// of them are worth telling, and knows which runs want another look. No I/O, no threads; the
// capture thread owns it. Times are arguments.
//
// A run is told of when its row of squeue changes (while it waits, seldom, and what was held back
// then later), at its start as soon as
// a hook reports it, at its end as squeue tells it, and last by sacct, which is final. A run that
// left squeue without an end is lost: sacct is asked for it, and only when that does not know it
// either for a while, an end that nobody saw is made up and says so.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "collect/collector.h"
#include "evidence/records.h"
#include "schedulers/slurm/job.h"
#include "schedulers/slurm/job_table.h"
#include "schedulers/slurm/outgoing.h"

namespace expanse::schedulers::slurm {

struct KeeperOptions {
  // A waiting run whose reason or expected start changes is told again so often at most (at once
  // where it begins or ceases to need somebody's help) ...
  std::chrono::seconds waiting_update{600};
  // ... and all of them together so often a second.
  double waiting_updates_per_s = 10;
  // A run that squeue does not list and nobody saw end.
  std::chrono::seconds guess_after{600};
  // Runs that are over are remembered so long: sacct's windows overlap, squeue lists them for a
  // while.
  std::chrono::seconds keep{7200};
};

// A job starts or ends, says somebody on its node.
struct LifecycleHint {
  bool ends = false;
  std::uint32_t job_id = 0;
  base::WallTime at{};                      // by the controller's clock
  std::optional<base::WallTime> started{};  // as Slurm says, where it does
};

// A record that sacct has not given after so many questions will not come.
inline constexpr int kMostAccountingTries = 5;

class RunKeeper {
 public:
  // Called when a run is first seen running or ended, when what squeue says of a running one
  // changes, and when one ends.
  struct Followers {
    std::function<void(RunId, TrackedRun&, const Job&)> seen;
    std::function<void(RunId)> ended;
  };

  RunKeeper(KeeperOptions options, JobTable& table, Outgoing& outgoing, Followers followers);

  // A row of squeue that is new or has changed, in the order in which they were read.
  // `stable_hash` is of what does not change while a job only waits.
  void TakeRow(Job job, std::uint64_t hash, std::uint64_t stable_hash, const collect::Tick& tick);
  // Jobs that a complete listing did not have any more, or a look-up did not find.
  void TakeGone(std::span<const std::uint32_t> job_ids, const collect::Tick& tick);
  // A run as sacct has it.
  void TakeAccounting(Job job, const collect::Tick& tick);
  void TakeHint(const LifecycleHint& hint, const collect::Tick& tick);
  // A cgroup or a sampler's record of a job that the table does not know.
  void WantUnknown(std::uint32_t job_id, base::MonoTime now);
  // False: the cluster keeps no accounting, and squeue's word is final.
  void SetAccounting(bool there_is);

  // Makes up ends that are overdue and forgets what is over. Call it every few seconds.
  void Sweep(const collect::Tick& tick);

  // Job ids to ask squeue for now; they count as asked for.
  std::vector<std::uint32_t> TakeLookUps(std::size_t most, base::MonoTime now);
  bool WantsLookUps(base::MonoTime now) const;
  // Job ids to ask sacct for now: lost ones, and those whose record has not come for long.
  std::vector<std::uint32_t> TakeAccountingLookUps(std::size_t most, const collect::Tick& tick);
  bool WantsAccountingLookUps(const collect::Tick& tick) const;
  // The answer to the last ones was complete: what it did not have, sacct does not know.
  void AccountingAnswered(std::span<const std::uint32_t> job_ids, const collect::Tick& tick);

  struct Figures {
    std::size_t queued = 0;
    std::size_t running = 0;
    std::size_t awaiting_final = 0;  // ended, without a record of sacct
    std::size_t lost = 0;            // left squeue without an end
    std::uint64_t rows = 0;
    std::uint64_t hints = 0;
    base::WallTime last_hint{};
    std::uint64_t starts_without_hint = 0;  // seen by squeue alone, since the last hint
    std::uint64_t finals = 0;
    std::uint64_t guessed = 0;
    std::uint64_t without_key = 0;               // rows that name no submit time
    std::uint64_t waiting_updates_left_out = 0;  // or put off
  };
  const Figures& figures() const { return figures_; }

 private:
  struct Want {
    base::MonoTime since{};
    base::MonoTime due{};
    int tries = 0;
    bool until_end = false;
  };
  // A run whose record of sacct has not come.
  struct Overdue {
    std::int64_t ask_at_s = 0;
    int tries = 0;
  };

  void RememberNodes(const evidence::Execution& execution, TrackedRun& run, RunPhase phase);
  void Remember(const Job& job, RunId id, TrackedRun& run, RunPhase phase);
  bool MayUpdateWaiting(const TrackedRun& run, bool at_once, const collect::Tick& tick);
  void TellOwedUpdates(const collect::Tick& tick);
  void Count(const TrackedRun& run, int by);
  void End(RunId id, TrackedRun& run, base::WallTime now);
  void EndOlderRuns(RunId newest, const collect::Tick& tick);
  void Lose(RunId id, TrackedRun& run, base::WallTime at);
  void GuessEnd(RunId id, TrackedRun& run, const collect::Tick& tick);
  void WantLookUp(std::uint32_t job_id, bool until_end, base::MonoTime now);
  void SettleWant(std::uint32_t job_id, std::optional<RunPhase> phase, base::MonoTime now);
  void Tell(RunId id, evidence::Execution execution, const collect::Tick& tick);

  const KeeperOptions options_;
  JobTable& table_;
  Outgoing& outgoing_;
  const Followers followers_;
  bool accounting_ = true;
  std::map<std::uint32_t, Want> wants_;
  std::map<std::uint32_t, base::MonoTime> unknown_;  // until when they are not asked for again
  std::map<RunId, Overdue> overdue_;                 // ended or lost, and not final
  std::set<RunId> lost_;
  std::deque<RunId> owed_;  // waiting runs that owe an update, each once
  double update_tokens_;
  base::MonoTime tokens_at_{};
  base::MonoTime next_forget_{};
  Figures figures_;
};

}  // namespace expanse::schedulers::slurm
