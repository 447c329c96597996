// How a plane other than control knows whom to believe: it fetches keys and revocations from
// control in the background, as itself.
#pragma once

#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "net/connect_client.h"
#include "net/control_trust_source.h"
#include "net/jwks_authenticator.h"
#include "server/options.h"

namespace expanse::server {

// `clock` and `metrics` outlive it.
class PlaneTrust {
 public:
  // `plane`: "data" or "intelligence". Begins to fetch; control need not be up.
  static base::Result<std::unique_ptr<PlaneTrust>> Start(std::string plane, const PlaneLink& link,
                                                         const net::TokenPolicy& policy,
                                                         base::Clock& clock,
                                                         base::MetricRegistry& metrics);
  ~PlaneTrust() { Stop(); }

  net::Authenticator& authenticator() { return *authenticator_; }
  // Fails with server.no_trust until keys have been fetched.
  base::Status Ready() const;
  // Idempotent.
  void Stop();

 private:
  PlaneTrust() = default;
  std::unique_ptr<net::ConnectClient> client_;
  std::unique_ptr<net::ControlTrustSource> source_;
  std::unique_ptr<net::JwksAuthenticator> authenticator_;
};

// A client of the control plane, over this link.
base::Result<std::unique_ptr<net::ConnectClient>> ControlClientOf(const PlaneLink& link);

}  // namespace expanse::server
