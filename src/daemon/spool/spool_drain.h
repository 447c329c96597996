// The controller's end of the spool: takes what samplers left, gives it the scheduler's identities
// and right times, and puts it into the outboxes; each record once. docs/formats/spool-segment.md
// says what it believes and why a crash repeats nothing.
//
// Files are handled by a DrainWorker on a thread of its own; what needs the scheduler's table
// happens on the capture thread, within a budget.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "collect/collector.h"
#include "daemon/file_io.h"
#include "daemon/outboxes.h"
#include "daemon/spool/abandonable_thread.h"
#include "daemon/spool/drain_state.h"
#include "daemon/spool/drain_worker.h"
#include "daemon/spool/host_clock.h"
#include "evidence/records.h"
#include "schedulers/key_resolver.h"

namespace expanse::daemon::spool {

struct SpoolDrainOptions {
  std::string state_dir;  // holds spool.state
  DrainWorkerOptions worker;
  std::chrono::milliseconds step_budget{200};  // of the capture thread, per step
  std::size_t batch_bytes = 512U << 10;        // segments between two waits for the disk, as files
  std::chrono::seconds unknown_wait{600};      // for a job that the table does not know
  std::size_t waits_per_host = 20'000;         // (segment, unknown job) pairs; beyond it dropped
  std::chrono::seconds silent_after{120};      // a host with jobs and no segments
  std::chrono::seconds save_interval{60};
  std::size_t degraded_hosts_shown = 32;
  std::size_t sampler_rows_shown = 64;
  bool own_thread = true;  // false: Step looks itself, for tests
};

struct DrainFigures {
  std::uint64_t segments = 0;
  std::uint64_t records = 0;
  std::uint64_t repeated = 0;  // segments that came again
  std::uint64_t unknown = 0;   // records whose job stayed unknown
  std::uint64_t refused = 0;   // records that the outbox will never take
  std::uint64_t waiting = 0;   // segments that wait for their job
  std::uint64_t missing = 0;   // sequences that never came: dropped by their writer, or lost
};

// For the capture thread.
class SpoolDrain {
 public:
  // A state file that cannot be read is set aside: the corrections in it are found again. The
  // arguments outlive the drain; `files` and `clock` its thread, should that be left behind.
  SpoolDrain(SpoolDrainOptions options, schedulers::KeyResolver& resolver, Outboxes& outboxes,
             FileIo& files, base::Clock& clock);
  ~SpoolDrain();

  // Takes segments into the outboxes until there are none or the budget is spent. To be called
  // after the scheduler's observer has looked, so that its table is fresh.
  void Step(const collect::Tick& tick);
  // False: the thread hangs and was left behind.
  bool Stop(std::chrono::milliseconds deadline);

  // "spool" with the totals, a row "spool/<host>" per host in trouble, and what samplers say of
  // themselves where that is not "ok", as "<host>/<collector>".
  std::vector<evidence::HealthRow> health(base::WallTime now) const;
  const DrainFigures& figures() const { return figures_; }

 private:
  // What holds back records: "job:41982", or "node:n1" when it is not known whether the host has
  // that node.
  struct Unknown {
    base::MonoTime since{};
    base::MonoTime last_seen{};
    base::WallTime at{};          // of the first record that is held back
    std::set<std::string> files;  // that hold such records
    bool kept_one = false;        // a segment went to quarantine for it
  };
  struct Host {
    HostClock clock;
    base::MonoTime heard{};
    SegmentName last;  // in order; empty: none yet
    std::map<std::string, Unknown> unknown;
    std::map<std::string, std::set<std::string>> parked;  // by file: what it waits for
    std::size_t waits = 0;                                // of all that are parked
    std::set<std::string> asked;                          // parked ones that are being read again
    std::set<std::string> done;                           // taken, above the mark
    std::vector<evidence::HealthRow> rows;                // of its sampler, those that are not ok
  };
  // A segment on its way through one batch.
  struct Passing {
    std::string host;
    SegmentName name;
    std::string file;
    std::size_t end = 0;              // of its records in the batch
    std::set<std::string> waits_for;  // empty: it is done
    std::string verdict;              // not empty: quarantine
  };
  // What was sorted and has to go into the outbox.
  struct Batch {
    std::vector<evidence::Record> records;
    std::size_t sent = 0;
    std::deque<Passing> passing;
    bool told = false;  // the resolver took reports, which have to be safe before segments go
  };
  enum class Fate : std::uint8_t { kSend, kTaken, kHold, kDrop };

  Host& HostOf(const std::string& name);
  void LoadState();
  base::Status SaveState(base::MonoTime now);
  bool Admit(ReadSegment* segment, std::set<std::string>* corrected, bool* state_changed);
  bool Prepare(std::vector<ReadSegment> segments, const collect::Tick& tick, base::MonoTime until);
  void Sort(ReadSegment segment, const collect::Tick& tick);
  // `offered`: the resolver was told of it before.
  Fate FateOf(evidence::Record* record, bool offered, Host* host, const collect::Tick& tick,
              Passing* passing);
  Fate Hold(const std::string& what, base::WallTime at, Host* host, const collect::Tick& tick,
            Passing* passing);
  bool Send(base::MonoTime until);
  void Pace(base::Duration took, std::size_t records);
  void Finish(const Passing& passing);
  void MarkDone(const std::string& host_name, Host* host, const SegmentName& name);
  void AskForParked(const collect::Tick& tick);
  // drain_health.cc
  evidence::HealthRow Totals(const collect::Tick& now) const;
  void AddHostRows(const collect::Tick& now, std::vector<evidence::HealthRow>* rows) const;

  const SpoolDrainOptions options_;
  schedulers::KeyResolver& resolver_;
  Outboxes& outboxes_;
  FileIo& files_;
  base::Clock& clock_;
  const std::shared_ptr<DrainWorker> worker_;
  DrainState state_;
  bool state_dirty_ = false;
  const base::MonoTime started_at_;
  base::MonoTime saved_at_;
  base::Status save_status_;
  base::Status emit_status_;
  std::map<std::string, Host, std::less<>> hosts_;
  std::vector<ReadSegment> backlog_;  // to be sorted before what the worker has
  Batch batch_;
  std::size_t slice_ =
      256;  // records to the outbox at once: what a part of the budget suffices for
  std::uint64_t quarantined_ = 0;  // as of the last step
  std::optional<base::MonoTime> quarantined_at_;
  base::MonoTime next_parked_{};
  DrainFigures figures_;
  base::RateLimit log_{std::chrono::seconds(60)};
  AbandonableThread thread_;
};

}  // namespace expanse::daemon::spool
