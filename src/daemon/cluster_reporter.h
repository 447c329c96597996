// Tells the data plane what the cluster looks like. Snapshots are no evidence: only the newest
// counts, so they never enter the outbox, and one that could not be sent gives way to the next.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "daemon/session.h"
#include "evidence/cluster_state.h"
#include "evidence/records.h"

namespace expanse::daemon {

// Thread-safe: the capture thread posts, the heartbeat thread reports.
class ClusterReporter {
 public:
  // `session` and `clock` outlive it.
  ClusterReporter(Session& session, base::Clock& clock, std::chrono::milliseconds timeout)
      : session_(session), clock_(clock), timeout_(timeout) {}

  // Replaces what was not sent yet.
  void Post(evidence::ClusterState state);
  // Sends the newest snapshot, if there is one and its time has come; blocks as long as the plane
  // does, at most the timeout.
  void Report();
  // Absent where no scheduler ever gave a snapshot.
  std::optional<evidence::HealthRow> health(base::WallTime now) const;

 private:
  void Note(const base::Status& status);

  Session& session_;
  base::Clock& clock_;
  const std::chrono::milliseconds timeout_;

  mutable std::mutex mutex_;  // guards all below; never held over a call
  std::optional<evidence::ClusterState> newest_;
  std::optional<base::WallTime> reported_;  // when the snapshot was taken that was sent last
  std::size_t bytes_ = 0;                   // of that one, before compression
  base::MonoTime next_{};
  bool posted_ = false;
  base::Error error_{};  // empty message: the last report went well
};

}  // namespace expanse::daemon
