// The control plane: organisations, users, sessions, computes and access tokens. It serves no HTTP
// by itself: the server main routes to the methods and documents that it offers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "control/options.h"
#include "net/caller.h"
#include "net/connect_server.h"
#include "store/records/identity_store.h"

namespace expanse::control {

// Thread-safe. The store, clock and registry outlive it; it outlives the routers that its methods
// were added to.
class ControlPlane {
 public:
  // Opens the signing keys (made at the first start) and loads what is revoked. Fails with
  // control.url, token_keys.*, store.*.
  static base::Result<std::unique_ptr<ControlPlane>> Create(ControlOptions options,
                                                            store::IdentityStore& store,
                                                            base::Clock& clock,
                                                            base::MetricRegistry& metrics);
  ~ControlPlane();

  // Adds every method of the package expanse.control.v1.
  void AddMethods(net::ConnectRouter& router);
  // Verifies tokens with the keys at hand; a revocation works at once.
  net::Authenticator& authenticator();
  // The document for GET /.well-known/jwks.json (application/json).
  std::string Jwks() const;

  // Makes the organisation and its Owner if there is none yet, and returns a one-time sign-in link
  // for the Owner; nothing at later starts. The link is a secret: print it, never log it.
  base::Result<std::optional<std::string>> EnsureFirstOrganisation();
  // Break-glass: a new one-time sign-in link for a user, or for the first Owner if `user_id` is
  // empty. Fails with identity.user_not_found.
  base::Result<std::string> NewSignInLink(std::string_view user_id = {});

  // Rotates signing keys that are due and forgets old revocations, sessions and tokens; call it
  // every few minutes.
  base::Status Maintain();

 private:
  struct Impl;
  explicit ControlPlane(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::control
