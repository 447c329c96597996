// `expanse-daemon sampler`: samples this node for the controller, until a signal.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/time.h"
#include "base/version.h"
#include "daemon/agent_gate.h"
#include "daemon/become_user.h"
#include "daemon/commands/capture_switches.h"
#include "daemon/commands/command.h"
#include "daemon/commands/slurm_role.h"
#include "daemon/commands/sources.h"
#include "daemon/daemon_settings.h"
#include "daemon/node_sampler.h"
#include "daemon/privileges.h"
#include "schedulers/slurm/node/hook_script.h"
#include "schedulers/slurm/node/node_claim.h"
#include "schedulers/slurm/node/own_cgroup.h"

namespace expanse::daemon {
namespace {

namespace slurm = schedulers::slurm;

// Where memory is short the kernel is to end us before it ends a job. slurmd, whose child we may
// be, can be protected from that, and its children with it.
void OfferToBeEndedFirst() {
  const base::UniqueFd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file.valid()) (void)base::WriteFd(file.get(), "200\n");
}

// A hook that starts us is root's, and may have been run in the job's cgroup.
base::Status SettleDown(const std::string& user, bool reads_as_users) {
  ::setsid();
  (void)::setpriority(PRIO_PROCESS, 0, 5);
  OfferToBeEndedFirst();
  if (auto left = slurm::LeaveJobCgroups("/", ::getpid()); !left) {
    base::LogWarn("sampler.job_cgroup", {{"message", left.error().message}});
  }
  if (user.empty()) return {};
  return BecomeUser(user, reads_as_users);
}

NodeSamplerOptions OptionsOf(const Invocation& invocation, const DaemonOptions& daemon,
                             std::chrono::milliseconds idle) {
  const base::Settings& settings = invocation.settings;
  const std::string hooks = base::JoinPath(settings.GetString("run_dir"), slurm::kHookDirectory);
  NodeSamplerOptions options;
  options.observe_interval = daemon.capture.observe_interval;
  options.end_when_idle_for = idle;
  options.drain_timeout = settings.GetDuration("drain_timeout");
  options.sampler = daemon.capture.sampler;
  options.sampler.node = daemon.node;
  options.observer = {.hook_directory = hooks,
                      .quarantine = base::JoinPath(hooks, "quarantine"),
                      .jobs = {.root = settings.GetString("root")}};
  // What a hook told is to be in the controller's hands within a second or so.
  options.writer.event_age = std::chrono::milliseconds(300);
  options.writer.queue_directory = base::JoinPath(hooks, "queue");
  options.writer.spool = base::JoinPath(settings.GetString("prefix"), "spool");
  options.writer.host = daemon.node;
  options.writer.version = base::Version();
  options.writer.spool_max_bytes = settings.GetBytes("spool.host_max_bytes").count;
  options.files.switches = CaptureSwitchesFrom(settings);
  options.files.assignments = {
      .directory = base::JoinPath(settings.GetString("prefix"), slurm::kAssignDirectory),
      .spool = options.writer.spool,
      .host = daemon.node};
  return options;
}

}  // namespace

int RunSampler(const Invocation& invocation) {
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 10);
  const std::string& prefix = invocation.settings.GetString("prefix");
  if (!prefix.starts_with('/')) {
    return Complain({.message = "--prefix must be the directory that all nodes share"}, kUsage);
  }
  const auto longest_idle = base::ParseDuration(invocation.flags.at("end_when_idle_for"));
  if (!longest_idle)
    return Complain(base::Error(longest_idle.error()).With("--end-when-idle-for"), kUsage);
  const sigset_t signals = BlockSignals();
  if (auto configured = ConfigureLogging(invocation.settings); !configured) {
    return Complain(configured.error(), kUsage);
  }
  const slurm::CaptureSwitches switches = CaptureSwitchesFrom(invocation.settings);
  if (auto settled = SettleDown(invocation.flags.at("user"), switches.logs || switches.sources);
      !settled) {
    return Complain(settled.error(), kFailure);
  }

  // Threads that hang may outlive this function.
  static base::SystemClock clock;
  static SystemFileIo files;
  const DaemonOptions daemon =
      OptionsFrom(invocation.settings, base::Version(), invocation.environment, invocation.is_root);
  auto claim = slurm::NodeClaim::Take({.run_directory = invocation.settings.GetString("run_dir"),
                                       .version = std::string(base::Version()),
                                       .role = slurm::NodeRole::kSampler},
                                      clock);
  if (!claim) {
    // Several hooks may have started one each: the first of them is enough.
    return Complain(claim.error(), claim.error().reason == "node.taken" ? 0 : kFailure);
  }
  auto sampler = NodeSampler::Create(OptionsOf(invocation, daemon, *longest_idle),
                                     MakeSources(invocation.settings, daemon.node),
                                     {OwnPrivileges(clock.Now())}, files, clock);
  if (!sampler) return Complain(sampler.error(), kFailure);
  base::LogInfo("sampler.start", {{"version", base::Version()},
                                  {"node", daemon.node},
                                  {"prefix", prefix},
                                  {"run_dir", invocation.settings.GetString("run_dir")}});
  const AgentGate gate(AgentGateFrom(invocation), clock);
  std::atomic<bool> idle_for_long = false;
  std::jthread loop([&](const std::stop_token& stop) {
    base::RateLimit limit{std::chrono::seconds(60)};
    (*sampler)->Run(stop, [&] {
      const auto renewed = claim->Renew();
      if (renewed || !limit.Allow()) return;
      base::LogWarn("sampler.marker", {{"message", renewed.error().message}});
    });
    idle_for_long = true;
  });
  const int signal = WaitForSignal(signals, &idle_for_long);
  base::LogInfo("sampler.stopping", {{"signal", signal}});
  loop.request_stop();
  loop.join();
  if (!(*sampler)->Stop()) {
    base::LogWarn("sampler.spool_hangs", {{"next", "the next sampler ships what is left"}});
  }
  base::LogInfo("sampler.stopped");
  return 0;
}

}  // namespace expanse::daemon
