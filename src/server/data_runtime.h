// The data plane of this process: its stores and listener under state_dir/data.
#pragma once

#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "data/data_plane.h"
#include "net/connect_client.h"
#include "net/control_trust_source.h"
#include "net/jwks_authenticator.h"
#include "server/options.h"
#include "server/plane_server.h"
#include "store/blobs/directory_blob_store.h"
#include "store/records/sqlite_evidence_store.h"
#include "store/series/sqlite_series_store.h"

namespace expanse::server {

class DataRuntime {
 public:
  // Opens the stores and serves. `control_url` and `plane_secret` say how control is reached; it
  // need not be up: the plane is ready once it has fetched keys from there. `clock` and `metrics`
  // outlive it.
  static base::Result<std::unique_ptr<DataRuntime>> Start(const ServerOptions& options,
                                                          std::string control_url,
                                                          std::string plane_secret,
                                                          base::Clock& clock,
                                                          base::MetricRegistry& metrics);
  ~DataRuntime() { Drain(std::chrono::milliseconds(0)); }
  std::uint16_t port() const { return server_->port(); }
  // Ends the listener, then what runs in the background. Idempotent.
  void Drain(std::chrono::milliseconds deadline);

 private:
  base::Status OpenStores(const ServerOptions& options, base::Clock& clock);
  base::Status ConnectControl(const ServerOptions& options, std::string control_url,
                              std::string plane_secret, base::Clock& clock,
                              base::MetricRegistry& metrics);
  base::Status Serve(const ServerOptions& options, base::Clock& clock,
                     base::MetricRegistry& metrics);

  std::unique_ptr<store::SqliteEvidenceStore> records_;
  std::unique_ptr<store::SqliteSeriesStore> series_;
  std::unique_ptr<store::DirectoryBlobStore> blobs_;
  std::unique_ptr<net::ConnectClient> trust_client_;
  std::unique_ptr<net::ControlTrustSource> trust_;
  std::unique_ptr<net::JwksAuthenticator> authenticator_;
  std::unique_ptr<data::ControlClient> control_;
  std::unique_ptr<data::DataPlane> plane_;
  std::unique_ptr<PlaneServer> server_;
};

}  // namespace expanse::server
