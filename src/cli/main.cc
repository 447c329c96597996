// expanse: the command line. Only wiring; see app.h.
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "cli/app.h"
#include "schedulers/host/run.h"

namespace {

// $EXPANSE_HOME, else .expanse in the home directory.
std::string StateDirectory(const expanse::base::Settings::Environment& environment) {
  if (const auto given = environment.find("EXPANSE_HOME");
      given != environment.end() && !given->second.empty()) {
    return given->second;
  }
  if (const auto home = environment.find("HOME");
      home != environment.end() && !home->second.empty()) {
    return expanse::base::JoinPath(home->second, ".expanse");
  }
  const passwd* entry = getpwuid(geteuid());  // no threads yet
  return expanse::base::JoinPath(entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "/",
                                 ".expanse");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace expanse;
  // What people need to know comes as messages; log lines of the layers below would only disturb.
  base::ConfigureLog(base::LogLevel::kOff, base::LogFormat::kText);
  base::SystemClock clock;
  auto environment = base::ProcessEnvironment();
  const auto terminal = cli::ProcessTerminal(environment);
  std::string state_directory = StateDirectory(environment);
  cli::App app{.terminal = *terminal,
               .clock = clock,
               .environment = std::move(environment),
               .state_directory = std::move(state_directory),
               .run_command = [](const schedulers::host::RunOptions& options) {
                 schedulers::host::RunOptions complete = options;
                 if (complete.spool_directory.empty()) {
                   complete.spool_directory = schedulers::host::DefaultSpoolDirectory();
                 }
                 return schedulers::host::RunCommand(complete);
               }};
  return cli::RunCli(app, std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
