// compute install. The work itself is in src/install; here are its options and what people see.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "evidence/execution.h"
#include "install/config_install.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kTokenPrefix = "exp_install_";

constexpr OptionSpec kOptions[] = {
    {.name = "control-plane",
     .kind = ValueKind::kUrl,
     .value_name = "URL",
     .help = "Control plane, as `compute register` printed it",
     .default_text = "the session's",
     .environment = "EXPANSE_API_URL"},
    {.name = "data-plane",
     .kind = ValueKind::kUrl,
     .value_name = "URL",
     .help = "Data plane, as `compute register` printed it",
     .default_text = "asked of the control plane"},
    {.name = "type",
     .kind = ValueKind::kChoice,
     .value_name = "TYPE",
     .help = "What to install for; without it only the configuration is written",
     .choices = kSourceTypes},
    {.name = "write-config-only",
     .kind = ValueKind::kFlag,
     .help = "Only write the daemon's configuration, whatever the type"},
    {.name = "config",
     .kind = ValueKind::kPath,
     .value_name = "FILE",
     .help = "Where to write the configuration",
     .default_text = "~/.expanse/config.json"},
    {.name = "reinstall",
     .kind = ValueKind::kFlag,
     .help = "Keep the identity that is there: no token is read, its credential is checked again"},
    {.name = "daemon-version",
     .kind = ValueKind::kText,
     .value_name = "VERSION",
     .help = "Daemon release to install; not used where only the configuration is written"},
    {.name = "daemon-binary",
     .kind = ValueKind::kPath,
     .value_name = "FILE",
     .help = "Daemon to install from a file; not used where only the configuration is written"},
};
constexpr EnvironmentSpec kEnvironment[] = {
    {"EXPANSE_INSTALL_TOKEN", "Install token; asked for without echo on a terminal when unset"},
};
constexpr ExampleSpec kExamples[] = {
    {"expanse compute install --control-plane https://expanse.example.org --data-plane "
     "https://data.example.org",
     "asks for the token, writes ~/.expanse/config.json"},
    {"expanse compute install --type slurm --write-config-only …",
     "for a daemon that you start beside slurmctld yourself"},
    {"expanse compute install --type kubernetes --write-config-only --config config.json …",
     "the file that becomes a Secret of the chart"},
};

// Cluster installation needs work on the scheduler that this version cannot do; it says so before
// it reads a token.
std::expected<evidence::SourceType, Failure> FindType(const Arguments& arguments) {
  const auto type = evidence::ParseSourceType(arguments.Text("type"))
                        .value_or(evidence::SourceType::kUnspecified);
  const bool config_only = arguments.Flag("write-config-only") ||
                           type == evidence::SourceType::kUnspecified ||
                           type == evidence::SourceType::kHost;
  if (!config_only) {
    return FailWith(
        base::Code::kUnimplemented, "install.unsupported",
        fmt::format("compute install: installing on {} is not supported by this version yet: it "
                    "writes the configuration and leaves services and hooks to you",
                    arguments.Text("type")),
        fmt::format("expanse compute install --type {} --write-config-only",
                    arguments.Text("type")));
  }
  if (arguments.Has("daemon-version") && arguments.Has("daemon-binary")) {
    return FailUsage("compute install: --daemon-version and --daemon-binary exclude each other",
                     "pass one of them");
  }
  return type;
}

std::expected<std::string, Failure> FindToken(App& app) {
  std::string token(base::Trim(app.Variable("EXPANSE_INSTALL_TOKEN")));
  if (token.empty()) {
    if (!app.terminal.CanAsk()) {
      return FailUsage("compute install: no install token is given",
                       "set EXPANSE_INSTALL_TOKEN (expanse compute register makes a token)");
    }
    EXPANSE_ASSIGN_OR_RETURN(token, app.terminal.AskSecret("Install token (exp_install_…): "));
  }
  if (!token.starts_with(kTokenPrefix)) {
    return FailUsage("compute install: that is not an install token: it begins with exp_install_",
                     "expanse compute register");
  }
  return token;
}

