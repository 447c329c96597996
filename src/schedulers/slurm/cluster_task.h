// Reading the cluster's configuration, nodes and partitions on a lane. Each blocks while scontrol
// runs and puts one report.
#pragma once

#include <cstddef>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/time.h"
#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/reports.h"

namespace expanse::schedulers::slurm {

void RunConfigTask(CommandRunner& runner, Mailbox& mailbox, const std::stop_token& stop);
void RunNodesTask(CommandRunner& runner, base::Clock& clock, Mailbox& mailbox,
                  const std::stop_token& stop);
void RunPartitionsTask(CommandRunner& runner, base::Clock& clock, Mailbox& mailbox,
                       const std::stop_token& stop);

// NodeHostName of each node in what `scontrol show node` prints: several nodes may be on one host.
std::map<std::string, std::string, std::less<>> ParseNodeHosts(std::string_view text);

}  // namespace expanse::schedulers::slurm
