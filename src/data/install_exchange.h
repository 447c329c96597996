// ExchangeInstallToken: relays an installer's token to the control plane, which burns it.
#pragma once

#include <mutex>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "data/bounds.h"
#include "data/control_client.h"
#include "data/options.h"
#include "net/caller.h"

namespace expanse::data::v1 {
class ExchangeInstallTokenRequest;
class ExchangeInstallTokenResponse;
}  // namespace expanse::data::v1

namespace expanse::data {

// Thread-safe. Callers are anonymous: the token is their credential.
class InstallExchange {
 public:
  InstallExchange(const DataOptions& options, ControlClient& control, base::Clock& clock,
                  base::MetricRegistry& metrics);

  // Fails with invalid_argument (install_token.malformed, install_token.type), resource_exhausted
  // (install_token.rate), what the control plane says of the token, or unavailable
  // (control.unreachable): then the token may still be good.
  base::Result<v1::ExchangeInstallTokenResponse> Exchange(
      const net::CallContext& context, const v1::ExchangeInstallTokenRequest& request);

 private:
  ControlClient& control_;
  base::Clock& clock_;
  std::mutex mutex_;  // guards bucket_
  TokenBucket bucket_;
  base::Counter& exchanged_;
  base::Counter& refused_;
};

}  // namespace expanse::data
