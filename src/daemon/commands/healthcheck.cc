// `expanse-daemon healthcheck`: is the daemon of this state directory alive?
#include <fmt/format.h>

#include "base/time.h"
#include "daemon/commands/command.h"
#include "daemon/daemon_settings.h"
#include "daemon/health_file.h"

namespace expanse::daemon {

int HealthCheck(const Invocation& invocation) {
  const auto max_age = base::ParseDuration(invocation.flags.at("max_age"));
  if (!max_age) return Complain(base::Error(max_age.error()).With("--max-age"), kUsage);
  base::SystemClock clock;
  const std::string directory =
      StateDirectory(invocation.settings, invocation.environment, invocation.is_root);
  const HealthVerdict verdict = CheckHealthFile(directory + "/health.json", clock, *max_age);
  fmt::print("{}\n", verdict.line);
  return verdict.healthy ? 0 : kFailure;
}

}  // namespace expanse::daemon
