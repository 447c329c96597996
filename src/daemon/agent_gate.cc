#include "daemon/agent_gate.h"

#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "schedulers/slurm/node/hook_script.h"

namespace expanse::daemon {
namespace {

namespace slurm = schedulers::slurm;

constexpr std::chrono::seconds kLookEvery{30};

base::Status SetFile(const std::string& path, bool wanted) {
  if (!wanted) return base::RemoveFile(path);
  if (base::Exists(path)) return {};
  return base::WriteFileAtomically(path, "", 0644);
}

}  // namespace

base::Status UpdateAgentGate(const AgentGateOptions& options) {
  const std::string directory = base::JoinPath(options.run_directory, slurm::kAgentDirectory);
  // First, and whatever the shared file system does: off is off.
  EXPANSE_RETURN_IF_ERROR(
      SetFile(base::JoinPath(directory, slurm::kAgentDisabled), !options.enabled));
  struct stat info{};
  const std::string library = base::JoinPath(options.prefix, slurm::kAgentLibrary);
  const bool is_there = ::stat(library.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  return SetFile(base::JoinPath(directory, slurm::kAgentReady), is_there);
}

AgentGate::AgentGate(AgentGateOptions options, base::Clock& clock) {
  thread_.Start([options = std::move(options), &clock](const std::stop_token& stop) {
    std::string last;
    do {
      const auto updated = UpdateAgentGate(options);
      const std::string now = updated ? "" : updated.error().message;
      if (!now.empty() && now != last) base::LogWarn("agent_gate.failed", {{"message", now}});
      last = now;
    } while (clock.WaitFor(stop, kLookEvery));
  });
}

}  // namespace expanse::daemon
