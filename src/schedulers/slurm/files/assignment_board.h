// The controller's side of assignments: what each node's sampler is to follow, written to
// <prefix>/assign by a thread of its own, because that is a shared file system.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/abandonable_thread.h"
#include "base/result.h"
#include "base/time.h"
#include "evidence/records.h"
#include "schedulers/slurm/files/assignment.h"

namespace expanse::schedulers::slurm {

struct AssignmentBoardOptions {
  std::string directory;                      // <prefix>/assign; made with mode 0700
  std::chrono::milliseconds interval{2'000};  // between two writings of one host's file
  // Files of hosts that were assigned nothing since the start are an earlier daemon's: removed
  // then.
  std::chrono::milliseconds forget_after{120'000};
};

// Thread-safe; Set and Remove never block on a file system.
class AssignmentBoard {
 public:
  // `clock` lives until the process ends, should the thread be left behind.
  static base::Result<std::unique_ptr<AssignmentBoard>> Start(AssignmentBoardOptions options,
                                                              base::Clock& clock);
  ~AssignmentBoard();  // Stop()

  // False: a host's name that is no file's, or it has as many jobs as go into a file.
  bool Set(const std::string& host, Assignment assignment);
  void Remove(const std::string& host, std::uint32_t job_id);

  // Collector "assignments": degraded with the reason of the last writing that failed, or "hangs".
  evidence::HealthRow health() const;
  // What is not written is not written any more. At most 2 s.
  void Stop();

 private:
  struct State;
  explicit AssignmentBoard(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // shared with the thread
  base::AbandonableThread thread_;
};

}  // namespace expanse::schedulers::slurm
