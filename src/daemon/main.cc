// expanse-daemon: reads its options, wires the sources together and waits for a signal.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/flags.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/time.h"
#include "base/version.h"
#include "collect/cgroup/collector.h"
#include "collect/gpu/collector.h"
#include "collect/host/collector.h"
#include "collect/process/collector.h"
#include "daemon/daemon.h"
#include "daemon/daemon_settings.h"
#include "daemon/health_file.h"
#include "daemon/privileges.h"
#include "daemon/spool_directory.h"
#include "net/compute_identity.h"
#include "schedulers/host/observer.h"
#include "schedulers/host/run.h"
#include "schedulers/host/spool.h"

namespace expanse::daemon {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

constexpr const char* kHelp =
    R"(Usage: expanse-daemon [run] [--config FILE] [options]
       expanse-daemon healthcheck [--max-age 90s] [--state-dir DIR]
       expanse-daemon version

Captures workloads of this machine and delivers them to the data plane.

Commands:
  run          Capture until SIGTERM or SIGINT (the default).
  healthcheck  Exit 0 if the daemon of this state directory is alive, 1 with the reason if not.
  version      Print the version.

Options:
  --config FILE     The identity that `expanse compute install` wrote. Default: EXPANSE_DAEMON_CONFIG, else
                    ~/.expanse/config.json; for root /etc/expanse/config.json if it exists.
  --print-config    Print every option, its value and where that came from, and exit.
  --max-age TIME    healthcheck: how old the last heartbeat may be (90s).
  -h, --help        Print this.
  --version         Print the version.

Each of these can also be given in the environment: --outbox-max-bytes as EXPANSE_OUTBOX_MAX_BYTES.

)";

// Flags that are no settings.
std::vector<base::SettingSpec> FlagsOnly() {
  return {{.name = "print_config",
           .kind = base::SettingKind::kBool,
           .default_value = "false",
           .help = ""},
          {.name = "max_age",
           .kind = base::SettingKind::kDuration,
           .default_value = "90s",
           .help = ""}};
}

int Complain(const base::Error& error, int code) {
  fmt::print(stderr, "expanse-daemon: {}\n", error.message);
  return code;
}

const char* SourceName(base::SettingSource source) {
  switch (source) {
    case base::SettingSource::kDefault:
      return "default";
    case base::SettingSource::kFile:
      return "file";
    case base::SettingSource::kEnvironment:
      return "environment";
    case base::SettingSource::kFlag:
      return "flag";
  }
  return "";
}

struct Invocation {
  base::Flags flags;
  base::Settings settings;
  base::Settings::Environment environment;
  std::string config_path;
  std::string command;
  bool is_root = false;
};

int PrintConfig(const Invocation& invocation) {
  fmt::print("config = {}\n", invocation.config_path);
  for (const base::SettingSpec& spec : DaemonSettings()) {
    fmt::print("{} = {}  ({})\n", spec.name, invocation.settings.GetString(spec.name),
               SourceName(invocation.settings.SourceOf(spec.name)));
  }
  return 0;
}

// Signals are taken by this thread alone; the others start with them blocked.
sigset_t BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of write(2), as a full disk is
  return set;
}

base::Status ConfigureLogging(const base::Settings& settings) {
  EXPANSE_ASSIGN_OR_RETURN(const auto level, base::ParseLogLevel(settings.GetString("log.level")));
  const std::string& format = settings.GetString("log.format");
  if (format != "text" && format != "json") {
    return base::Fail(base::Code::kInvalidArgument, "settings.value",
                      "log.format must be text or json");
  }
  base::ConfigureLog(level, format == "json" ? base::LogFormat::kJson : base::LogFormat::kText);
  return {};
}

std::vector<std::unique_ptr<schedulers::Observer>> MakeObservers(const Invocation& invocation,
                                                                 const DaemonOptions& options) {
  std::vector<std::unique_ptr<schedulers::Observer>> observers;
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
  observers.push_back(std::make_unique<schedulers::host::HostObserver>(std::move(host)));
  return observers;
}

