#include "daemon/commands/slurm_role.h"

#include <optional>
#include <string>
#include <utility>

#include "base/files.h"
#include "daemon/commands/capture_switches.h"

namespace expanse::daemon {
namespace {

std::string FromEnvironment(const Invocation& invocation, const char* name) {
  const auto found = invocation.environment.find(name);
  return found == invocation.environment.end() ? std::string() : found->second;
}

}  // namespace

schedulers::slurm::SystemRunnerOptions SlurmRunnerOptions(const Invocation& invocation) {
  schedulers::slurm::SystemRunnerOptions options{
      .bin_directory = invocation.settings.GetString("slurm.bin_dir"),
      .search_path = FromEnvironment(invocation, "PATH"),
      .slurm_conf = invocation.settings.GetString("slurm.conf")};
  if (options.slurm_conf.empty()) options.slurm_conf = FromEnvironment(invocation, "SLURM_CONF");
  return options;
}

AgentGateOptions AgentGateFrom(const Invocation& invocation) {
  return {.prefix = invocation.settings.GetString("prefix"),
          .run_directory = invocation.settings.GetString("run_dir"),
          .enabled = FromEnvironment(invocation, "EXPANSE_PROFILING_AGENT_ENABLE") != "0"};
}

std::unique_ptr<schedulers::slurm::SlurmObserver> MakeSlurmObserver(const Invocation& invocation,
                                                                    const DaemonOptions& options,
                                                                    base::Clock& clock) {
  const base::Settings& settings = invocation.settings;
  schedulers::slurm::SlurmObserverOptions slurm;
  slurm.state_directory = base::JoinPath(options.state_dir, "slurm");
  slurm.host = options.node;
  slurm.cluster = settings.GetString("slurm.cluster");
  slurm.run_directory = settings.GetString("run_dir");
  slurm.version = options.version;
  if (!settings.GetString("prefix").empty()) {
    slurm.on_claim = [options = AgentGateFrom(invocation), &clock,
                      gate = std::make_shared<std::optional<AgentGate>>()] {
      gate->emplace(options, clock);
    };
  }
  slurm.node.root = settings.GetString("root");
  slurm.files.switches = CaptureSwitchesFrom(settings);
  if (const std::string& prefix = settings.GetString("prefix"); !prefix.empty())
    slurm.assign_directory = base::JoinPath(prefix, schedulers::slurm::kAssignDirectory);
  slurm.runner = SlurmRunnerOptions(invocation);
  slurm.queue_interval = settings.GetDuration("slurm.queue_interval");
  slurm.accounting_interval = settings.GetDuration("slurm.accounting_interval");
  slurm.nodes_interval = settings.GetDuration("slurm.nodes_interval");
  slurm.partitions_interval = settings.GetDuration("slurm.partitions_interval");
  slurm.command_deadline = settings.GetDuration("slurm.command_deadline");
  slurm.ledger.share = static_cast<double>(settings.GetInt("slurm.lookup_percent")) / 100.0;
  return std::make_unique<schedulers::slurm::SlurmObserver>(std::move(slurm), clock);
}

}  // namespace expanse::daemon
