// The controller's role on a Slurm cluster, made of the daemon's settings.
#pragma once

#include <memory>
#include <optional>

#include "base/time.h"
#include "daemon/agent_gate.h"
#include "daemon/commands/command.h"
#include "daemon/daemon.h"
#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/node/node_claim.h"
#include "schedulers/slurm/observer.h"

namespace expanse::daemon {

// Where Slurm's programs and their configuration are.
schedulers::slurm::SystemRunnerOptions SlurmRunnerOptions(const Invocation& invocation);

// The controller samples its own host: it claims that, from a sampler if there is one, and is what
// the hooks there find. Nothing, and a line in the log, when it cannot be had; jobs of this host
// are then sampled without what hooks would tell of them.
std::optional<schedulers::slurm::NodeClaim> ClaimOwnNode(const Invocation& invocation,
                                                         base::Clock& clock);

// What the TaskProlog of this host is told about the capture agent.
AgentGateOptions AgentGateFrom(const Invocation& invocation);

// Not started. `clock` outlives it. Takes the events of hooks only where `owns_node`: they go to
// who claimed the node.
std::unique_ptr<schedulers::slurm::SlurmObserver> MakeSlurmObserver(const Invocation& invocation,
                                                                    const DaemonOptions& options,
                                                                    bool owns_node,
                                                                    base::Clock& clock);

}  // namespace expanse::daemon
