// The intelligence plane: IntelligenceService over the run store and the engine, the queue, and
// the retention of runs.
#pragma once

#include <memory>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "intelligence/analyse_service.h"
#include "intelligence/analyser.h"
#include "intelligence/diagnose_service.h"
#include "intelligence/diagnoser.h"
#include "intelligence/failure_labels.h"
#include "intelligence/options.h"
#include "intelligence/run_executor.h"
#include "intelligence/run_metrics.h"
#include "intelligence/run_queue.h"
#include "intelligence/run_retention.h"
#include "intelligence/run_service.h"
#include "intelligence/runbook_service.h"
#include "intelligence/runbook_source.h"
#include "store/runs/run_store.h"

namespace expanse::net {
class ConnectRouter;
}

namespace expanse::intelligence {

// What answers the questions.
struct Engines {
  Analyser& analyser;
  Diagnoser& diagnoser;
  RunbookSource& runbooks;
};

// Thread-safe but for AddMethods, Start and Stop, which belong to the thread that wires. Holds
// references: store, engines, clock and metrics outlive it; it outlives the router's last call.
class IntelligencePlane {
 public:
  // Fails with intelligence.options.
  static base::Result<std::unique_ptr<IntelligencePlane>> Create(const IntelligenceOptions& options,
                                                                 store::RunStore& runs,
                                                                 Engines engines,
                                                                 base::Clock& clock,
                                                                 base::MetricRegistry& metrics);
  ~IntelligencePlane() { Stop(); }

  void AddMethods(net::ConnectRouter& router);
  // Begins with the queue and the retention. Fails with the store's errors.
  base::Status Start();
  // Ends them, and waits for all work at hand. Afterwards nothing touches store and analyser.
  // Idempotent.
  void Stop();

  // Whether somebody waits for a thread.
  bool CallersWait() const { return executor_.waiting() > 0; }

  AnalyseService& analyse() { return analyse_; }
  DiagnoseService& diagnose() { return diagnose_; }
  RunService& run_service() { return run_service_; }
  FailureClassService& failure_classes() { return failure_classes_; }
  RunbookService& runbooks() { return runbooks_; }
  RunRetention& retention() { return retention_; }

 private:
  IntelligencePlane(const IntelligenceOptions& options, store::RunStore& runs, Engines engines,
                    base::Clock& clock, base::MetricRegistry& metrics);

  const IntelligenceOptions options_;
  RunMetrics metrics_;
  RunExecutor executor_;
  AnalyseService analyse_;
  DiagnoseService diagnose_;
  RunQueue queue_;
  RunService run_service_;
  RunbookService runbooks_;
  FailureClassService failure_classes_;
  RunRetention retention_;
};

}  // namespace expanse::intelligence
