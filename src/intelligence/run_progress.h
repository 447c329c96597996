// What all kinds of runs share while they are worked on: how many a user has open, how a failure is
// counted and told, what is kept of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/result.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence {

// How many questions each user has being worked on. Thread-safe.
class UserSlots {
 public:
  explicit UserSlots(std::size_t per_user) : per_user_(per_user) {}
  // False: the user has as many as there may be. Otherwise Leave must follow.
  [[nodiscard]] bool Enter(const std::string& user_id);
  void Leave(const std::string& user_id);

 private:
  const std::size_t per_user_;
  std::mutex mutex_;  // guards used_
  std::map<std::string, std::size_t> used_;
};

// Counts a run as being worked on for as long as it lives, and its time.
class Running {
 public:
  explicit Running(base::Gauge& gauge) : gauge_(gauge) { gauge_.Add(1); }
  ~Running() { gauge_.Add(-1); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  std::chrono::duration<double> took() const { return std::chrono::steady_clock::now() - begun_; }

 private:
  base::Gauge& gauge_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

// The status under which a failure is counted: "refused", "shed" or "failed".
std::string_view StatusOf(const base::Error& error);
// As the router tells it: what is wrong inside is for the log.
std::string MessageOf(const base::Error& error);
// Keeps a run that failed, saying what the caller is told; where that cannot be kept, the log says
// so.
void KeepFailure(store::RunStore& runs, store::RunRow run, const base::Error& error);

}  // namespace expanse::intelligence
