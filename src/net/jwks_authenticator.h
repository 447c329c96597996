// How a plane other than control knows its callers: it verifies access tokens offline, with keys
// and revocations that a background thread fetches from the control plane. While control is away,
// what was fetched last keeps working; access tokens are short-lived, which bounds what that can
// miss.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "net/caller.h"
#include "net/token.h"
#include "net/token_cache.h"

namespace expanse::net {

// What the control plane tells the others. Implementations block and are called by one thread at a
// time per method; see control_trust_source.h for the real one.
class TrustSource {
 public:
  virtual ~TrustSource() = default;
  // The JWKS document.
  virtual base::Result<std::string> FetchJwks() = 0;
  // Session, credential and compute ids whose tokens must be refused.
  virtual base::Result<std::vector<std::string>> FetchRevocations() = 0;
};

struct JwksAuthenticatorOptions {
  TokenPolicy policy;
  std::chrono::seconds keys_every{300};
  std::chrono::seconds revocations_every{20};
  std::chrono::seconds unknown_key_every{
      10};  // a token with an unknown key may cause a fetch this often
};

// Thread-safe. The source, clock and registry outlive it.
class JwksAuthenticator final : public Authenticator {
 public:
  JwksAuthenticator(JwksAuthenticatorOptions options, TrustSource& source, base::Clock& clock,
                    base::MetricRegistry& metrics);
  ~JwksAuthenticator() override;

  // Starts the background thread, which fetches at once and then on schedule; failures are retried
  // with back-off. Stop ends it after at most the fetch in flight.
  void Start();
  void Stop();
  // Fetches keys and revocations now, in the calling thread.
  base::Status Refresh();
  // True once keys and revocations have been fetched: part of a plane's readiness.
  bool Ready() const;

  // Besides what TokenVerifier::Verify says: token.revoked (unauthenticated), and unavailable with
  // trust.not_ready as long as nothing has been fetched, or trust.refreshing for an unknown key
  // while another thread fetches. Blocks only for an unknown key, for one fetch.
  base::Result<Caller> Authenticate(std::string_view bearer_token) override;

 private:
  struct Trust {
    std::shared_ptr<const PublicKeySet> keys;
    std::shared_ptr<const std::set<std::string, std::less<>>> revoked;
  };
  void Run(std::stop_token stop);
  base::Status FetchKeys();
  base::Status FetchRevocations();
  Trust Snapshot() const;
  base::Result<Caller> VerifyWithFreshKeys(std::string_view token);

  const JwksAuthenticatorOptions options_;
  CachingVerifier verifier_;
  TrustSource& source_;
  base::Clock& clock_;
  base::Counter& failures_;
  base::Counter& refused_revoked_;
  base::Gauge& fetched_at_;

  mutable std::mutex mutex_;  // guards trust_ and next_unknown_key_fetch_; never held over a fetch
  Trust trust_;
  base::MonoTime next_unknown_key_fetch_{};
  std::mutex key_fetch_;         // held over FetchJwks: one fetch at a time
  std::mutex revocation_fetch_;  // held over FetchRevocations
  std::jthread thread_;
};

}  // namespace expanse::net
