#include "schedulers/slurm/commands/ledger.h"

#include <algorithm>

namespace expanse::schedulers::slurm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::int64_t kMinutes = 5;
constexpr int kSlowFactor = 20;  // an interval is at least so many times what the command took
constexpr int kFailedFactor = 4;
constexpr milliseconds kSlowest{3'600'000};
// A look-up is taken to cost this until one was seen.
constexpr microseconds kFirstGuess{20'000};
constexpr std::array<std::string_view, kCommandKinds> kNames = {
    "queue", "lookup",     "accounting", "accounting_lookup",
    "nodes", "partitions", "config",     "script"};

std::int64_t MinuteOf(base::MonoTime time) {
  return std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count();
}

}  // namespace

std::string_view Name(CommandKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

CommandLedger::CommandLedger(LedgerOptions options, base::MonoTime now)
    : options_(options), since_(now), saved_s_(base::ToSeconds(options.burst)), refilled_at_(now) {}

void CommandLedger::Refill(base::MonoTime now) {
  const double passed = base::ToSeconds(now - refilled_at_);
  refilled_at_ = now;
  saved_s_ = std::min(base::ToSeconds(options_.burst), saved_s_ + passed * options_.share);
}

void CommandLedger::Count(base::MonoTime now, std::uint64_t runs, microseconds served) {
  const std::int64_t minute = MinuteOf(now);
  if (minutes_.empty() || minutes_.back().minute != minute) minutes_.push_back({.minute = minute});
  minutes_.back().runs += runs;
  minutes_.back().served += served;
  while (minutes_.front().minute <= minute - kMinutes) minutes_.pop_front();
}

void CommandLedger::Record(CommandKind kind, const CommandCost& cost, const base::Status& status,
                           base::MonoTime now, std::uint64_t runs) {
  Refill(now);
  // Debt is bounded: after one very slow listing look-ups come back within minutes.
  const double burst = base::ToSeconds(options_.burst);
  saved_s_ = std::max(-burst, saved_s_ - base::ToSeconds(cost.served()));
  Count(now, runs, cost.served());
  served_ += cost.served();
  runs_ += runs;
  Kind& record = kinds_[static_cast<std::size_t>(kind)];
  record.runs += runs;
  record.last_cost = cost;
  record.served += cost.served();
  if (status) {
    record.succeeded_at = now;
    record.failures_in_row = 0;
    record.error = {};
  } else {
    ++record.failures;
    ++record.failures_in_row;
    record.error = status.error();
  }
}

bool CommandLedger::Affords(CommandKind kind, base::MonoTime now) {
  Refill(now);
  if (options_.share <= 0) return false;
  const Kind& record = of(kind);
  const microseconds expected =
      record.runs == 0 ? kFirstGuess : record.served / static_cast<std::int64_t>(record.runs);
  return saved_s_ >= base::ToSeconds(expected);
}

double CommandLedger::WindowMinutes(base::MonoTime now) const {
  // The oldest of the minutes is a whole one, the newest has just begun.
  const auto window_start = base::MonoTime(std::chrono::minutes(MinuteOf(now) - kMinutes + 1));
  const auto seconds = base::ToSeconds(now - std::max(window_start, since_));
  return std::max(seconds, 60.0) / 60.0;
}

double CommandLedger::RunsPerMinute(base::MonoTime now) const {
  double runs = 0;
  for (const Minute& minute : minutes_) {
    if (minute.minute > MinuteOf(now) - kMinutes) runs += static_cast<double>(minute.runs);
  }
  return runs / WindowMinutes(now);
}

double CommandLedger::ServedShare(base::MonoTime now) const {
  microseconds served{};
  for (const Minute& minute : minutes_) {
    if (minute.minute > MinuteOf(now) - kMinutes) served += minute.served;
  }
  return base::ToSeconds(served) / (WindowMinutes(now) * 60.0);
}

void CommandSchedule::Ended(base::MonoTime now, microseconds wall, bool succeeded) {
  running_ = false;
  failures_ = succeeded ? 0 : std::min(failures_ + 1, 10);
  // One slow answer (slurmctld was just starting) says nothing of the next: two in a row do.
  const milliseconds took =
      std::chrono::ceil<milliseconds>(succeeded && last_ ? std::min(wall, *last_) : wall);
  if (succeeded) last_ = wall;
  if (succeeded) {
    current_ = std::max(interval_, std::min(took * kSlowFactor, kSlowest));
  } else {
    current_ = std::min(interval_ * (1 << (failures_ - 1)), most_);
    current_ = std::max(current_, std::min(took * kFailedFactor, kSlowest));
  }
  next_ = std::max(started_ + current_, now);
}

}  // namespace expanse::schedulers::slurm
