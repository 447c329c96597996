#include "schedulers/host/outcome.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <cerrno>

namespace expanse::schedulers::host {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;

// timeout(1) of GNU coreutils: "124 if COMMAND times out".
constexpr int kTimeoutExit = 124;

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

bool IsTimeoutProgram(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string& name = command.front();
  return name.substr(name.rfind('/') + 1) == "timeout";
}

// The signal with which somebody asked it to end and it did, whether it died of it or, as shells
// and many programs do, left with 128 + n; 0 if none.
int HonouredRequest(const EndFacts& facts, int signal, int exit_code) {
  for (int request : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    const bool asked = (facts.signals_received >> request & 1) != 0;
    const bool typed = facts.on_terminal && (request == SIGINT || request == SIGQUIT);
    if ((asked || typed) && signal == request) return request;
    const bool left = signal == 0 && exit_code == 128 + request;
    if (left && (asked || typed)) return request;
  }
  return 0;
}

}  // namespace

int ShellExitCode(const EndFacts& facts) {
  if (facts.exec_error != 0) return facts.exec_error == ENOENT ? 127 : 126;
  if (WIFSIGNALED(facts.wait_status)) return 128 + WTERMSIG(facts.wait_status);
  return WEXITSTATUS(facts.wait_status);
}

Verdict Judge(const EndFacts& facts) {
  Verdict verdict{.status = ExecutionStatus::kFailed, .outcome = Outcome::kFailure};
  if (facts.exec_error != 0) {
    verdict.exit_code = ShellExitCode(facts);
    verdict.native_state = "not_started";
    verdict.native_reason =
        facts.exec_error == ENOENT ? "command not found" : ::strerrordesc_np(facts.exec_error);
    return verdict;
  }
  const int signal = WIFSIGNALED(facts.wait_status) ? WTERMSIG(facts.wait_status) : 0;
  const int exit_code = WIFEXITED(facts.wait_status) ? WEXITSTATUS(facts.wait_status) : 0;
  if (signal != 0) {
    verdict.signal = signal;
    verdict.native_state = "signalled";
    verdict.native_reason = SignalName(signal);
  } else {
    verdict.exit_code = exit_code;
    verdict.native_state = "exited";
  }
  const bool oom = facts.oom_kills.value_or(0) > 0;
  const bool failed = signal != 0 || exit_code != 0;
  const int request = HonouredRequest(facts, signal, exit_code);
  if (facts.walltime_reached) {
    verdict.outcome = Outcome::kTimeout;
    verdict.native_reason = "walltime";
  } else if (oom && failed && request == 0) {
    verdict.outcome = Outcome::kOutOfMemory;
    verdict.native_reason = "memory limit";
  } else if (request != 0) {
    verdict.status = ExecutionStatus::kCancelled;
    verdict.outcome = Outcome::kCancelled;
    verdict.native_reason = SignalName(request);
  } else if (exit_code == kTimeoutExit && IsTimeoutProgram(facts.command)) {
    verdict.outcome = Outcome::kTimeout;
    verdict.native_reason = "timeout";
  } else if (!failed) {
    verdict.status = ExecutionStatus::kSucceeded;
    verdict.outcome = Outcome::kSuccess;
    if (oom) {
      verdict.notes.push_back(fmt::format(
          "{} of its processes were killed for memory, yet the command ended with exit code 0",
          *facts.oom_kills));
    }
  }
  return verdict;
}

}  // namespace expanse::schedulers::host
