// A scheduler (or bare host) as the daemon sees it: something that tells which executions there are
// and which of them run now. One folder per scheduler below this one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "collect/collector.h"
#include "evidence/records.h"
#include "schedulers/cluster_state.h"

namespace expanse::schedulers {

class KeyResolver;

// What EmitAll did: the first `taken` records are durable, `status` says why the next one is not.
struct EmittedAll {
  std::size_t taken = 0;
  base::Status status;  // ok: all of them are
};

// Takes evidence into the outbox. Success means durable: the observer may delete its own copy.
class EvidenceSink {
 public:
  virtual ~EvidenceSink() = default;
  virtual base::Status Emit(evidence::Payload payload, base::WallTime observed_at) = 0;
  // Emit for each in order up to the first that is refused, but waiting for the disk once for all
  // of them rather than for each. What was not taken must be offered again (some of it may be
  // durable all the same: records are made to be repeated). A record that can never be taken fails
  // with Code::kInvalidArgument, as in Emit; whoever offers the rest leaves it out.
  virtual EmittedAll EmitAll(std::vector<evidence::Payload> payloads, base::WallTime observed_at) {
    EmittedAll done;
    for (evidence::Payload& payload : payloads) {
      done.status = Emit(std::move(payload), observed_at);
      if (!done.status) break;
      ++done.taken;
    }
    return done;
  }
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
  // A snapshot of the cluster that was not taken before; none where there is no cluster or nothing
  // new. The caller reports it at its own pace and may drop one for a newer.
  virtual std::optional<ClusterState> TakeClusterState() { return std::nullopt; }
  virtual void Stop() = 0;
  // Who knows the runs that samplers of other hosts tell of; null: the scheduler has no samplers.
  virtual KeyResolver* key_resolver() { return nullptr; }
};

}  // namespace expanse::schedulers
