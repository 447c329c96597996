#include "intelligence/automatic_diagnosis.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/crypto.h"
#include "base/log.h"
#include "intelligence/diagnose/verdict.h"
#include "intelligence/failure_labels.h"

namespace expanse::intelligence {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kChangesPerPage = 500;
constexpr auto kPoll = 1s;
// An attempt that was begun and not ended (the process died) is made again after this.
constexpr auto kLease = 5min;
constexpr auto kPauseAfterFailure = 30s;
// How long it stands back at most before one diagnosis.
constexpr int kMostStepsBack = 50;
constexpr auto kStepBack = 100ms;

bool Failed(const evidence::Execution& execution) {
  const diagnose::State state = diagnose::StateOf(execution);
  return state == diagnose::State::kFailed || state == diagnose::State::kCancelled;
}

std::optional<base::WallTime> NextLook(base::WallTime changed_at, base::WallTime now) {
  for (const auto delay : AutomaticDiagnosis::kLooks) {
    if (changed_at + delay > now) return changed_at + delay;
  }
  return std::nullopt;
}

void LogFailure(std::string_view what, const base::Error& error) {
  base::LogWarn("intelligence.automatic_diagnosis",
                {{"what", what}, {"reason", error.reason}, {"error", error.message}});
}

}  // namespace

AutomaticDiagnosis::AutomaticDiagnosis(const IntelligenceOptions& options, const Parts& parts,
                                       std::function<bool()> callers_wait)
    : options_(options),
      parts_(parts),
      callers_wait_(std::move(callers_wait)),
      waiting_(parts.metrics.GetGauge("expanse_automatic_diagnoses_waiting",
                                      "Executions that are to be diagnosed without being asked.")),
      failures_(parts.metrics.GetCounter("expanse_automatic_diagnosis_failures_total",
                                         "Steps of the automatic diagnosis that failed.")) {}

void AutomaticDiagnosis::Start() {
  if (!options_.auto_diagnose || !threads_.empty()) return;
  threads_.emplace_back([this](const std::stop_token& stop) { FollowForEver(stop); });
  for (std::size_t i = 0; i < options_.auto_diagnose_workers; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { WorkForEver(stop); });
}

void AutomaticDiagnosis::Stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void AutomaticDiagnosis::Notify() { Bump(notified_); }

base::Result<bool> AutomaticDiagnosis::Follow() {
  store::DiagnosisQueue& queue = parts_.runs.diagnoses();
  EXPANSE_ASSIGN_OR_RETURN(const std::size_t waiting, queue.Waiting());
  waiting_.Set(static_cast<double>(waiting));
  if (waiting >= kMostWaiting) return false;
  EXPANSE_ASSIGN_OR_RETURN(const store::FeedPlace place, queue.Place());
  EXPANSE_ASSIGN_OR_RETURN(const store::ChangePage page,
                           parts_.records.Changed(place, kChangesPerPage));
  if (page.restart) {
    EXPANSE_RETURN_IF_ERROR(queue.StartOver());
    return true;
  }
  if (page.changes.empty()) return false;
  const base::WallTime now = parts_.clock.Now();
  EXPANSE_ASSIGN_OR_RETURN(const auto changes, ChangesOf(page.changes, now));
  EXPANSE_RETURN_IF_ERROR(queue.Follow(changes, page.next, now));
  Bump(followed_);
  return true;
}

base::Result<std::vector<store::DiagnosisChange>> AutomaticDiagnosis::ChangesOf(
    const std::vector<store::ChangedExecution>& page, base::WallTime now) {
  // Those that did not fail (after all) but are called failed.
  std::map<std::string, std::vector<std::string>> others;
  for (const store::ChangedExecution& changed : page) {
    if (!changed.removed && !Failed(changed.execution))
      others[changed.organisation_id].push_back(changed.execution_id);
  }
  std::set<std::string> labelled;
  for (const auto& [organisation, ids] : others) {
    EXPANSE_ASSIGN_OR_RETURN(const auto labels, parts_.runs.labels().Get(organisation, ids));
    for (const store::FailureLabel& label : labels) labelled.insert(label.execution_id);
  }
  std::vector<store::DiagnosisChange> changes;
  for (const store::ChangedExecution& changed : page) {
    store::DiagnosisChange change{.organisation_id = changed.organisation_id,
                                  .execution_id = changed.execution_id,
                                  .due = {},
                                  .removed = changed.removed};
    const bool wanted =
        !changed.removed && (Failed(changed.execution) || labelled.contains(changed.execution_id));
    if (wanted && changed.execution.ended_at.value_or(now) >= now - options_.auto_diagnose_age)
      change.due = now + options_.auto_diagnose_settle;
    changes.push_back(std::move(change));
  }
  return changes;
}

