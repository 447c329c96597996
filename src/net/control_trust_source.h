// The TrustSource that asks a control plane over the network: keys from /.well-known/jwks.json,
// revocations from AuthService.ListRevocations with an access token of this plane's own.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/connect_client.h"
#include "net/fetch.h"
#include "net/jwks_authenticator.h"

namespace expanse::net {

struct ControlTrustOptions {
  std::string control_url;  // without a trailing slash
  std::string plane;        // "data" or "intelligence"
  std::string plane_secret;
  FetchOptions fetch;
};

// Keeps the plane's access token and gets a new one shortly before it expires, or when it is
// refused. Thread-safe. The client and the clock outlive it.
class ControlTrustSource final : public TrustSource {
 public:
  ControlTrustSource(ControlTrustOptions options, ConnectClient& client, base::Clock& clock)
      : options_(std::move(options)), client_(client), clock_(clock) {}

  base::Result<std::string> FetchJwks() override;
  base::Result<std::vector<std::string>> FetchRevocations() override;
  // The plane's access token, for its other calls to control (burning install tokens). Blocks while
  // one is fetched.
  base::Result<std::string> PlaneToken();
  // Forgets the token: after control has refused it.
  void DropPlaneToken();

 private:
  base::Result<std::vector<std::string>> ListRevocations(const std::string& token);

  const ControlTrustOptions options_;
  ConnectClient& client_;
  base::Clock& clock_;
  std::mutex mutex_;  // guards the two below; not held over calls
  std::string token_;
  base::WallTime token_expires_{};
};

}  // namespace expanse::net
