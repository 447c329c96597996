#include "control/compute_state.h"

namespace expanse::control {

ComputeState StateOf(const store::Compute& compute, base::WallTime now,
                     const StateThresholds& thresholds) {
  if (compute.revoked_at) return ComputeState::kRevoked;
  if (!compute.last_heartbeat_at) return ComputeState::kPending;
  const auto silence = now - *compute.last_heartbeat_at;
  if (silence >= thresholds.offline_after) return ComputeState::kOffline;
  if (silence >= thresholds.degraded_after) return ComputeState::kDegraded;
  return ComputeState::kActive;
}

}  // namespace expanse::control
