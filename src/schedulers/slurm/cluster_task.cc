#include "schedulers/slurm/cluster_task.h"

#include <array>
#include <utility>

#include "schedulers/slurm/commands/scontrol_cluster.h"
#include "schedulers/slurm/commands/scontrol_text.h"

namespace expanse::schedulers::slurm {
namespace {

// A record of a node is about 1 KiB.
constexpr std::size_t kMaxNodesOutput = 128U << 20;

}  // namespace

std::map<std::string, std::string, std::less<>> ParseNodeHosts(std::string_view text) {
  // A value goes on to the next of these: all that may stand behind a name is among them.
  constexpr std::array<std::string_view, 8> kKeys = {"NodeName", "Arch",         "CoresPerSocket",
                                                     "NodeAddr", "NodeHostName", "BcastAddr",
                                                     "Port",     "Version"};
  std::map<std::string, std::string, std::less<>> hosts;
  for (const std::string_view record : SplitRecords(text, "NodeName=", kMaxClusterNodes)) {
    const ScontrolRecord values(record, kKeys);
    const std::string_view host = values.Text("NodeHostName");
    if (!host.empty()) hosts.emplace(values.Text("NodeName"), host);
  }
  return hosts;
}

void RunConfigTask(CommandRunner& runner, Mailbox& mailbox, const std::stop_token& stop) {
  CommandOutcome outcome =
      runner.Run({.program = Program::kScontrol, .arguments = {"show", "config"}}, stop);
  ConfigDone done{.status = std::move(outcome.status), .cost = outcome.cost, .config = {}};
  if (done.status) {
    if (auto config = ParseSlurmConfig(outcome.out)) {
      done.config = *std::move(config);
    } else {
      done.status = std::unexpected(std::move(config.error()));
    }
  }
  mailbox.PutDone(std::move(done));
}

void RunNodesTask(CommandRunner& runner, base::Clock& clock, Mailbox& mailbox,
                  const std::stop_token& stop) {
  CommandOutcome outcome = runner.Run({.program = Program::kScontrol,
                                       .arguments = {"show", "node", "-d"},
                                       .max_output = kMaxNodesOutput},
                                      stop);
  NodesDone done{.status = std::move(outcome.status),
                 .cost = outcome.cost,
                 .at = clock.Now(),
                 .nodes = {},
                 .hosts = {}};
  if (done.status) {
    done.nodes = ParseScontrolNodes(outcome.out);
    done.hosts = ParseNodeHosts(outcome.out);
  }
  mailbox.PutDone(std::move(done));
}

void RunPartitionsTask(CommandRunner& runner, base::Clock& clock, Mailbox& mailbox,
                       const std::stop_token& stop) {
  CommandOutcome outcome =
      runner.Run({.program = Program::kScontrol, .arguments = {"show", "partition"}}, stop);
  PartitionsDone done{.status = std::move(outcome.status),
                      .cost = outcome.cost,
                      .at = clock.Now(),
                      .partitions = {}};
  if (done.status) done.partitions = ParseScontrolPartitions(outcome.out);
  mailbox.PutDone(std::move(done));
}

}  // namespace expanse::schedulers::slurm