base::Result<bool> AutomaticDiagnosis::WorkOne() {
  store::DiagnosisQueue& queue = parts_.runs.diagnoses();
  const base::WallTime now = parts_.clock.Now();
  // A look that takes no write lock.
  EXPANSE_ASSIGN_OR_RETURN(const auto next, queue.NextDue());
  if (!next || *next > now) return false;
  EXPANSE_ASSIGN_OR_RETURN(const auto due, queue.Take(now, now + kLease));
  if (!due) return false;
  if (due->tries > kMostTries) {
    Count("given_up");
    base::LogWarn("intelligence.automatic_diagnosis",
                  {{"what", "given up"}, {"execution", due->execution_id}});
    EXPANSE_RETURN_IF_ERROR(queue.Finish(*due, std::nullopt, /*succeeded=*/false));
    return true;
  }
  EXPANSE_RETURN_IF_ERROR(EndTry(*due, Diagnose(*due)));
  return true;
}

base::Result<std::string_view> AutomaticDiagnosis::Diagnose(const store::DueDiagnosis& due) {
  DiagnoseTask task{.execution = {},
                    .organisation_id = due.organisation_id,
                    .user_id = std::string(store::kSystemUser)};
  EXPANSE_ASSIGN_OR_RETURN(
      task.execution,
      parts_.diagnoser.Find(due.organisation_id, {.execution_id = due.execution_id}));
  const base::WallTime began = parts_.clock.Now();
  EXPANSE_ASSIGN_OR_RETURN(const DiagnoseOutcome outcome, parts_.diagnoser.Do(task));
  const base::WallTime now = parts_.clock.Now();
  store::LabelStore& labels = parts_.runs.labels();
  if (outcome.cached) {
    EXPANSE_RETURN_IF_ERROR(KeepLabel(labels, task, outcome, *outcome.cached, now));
    return "unchanged";
  }
  store::RunRow run{.run_id = base::NewUuid(now),
                    .organisation_id = task.organisation_id,
                    .user_id = task.user_id,
                    .kind = store::RunKind::kDiagnose,
                    .status = store::RunStatus::kSucceeded,
                    .target = task.execution.execution_id,
                    .job_name = task.execution.name,
                    .compute_id = task.execution.compute_id,
                    .created_at = began,
                    .finished_at = now,
                    .cache_key = outcome.cache_key,
                    .answer = outcome.answer};
  // What did not fail is nobody's question.
  const bool keep = !outcome.failure_class.empty();
  if (keep) EXPANSE_RETURN_IF_ERROR(parts_.runs.Add(run, {}));
  EXPANSE_RETURN_IF_ERROR(KeepLabel(labels, task, outcome, run, now));
  return keep ? "diagnosed" : "no_failure";
}

base::Status AutomaticDiagnosis::EndTry(const store::DueDiagnosis& due,
                                        const base::Result<std::string_view>& end) {
  store::DiagnosisQueue& queue = parts_.runs.diagnoses();
  const base::WallTime now = parts_.clock.Now();
  if (end) {
    Count(*end);
    return queue.Finish(due, NextLook(due.changed_at, now), /*succeeded=*/true);
  }
  // The feed will say that it was removed.
  if (end.error().code == base::Code::kNotFound)
    return queue.Finish(due, std::nullopt, /*succeeded=*/true);
  Count("failed");
  LogFailure(due.execution_id, end.error());
  return queue.Finish(due, now + kPauseAfterFailure * due.tries, /*succeeded=*/false);
}

void AutomaticDiagnosis::Count(std::string_view result) {
  parts_.metrics
      .GetCounter("expanse_automatic_diagnoses_total", "Diagnoses that were made unasked.",
                  {{"result", std::string(result)}})
      .Add();
}

void AutomaticDiagnosis::FollowForEver(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::uint64_t seen = Read(notified_);
    const auto more = Follow();
    if (more && *more) continue;
    if (!more) {
      failures_.Add();
      LogFailure("the change feed", more.error());
    }
    Wait(stop, notified_, seen);
  }
}

void AutomaticDiagnosis::WorkForEver(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    for (int steps = 0; steps < kMostStepsBack && callers_wait_(); ++steps) {
      if (!parts_.clock.WaitFor(stop, kStepBack)) return;
    }
    const std::uint64_t seen = Read(followed_);
    const auto more = WorkOne();
    if (more && *more) continue;
    if (!more) {
      failures_.Add();
      LogFailure("the queue", more.error());
    }
    Wait(stop, followed_, seen);
  }
}

void AutomaticDiagnosis::Wait(const std::stop_token& stop, const std::uint64_t& counter,
                              std::uint64_t seen) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, kPoll, [&] { return counter != seen; });
}

std::uint64_t AutomaticDiagnosis::Read(const std::uint64_t& counter) {
  const std::scoped_lock lock(mutex_);
  return counter;
}

void AutomaticDiagnosis::Bump(std::uint64_t& counter) {
  {
    const std::scoped_lock lock(mutex_);
    ++counter;
  }
  changed_.notify_all();
}

}  // namespace expanse::intelligence
