// Tells the TaskProlog of this node whether the capture agent's library is there: a file in the
// node's own memory, so that no job waits for the shared file system to find out.
#pragma once

#include <string>

#include "base/time.h"
#include "daemon/spool/abandonable_thread.h"

namespace expanse::daemon {

struct AgentGateOptions {
  std::string prefix;
  std::string run_directory;
  // An operator wants it off (EXPANSE_PROFILING_AGENT_ENABLE=0): the node's `disabled` file.
  bool enabled = true;
};

// Looks once: makes or removes <run directory>/agent/{ready,disabled}. May block for as long as the
// shared file system does. Fails with os.* when the files cannot be made or removed.
base::Status UpdateAgentGate(const AgentGateOptions& options);

// Looks every half a minute on a thread of its own, which is left behind if the file system hangs.
// The gate stays as it is when this ends: so do tasks that run.
class AgentGate {
 public:
  // `clock` lives until the process ends.
  AgentGate(AgentGateOptions options, base::Clock& clock);

 private:
  spool::AbandonableThread thread_;
};

}  // namespace expanse::daemon
