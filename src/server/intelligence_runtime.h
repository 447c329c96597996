// The intelligence plane of this process: its listener, its runs and its index of recorded history
// under state_dir/intelligence, over the stores of evidence.
#pragma once

#include <memory>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "intelligence/analyse_work.h"
#include "intelligence/automatic_diagnosis.h"
#include "intelligence/diagnose_work.h"
#include "intelligence/history/indexed_history.h"
#include "intelligence/intelligence_plane.h"
#include "intelligence/site_runbooks.h"
#include "server/evidence_stores.h"
#include "server/options.h"
#include "server/plane_server.h"
#include "server/plane_trust.h"
#include "store/runs/sqlite_run_store.h"

namespace expanse::server {

class IntelligenceRuntime {
 public:
  // Opens its stores and serves. options.intelligence_link says how control is reached; it need not
  // be up: the plane is ready once it has fetched keys from there. `stores`, `clock` and `metrics`
  // outlive it.
  static base::Result<std::unique_ptr<IntelligenceRuntime>> Start(const ServerOptions& options,
                                                                  EvidenceStores& stores,
                                                                  base::Clock& clock,
                                                                  base::MetricRegistry& metrics);
  ~IntelligenceRuntime() { Drain(std::chrono::milliseconds(0)); }
  std::uint16_t port() const { return server_->port(); }
  // Ends the listener, then the queue and what runs in the background. Idempotent.
  void Drain(std::chrono::milliseconds deadline);

 private:
  base::Status Open(const ServerOptions& options, EvidenceStores& stores, base::Clock& clock,
                    base::MetricRegistry& metrics);
  base::Status Serve(const ServerOptions& options, base::MetricRegistry& metrics);

  std::unique_ptr<store::SqliteRunStore> runs_;
  std::unique_ptr<intelligence::history::IndexedHistory> history_;
  std::unique_ptr<intelligence::AnalyseWork> analyser_;
  std::unique_ptr<intelligence::SiteRunbooks> runbooks_;
  std::unique_ptr<intelligence::DiagnoseWork> diagnoser_;
  std::unique_ptr<PlaneTrust> trust_;
  std::unique_ptr<intelligence::IntelligencePlane> plane_;
  std::unique_ptr<intelligence::AutomaticDiagnosis> automatic_;
  std::unique_ptr<PlaneServer> server_;
};

}  // namespace expanse::server
