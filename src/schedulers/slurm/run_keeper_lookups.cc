// RunKeeper: which jobs want a look at squeue or sacct, and when again.
#include <algorithm>
#include <array>
#include <utility>

#include "schedulers/slurm/run_keeper.h"

namespace expanse::schedulers::slurm {
namespace {

// After a hint squeue is asked until it shows what the hint said, this long after each other.
constexpr std::array<std::chrono::milliseconds, 5> kLookUpWaits = {
    std::chrono::milliseconds(1000), std::chrono::milliseconds(2000),
    std::chrono::milliseconds(4000), std::chrono::milliseconds(8000),
    std::chrono::milliseconds(16000)};
// slurmd runs the epilog while slurmctld has not yet heard of the job's end.
constexpr std::chrono::milliseconds kAfterEpilog{300};
constexpr std::size_t kMaxWants = 20'000;
// A job of which squeue knows nothing (a cgroup that was left behind, another cluster's) is looked
// up no more for so long, whoever names it.
constexpr std::chrono::minutes kUnknownFor{10};
constexpr std::size_t kMaxUnknown = 20'000;
constexpr std::int64_t kAskAgain = 120;  // doubled with each try

std::int64_t Seconds(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

}  // namespace

void RunKeeper::WantUnknown(std::uint32_t job_id, base::MonoTime now) {
  if (unknown_.contains(job_id) || unknown_.size() >= kMaxUnknown) return;
  unknown_.emplace(job_id, now + kUnknownFor);
  WantLookUp(job_id, /*until_end=*/false, now);
}

void RunKeeper::WantLookUp(std::uint32_t job_id, bool until_end, base::MonoTime now) {
  if (wants_.size() >= kMaxWants && !wants_.contains(job_id)) return;
  const auto [it, added] = wants_.try_emplace(job_id);
  Want& want = it->second;
  if (!added && (want.until_end || !until_end)) return;  // wanted already
  want = {.since = now,
          .due = until_end ? now + kAfterEpilog : now,
          .tries = 0,
          .until_end = until_end};
}

// squeue has shown the job (or shown that it is not there): asked again only if that was too early.
void RunKeeper::SettleWant(std::uint32_t job_id, std::optional<RunPhase> phase,
                           base::MonoTime now) {
  const auto found = wants_.find(job_id);
  if (found == wants_.end()) return;
  Want& want = found->second;
  const bool is_settled =
      want.until_end ? !phase || *phase == RunPhase::kEnded : phase && *phase != RunPhase::kQueued;
  if (is_settled || want.tries >= static_cast<int>(kLookUpWaits.size())) {
    wants_.erase(found);
    return;
  }
  if (want.tries > 0) want.due = now + kLookUpWaits[static_cast<std::size_t>(want.tries - 1)];
}

bool RunKeeper::WantsLookUps(base::MonoTime now) const {
  return std::ranges::any_of(wants_, [&](const auto& entry) { return entry.second.due <= now; });
}

std::vector<std::uint32_t> RunKeeper::TakeLookUps(std::size_t most, base::MonoTime now) {
  std::vector<std::uint32_t> ids;
  for (auto it = wants_.begin(); it != wants_.end() && ids.size() < most;) {
    auto& [job_id, want] = *it;
    if (want.due > now) {
      ++it;
      continue;
    }
    if (want.tries >= static_cast<int>(kLookUpWaits.size())) {
      it = wants_.erase(it);
      continue;
    }
    want.due = now + kLookUpWaits[static_cast<std::size_t>(want.tries++)];
    ids.push_back(job_id);
    ++it;
  }
  return ids;
}

bool RunKeeper::WantsAccountingLookUps(const collect::Tick& tick) const {
  const std::int64_t now = Seconds(tick.wall);
  return accounting_ && std::ranges::any_of(overdue_, [&](const auto& entry) {
           return entry.second.ask_at_s <= now;
         });
}

std::vector<std::uint32_t> RunKeeper::TakeAccountingLookUps(std::size_t most,
                                                            const collect::Tick& tick) {
  std::vector<std::uint32_t> ids;
  const std::int64_t now = Seconds(tick.wall);
  for (auto& [id, overdue] : overdue_) {
    if (overdue.ask_at_s > now) continue;
    if (ids.empty() || ids.back() != id.job_id) {
      if (ids.size() == most) break;
      ids.push_back(id.job_id);
    }
    overdue.ask_at_s = now + kAskAgain;
  }
  return ids;
}

void RunKeeper::AccountingAnswered(std::span<const std::uint32_t> job_ids,
                                   const collect::Tick& tick) {
  for (const std::uint32_t job_id : job_ids) {
    for (auto it = overdue_.lower_bound({.job_id = job_id, .submitted_s = INT64_MIN});
         it != overdue_.end() && it->first.job_id == job_id; ++it) {
      Overdue& overdue = it->second;
      overdue.ask_at_s = Seconds(tick.wall) + (kAskAgain << overdue.tries);
      overdue.tries = std::min(overdue.tries + 1, kMostAccountingTries);
    }
  }
}

}  // namespace expanse::schedulers::slurm
