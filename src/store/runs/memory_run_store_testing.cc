#include "store/runs/memory_run_store_testing.h"

#include <algorithm>
#include <ranges>
#include <tuple>
#include <utility>

namespace expanse::store {
namespace {

bool Open(const RunRow& run, RunStatus status) { return run.status == status && !run.finished_at; }

bool Sees(const RunScope& scope, const RunRow& run) {
  return run.organisation_id == scope.organisation_id &&
         (!scope.user_id || run.user_id == *scope.user_id);
}

std::pair<std::int64_t, std::string> PlaceOf(const RunRow& run) {
  return {base::ToMicros(run.created_at), run.run_id};
}

}  // namespace

std::vector<const RunRow*> MemoryRunStore::OldestFirst() const {
  std::vector<const RunRow*> all;
  for (const auto& [id, run] : runs_) all.push_back(&run);
  std::ranges::sort(all, {}, [](const RunRow* run) { return PlaceOf(*run); });
  return all;
}

base::Status MemoryRunStore::Add(const RunRow& run, const std::vector<RunArtifactRow>& artifacts) {
  const std::scoped_lock lock(mutex_);
  if (!runs_.emplace(run.run_id, run).second)
    return base::Fail(base::Code::kAlreadyExists, "store.constraint", "the id is taken");
  for (RunArtifactRow artifact : artifacts) {
    artifact.run_id = run.run_id;
    artifacts_.emplace(artifact.artifact_id, artifact);
  }
  return {};
}

base::Status MemoryRunStore::Enqueue(const RunRow& run, const QueueBounds& bounds) {
  {
    const std::scoped_lock lock(mutex_);
    std::size_t mine = 0;
    std::size_t all = 0;
    for (const auto& [id, other] : runs_) {
      if (!Open(other, RunStatus::kQueued)) continue;
      ++all;
      if (other.user_id == run.user_id) ++mine;
    }
    if (mine >= bounds.per_user)
      return base::Fail(base::Code::kResourceExhausted, "run.queue_user", "too many of yours wait");
    if (all >= bounds.in_all)
      return base::Fail(base::Code::kResourceExhausted, "run.queue_full", "too many wait");
  }
  return Add(run, {});
}

base::Result<std::optional<RunRow>> MemoryRunStore::TakeQueued(std::size_t per_user) {
  const std::scoped_lock lock(mutex_);
  std::map<std::string, std::size_t> running;
  for (const auto& [id, run] : runs_) {
    if (Open(run, RunStatus::kRunning)) ++running[run.user_id];
  }
  for (const RunRow* run : OldestFirst()) {
    if (!Open(*run, RunStatus::kQueued) || running[run->user_id] >= per_user) continue;
    runs_[run->run_id].status = RunStatus::kRunning;
    return *run;
  }
  return std::optional<RunRow>();
}

base::Status MemoryRunStore::Finish(std::string_view run_id, const RunOutcome& outcome) {
  const std::scoped_lock lock(mutex_);
  const auto found = runs_.find(run_id);
  if (found == runs_.end() || !Open(found->second, RunStatus::kRunning))
    return base::Fail(base::Code::kFailedPrecondition, "run.not_running", "it is not running");
  RunRow& run = found->second;
  run.status = outcome.status;
  run.finished_at = outcome.finished_at;
  run.job_name = outcome.job_name;
  run.error = outcome.error;
  run.error_reason = outcome.error_reason;
  run.cache_key = outcome.cache_key;
  run.answer = outcome.answer;
  run.request.clear();
  for (RunArtifactRow artifact : outcome.artifacts) {
    artifact.run_id = run.run_id;
    artifacts_.emplace(artifact.artifact_id, artifact);
  }
  return {};
}

base::Result<std::size_t> MemoryRunStore::FailRunning(base::WallTime now, std::string_view error,
                                                      std::string_view error_reason) {
  const std::scoped_lock lock(mutex_);
  std::size_t failed = 0;
  for (auto& [id, run] : runs_) {
    if (!Open(run, RunStatus::kRunning)) continue;
    run.status = RunStatus::kFailed;
    run.finished_at = now;
    run.error = error;
    run.error_reason = error_reason;
    run.request.clear();
    ++failed;
  }
  return failed;
}

base::Result<std::size_t> MemoryRunStore::CountQueued() {
  const std::scoped_lock lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      runs_, [](const auto& entry) { return Open(entry.second, RunStatus::kQueued); }));
}

