// The commands of expanse-daemon. Each is one file here with one function; main.cc finds out which
// is meant and reads its options. To add one: its file, a line in main.cc's table, and its help.
#pragma once

#include <atomic>
#include <csignal>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/settings.h"

namespace expanse::daemon {

// Exit codes.
inline constexpr int kFailure = 1;
inline constexpr int kUsage = 2;

// What was asked for, once options and environment are read.
struct Invocation {
  base::Settings settings;  // DaemonSettings()
  base::Settings::Environment environment;
  std::map<std::string, std::string> flags;  // flags of the command itself, by name, all of them
  std::vector<std::string> words;            // after the name of the command
  std::string config_path;                   // of the compute's identity; may not exist
  bool is_root = false;
};

struct Command {
  std::string_view name;
  std::size_t words = 0;                    // how many may follow its name
  std::vector<base::SettingSpec> flags;     // its own, besides the settings
  int (*run)(const Invocation&) = nullptr;  // returns the exit code
};

int Run(const Invocation& invocation);          // run.cc
int HealthCheck(const Invocation& invocation);  // healthcheck.cc
int Hooks(const Invocation& invocation);        // hooks.cc
int Backfill(const Invocation& invocation);     // backfill.cc
int RunSampler(const Invocation& invocation);   // sampler.cc

// "expanse-daemon: <message>" on stderr; returns `code`.
int Complain(const base::Error& error, int code);
// Blocks SIGTERM and SIGINT in this thread and those it starts, for sigwait; ignores SIGPIPE and
// SIGXFSZ. Call it before the first thread.
sigset_t BlockSignals();
// Waits for one of `signals`, then lets a second one end the process at once. Returns the first; 0
// when `ended` (if given) became true before, which is looked at every half a second.
int WaitForSignal(const sigset_t& signals, const std::atomic<bool>* ended = nullptr);
// Level and form of the log, from log.level and log.format.
base::Status ConfigureLogging(const base::Settings& settings);

}  // namespace expanse::daemon
