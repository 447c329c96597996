#include "schedulers/slurm/run_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "collect/logs/redact.h"
#include "evidence/wire.h"
#include "schedulers/slurm/row_filter.h"

namespace expanse::schedulers::slurm {
namespace {

using std::chrono::seconds;

// What could not be looked up for so long, listings have told.
constexpr std::chrono::minutes kWantsFor{3};
// slurmctld hands ends to slurmdbd within seconds; sacct is asked for single jobs only after this.
constexpr seconds kAhead{30};  // more than clocks differ, less than the shortest limit
constexpr std::int64_t kRecordDue = 180;
constexpr std::int64_t kGiveUp = std::int64_t{7} * 86'400;
constexpr seconds kForgetEvery{60};
constexpr double kUpdateBurst = 1000;
constexpr std::size_t kOwedPerSweep = 5'000;

std::int64_t Seconds(base::WallTime time) {
  return std::chrono::floor<seconds>(time).time_since_epoch().count();
}
std::int64_t Seconds(const std::optional<base::WallTime>& time) {
  return time ? Seconds(*time) : 0;
}
base::WallTime Time(std::int64_t s) { return base::WallTime(seconds(s)); }

RunPhase PhaseOf(const Job& job) {
  using evidence::ExecutionStatus;
  if (job.final) return RunPhase::kEnded;
  if (job.execution.status == ExecutionStatus::kQueued) return RunPhase::kQueued;
  if (job.execution.status == ExecutionStatus::kRunning) return RunPhase::kRunning;
  // A word of a newer version, or nodes that clean up.
  return job.execution.started_at ? RunPhase::kRunning : RunPhase::kQueued;
}

// The row of a requeued run whose nodes clean up: its count is already that of the next run, and
// its start and end are made from the present.
bool WasRequeued(const Job& job, base::WallTime now) {
  return job.execution.restart_count > 0 && job.completing_end &&
         *job.completing_end > now + kAhead;
}

// slurmdbd keeps some bytes otherwise than they were written (a double quote as a backtick); squeue
// has told them exactly.
void DropFreeText(evidence::Execution& execution) {
  execution.name.clear();
  execution.comment.clear();
  execution.working_directory.clear();
}

// Reasons of runs that do not start by themselves: what comes of them depends on somebody.
bool NeedsSomebody(std::string_view reason) {
  static constexpr std::array<std::string_view, 11> kReasons = {
      "DependencyNeverSatisfied", "JobHeldUser",       "JobHeldAdmin",
      "JobHoldMaxRequeue",        "JobLaunchFailure",  "launch failed requeued held",
      "BadConstraints",           "InvalidAccount",    "InvalidQOS",
      "InvalidReservation",       "ReservationDeleted"};
  return std::ranges::find(kReasons, reason) != kReasons.end();
}

// Whether a waiting run's row says something that somebody who waits would want to know; priorities
// of all runs change every few minutes.
bool WaitDiffers(const TrackedRun& run, const evidence::Execution& execution) {
  return !run.waiting || run.waiting->reason != execution.native_reason ||
         run.waiting->eligible_s != Seconds(execution.eligible_at) ||
         run.waiting->expected_start_s != Seconds(execution.expected_start_at);
}

// It got stuck, or is so no more: somebody waits for either.
bool IsUrgent(const TrackedRun& run, std::string_view reason) {
  return run.waiting && run.waiting->reason != reason &&
         (NeedsSomebody(reason) || NeedsSomebody(run.waiting->reason));
}

// What changes while a run only waits.
evidence::Execution DescribeWait(const TrackedRun& run) {
  const WaitingDetail& waiting = *run.waiting;
  evidence::Execution execution;
  execution.status = evidence::ExecutionStatus::kQueued;
  execution.native_reason = waiting.reason;
  execution.restart_count = run.restarts.value_or(0);
  if (waiting.eligible_s != 0) execution.eligible_at = Time(waiting.eligible_s);
  if (waiting.expected_start_s != 0) execution.expected_start_at = Time(waiting.expected_start_s);
  if (waiting.priority >= 0)
    execution.labels.emplace(kLabelPriority, fmt::format("{}", waiting.priority));
  return execution;
}

}  // namespace

RunKeeper::RunKeeper(KeeperOptions options, JobTable& table, Outgoing& outgoing,
                     Followers followers)
    : options_(options),
      table_(table),
      outgoing_(outgoing),
      followers_(std::move(followers)),
      update_tokens_(kUpdateBurst) {
  for (const auto& [id, run] : table_.runs()) {
    const bool is_lost = run.phase != RunPhase::kEnded && run.gone_s != 0;
    if (is_lost) lost_.insert(id);
    if (is_lost || (run.phase == RunPhase::kEnded && !run.final)) overdue_[id] = {};
    Count(run, 1);
  }
}

void RunKeeper::SetAccounting(bool there_is) {
  accounting_ = there_is;
  if (there_is) return;
  for (const auto& [id, overdue] : overdue_) {
    TrackedRun* run = table_.Find(id);
    if (run != nullptr && run->phase == RunPhase::kEnded) run->final = true;
  }
  overdue_.clear();
}

void RunKeeper::Count(const TrackedRun& run, int by) {
  const auto change = static_cast<std::size_t>(by);  // wraps around as it should
  if (run.gone_s != 0) return;
  if (run.phase == RunPhase::kQueued) figures_.queued += change;
  if (run.phase == RunPhase::kRunning) figures_.running += change;
}

void RunKeeper::Tell(RunId id, evidence::Execution execution, const collect::Tick& tick) {
  execution.source_type = evidence::SourceType::kSlurm;
  execution.updated_at = tick.wall;
  RedactTexts(execution);
  outgoing_.Add(evidence::ExecutionObservation{table_.KeyOf(id), std::move(execution)});
}

// Kept until the run is forgotten: what its nodes tell of it may come after its end.
void RunKeeper::RememberNodes(const evidence::Execution& execution, TrackedRun& run,
                              RunPhase phase) {
  const std::size_t listed = phase == RunPhase::kQueued ? 0 : execution.nodes.size();
  // What says nothing of their number takes nothing back: it may be known from the last life.
  const std::uint32_t count =
      execution.allocated.node_count.value_or(static_cast<std::uint32_t>(listed));
  if (count != 0) run.node_count = count;
  run.nodes.clear();
  run.nodes.reserve(listed);
  for (std::size_t i = 0; i < listed; ++i)
    run.nodes.push_back(table_.names().Index(execution.nodes[i]));
}

void RunKeeper::Remember(const Job& job, RunId id, TrackedRun& run, RunPhase phase) {
  const evidence::Execution& execution = job.execution;
  table_.NoteSluid(job.sluid, id);
  run.restarts = execution.restart_count;
  run.partition = table_.names().Index(execution.queue);
  if (execution.started_at) run.started_s = Seconds(execution.started_at);
  RememberNodes(execution, run, phase);
  if (phase != RunPhase::kQueued) {
    run.waiting.reset();
    return;
  }
  if (!run.waiting) run.waiting = std::make_unique<WaitingDetail>();
  WaitingDetail& waiting = *run.waiting;
  waiting.native_id = execution.native_id;
  waiting.name = collect::Redact(execution.name).text;
  waiting.reason = execution.native_reason;
  waiting.user = table_.names().Index(execution.user);
  waiting.account = table_.names().Index(execution.account);
  const auto priority = execution.labels.find(std::string(kLabelPriority));
  waiting.priority =
      priority == execution.labels.end() ? -1 : base::ParseDouble(priority->second).value_or(-1);
  waiting.eligible_s = Seconds(execution.eligible_at);
  waiting.expected_start_s = Seconds(job.execution.expected_start_at);
  waiting.requested = execution.requested;
}

// Reasons, priorities and expected starts of all that waits change every few minutes.
bool RunKeeper::MayUpdateWaiting(const TrackedRun& run, bool at_once, const collect::Tick& tick) {
  update_tokens_ = std::min(kUpdateBurst, update_tokens_ + base::ToSeconds(tick.mono - tokens_at_) *
                                                               options_.waiting_updates_per_s);
  tokens_at_ = tick.mono;
  const bool is_due =
      at_once || Seconds(tick.wall) - run.emitted_s >= options_.waiting_update.count();
  if (!is_due || update_tokens_ < 1) return false;
  update_tokens_ -= 1;
  return true;
}

// A row that does not change any more comes no more: without this a run that waits for days would
// stand there with the reason of its first minute.
void RunKeeper::TellOwedUpdates(const collect::Tick& tick) {
  if (outgoing_.is_long()) return;
  for (std::size_t left = std::min(owed_.size(), kOwedPerSweep); left > 0; --left) {
    const RunId id = owed_.front();
    owed_.pop_front();
    TrackedRun* run = table_.Find(id);
    if (run == nullptr || !run->owes_update) continue;
    if (run->phase != RunPhase::kQueued || run->gone_s != 0 || !run->waiting) {
      run->owes_update = false;
      continue;
    }
    if (!MayUpdateWaiting(*run, NeedsSomebody(run->waiting->reason), tick)) {
      owed_.push_back(id);
      continue;
    }
    run->owes_update = false;
    run->emitted_s = Seconds(tick.wall);
    Tell(id, DescribeWait(*run), tick);
  }
}

void RunKeeper::TakeRow(Job job, std::uint64_t hash, std::uint64_t stable_hash,
                        const collect::Tick& tick) {
  ++figures_.rows;
  if (!job.submitted || job.job_id == 0) {
    ++figures_.without_key;
    return;
  }
  const RunId id = RunIdOf(job.job_id, *job.submitted);
  EndOlderRuns(id, tick);
  const bool is_new = table_.Find(id) == nullptr;
  TrackedRun& run = table_.FindOrAdd(id);
  if (!is_new) Count(run, -1);
  const RunPhase before = run.phase;
  const RunPhase phase = PhaseOf(job);
  // slurmctld counts a requeue at once and gives the job its new submit time only when the nodes
  // are clean: what it says of the job in between is of neither run.
  const bool may_be_between =
      phase != RunPhase::kRunning || job.execution.native_state == kCompleting;
  if (may_be_between && run.restarts && job.execution.restart_count > *run.restarts) {
    Count(run, 1);
    SettleWant(id.job_id, phase, tick.mono);
    return;
  }
  if (!run.restarts && WasRequeued(job, tick.wall)) {
    --job.execution.restart_count;
    job.execution.started_at.reset();
  }
  const bool wait_differs = WaitDiffers(run, job.execution);
  const bool at_once = IsUrgent(run, job.execution.native_reason);
  Remember(job, id, run, phase);
  run.gone_s = 0;
  run.phase = phase;
  lost_.erase(id);
  Count(run, 1);
  // Again when its row changed: a comment may say now that nothing is to be read.
  const bool may_differ = phase == RunPhase::kRunning && run.row_hash != hash;
  if (phase != RunPhase::kQueued && (!run.followed || may_differ) && followers_.seen)
    followers_.seen(id, run, job);
  if (phase == RunPhase::kEnded) {
    run.ended_s = Seconds(job.execution.ended_at.value_or(tick.wall));
    run.exit_code = static_cast<std::uint8_t>(job.execution.exit_code.value_or(0));
    if (is_new || before != RunPhase::kEnded) End(id, run, tick.wall);
  } else {
    run.ended_s = 0;
    run.guessed = false;
    overdue_.erase(id);
  }
  if (!is_new && before == RunPhase::kQueued && phase != RunPhase::kQueued && run.started_s != 0)
    ++figures_.starts_without_hint;
  SettleWant(id.job_id, phase, tick.mono);
  const std::uint64_t known_by = phase == RunPhase::kQueued ? stable_hash : hash;
  const bool is_same = !is_new && phase == before && run.row_hash == known_by;
  if (is_same && phase != RunPhase::kQueued) return;
  if (is_same && !MayUpdateWaiting(run, at_once, tick)) {
    ++figures_.waiting_updates_left_out;
    if (wait_differs && !std::exchange(run.owes_update, true)) owed_.push_back(id);
    return;
  }
  run.owes_update = false;
  run.row_hash = known_by;
  run.emitted_s = Seconds(tick.wall);
  Tell(id, std::move(job.execution), tick);
}

// Its end is known; what is left to come is the record of sacct.
void RunKeeper::End(RunId id, TrackedRun& run, base::WallTime now) {
  if (followers_.ended) followers_.ended(id);
  if (run.final) return;
  if (accounting_) {
    overdue_.try_emplace(id, Overdue{.ask_at_s = Seconds(now) + kRecordDue});
  } else {
    run.final = true;
  }
}

void RunKeeper::EndOlderRuns(RunId newest, const collect::Tick& tick) {
  auto it = table_.runs().lower_bound(newest);
  while (it != table_.runs().begin()) {
    --it;
    auto& [id, run] = *it;
    if (id.job_id != newest.job_id) return;
    if (run.gone_s != 0) continue;
    if (run.phase == RunPhase::kEnded) {
      run.gone_s = Seconds(tick.wall);
      continue;
    }
    run.ended_s = newest.submitted_s;  // requeued: that is when it was submitted anew
    Lose(id, run, tick.wall);
  }
}

void RunKeeper::Lose(RunId id, TrackedRun& run, base::WallTime at) {
  Count(run, -1);
  run.gone_s = Seconds(at);
  run.waiting.reset();
  lost_.insert(id);
  if (accounting_) overdue_[id] = {.ask_at_s = Seconds(at)};
}

void RunKeeper::TakeGone(std::span<const std::uint32_t> job_ids, const collect::Tick& tick) {
  for (const std::uint32_t job_id : job_ids) {
    SettleWant(job_id, std::nullopt, tick.mono);
    const auto newest = table_.Newest(job_id);
    if (newest == table_.runs().end() || newest->second.gone_s != 0) continue;
    auto& [id, run] = *newest;
    if (run.phase == RunPhase::kEnded) {
      run.gone_s = Seconds(tick.wall);
    } else {
      Lose(id, run, tick.wall);
    }
  }
}

void RunKeeper::TakeAccounting(Job job, const collect::Tick& tick) {
  if (!job.submitted || job.job_id == 0) {
    ++figures_.without_key;
    return;
  }
  if (!job.final) return;
  const RunId id = RunIdOf(job.job_id, *job.submitted);
  TrackedRun* known = table_.Find(id);
  // Of an earlier run under the same submit time; the present one goes on.
  const bool is_earlier_run = known != nullptr && known->gone_s == 0 &&
                              known->phase != RunPhase::kEnded &&
                              known->restarts.value_or(0) > job.execution.restart_count;
  evidence::Record record;
  record.payload = evidence::ExecutionObservation{table_.KeyOf(id), job.execution};
  const std::uint64_t hash = HashBytes(1, evidence::Encode(record));
  if (known != nullptr && known->final_hash == hash) return;
  ++figures_.finals;
  if (known == nullptr) {
    known = &table_.FindOrAdd(id);
    known->gone_s = Seconds(tick.wall);  // as long as squeue does not show it
    known->partition = table_.names().Index(job.execution.queue);
  } else {
    Count(*known, -1);
  }
  TrackedRun& run = *known;
  const bool was_running = run.phase != RunPhase::kEnded;
  run.final_hash = hash;
  if (!is_earlier_run) {
    run.phase = RunPhase::kEnded;
    run.final = true;
    run.guessed = false;
    if (job.execution.started_at) run.started_s = Seconds(job.execution.started_at);
    run.ended_s = Seconds(job.execution.ended_at.value_or(tick.wall));
    run.waiting.reset();
    if (run.nodes.empty() && !job.execution.nodes.empty())
      RememberNodes(job.execution, run, RunPhase::kEnded);
    overdue_.erase(id);
    lost_.erase(id);
    if (!run.followed && followers_.seen) followers_.seen(id, run, job);
    if (was_running && followers_.ended) followers_.ended(id);
    SettleWant(id.job_id, RunPhase::kEnded, tick.mono);
  }
  Count(run, 1);
  if (run.emitted_s != 0) DropFreeText(job.execution);
  // sacct takes 128 from codes that are not below it: of `exit 255` it says 127.
  if (run.exit_code >= 128 && job.execution.exit_code == run.exit_code - 128) {
    job.execution.exit_code = run.exit_code;
    for (evidence::Step& step : job.execution.steps) {
      if (step.id == "batch" && step.exit_code == run.exit_code - 128)
        step.exit_code = run.exit_code;
    }
  }
  Tell(id, std::move(job.execution), tick);
}

void RunKeeper::TakeHint(const LifecycleHint& hint, const collect::Tick& tick) {
  ++figures_.hints;
  figures_.last_hint = std::max(figures_.last_hint, hint.at);
  figures_.starts_without_hint = 0;
  WantLookUp(hint.job_id, hint.ends, tick.mono);
  if (hint.ends) return;
  const auto id = table_.At(hint.job_id, hint.at);
  if (!id) return;
  TrackedRun& run = *table_.Find(*id);
  if (run.phase != RunPhase::kQueued || run.gone_s != 0) return;
  Count(run, -1);
  const base::WallTime started = hint.started.value_or(hint.at);
  run.phase = RunPhase::kRunning;
  run.started_s = Seconds(started);
  run.waiting.reset();
  Count(run, 1);
  evidence::Execution execution;
  execution.status = evidence::ExecutionStatus::kRunning;
  execution.native_state = "RUNNING";
  execution.restart_count = run.restarts.value_or(0);
  execution.started_at = started;
  Tell(*id, std::move(execution), tick);
}

// Nobody saw its end and nobody will tell: what is known is that it is over.
void RunKeeper::GuessEnd(RunId id, TrackedRun& run, const collect::Tick& tick) {
  ++figures_.guessed;
  const bool was_requeued = run.ended_s != 0;
  if (!was_requeued) run.ended_s = run.gone_s;
  run.phase = RunPhase::kEnded;
  run.guessed = true;
  if (!accounting_) run.final = true;
  if (followers_.ended) followers_.ended(id);
  evidence::Execution execution;
  execution.status = evidence::ExecutionStatus::kUnknown;
  execution.outcome = evidence::Outcome::kUnknown;
  execution.restart_count = run.restarts.value_or(0);
  execution.native_reason =
      was_requeued ? "submitted anew, end not seen" : "left the queue, end not seen";
  execution.ended_at = std::max(Time(run.ended_s), Time(run.started_s));
  execution.capture_notes.emplace_back(
      was_requeued
          ? "Slurm has no record of this run's end; the end is when the job was submitted anew"
          : "Slurm has no record of this run's end; the end is when it was missed in the queue");
  Tell(id, std::move(execution), tick);
}

void RunKeeper::Sweep(const collect::Tick& tick) {
  const std::int64_t now = Seconds(tick.wall);
  for (auto it = lost_.begin(); it != lost_.end();) {
    TrackedRun* run = table_.Find(*it);
    if (run != nullptr && now - run->gone_s < options_.guess_after.count()) {
      ++it;
      continue;
    }
    if (run != nullptr) GuessEnd(*it, *run, tick);
    it = lost_.erase(it);
  }
  std::erase_if(overdue_, [&](const auto& entry) {
    TrackedRun* run = table_.Find(entry.first);
    if (run == nullptr) return true;
    const bool is_hopeless =
        entry.second.tries >= kMostAccountingTries || now - run->ended_s > kGiveUp;
    if (run->phase != RunPhase::kEnded || !is_hopeless) return false;
    run->final = true;  // as far as we will ever know
    return true;
  });
  std::erase_if(wants_,
                [&](const auto& entry) { return tick.mono - entry.second.since > kWantsFor; });
  std::erase_if(unknown_, [&](const auto& entry) { return tick.mono > entry.second; });
  TellOwedUpdates(tick);
  figures_.awaiting_final = overdue_.size() - std::min(overdue_.size(), lost_.size());
  figures_.lost = lost_.size();
  if (tick.mono < next_forget_) return;
  next_forget_ = tick.mono + kForgetEvery;
  (void)table_.Forget(tick.wall, options_.keep);
}

}  // namespace expanse::schedulers::slurm
