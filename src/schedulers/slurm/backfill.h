// Imports what sacct knows of the past, in chunks of time, oldest first: so that there is history
// on the first day. Repeating does no harm: a run has the identity that live capture gives it.
// Gentle with slurmdbd: one query at a time, pauses in proportion to how long it took, smaller
// chunks where it is slow. Memory does not grow with the history.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/retry.h"
#include "base/time.h"
#include "schedulers/observer.h"
#include "schedulers/slurm/backfill_state.h"
#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/commands/sacct.h"

namespace expanse::schedulers::slurm {

// "30d", "12h" (before `now`), "2026-01-01" (midnight in UTC) or RFC 3339. Fails with
// backfill.time, also for a time that is not before `now`.
base::Result<base::WallTime> ParseSince(std::string_view text, base::WallTime now);

struct BackfillOptions {
  std::string cluster;
  std::string state_path;  // see backfill_state.h
  // Runs that ended from the one up to, without, the other.
  TimeSpan span;
  bool again = false;  // also what was imported before
  std::chrono::seconds chunk{86'400};
  std::chrono::seconds smallest_chunk{600};
  std::chrono::milliseconds pause{2'000};  // between queries, at least ...
  double share = 0.2;  // ... and so long that slurmdbd is busy no more than this
  std::chrono::milliseconds slow{30'000};  // a query that takes longer makes the next ones smaller
  std::chrono::milliseconds deadline{600'000};
  // What ended this shortly ago may not be in the database yet: it is imported and not marked as
  // done.
  std::chrono::seconds settle{900};
  std::size_t batch = 1'000;  // records that wait for the disk together
  int tries = 8;              // of one chunk, before giving up
  base::BackoffPolicy backoff{.first = std::chrono::seconds(5), .most = std::chrono::minutes(2)};
};

struct BackfillProgress {
  TimeSpan span;             // what was asked for
  base::WallTime done_to{};  // everything before it is done
  double fraction = 0;       // of the time that had to be looked at, 0 to 1
  std::uint64_t queries = 0;
  std::uint64_t failures = 0;
  std::uint64_t rows = 0;
  std::uint64_t runs = 0;              // handed on; those of a query that failed count again
  std::uint64_t bad_rows = 0;          // that say no run
  std::uint64_t refused = 0;           // records that are too large to be kept
  std::chrono::microseconds served{};  // that slurmdbd and the way to it took
  std::string waiting_for;  // "": nothing; else what keeps it: "room in the outbox", an error
};

// Not thread-safe.
class Backfill {
 public:
  struct Hooks {
    // After each chunk and whenever it begins to wait for something. May be empty.
    std::function<void(const BackfillProgress&)> on_progress;
    // False while the sink should get nothing more; asked before each chunk. May be empty.
    std::function<bool()> has_room;
  };

  // All outlive it.
  Backfill(BackfillOptions options, CommandRunner& runner, EvidenceSink& sink, base::Clock& clock,
           Hooks hooks);

  // Blocks until all is imported or `stop`. Fails with slurm.no_accounting or slurm.sacct_format
  // (nothing to import from), backfill.stopped, or what kept a chunk from being imported in all its
  // tries; what was imported by then is not asked for again the next time.
  base::Status Run(std::stop_token stop);
  const BackfillProgress& progress() const { return progress_; }

 private:
  base::Result<SacctFormat> Format(std::stop_token stop);
  base::Status RunGap(const SacctFormat& format, TimeSpan gap, std::stop_token stop);
  base::Status Import(const SacctFormat& format, TimeSpan chunk, std::stop_token stop);
  base::Status Handle(const base::Error& error, int failed, std::stop_token stop);
  void Take(Job run);
  base::Status EmitBatch();
  bool WaitForRoom(std::stop_token stop);
  bool Pause(std::chrono::microseconds served, std::stop_token stop);
  void MarkDone(TimeSpan chunk);
  void Tell(std::string_view waiting_for);

  const BackfillOptions options_;
  CommandRunner& runner_;
  EvidenceSink& sink_;
  base::Clock& clock_;
  const Hooks hooks_;

  CoveredTime covered_;
  BackfillProgress progress_;
  std::chrono::seconds to_look_at_{};
  std::chrono::seconds looked_at_{};
  std::chrono::seconds chunk_;
  std::chrono::microseconds last_served_{};
  RestartCounts restarts_;
  std::vector<evidence::Payload> batch_;
  base::Status emitted_;
  base::Backoff backoff_;
};

}  // namespace expanse::schedulers::slurm
