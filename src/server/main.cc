// expanse-server: the planes of a deployment, together or apart.
#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/version.h"
#include "server/control_runtime.h"
#include "server/data_runtime.h"
#include "server/evidence_stores.h"
#include "server/intelligence_runtime.h"
#include "server/links.h"

namespace expanse::server {
namespace {

constexpr int kUsage = 2;

int FailWith(const base::Error& error, int code = 1) {
  fmt::print(stderr, "expanse-server: {}\n", error.message);
  return code;
}

std::string Help() {
  return "expanse-server: serves the planes of a deployment\n\n"
         "  expanse-server [FLAGS]                run until SIGTERM\n"
         "  expanse-server sign-in-link [FLAGS]   print a new one-time sign-in link for the first "
         "Owner\n"
         "  expanse-server settings               print all settings as a table\n\n"
         "Example: expanse-server --state-dir /var/lib/expanse-server --tls-certificate chain.pem "
         "--tls-key key.pem "
         "--control-listen 0.0.0.0:8440 --data-listen 0.0.0.0:8441 --intelligence-listen "
         "0.0.0.0:8442\n\nFlags:\n"
         "  --config FILE                      settings as JSON\n" +
         base::SettingsHelp(ServerSettings());
}

base::Result<ServerOptions> Load(const base::Flags& flags) {
  std::string file;
  if (!flags.config_file.empty()) {
    EXPANSE_ASSIGN_OR_RETURN(file, base::ReadFile(flags.config_file, 1U << 20));
  }
  EXPANSE_ASSIGN_OR_RETURN(
      const auto settings,
      base::Settings::Load(ServerSettings(), file, base::ProcessEnvironment(), flags.settings));
  return ServerOptionsFrom(settings);
}

// One server per plane of a state directory; the locks go with the process.
base::Result<std::vector<base::UniqueFd>> LockPlanes(const ServerOptions& options) {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(options.state_dir, 0700));
  std::vector<base::UniqueFd> locks;
  for (const auto& [runs, plane] :
       {std::pair(options.run_control, "control"), std::pair(options.run_data, "data"),
        std::pair(options.run_intelligence, "intelligence")}) {
    if (!runs) continue;
    const std::string path = base::JoinPath(options.state_dir, fmt::format("lock.{}", plane));
    base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) return base::FailErrno(errno, path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      return base::Fail(
          base::Code::kFailedPrecondition, "server.locked",
          fmt::format("another expanse-server runs the {} plane of {}", plane, options.state_dir));
    }
    locks.push_back(std::move(fd));
  }
  return locks;
}

// SIGTERM and SIGINT are blocked in every thread and taken here.
void WaitForStop(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  base::LogInfo("stopping", {{"signal", signal}});
}

base::Status Run(ServerOptions options, const sigset_t& signals) {
  EXPANSE_RETURN_IF_ERROR(FillLinks(options));
  EXPANSE_ASSIGN_OR_RETURN(const auto locks, LockPlanes(options));
  base::SystemClock clock;
  base::MetricRegistry metrics;
  metrics.GetGauge("expanse_build_info", "always 1", {{"version", std::string(base::Version())}})
      .Set(1);
  std::unique_ptr<ControlRuntime> control;
  std::unique_ptr<EvidenceStores> stores;
  std::unique_ptr<DataRuntime> data;
  std::unique_ptr<IntelligenceRuntime> intelligence;
  if (options.http.allow_plain_remote)
    base::LogWarn("plain HTTP is served beyond loopback, as tls.allow_plain_remote says");
  if (options.run_control) {
    EXPANSE_ASSIGN_OR_RETURN(control, ControlRuntime::Start(options, clock, metrics));
    EXPANSE_ASSIGN_OR_RETURN(const auto link, control->plane().EnsureFirstOrganisation());
    if (link)
      fmt::print("First start: sign in as the Owner with this one-time link:\n  {}\n", *link);
    std::fflush(stdout);
  }
  if (options.run_data || options.run_intelligence) {
    EXPANSE_ASSIGN_OR_RETURN(stores, EvidenceStores::Open(options.state_dir, clock));
  }
  if (options.run_data) {
    EXPANSE_ASSIGN_OR_RETURN(data, DataRuntime::Start(options, *stores, clock, metrics));
  }
  if (options.run_intelligence) {
    EXPANSE_ASSIGN_OR_RETURN(intelligence,
                             IntelligenceRuntime::Start(options, *stores, clock, metrics));
  }
  base::LogInfo("serving",
                {{"version", base::Version()},
                 {"control", control ? options.control.public_url : "-"},
                 {"data", data ? options.control.data_public_url : "-"},
                 {"intelligence", intelligence ? options.control.intelligence_public_url : "-"}});
  WaitForStop(signals);
  // Those who ask control go before it.
  if (intelligence) intelligence->Drain(options.drain_timeout);
  if (data) data->Drain(options.drain_timeout);
  if (control) control->Drain(options.drain_timeout);
  return {};
}

int SignInLink(ServerOptions options) {
  if (options.control.public_url.empty())
    options.control.public_url = LastControlUrl(options.state_dir);
  if (options.control.public_url.empty()) {
    return FailWith(
        {base::Code::kFailedPrecondition, "server.never_started",
         fmt::format("no server has been started with --state-dir {} yet", options.state_dir)});
  }
  base::SystemClock clock;
  base::MetricRegistry metrics;
  auto control = ControlRuntime::Open(options, clock, metrics);
  if (!control) return FailWith(control.error());
  auto link = (*control)->plane().NewSignInLink();
  if (!link) return FailWith(link.error());
  fmt::print("{}\n", *link);
  return 0;
}

int Main(int argc, char** argv) {
  auto flags = base::ParseFlags(ServerSettings(), {argv + 1, argv + argc});
  if (!flags) return FailWith(flags.error(), kUsage);
  if (flags->help) {
    fmt::print("{}", Help());
    return 0;
  }
  const std::string command = flags->words.empty() ? "" : flags->words.front();
  if (flags->version || command == "version") {
    fmt::print("expanse-server {}\n", base::Version());
    return 0;
  }
  if (command == "settings") {
    fmt::print("{}", base::SettingsMarkdown(ServerSettings()));
    return 0;
  }
  if (flags->words.size() > 1 || (!command.empty() && command != "sign-in-link")) {
    return FailWith({base::Code::kInvalidArgument, "flags.command",
                     fmt::format("unknown command {}; see --help", command)},
                    kUsage);
  }
  auto options = Load(*flags);
  if (!options) return FailWith(options.error(), kUsage);
  ::umask(0077);
  if (command == "sign-in-link") return SignInLink(*std::move(options));
  base::ConfigureLog(options->log_level, options->log_format);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of write(2), as a full disk is
  // The library complains on stderr about bytes that clients send; our own log says what was
  // refused.
  google::protobuf::SetLogHandler(nullptr);
  if (auto done = Run(*std::move(options), signals); !done) return FailWith(done.error());
  return 0;
}

}  // namespace
}  // namespace expanse::server

int main(int argc, char** argv) { return expanse::server::Main(argc, argv); }
