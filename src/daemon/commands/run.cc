// `expanse-daemon run`: wires the sources together and captures until a signal.
#include "schedulers/host/run.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "base/time.h"
#include "base/version.h"
#include "daemon/commands/command.h"
#include "daemon/commands/slurm_role.h"
#include "daemon/commands/sources.h"
#include "daemon/daemon.h"
#include "daemon/daemon_settings.h"
#include "daemon/privileges.h"
#include "daemon/spool/owners.h"
#include "daemon/spool_directory.h"
#include "net/compute_identity.h"
#include "schedulers/host/observer.h"
#include "schedulers/host/spool.h"
#include "schedulers/slurm/node/hook_script.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

// An event of a hook, the question to squeue and its answer are taken in three looks, and a fourth
// one of the uploader finds the record: with a second between them a job's start or end would be
// known only after more than the two it may take.
constexpr auto kControllerLooksEvery = 250ms;

bool IsSlurm(std::string_view type) { return type == evidence::Name(evidence::SourceType::kSlurm); }

std::unique_ptr<schedulers::Observer> MakeHostObserver(const Invocation& invocation,
                                                       const DaemonOptions& options) {
  const std::string& root = invocation.settings.GetString("root");
  schedulers::host::HostObserverOptions host{
      .state_directory = base::JoinPath(options.state_dir, "host"),
      .proc = root == "/" ? "/proc" : base::JoinPath(root, "/proc")};
  std::string spool = invocation.settings.GetString("spool_dir");
  if (spool.empty() && invocation.is_root) spool = "/var/lib/expanse/spool/host";
  if (spool.empty()) spool = schedulers::host::DefaultSpoolDirectory();
  // Failing is no reason not to start: the observer's health says what is wrong with the directory.
  if (auto made = MakeSpoolDirectory(spool, invocation.is_root); !made) {
    base::LogWarn("daemon.spool", {{"message", made.error().message}});
  }
  host.spool_directories.push_back(spool);
  // Where `expanse run` of this user falls back to.
  const std::string own = schedulers::host::PrivateSpoolDirectory();
  if (!own.empty() && own != spool) host.spool_directories.push_back(own);
  return std::make_unique<schedulers::host::HostObserver>(std::move(host));
}

// What the compute's type asks for.
std::vector<std::unique_ptr<schedulers::Observer>> MakeObservers(const Invocation& invocation,
                                                                 const DaemonOptions& options,
                                                                 const std::string& type,
                                                                 base::Clock& clock) {
  std::vector<std::unique_ptr<schedulers::Observer>> observers;
  const bool is_slurm = IsSlurm(type);
  if (is_slurm) observers.push_back(MakeSlurmObserver(invocation, options, clock));
  if (!is_slurm || invocation.settings.GetBool("slurm.host_runs"))
    observers.push_back(MakeHostObserver(invocation, options));
  return observers;
}

}  // namespace

int Run(const Invocation& invocation) {
  // Three threads that allocate little: arenas of their own would only cost memory.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 10);
  const sigset_t signals = BlockSignals();
  if (auto configured = ConfigureLogging(invocation.settings); !configured) {
    return Complain(configured.error(), kUsage);
  }
  const std::string& path = invocation.config_path;
  auto identity = net::ReadComputeIdentity(path);
  if (!identity) return Complain(identity.error(), kFailure);
  auto planes = ConnectToPlanes(identity->control_plane_url, identity->data_plane_url,
                                fmt::format("expanse-daemon/{}", base::Version()));
  if (!planes) return Complain(planes.error(), kFailure);

  // Threads that hang on a shared file system may outlive this function.
  static base::SystemClock clock;
  static SystemFileIo files;
  DaemonOptions options =
      OptionsFrom(invocation.settings, base::Version(), invocation.environment, invocation.is_root);
  const std::string type = identity->type;
  if (IsSlurm(type)) {
    options.capture.observe_interval = std::min<std::chrono::milliseconds>(
        options.capture.observe_interval, kControllerLooksEvery);
    options.capture.wake_directory =
        base::JoinPath(invocation.settings.GetString("run_dir"), schedulers::slurm::kHookDirectory);
    options.uploader.idle =
        std::min<std::chrono::milliseconds>(options.uploader.idle, kControllerLooksEvery);
  }
  auto owners = spool::ParseOwners(invocation.settings.GetList("spool.owners"));
  if (!owners) return Complain(owners.error(), kUsage);
  options.spool.worker.reader.owners = std::move(*owners);
  const evidence::HealthRow privileges = OwnPrivileges(clock.Now());
  base::LogInfo("daemon.start", {{"version", base::Version()},
                                 {"compute_id", identity->compute_id},
                                 {"type", identity->type},
                                 {"node", options.node},
                                 {"state_dir", options.state_dir},
                                 {"control_plane", identity->control_plane_url},
                                 {"data_plane", identity->data_plane_url}});
  if (!privileges.message.empty())
    base::LogWarn("daemon.limited_view", {{"message", privileges.message}});

  auto daemon =
      Daemon::Create(options, {.clock = clock,
                               .files = files,
                               .planes = **planes,
                               .identity = std::move(*identity),
                               .reload_identity = [path] { return net::ReadComputeIdentity(path); },
                               .observers = MakeObservers(invocation, options, type, clock),
                               .sources = MakeSources(invocation.settings, options.node),
                               .fixed_rows = {privileges}});
  if (!daemon) return Complain(daemon.error(), kFailure);
  (*daemon)->Start();

  // A second signal ends the process at once; what matters is on disk.
  const int signal = WaitForSignal(signals);
  base::LogInfo("daemon.stopping", {{"signal", signal}});
  if (!(*daemon)->Drain(invocation.settings.GetDuration("drain_timeout"))) {
    base::LogWarn("daemon.drain_cut_short",
                  {{"next", "what was not acknowledged is sent after the next start"}});
    std::fflush(nullptr);
    ::_exit(0);  // a thread is inside a call that we do not wait for
  }
  base::LogInfo("daemon.stopped");
  return 0;
}

}  // namespace expanse::daemon
