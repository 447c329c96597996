// expanse-daemon: finds out which command is meant, reads its options and runs it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/flags.h"
#include "base/settings.h"
#include "base/version.h"
#include "daemon/commands/command.h"
#include "daemon/daemon_settings.h"
#include "net/compute_identity.h"

namespace expanse::daemon {
namespace {

constexpr const char* kHelp =
    R"(Usage: expanse-daemon [run] [--config FILE] [options]
       expanse-daemon healthcheck [--max-age 90s] [--state-dir DIR]
       expanse-daemon sampler --prefix DIR [--user NAME] [options]
       expanse-daemon hooks prolog|epilog|task-prolog --prefix DIR [--user NAME]
       expanse-daemon backfill --since 30d|2026-01-01 [--until TIME] [--chunk 1d] [--pause 2s] [--again]
       expanse-daemon version

Captures workloads of this machine and delivers them to the data plane.

Commands:
  run          Capture until SIGTERM or SIGINT (the default).
  healthcheck  Exit 0 if the daemon of this state directory is alive, 1 with the reason if not.
  sampler      Sample this node of a Slurm cluster for the controller; needs no identity.
  hooks        Print the script for slurm.conf's Prolog, Epilog or TaskProlog.
  backfill     Import what Slurm's accounting knows of the past. Stops at ^C, goes on where it was when
               started again, and may run beside the daemon.
  version      Print the version.

Options:
  --config FILE     The identity that `expanse compute install` wrote. Default: EXPANSE_DAEMON_CONFIG, else
                    ~/.expanse/config.json; for root /etc/expanse/config.json if it exists.
  --print-config    Print every option, its value and where that came from, and exit.
  --max-age TIME    healthcheck: how old the last heartbeat may be (90s).
  --user NAME       sampler: run as this user; hooks: give events to it, and start the sampler so.
  --end-when-idle-for TIME
                    sampler: end after that long without a job; 0s: never (0s).
  --sampler-bootstrap prolog|off
                    hooks: whether they start a sampler where none is alive (prolog).
  --since TIME      backfill: how far back, as a span or a date.
  --until TIME      backfill: up to where (now).
  --chunk TIME      backfill: how much history one query asks for at most (1d).
  --pause TIME      backfill: how long to wait between queries at least (2s).
  --again           backfill: import also what was imported before.
  -h, --help        Print this.
  --version         Print the version.

Each of these can also be given in the environment: --outbox-max-bytes as EXPANSE_OUTBOX_MAX_BYTES.

)";

// A flag of every command.
base::SettingSpec PrintConfigFlag() {
  return {.name = "print_config",
          .kind = base::SettingKind::kBool,
          .default_value = "false",
          .help = ""};
}

base::SettingSpec UserFlag() {
  return {.name = "user", .kind = base::SettingKind::kString, .default_value = "", .help = ""};
}

std::vector<base::SettingSpec> BackfillFlags() {
  using base::SettingKind;
  return {{.name = "since", .kind = SettingKind::kString, .default_value = "", .help = ""},
          {.name = "until", .kind = SettingKind::kString, .default_value = "", .help = ""},
          {.name = "chunk", .kind = SettingKind::kDuration, .default_value = "1d", .help = ""},
          {.name = "pause", .kind = SettingKind::kDuration, .default_value = "2s", .help = ""},
          {.name = "again", .kind = SettingKind::kBool, .default_value = "false", .help = ""}};
}

std::vector<Command> Commands() {
  return {
      {.name = "run", .run = Run},
      {.name = "healthcheck",
       .flags = {{.name = "max_age",
                  .kind = base::SettingKind::kDuration,
                  .default_value = "90s",
                  .help = ""}},
       .run = HealthCheck},
      {.name = "sampler",
       .flags = {UserFlag(),
                 {.name = "end_when_idle_for",
                  .kind = base::SettingKind::kDuration,
                  .default_value = "0s",
                  .help = ""}},
       .run = RunSampler},
      {.name = "hooks",
       .words = 1,
       .flags = {UserFlag(),
                 {.name = "sampler_bootstrap",
                  .kind = base::SettingKind::kString,
                  .default_value = "prolog",
                  .help = ""}},
       .run = Hooks},
      {.name = "backfill", .flags = BackfillFlags(), .run = Backfill},
  };
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

int PrintConfig(const Invocation& invocation) {
  fmt::print("config = {}\n", invocation.config_path);
  for (const base::SettingSpec& spec : DaemonSettings()) {
    fmt::print("{} = {}  ({})\n", spec.name, invocation.settings.TextOf(spec.name),
               SourceName(invocation.settings.SourceOf(spec.name)));
  }
  return 0;
}

// All flags of all commands: which command is meant is known only once they are parsed.
std::vector<base::SettingSpec> KnownFlags(const std::vector<Command>& commands) {
  std::vector<base::SettingSpec> known = DaemonSettings();
  known.push_back(PrintConfigFlag());
  for (const Command& command : commands) {
    known.insert(known.end(), command.flags.begin(), command.flags.end());
  }
  return known;
}

// Moves the flags of `command` out of `given`, with defaults for those that were not given.
std::map<std::string, std::string> TakeFlags(const Command& command,
                                             std::map<std::string, std::string>* given) {
  std::map<std::string, std::string> flags;
  std::vector<base::SettingSpec> own = command.flags;
  own.push_back(PrintConfigFlag());
  for (const base::SettingSpec& spec : own) {
    auto node = given->extract(spec.name);
    flags[spec.name] = node.empty() ? spec.default_value : std::move(node.mapped());
  }
  return flags;
}

// A flag of another command is a mistake of whoever typed it, and no setting.
base::Status CheckFlags(const std::map<std::string, std::string>& given, const Command& command,
                        const std::vector<Command>& commands) {
  for (const Command& other : commands) {
    for (const base::SettingSpec& spec : other.flags) {
      if (!given.contains(spec.name)) continue;
      return base::Fail(base::Code::kInvalidArgument, "flags.unknown",
                        fmt::format("{} is no option of `expanse-daemon {}`", base::FlagName(spec),
                                    command.name));
    }
  }
  return {};
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<Command> commands = Commands();
  auto flags = base::ParseFlags(KnownFlags(commands), arguments);
  if (!flags) return Complain(flags.error(), kUsage);
  if (flags->help) {
    fmt::print("{}{}", kHelp, base::SettingsHelp(DaemonSettings()));
    return 0;
  }
  std::vector<std::string> words = std::move(flags->words);
  if (words.empty()) words.emplace_back("run");
  if (flags->version || words.front() == "version") {
    fmt::print("expanse-daemon {}\n", base::Version());
    return 0;
  }
  const auto command = std::ranges::find(commands, words.front(), &Command::name);
  if (command == commands.end() || words.size() > command->words + 1) {
    return Complain({.message = fmt::format("unknown command \"{}\"; see expanse-daemon --help",
                                            fmt::join(words, " "))},
                    kUsage);
  }
  Invocation invocation{.environment = base::ProcessEnvironment(), .is_root = ::geteuid() == 0};
  invocation.words.assign(words.begin() + 1, words.end());
  invocation.flags = TakeFlags(*command, &flags->settings);
  if (auto own = CheckFlags(flags->settings, *command, commands); !own) {
    return Complain(own.error(), kUsage);
  }
  auto settings =
      base::Settings::Load(DaemonSettings(), "", invocation.environment, flags->settings);
  if (!settings) return Complain(settings.error(), kUsage);
  invocation.settings = std::move(*settings);
  invocation.config_path =
      net::ComputeIdentityPath(flags->config_file, invocation.environment, invocation.is_root);
  if (invocation.flags.at("print_config") == "true") return PrintConfig(invocation);
  return command->run(invocation);
}

}  // namespace
}  // namespace expanse::daemon

int main(int argc, char** argv) {
  return expanse::daemon::Main(std::vector<std::string>(argv + 1, argv + argc));
}
