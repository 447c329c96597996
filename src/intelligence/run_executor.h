// Works on questions with a deadline, on a bounded pool. A question that takes too long costs its
// asker the answer; its thread comes back when the work ends, which is bounded by what was asked,
// and until then others have one thread less.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/result.h"
#include "base/worker_pool.h"

namespace expanse::intelligence {

// Thread-safe. Drain (or the destructor) waits for the work at hand: what it refers to outlives it.
class RunExecutor {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  RunExecutor(std::size_t threads, std::size_t backlog) : pool_(threads, backlog) {}

  // Does `work` on the pool and waits for its result. `work` may go on after this has returned, so
  // it owns what it uses or refers to what outlives the executor. Fails with run.overloaded
  // (nothing was begun), run.timeout, run.interrupted (`stop` was requested and the work did not
  // end soon after), or what `work` fails with.
  template <typename T>
  base::Result<T> Within(Deadline deadline, const std::stop_token& stop,
                         std::function<base::Result<T>()> work) {
    auto shared = std::make_shared<Shared<T>>();
    const bool taken = pool_.TrySubmit([shared, work = std::move(work)] {
      {
        const std::scoped_lock lock(shared->mutex);
        if (shared->given_up) return;
      }
      base::Result<T> result = work();
      {
        const std::scoped_lock lock(shared->mutex);
        shared->result = std::move(result);
      }
      shared->changed.notify_all();
    });
    if (!taken) return Overloaded();
    std::unique_lock lock(shared->mutex);
    const auto done = [&] { return shared->result.has_value(); };
    bool in_time = shared->changed.wait_until(lock, stop, deadline, done);
    if (!in_time && stop.stop_requested()) {
      const Deadline soon = std::chrono::steady_clock::now() + kPatience;
      in_time = shared->changed.wait_until(lock, std::min(deadline, soon), done);
    }
    if (in_time) return std::move(*shared->result);
    shared->given_up = true;
    return stop.stop_requested() ? Interrupted() : Late();
  }

  // Takes no more work and waits for that at hand. Idempotent.
  void Drain() { pool_.Drain(); }
  std::size_t waiting() const { return pool_.queued(); }

 private:
  static constexpr std::chrono::milliseconds kPatience{2000};

  template <typename T>
  struct Shared {
    std::mutex mutex;  // guards all below
    std::condition_variable_any changed;
    std::optional<base::Result<T>> result;
    bool given_up = false;
  };

  static std::unexpected<base::Error> Overloaded();
  static std::unexpected<base::Error> Late();
  static std::unexpected<base::Error> Interrupted();

  base::WorkerPool pool_;
};

}  // namespace expanse::intelligence
