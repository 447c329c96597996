// The daemon's standing with the planes: its access token, renewed before it ends, and whether its
// credential still counts.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "daemon/planes.h"
#include "net/compute_identity.h"

namespace expanse::daemon {

// Thread-safe. Calls block as long as the plane does, at most `timeout` (twice that when the token
// had to be renewed in between).
class Session {
 public:
  // `reload` reads the config file again: asked after a refusal, since re-issuing an install token
  // replaces the credential. `planes` outlives the session.
  Session(Planes& planes, net::ComputeIdentity identity, base::Clock& clock,
          std::function<base::Result<net::ComputeIdentity>()> reload);

  base::Result<data::v1::IngestResponse> Ingest(const data::v1::IngestRequest& request,
                                                std::chrono::milliseconds timeout);
  base::Result<control::v1::HeartbeatResponse> Heartbeat(
      const control::v1::HeartbeatRequest& request, std::chrono::milliseconds timeout);
  base::Result<data::v1::ReportHealthResponse> ReportHealth(
      const data::v1::ReportHealthRequest& request, std::chrono::milliseconds timeout);
  base::Result<data::v1::ReportClusterStateResponse> ReportClusterState(
      const data::v1::ReportClusterStateRequest& request, std::chrono::milliseconds timeout);

  // The control plane refused the credential. Calls fail with session.revoked without asking again,
  // but for one try every five minutes.
  bool revoked() const;
  std::string compute_id() const;

 private:
  template <typename Response, typename Call>
  base::Result<Response> WithToken(std::chrono::milliseconds timeout, const Call& call);
  base::Result<std::string> Token(std::chrono::milliseconds timeout);
  base::Result<std::string> Mint(std::chrono::milliseconds timeout);
  void Forget(const std::string& token);
  void Refused(const base::Error& error);

  Planes& planes_;
  base::Clock& clock_;
  const std::function<base::Result<net::ComputeIdentity>()> reload_;

  mutable std::mutex mutex_;  // guards all below; never held over a call
  net::ComputeIdentity identity_;
  std::string token_;
  base::MonoTime renew_at_{};
  std::optional<base::MonoTime> refused_at_;
};

}  // namespace expanse::daemon
