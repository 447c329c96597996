// A scheduler (or bare host) as the daemon sees it: something that tells which executions there are
// and which of them run now. One folder per scheduler below this one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "collect/collector.h"
#include "evidence/records.h"

namespace expanse::schedulers {

// Takes evidence into the outbox. Success means durable: the observer may delete its own copy.
class EvidenceSink {
 public:
  virtual ~EvidenceSink() = default;
  virtual base::Status Emit(evidence::Payload payload, base::WallTime observed_at) = 0;
};

// Not thread-safe; the daemon calls it from one thread.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual std::string_view name() const = 0;
  virtual base::Status Start() = 0;
  // Looks once; bounded in time. Emits what is new. Whatever Emit refuses is offered again next
  // time.
  virtual void Observe(const collect::Tick& tick, EvidenceSink& sink) = 0;
  // What runs now; valid until the next Observe.
  virtual const std::vector<collect::TrackedWorkload>& running() const = 0;
  virtual std::vector<evidence::HealthRow> health() const = 0;
  virtual void Stop() = 0;
};

}  // namespace expanse::schedulers
