// The method Diagnose: answers while the caller waits.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "intelligence/diagnoser.h"
#include "intelligence/options.h"
#include "intelligence/run_executor.h"
#include "intelligence/run_metrics.h"
#include "intelligence/run_progress.h"
#include "net/caller.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence::v1 {
class DiagnoseRequest;
class DiagnoseResponse;
}  // namespace expanse::intelligence::v1

namespace expanse::intelligence {

// Thread-safe. Holds references.
class DiagnoseService {
 public:
  DiagnoseService(const IntelligenceOptions& options, store::RunStore& runs, Diagnoser& diagnoser,
                  RunExecutor& executor, base::Clock& clock, RunMetrics& metrics)
      : options_(options),
        runs_(runs),
        diagnoser_(diagnoser),
        executor_(executor),
        clock_(clock),
        metrics_(metrics),
        slots_(options.running_per_user) {}

  // Fails with diagnose.*, execution.not_found (also for those of another organisation),
  // permission_denied for who may not read executions, resource_exhausted (run.user_busy,
  // run.overloaded), run.timeout, or what the stores fail with; a run is kept of the last two.
  base::Result<v1::DiagnoseResponse> Diagnose(const net::CallContext& context,
                                              const v1::DiagnoseRequest& request);

 private:
  base::Result<v1::DiagnoseResponse> Answer(const net::CallContext& context, DiagnoseTask task);

  const IntelligenceOptions& options_;
  store::RunStore& runs_;
  Diagnoser& diagnoser_;
  RunExecutor& executor_;
  base::Clock& clock_;
  RunMetrics& metrics_;
  UserSlots slots_;
};

}  // namespace expanse::intelligence
