// The data plane of this process: its listener, over the stores under state_dir/data.
#pragma once

#include <memory>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "data/data_plane.h"
#include "server/evidence_stores.h"
#include "server/options.h"
#include "server/plane_server.h"
#include "server/plane_trust.h"

namespace expanse::server {

class DataRuntime {
 public:
  // Serves. options.data_link says how control is reached; it need not be up: the plane is ready
  // once it has fetched keys from there. `stores`, `clock` and `metrics` outlive it.
  static base::Result<std::unique_ptr<DataRuntime>> Start(const ServerOptions& options,
                                                          EvidenceStores& stores,
                                                          base::Clock& clock,
                                                          base::MetricRegistry& metrics);
  ~DataRuntime() { Drain(std::chrono::milliseconds(0)); }
  std::uint16_t port() const { return server_->port(); }
  // Ends the listener, then what runs in the background. Idempotent.
  void Drain(std::chrono::milliseconds deadline);

 private:
  base::Status Serve(const ServerOptions& options, EvidenceStores& stores, base::Clock& clock,
                     base::MetricRegistry& metrics);

  std::unique_ptr<PlaneTrust> trust_;
  std::unique_ptr<data::ControlClient> control_;
  std::unique_ptr<data::DataPlane> plane_;
  std::unique_ptr<PlaneServer> server_;
};

}  // namespace expanse::server
