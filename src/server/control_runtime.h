// The control plane of this process: its database, signing keys and listener under
// state_dir/control.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "control/control_plane.h"
#include "server/options.h"
#include "server/plane_server.h"
#include "store/identity/sqlite_identity_store.h"

namespace expanse::server {

class ControlRuntime {
 public:
  // Opens everything and serves. `clock` and `metrics` outlive it. Prints nothing.
  static base::Result<std::unique_ptr<ControlRuntime>> Start(const ServerOptions& options,
                                                             base::Clock& clock,
                                                             base::MetricRegistry& metrics);
  // Opens the plane without serving: for commands beside a running server.
  static base::Result<std::unique_ptr<ControlRuntime>> Open(const ServerOptions& options,
                                                            base::Clock& clock,
                                                            base::MetricRegistry& metrics);

  control::ControlPlane& plane() { return *plane_; }
  std::uint16_t port() const { return server_->port(); }
  void Drain(std::chrono::milliseconds deadline);

 private:
  base::Status Serve(const ServerOptions& options, base::Clock& clock,
                     base::MetricRegistry& metrics);

  std::unique_ptr<store::SqliteIdentityStore> store_;
  std::unique_ptr<control::ControlPlane> plane_;
  std::unique_ptr<PlaneServer> server_;
  std::jthread maintenance_;
};

// The URL that the last start served control under, from state_dir; empty if there was none.
std::string LastControlUrl(const std::string& state_dir);

}  // namespace expanse::server
