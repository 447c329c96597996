// The five states of a compute as a function of what is known about it: no state is stored, so none
// can be stale.
//
//   pending --first heartbeat--> active --silence--> degraded --silence--> offline
//                                  ^--------heartbeat-----'--------------------'
//   any --revoke--> revoked, for good
#pragma once

#include <cstdint>

#include "base/time.h"
#include "control/options.h"
#include "store/records/identity_store.h"

namespace expanse::control {

enum class ComputeState : std::uint8_t { kPending, kActive, kDegraded, kOffline, kRevoked };

// A heartbeat in the future (the wall clock was set back) counts as one of now.
ComputeState StateOf(const store::Compute& compute, base::WallTime now,
                     const StateThresholds& thresholds);

}  // namespace expanse::control
