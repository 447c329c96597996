// What our commands cost slurmctld and slurmdbd, kept by kind; when each kind is due again; and
// whether one more look-up can be afforded. No threads, no clock: times are arguments. Owned by the
// capture thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "schedulers/slurm/commands/runner.h"

namespace expanse::schedulers::slurm {

// What a command is for. At most one of a kind runs at any time.
enum class CommandKind : std::uint8_t {
  kQueue,             // all jobs
  kLookup,            // some jobs, soon
  kAccounting,        // a window of sacct
  kAccountingLookup,  // some jobs of sacct
  kNodes,
  kPartitions,
  kConfig,
  kScript,  // batch scripts that slurmctld's directory does not give
};
inline constexpr std::size_t kCommandKinds = 8;

std::string_view Name(CommandKind kind);

struct LedgerOptions {
  double share = 0.01;  // of the wall time that may pass inside slurmctld and slurmdbd ...
  std::chrono::seconds burst{3};  // ... saved up to this much for look-ups
};

class CommandLedger {
 public:
  struct Kind {
    std::uint64_t runs = 0;
    std::uint64_t failures = 0;
    std::uint64_t failures_in_row = 0;
    CommandCost last_cost;
    std::chrono::microseconds served{};  // all runs together
    std::optional<base::MonoTime> succeeded_at;
    base::Error error;  // of the last run; empty reason when it succeeded
  };

  CommandLedger(LedgerOptions options, base::MonoTime now);

  // A command ended; `runs` of the program made it up (a look-up may need several).
  void Record(CommandKind kind, const CommandCost& cost, const base::Status& status,
              base::MonoTime now, std::uint64_t runs = 1);
  // Whether a look-up of `kind` fits into what is saved up; periodic commands are never refused,
  // but they draw from it too.
  bool Affords(CommandKind kind, base::MonoTime now);

  const Kind& of(CommandKind kind) const { return kinds_[static_cast<std::size_t>(kind)]; }
  // Runs of programs in the last five minutes, per minute (of as long as we have been here).
  double RunsPerMinute(base::MonoTime now) const;
  // Share of the last five minutes that commands waited for Slurm.
  double ServedShare(base::MonoTime now) const;
  std::chrono::microseconds served() const { return served_; }
  std::uint64_t runs() const { return runs_; }

 private:
  struct Minute {
    std::int64_t minute = 0;  // of the monotonic clock
    std::uint64_t runs = 0;
    std::chrono::microseconds served{};
  };
  void Refill(base::MonoTime now);
  void Count(base::MonoTime now, std::uint64_t runs, std::chrono::microseconds served);
  double WindowMinutes(base::MonoTime now) const;

  const LedgerOptions options_;
  const base::MonoTime since_;
  std::array<Kind, kCommandKinds> kinds_{};
  std::deque<Minute> minutes_;  // the last five
  double saved_s_;              // may be negative: a listing took more than its share
  base::MonoTime refilled_at_;
  std::chrono::microseconds served_{};
  std::uint64_t runs_ = 0;
};

// When a periodic command is due. A slow Slurm is asked less often: a command that succeeds takes a
// twentieth of the time at most (until that would be an hour), and failures double the interval up
// to `most`, or to four times what they take.
class CommandSchedule {
 public:
  CommandSchedule(std::chrono::milliseconds interval, std::chrono::milliseconds most)
      : interval_(interval), most_(std::max(interval, most)) {}

  bool Due(base::MonoTime now) const { return !running_ && now >= next_; }
  bool running() const { return running_; }
  void Started(base::MonoTime now) {
    running_ = true;
    started_ = now;
  }
  void Ended(base::MonoTime now, std::chrono::microseconds wall, bool succeeded);
  // At `when` or before, unless failures hold it back.
  void Hasten(base::MonoTime when) {
    if (failures_ == 0) next_ = std::min(next_, when);
  }
  // Not before `wait` from now, whatever its interval is.
  void RetryAfter(base::MonoTime now, std::chrono::milliseconds wait) { next_ = now + wait; }
  std::chrono::milliseconds interval() const { return current_.count() > 0 ? current_ : interval_; }

 private:
  const std::chrono::milliseconds interval_;
  const std::chrono::milliseconds most_;
  std::chrono::milliseconds current_{};
  base::MonoTime next_{};
  base::MonoTime started_{};
  bool running_ = false;
  std::optional<std::chrono::microseconds> last_;  // what the last success took
  int failures_ = 0;
};

}  // namespace expanse::schedulers::slurm
