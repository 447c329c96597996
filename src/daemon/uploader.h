// Sends what the outboxes hold to the data plane, lifecycle before samples, one batch at a time,
// and acknowledges what the plane's watermark says is durable there. Waits by the monotonic clock,
// so jumps of the wall clock change nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "base/retry.h"
#include "base/time.h"
#include "daemon/outboxes.h"
#include "daemon/session.h"
#include "evidence/records.h"

namespace expanse::daemon {

struct UploaderOptions {
  std::size_t batch_bytes = 1U << 20;
  std::size_t batch_records = 2000;
  std::chrono::milliseconds timeout{30'000};
  std::chrono::milliseconds idle{1000};  // how often to look for new records
  base::BackoffPolicy backoff{};
  std::uint64_t seed = 1;  // of the back-off's jitter
};

// Step and Run are for one thread; health() is thread-safe.
class Uploader {
 public:
  Uploader(Outboxes& outboxes, Session& session, base::Clock& clock, UploaderOptions options);

  // Sends at most one batch. Returns how long to wait before the next step: zero when there is
  // more.
  std::chrono::milliseconds Step();
  // Steps until `stop`.
  void Run(std::stop_token stop);
  // Sends until nothing is left, the first failure, or `budget` has passed. For shutdown.
  void Drain(std::chrono::milliseconds budget);

  // Collector "uploader": ok, degraded (unreachable, backing off) or failed (revoked).
  evidence::HealthRow health(base::WallTime now) const;

 private:
  enum class Sent : std::uint8_t { kNothing, kDelivered, kFailed };
  Sent SendFrom(Outbox& outbox, std::chrono::milliseconds timeout);
  base::Status Deliver(Outbox& outbox, const OutboxBatch& batch, std::chrono::milliseconds timeout);
  void HandleRefusal(Outbox& outbox, const OutboxBatch& batch, const base::Error& error);
  void Record(const base::Error* error, const OutboxBatch& batch);

  Outboxes& outboxes_;
  Session& session_;
  base::Clock& clock_;
  const UploaderOptions options_;
  base::Backoff backoff_;
  base::RateLimit failure_log_{std::chrono::seconds(60)};
  base::RateLimit rejected_log_{std::chrono::seconds(10)};
  std::size_t batch_records_;  // shrinks while the plane refuses whole batches, recovers after
  int lone_refusals_ = 0;      // in a row, of a batch of one record

  mutable std::mutex mutex_;  // guards the figures below
  std::uint64_t batches_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t failures_in_a_row_ = 0;
  base::Error last_error_;
  base::MonoTime last_success_{};
};

}  // namespace expanse::daemon
