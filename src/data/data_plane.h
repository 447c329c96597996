// The data plane: IngestService and QueryService over the three stores, and retention.
#pragma once

#include <memory>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "data/control_client.h"
#include "data/ingest.h"
#include "data/install_exchange.h"
#include "data/metrics_query.h"
#include "data/options.h"
#include "data/queries.h"
#include "data/retention.h"
#include "store/blobs/blob_store.h"
#include "store/records/evidence_store.h"
#include "store/series/series_store.h"

namespace expanse::net {
class ConnectRouter;
}

namespace expanse::data {

// Thread-safe but for AddMethods, Start and Stop, which belong to the thread that wires. Holds
// references: stores, control client, clock and metrics outlive it; it outlives the router's last
// call.
class DataPlane {
 public:
  // Fails with data.options.
  static base::Result<std::unique_ptr<DataPlane>> Create(DataOptions options,
                                                         store::EvidenceStore& records,
                                                         store::SeriesStore& series,
                                                         store::BlobStore& blobs,
                                                         ControlClient& control, base::Clock& clock,
                                                         base::MetricRegistry& metrics);

  void AddMethods(net::ConnectRouter& router);
  // Retention in the background.
  void Start() { retention_.Start(); }
  void Stop() { retention_.Stop(); }

  Ingest& ingest() { return ingest_; }
  InstallExchange& install_exchange() { return exchange_; }
  Queries& queries() { return queries_; }
  MetricsQuery& metrics_query() { return metrics_query_; }
  Retention& retention() { return retention_; }

 private:
  DataPlane(const DataOptions& options, store::EvidenceStore& records, store::SeriesStore& series,
            store::BlobStore& blobs, ControlClient& control, base::Clock& clock,
            base::MetricRegistry& metrics);

  Ingest ingest_;
  InstallExchange exchange_;
  Queries queries_;
  MetricsQuery metrics_query_;
  Retention retention_;
};

}  // namespace expanse::data
