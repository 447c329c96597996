#include "schedulers/slurm/job_table.h"

#include <iterator>

#include "schedulers/slurm/job.h"

namespace expanse::schedulers::slurm {
namespace {

using std::chrono::seconds;

// Clocks of nodes are corrected to about this.
constexpr std::int64_t kClockSlack = 5;
// What belongs to a run may still be read so long after its end: epilog, last samples.
constexpr std::int64_t kAfterEnd = 120;

std::int64_t Seconds(base::WallTime time) {
  return std::chrono::floor<seconds>(time).time_since_epoch().count();
}

}  // namespace

RunId RunIdOf(std::uint32_t job_id, base::WallTime submitted) {
  return {.job_id = job_id, .submitted_s = Seconds(submitted)};
}

std::uint32_t NamePool::Index(std::string_view name) {
  const auto [it, added] =
      indexes_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (added) names_.push_back(&it->first);  // nodes of the map do not move
  return it->second;
}

JobTable::JobTable(std::string cluster) : cluster_(std::move(cluster)) {}

evidence::ExecutionKey JobTable::KeyOf(RunId id) const {
  return MakeKey(cluster_, id.job_id, base::WallTime(seconds(id.submitted_s)));
}

TrackedRun* JobTable::Find(RunId id) {
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : &found->second;
}

JobTable::Runs::iterator JobTable::Newest(std::uint32_t job_id) {
  const auto next = runs_.upper_bound({.job_id = job_id, .submitted_s = INT64_MAX});
  if (next == runs_.begin()) return runs_.end();
  const auto newest = std::prev(next);
  return newest->first.job_id == job_id ? newest : runs_.end();
}

std::optional<RunId> JobTable::At(std::uint32_t job_id, base::WallTime at) const {
  const std::int64_t when = Seconds(at);
  const auto next = runs_.upper_bound({.job_id = job_id, .submitted_s = when + kClockSlack});
  if (next == runs_.begin()) return std::nullopt;
  const auto& [id, run] = *std::prev(next);
  if (id.job_id != job_id) return std::nullopt;
  const bool over = run.phase == RunPhase::kEnded && run.ended_s != 0;
  if (over && when > run.ended_s + kAfterEnd) return std::nullopt;
  return id;
}

void JobTable::NoteSluid(std::string_view sluid, RunId id) {
  if (!sluid.empty()) sluids_.insert_or_assign(std::string(sluid), id);
}

std::optional<RunId> JobTable::BySluid(std::string_view sluid) const {
  const auto found = sluids_.find(std::string(sluid));
  return found == sluids_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t JobTable::Forget(base::WallTime now, seconds keep) {
  const std::int64_t before = Seconds(now) - keep.count();
  const std::size_t forgotten = std::erase_if(runs_, [&](const auto& entry) {
    const TrackedRun& run = entry.second;
    return run.phase == RunPhase::kEnded && (run.final || run.guessed) && run.gone_s != 0 &&
           run.gone_s < before;
  });
  if (forgotten > 0)
    std::erase_if(sluids_, [&](const auto& entry) { return !runs_.contains(entry.second); });
  return forgotten;
}

}  // namespace expanse::schedulers::slurm
