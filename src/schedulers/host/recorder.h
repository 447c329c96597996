// Writes the events of one run to the spool on a thread of its own: a slow disk or a hanging
// network file system must never hold up the command or its output.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "schedulers/host/spool.h"

namespace expanse::schedulers::host {

// Thread-safe. Jobs run in order; at most 16 wait. A further one replaces the newest of them, which
// is a log tail by then: a later one, and the end, say more.
class Recorder {
 public:
  using Job = std::function<void(SpoolWriter&)>;

  explicit Recorder(SpoolWriter writer);
  ~Recorder();  // Finish with no patience
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void Post(Job job);
  // Waits until all jobs are done. False when that took too long: the thread is left behind with
  // what it works on, and the process may end under it.
  bool Finish(std::chrono::milliseconds patience);
  // What kept events out of the spool's own directory or out of any; empty if all is well. After
  // Finish.
  std::string trouble() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace expanse::schedulers::host