// Descriptors that one collector may keep open. The usual limit of 1024 is less than two collectors
// and all else want together, and the outbox must never be the one that gets none.
std::size_t FilesOfCollector() {
  constexpr rlim_t kWanted = 4096;
  constexpr rlim_t kForAllElse = 256;
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < kWanted) {
    struct rlimit raised = limit;
    raised.rlim_cur = std::min(kWanted, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const rlim_t left = limit.rlim_cur - std::min(limit.rlim_cur, kForAllElse);
  return static_cast<std::size_t>(std::min<rlim_t>(left / 2, 512));
}

std::vector<SamplerSource> MakeSources(const Invocation& invocation, const DaemonOptions& options) {
  const collect::HostView view{.root = invocation.settings.GetString("root"),
                               .node = options.node,
                               .open_files = FilesOfCollector()};
  const std::vector<std::string> disabled = invocation.settings.GetList("collect.disable");
  std::vector<SamplerSource> sources;
  auto add = [&](std::string_view name, auto make, bool in_young_rounds) {
    if (std::find(disabled.begin(), disabled.end(), name) != disabled.end()) return;
    sources.push_back({.collector = make(), .in_young_rounds = in_young_rounds});
  };
  add(
      "host", [&] { return std::make_unique<collect::HostCollector>(view); },
      /*in_young_rounds=*/false);
  add(
      "cgroup", [&] { return std::make_unique<collect::CgroupCollector>(view); },
      /*in_young_rounds=*/true);
  add(
      "process", [&] { return std::make_unique<collect::ProcessCollector>(view); },
      /*in_young_rounds=*/true);
  // nvidia-smi reads at a pace of its own.
  const auto period =
      std::max(std::chrono::duration_cast<std::chrono::seconds>(options.capture.sampler.interval),
               std::chrono::seconds(1));
  add(
      "gpu",
      [&] {
        return std::make_unique<collect::GpuCollector>(
            view,
            collect::GpuOptions{.nvidia_smi = invocation.settings.GetString("collect.nvidia_smi"),
                                .period = period});
      },
      /*in_young_rounds=*/false);
  return sources;
}

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

  base::SystemClock clock;
  SystemFileIo files;
  DaemonOptions options =
      OptionsFrom(invocation.settings, base::Version(), invocation.environment, invocation.is_root);
  const evidence::HealthRow privileges = OwnPrivileges(clock.Now());
  base::LogInfo("daemon.start", {{"version", base::Version()},
                                 {"compute_id", identity->compute_id},
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
                               .observers = MakeObservers(invocation, options),
                               .sources = MakeSources(invocation, options),
                               .fixed_rows = {privileges}});
  if (!daemon) return Complain(daemon.error(), kFailure);
  (*daemon)->Start();

  int signal = 0;
  ::sigwait(&signals, &signal);
  base::LogInfo("daemon.stopping", {{"signal", signal}});
  // A second signal ends the process at once; what matters is on disk.
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  if (!(*daemon)->Drain(invocation.settings.GetDuration("drain_timeout"))) {
    base::LogWarn("daemon.drain_cut_short",
                  {{"next", "what was not acknowledged is sent after the next start"}});
    std::fflush(nullptr);
    ::_exit(0);  // a thread is inside a call that we do not wait for
  }
  base::LogInfo("daemon.stopped");
  return 0;
}

int HealthCheck(const Invocation& invocation, const std::string& max_age_text) {
  const auto max_age = base::ParseDuration(max_age_text);
  if (!max_age) return Complain(base::Error(max_age.error()).With("--max-age"), kUsage);
  base::SystemClock clock;
  const std::string directory =
      StateDirectory(invocation.settings, invocation.environment, invocation.is_root);
  const HealthVerdict verdict = CheckHealthFile(directory + "/health.json", clock, *max_age);
  fmt::print("{}\n", verdict.line);
  return verdict.healthy ? 0 : kFailure;
}

int Main(std::vector<std::string> arguments) {
  std::vector<base::SettingSpec> known = DaemonSettings();
  for (base::SettingSpec& spec : FlagsOnly()) known.push_back(std::move(spec));
  auto flags = base::ParseFlags(known, arguments);
  if (!flags) return Complain(flags.error(), kUsage);
  const std::string command = flags->words.empty() ? "run" : flags->words.front();
  if (flags->help) {
    fmt::print("{}{}", kHelp, base::SettingsHelp(DaemonSettings()));
    return 0;
  }
  if (flags->version || command == "version") {
    fmt::print("expanse-daemon {}\n", base::Version());
    return 0;
  }
  if (flags->words.size() > 1 || (command != "run" && command != "healthcheck")) {
    return Complain({.message = fmt::format("unknown command \"{}\"; see expanse-daemon --help",
                                            flags->words.back())},
                    kUsage);
  }
  auto take = [&](const char* name, std::string fallback) {
    auto node = flags->settings.extract(name);
    return node.empty() ? std::move(fallback) : std::move(node.mapped());
  };
  const std::string print_config = take("print_config", "false");
  const std::string max_age = take("max_age", "90s");
  Invocation invocation{
      .environment = base::ProcessEnvironment(), .command = command, .is_root = ::geteuid() == 0};
  auto settings =
      base::Settings::Load(DaemonSettings(), "", invocation.environment, flags->settings);
  if (!settings) return Complain(settings.error(), kUsage);
  invocation.settings = std::move(*settings);
  invocation.config_path =
      net::ComputeIdentityPath(flags->config_file, invocation.environment, invocation.is_root);
  if (print_config == "true") return PrintConfig(invocation);
  return command == "healthcheck" ? HealthCheck(invocation, max_age) : Run(invocation);
}

}  // namespace
}  // namespace expanse::daemon

int main(int argc, char** argv) {
  return expanse::daemon::Main(std::vector<std::string>(argv + 1, argv + argc));
}
