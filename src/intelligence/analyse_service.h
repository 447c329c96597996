// The method Analyse: answers while the caller waits, or puts the question into the queue.
#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "intelligence/analyser.h"
#include "intelligence/options.h"
#include "intelligence/run_executor.h"
#include "intelligence/run_metrics.h"
#include "intelligence/run_progress.h"
#include "intelligence/run_queue.h"
#include "net/caller.h"

namespace expanse::intelligence::v1 {
class AnalyseRequest;
class AnalyseResponse;
}  // namespace expanse::intelligence::v1

namespace expanse::intelligence {

// Thread-safe. Holds references.
class AnalyseService {
 public:
  AnalyseService(const IntelligenceOptions& options, store::RunStore& runs, Analyser& analyser,
                 RunExecutor& executor, base::Clock& clock, RunMetrics& metrics)
      : options_(options),
        runs_(runs),
        analyser_(analyser),
        executor_(executor),
        clock_(clock),
        metrics_(metrics),
        slots_(options.running_per_user) {}

  // Questions that can be waited for later go here. Before the first call.
  void SetQueue(RunQueue* queue) { queue_ = queue; }

  // Fails with invalid_argument for requests and targets that cannot be read (no run is kept of
  // these), resource_exhausted (run.user_busy, run.overloaded, run.queue_*), run.timeout, or what
  // the stores fail with; the run that is kept of those says the same.
  base::Result<v1::AnalyseResponse> Analyse(const net::CallContext& context,
                                            const v1::AnalyseRequest& request);

  // A run of the queue; see RunQueue::Work.
  store::RunOutcome Work(const store::RunRow& run, const std::stop_token& stop);

 private:
  base::Result<v1::AnalyseResponse> Answer(const net::CallContext& context, AnalyseTask task,
                                           store::RunRow run);
  base::Result<v1::AnalyseResponse> Enqueue(const net::CallContext& context,
                                            const v1::AnalyseRequest& request, AnalyseTask task,
                                            store::RunRow run);
  base::Result<AnalyseOutcome> Do(RunExecutor::Deadline deadline, const std::stop_token& stop,
                                  std::shared_ptr<const AnalyseTask> task);
  RunExecutor::Deadline DeadlineOf(const net::CallContext& context) const;

  const IntelligenceOptions& options_;
  store::RunStore& runs_;
  Analyser& analyser_;
  RunExecutor& executor_;
  base::Clock& clock_;
  RunMetrics& metrics_;
  UserSlots slots_;
  RunQueue* queue_ = nullptr;
};

}  // namespace expanse::intelligence
