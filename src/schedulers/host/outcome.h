// What the end of a command means: a pure function of what was seen of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evidence/execution.h"

namespace expanse::schedulers::host {

struct EndFacts {
  std::vector<std::string> command;
  int wait_status = 0;  // of waitpid
  int exec_error = 0;   // errno of exec; not 0: the command never ran
  bool walltime_reached = false;
  std::optional<std::uint64_t> oom_kills;  // in its cgroup
  std::uint64_t signals_received = 0;      // bit n: signal n came to `expanse run` while it ran
  bool on_terminal = false;                // ^C goes to it by the terminal and not through us
};

struct Verdict {
  evidence::ExecutionStatus status = evidence::ExecutionStatus::kUnknown;
  evidence::Outcome outcome = evidence::Outcome::kUnknown;
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> signal;
  std::string native_state;  // "exited", "signalled", "not_started"
  std::string
      native_reason;  // for people: "SIGTERM", "walltime", "memory limit", "command not found"
  std::vector<std::string> notes;
};

Verdict Judge(const EndFacts& facts);

// For the shell: the exit code, 128 + n for signal n.
int ShellExitCode(const EndFacts& facts);

}  // namespace expanse::schedulers::host
