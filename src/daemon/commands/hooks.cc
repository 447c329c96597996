// `expanse-daemon hooks prolog|epilog|task-prolog`: the script for slurm.conf, on standard output.
#include <fmt/format.h>

#include "base/version.h"
#include "daemon/commands/command.h"
#include "schedulers/slurm/node/hook_script.h"

namespace expanse::daemon {

int Hooks(const Invocation& invocation) {
  namespace slurm = schedulers::slurm;
  const auto kind =
      slurm::ParseHookScriptKind(invocation.words.empty() ? "" : invocation.words.front());
  if (!kind) return Complain(kind.error(), kUsage);
  const std::string& bootstrap = invocation.flags.at("sampler_bootstrap");
  if (bootstrap != "prolog" && bootstrap != "off") {
    return Complain({.message = "--sampler-bootstrap must be prolog or off"}, kUsage);
  }
  const auto script =
      slurm::MakeHookScript(*kind, {.prefix = invocation.settings.GetString("prefix"),
                                    .run_directory = invocation.settings.GetString("run_dir"),
                                    .version = std::string(base::Version()),
                                    .owner = invocation.flags.at("user"),
                                    .start_sampler = bootstrap == "prolog"});
  if (!script) return Complain(script.error(), kUsage);
  fmt::print("{}", *script);
  return 0;
}

}  // namespace expanse::daemon
