// The controller's role on a Slurm cluster, made of the daemon's settings.
#pragma once

#include <memory>

#include "base/time.h"
#include "daemon/agent_gate.h"
#include "daemon/commands/command.h"
#include "daemon/daemon.h"
#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/observer.h"

namespace expanse::daemon {

// Where Slurm's programs and their configuration are.
schedulers::slurm::SystemRunnerOptions SlurmRunnerOptions(const Invocation& invocation);

// What the TaskProlog of this host is told about the capture agent.
AgentGateOptions AgentGateFrom(const Invocation& invocation);

// Not started. `clock` outlives it. Once it has claimed this host to sample it, the TaskProlog's
// gate is kept up to date too.
std::unique_ptr<schedulers::slurm::SlurmObserver> MakeSlurmObserver(const Invocation& invocation,
                                                                    const DaemonOptions& options,
                                                                    base::Clock& clock);

}  // namespace expanse::daemon
