#include "net/jwks_authenticator.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/retry.h"

namespace expanse::net {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;

JwksAuthenticator::JwksAuthenticator(JwksAuthenticatorOptions options, TrustSource& source,
                                     base::Clock& clock, base::MetricRegistry& metrics)
    : options_(std::move(options)),
      verifier_(options_.policy),
      source_(source),
      clock_(clock),
      failures_(metrics.GetCounter("expanse_trust_fetch_failures_total",
                                   "Failed fetches of keys or revocations from the control plane")),
      refused_revoked_(metrics.GetCounter("expanse_trust_refused_revoked_total",
                                          "Access tokens refused because they were revoked")),
      fetched_at_(metrics.GetGauge("expanse_trust_revocations_fetched_timestamp_seconds",
                                   "When revocations were last fetched, in Unix time")) {}

JwksAuthenticator::~JwksAuthenticator() { Stop(); }

void JwksAuthenticator::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

void JwksAuthenticator::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

Status JwksAuthenticator::Refresh() {
  EXPANSE_RETURN_IF_ERROR(FetchKeys());
  return FetchRevocations();
}

bool JwksAuthenticator::Ready() const {
  const Trust trust = Snapshot();
  return trust.keys != nullptr && trust.revoked != nullptr;
}

JwksAuthenticator::Trust JwksAuthenticator::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return trust_;
}

void JwksAuthenticator::Run(std::stop_token stop) {
  base::Backoff backoff({}, static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count()));
  std::optional<base::MonoTime> keys_at;
  bool away = false;
  while (!stop.stop_requested()) {
    Status status;
    if (!keys_at || clock_.Mono() - *keys_at >= options_.keys_every) {
      status = FetchKeys();
      if (status) keys_at = clock_.Mono();
    }
    if (const Status revocations = FetchRevocations(); status && !revocations) status = revocations;
    if (!status && !away) {
      base::LogWarn("trust.control_away",
                    {{"reason", status.error().reason}, {"error", status.error().message}});
    } else if (status && away) {
      base::LogInfo("trust.control_back");
    }
    away = !status.has_value();
    base::Duration pause = options_.revocations_every;
    if (away) {
      pause = std::min<base::Duration>(backoff.Next(), pause);
    } else {
      backoff.Reset();
    }
    if (!clock_.WaitFor(stop, pause)) return;
  }
}

Status JwksAuthenticator::FetchKeys() {
  const std::lock_guard fetch(key_fetch_);
  constexpr std::string_view kWhat = "fetching the keys of the control plane";
  const auto document = source_.FetchJwks();
  if (!document) {
    failures_.Add();
    return std::unexpected(document.error().With(kWhat));
  }
  auto keys = PublicKeySet::FromJwks(*document);
  if (!keys) {
    failures_.Add();
    return std::unexpected(std::move(keys).error().With(kWhat));
  }
  const std::lock_guard lock(mutex_);
  trust_.keys = std::make_shared<const PublicKeySet>(std::move(*keys));
  return {};
}

Status JwksAuthenticator::FetchRevocations() {
  const std::lock_guard fetch(revocation_fetch_);
  auto subjects = source_.FetchRevocations();
  if (!subjects) {
    failures_.Add();
    return std::unexpected(std::move(subjects).error().With("fetching revocations"));
  }
  fetched_at_.Set(static_cast<double>(base::ToMicros(clock_.Now())) / 1e6);
  const std::lock_guard lock(mutex_);
  trust_.revoked = std::make_shared<const std::set<std::string, std::less<>>>(subjects->begin(),
                                                                              subjects->end());
  return {};
}

Result<Caller> JwksAuthenticator::Authenticate(std::string_view bearer_token) {
  const Trust trust = Snapshot();
  if (!trust.keys || !trust.revoked) {
    return Fail(Code::kUnavailable, "trust.not_ready",
                "this plane has not reached the control plane yet; try again shortly");
  }
  Result<Caller> caller = verifier_.Verify(bearer_token, trust.keys, clock_.Now());
  if (!caller && caller.error().reason == "token.unknown_key") {
    caller = VerifyWithFreshKeys(bearer_token);
  }
  if (!caller) return caller;
  if (trust.revoked->contains(caller->session_id) || trust.revoked->contains(caller->subject)) {
    refused_revoked_.Add();
    return Fail(Code::kUnauthenticated, "token.revoked", "this access was revoked");
  }
  return caller;
}

// Keys are published well before they sign, so this happens only when somebody has replaced a
// mounted key, or to a forged token: hence one fetch at a time, and seldom.
Result<Caller> JwksAuthenticator::VerifyWithFreshKeys(std::string_view token) {
  bool may_fetch = false;
  {
    const std::lock_guard lock(mutex_);
    const base::MonoTime now = clock_.Mono();
    if (now >= next_unknown_key_fetch_) {
      next_unknown_key_fetch_ = now + options_.unknown_key_every;
      may_fetch = true;
    }
  }
  if (may_fetch) {
    // A failure leaves the old keys, and the token unknown.
    if (const Status fetched = FetchKeys(); !fetched) {
      return Fail(Code::kUnavailable, "trust.refreshing",
                  "the key of this access token is not known here and control is away; try again");
    }
  } else if (std::unique_lock fetching(key_fetch_, std::try_to_lock); !fetching.owns_lock()) {
    return Fail(Code::kUnavailable, "trust.refreshing", "keys are being fetched; try again");
  }
  return verifier_.Verify(token, Snapshot().keys, clock_.Now());
}

}  // namespace expanse::net