base::Result<RunRow> MemoryRunStore::Get(const RunScope& scope, std::string_view run_id) {
  const std::scoped_lock lock(mutex_);
  const auto found = runs_.find(run_id);
  if (found == runs_.end() || !Sees(scope, found->second))
    return base::Fail(base::Code::kNotFound, "run.not_found", "there is no such run");
  return found->second;
}

base::Result<RunPage> MemoryRunStore::List(const RunFilter& filter,
                                           const std::optional<RunCursor>& after,
                                           std::size_t limit) {
  const std::scoped_lock lock(mutex_);
  RunPage page;
  for (const RunRow* run : OldestFirst() | std::views::reverse) {
    if (!Sees(filter.scope, *run) || (filter.kind && run->kind != *filter.kind) ||
        (!filter.compute_id.empty() && run->compute_id != filter.compute_id))
      continue;
    if (after && PlaceOf(*run) >= std::pair(after->created_micros, after->run_id)) continue;
    if (page.runs.size() == limit) {
      const auto [created, id] = PlaceOf(page.runs.back());
      page.next = RunCursor{created, id};
      break;
    }
    page.runs.push_back(*run);
    page.runs.back().request.clear();
    page.runs.back().answer.clear();
  }
  return page;
}

base::Result<std::optional<RunRow>> MemoryRunStore::FindCached(std::string_view organisation_id,
                                                               std::string_view user_id,
                                                               std::string_view cache_key) {
  const std::scoped_lock lock(mutex_);
  if (cache_key.empty()) return std::optional<RunRow>();
  for (const RunRow* run : OldestFirst() | std::views::reverse) {
    if (run->organisation_id == organisation_id && run->user_id == user_id &&
        run->cache_key == cache_key && run->status == RunStatus::kSucceeded)
      return *run;
  }
  return std::optional<RunRow>();
}

base::Result<RunArtifactRow> MemoryRunStore::GetArtifact(const RunScope& scope,
                                                         std::string_view artifact_id) {
  const std::scoped_lock lock(mutex_);
  const auto found = artifacts_.find(artifact_id);
  if (found == artifacts_.end() || !Sees(scope, runs_.at(found->second.run_id)))
    return base::Fail(base::Code::kNotFound, "artifact.not_found", "there is no such artefact");
  return found->second;
}

std::size_t MemoryRunStore::Drop(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    runs_.erase(id);
    labels_.ForgetRun(id);
    std::erase_if(artifacts_, [&](const auto& entry) { return entry.second.run_id == id; });
  }
  return ids.size();
}

base::Result<std::size_t> MemoryRunStore::DropBefore(base::WallTime finished_before,
                                                     std::size_t limit) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> ids;
  for (const RunRow* run : OldestFirst()) {
    if (ids.size() < limit && run->finished_at && *run->finished_at < finished_before)
      ids.push_back(run->run_id);
  }
  return Drop(ids);
}

base::Result<std::size_t> MemoryRunStore::DropBeyond(std::size_t keep, std::size_t limit) {
  return DropOldest(/*of_system=*/false, keep, limit);
}

base::Result<std::size_t> MemoryRunStore::DropSystemBeyond(std::size_t keep, std::size_t limit) {
  return DropOldest(/*of_system=*/true, keep, limit);
}

std::size_t MemoryRunStore::DropOldest(bool of_system, std::size_t keep, std::size_t limit) {
  const std::scoped_lock lock(mutex_);
  std::map<std::pair<std::string, std::string>, std::size_t> over;
  for (const auto& [id, run] : runs_) {
    if (run.finished_at) ++over[{run.organisation_id, run.user_id}];
  }
  std::vector<std::string> ids;
  for (const RunRow* run : OldestFirst()) {
    if (ids.size() == limit || !run->finished_at || (run->user_id == kSystemUser) != of_system)
      continue;
    std::size_t& left = over[{run->organisation_id, run->user_id}];
    if (left <= keep) continue;
    --left;
    ids.push_back(run->run_id);
  }
  return Drop(ids);
}

}  // namespace expanse::store
