// What an operator can set about the intelligence plane.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/settings.h"

namespace expanse::intelligence {

struct IntelligenceOptions {
  // Threads that work on questions; those of the queue are no more than `queue_workers` of them at
  // a time, so that nobody who waits for an answer waits for the queue.
  std::size_t workers = 4;
  std::size_t queue_workers = 2;
  // Questions of waiting callers that may wait for a thread; further ones are refused.
  std::size_t backlog = 64;
  // Per user: questions that are worked on while the caller waits, runs of the queue that are
  // worked on, and runs that wait in the queue.
  std::size_t running_per_user = 4;
  std::size_t queued_per_user = 100;
  std::size_t queued = 1000;  // of all users
  std::chrono::milliseconds run_timeout{30'000};
  double target_chance = 0.95;  // what a recommendation's chance to complete must clear

  // Diagnoses of failed executions that nobody asked for: whether, how many at a time, how long the
  // evidence may settle after the last change, of executions that ended how long ago at most, and
  // how many of an organisation are kept.
  bool auto_diagnose = true;
  std::size_t auto_diagnose_workers = 1;
  std::chrono::milliseconds auto_diagnose_settle{5'000};
  std::chrono::milliseconds auto_diagnose_age = std::chrono::hours(24 * 7);
  std::size_t auto_diagnose_runs = 10'000;

  // A site's own runbooks; empty: none.
  std::string runbook_directory;
  std::chrono::milliseconds runbook_poll{5'000};

  // How long runs and their artefacts are kept, and how many of a user; 0: no bound.
  std::chrono::milliseconds keep_runs = std::chrono::hours(24 * 90);
  std::size_t runs_per_user = 1000;
  std::chrono::milliseconds retention_interval = std::chrono::hours(1);
};

std::vector<base::SettingSpec> IntelligenceSettings();
IntelligenceOptions IntelligenceOptionsFrom(const base::Settings& settings);

}  // namespace expanse::intelligence