std::expected<std::string, Failure> FindControlPlane(App& app, const Arguments& arguments) {
  if (arguments.Has("control-plane")) return NormaliseUrl(arguments.Text("control-plane"));
  if (const auto session = StoreOf(app).Load(); session && *session)
    return (*session)->control_plane_url;
  return FailUsage("compute install: no control plane is given",
                   "pass --control-plane as `expanse compute register` printed it");
}

CommandResult Reinstall(App& app, const std::string& path, const install::OpenPlane& open_plane) {
  auto identity = net::ReadComputeIdentity(path);
  if (!identity)
    return std::unexpected(std::move(identity).error().With("compute install --reinstall"));
  if (auto status = install::VerifyConfigInstall(path, open_plane); !status) {
    return std::unexpected(
        Failure(std::move(status).error().With("compute install --reinstall"),
                fmt::format("expanse compute reissue {}", identity->compute_id)));
  }
  app.terminal.Out(identity->compute_id + "\n");
  Say(app,
      fmt::format("{} still is compute {}; nothing was changed.", path, identity->compute_name));
  return 0;
}

CommandResult Install(App& app, const Arguments& arguments) {
  EXPANSE_ASSIGN_OR_RETURN(const auto type, FindType(arguments));
  const std::string path = arguments.Text("config", app.StatePath("config.json"));
  const install::OpenPlane open_plane = [&app](const std::string& url) {
    return OpenClient(app, url);
  };
  if (arguments.Flag("reinstall")) return Reinstall(app, path, open_plane);
  EXPANSE_ASSIGN_OR_RETURN(const std::string control_plane, FindControlPlane(app, arguments));
  auto plan =
      install::PlanConfigInstall({.control_plane_url = control_plane,
                                  .data_plane_url = NormaliseUrl(arguments.Text("data-plane")),
                                  .config_path = path,
                                  .type = type},
                                 open_plane);
  if (!plan) {
    std::string hint;
    if (plan.error().reason == "install.existing") {
      hint = "--reinstall to keep that identity, or --config for another file";
    }
    return std::unexpected(
        Failure(std::move(plan).error().With("compute install"), std::move(hint)));
  }
  EXPANSE_ASSIGN_OR_RETURN(const std::string token, FindToken(app));
  WarnIfPlain(app, plan->data_plane_url);
  auto identity = install::ApplyConfigInstall(*plan, token, open_plane);
  if (!identity) {
    return std::unexpected(
        Failure(std::move(identity).error().With("compute install"),
                "the same token again, until it ends or the daemon's first heartbeat"));
  }
  app.terminal.Out(identity->compute_id + "\n");
  Say(app, fmt::format("Wrote {0} for compute {1}. Start it with: expanse-daemon --config {0}",
                       path, identity->compute_name));
  if (identity->type == evidence::Name(evidence::SourceType::kSlurm)) {
    Say(app,
        "Start it where squeue and sacct work. For starts and ends within seconds, and samples of "
        "other nodes, add the hooks to slurm.conf: docs/daemon.md.");
  }
  if (auto status = install::VerifyConfigInstall(path, open_plane); !status) {
    Warn(app, status.error().message + "; the daemon will try again");
  }
  return 0;
}

}  // namespace

constinit const CommandSpec kComputeInstallCommand = {
    .name = "install",
    .summary = "Make this machine a compute",
    .description =
        "Run on the target. Exchanges the install token for the compute's credential and writes "
        "the "
        "daemon's configuration, mode 0600. An identity that is already there is never "
        "replaced.\n\n"
        "Everything is checked before the token is spent. A failed try may be repeated with the "
        "same "
        "token until it ends or the daemon's first heartbeat.",
    .options = kOptions,
    .environment = kEnvironment,
    .examples = kExamples,
    .run = Install};

}  // namespace expanse::cli
