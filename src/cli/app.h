// What a command is given: everything of the outside world comes through here, so that tests give
// their own. Plain references, owned by main() or the test, alive for the whole run.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/settings.h"
#include "base/time.h"
#include "cli/spec.h"
#include "cli/terminal.h"
#include "schedulers/host/run.h"

namespace expanse::cli {

struct App {
  Terminal& terminal;
  base::Clock& clock;
  base::Settings::Environment environment;
  std::string state_directory;  // ~/.expanse: the session, the configuration of a daemon
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds connect_timeout{5'000};
  // The engine of `expanse run`.
  std::function<base::Result<int>(const schedulers::host::RunOptions&)> run_command;

  // A variable's value; empty when unset.
  std::string Variable(const std::string& name) const;
  // A file in the state directory.
  std::string StatePath(std::string_view name) const;
};

// The command tree. Constant data.
const CommandSpec& RootCommand();

// Parses and runs; gives the exit code. Errors are printed, never returned.
int RunCli(App& app, const std::vector<std::string>& arguments);

// Prints an error and its hint; gives the exit code. For commands that go on after one.
int ReportFailure(App& app, const Failure& failure);

// The frozen mapping: 2 usage, 3 not found, 4 not signed in or forbidden, 5 unreachable or timed
// out, 6 conflict, 130 interrupted, else 1.
int ExitCodeOf(base::Code code);

}  // namespace expanse::cli
