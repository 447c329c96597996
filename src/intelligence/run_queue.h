// The runs that nobody waits for: kept in the store, taken from there in the order in which they
// came, a few at a time. What waits when the server stops is done when it starts again; what was
// being worked on when it died is failed, as it may have been the reason.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "intelligence/options.h"
#include "intelligence/run_metrics.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence {

// Thread-safe but for Start and Stop, which belong to the thread that wires. Holds references.
class RunQueue {
 public:
  // How a run that was taken ends. Called on the queue's threads; comes back soon after `stop` is
  // requested.
  using Work =
      std::function<store::RunOutcome(const store::RunRow& run, const std::stop_token& stop)>;

  RunQueue(const IntelligenceOptions& options, store::RunStore& runs, base::Clock& clock,
           RunMetrics& metrics, Work work)
      : options_(options), runs_(runs), clock_(clock), metrics_(metrics), work_(std::move(work)) {}
  ~RunQueue() { Stop(); }

  // Fails what a process that died had been working on, then begins to work. Fails with the store's
  // errors.
  base::Status Start();
  // Ends the work at hand and waits for it. Idempotent.
  void Stop();

  // Fails with run.queue_user, run.queue_full or the store's errors.
  base::Status Enqueue(const store::RunRow& run);

 private:
  void Loop(const std::stop_token& stop);
  // Until there is nothing to take. False: the store failed.
  bool WorkOff(const std::stop_token& stop);
  void Finish(const std::stop_token& stop, const store::RunRow& run,
              const store::RunOutcome& outcome);

  const IntelligenceOptions& options_;
  store::RunStore& runs_;
  base::Clock& clock_;
  RunMetrics& metrics_;
  const Work work_;
  std::mutex mutex_;  // guards added_
  std::condition_variable_any wake_;
  std::uint64_t added_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace expanse::intelligence
