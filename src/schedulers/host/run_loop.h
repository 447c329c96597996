// What `expanse run` does while its command runs: moves output and keyboard input, passes signals
// on, stops and continues with the command, keeps the time limit. One thread, one poll loop.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "schedulers/host/child.h"
#include "schedulers/host/relay.h"
#include "schedulers/host/terminal.h"

namespace expanse::schedulers::host {

// The terminal and the pseudo-terminal on which the command has its session.
struct TerminalSession {
  TerminalSession(int real, int master)
      : terminal(real), pty(master), raw(real), input(real, master) {}
  int terminal;
  int pty;
  RawMode raw;
  InputRelay input;
};

// A pseudo-terminal that carries output only and has the size of `terminal`.
struct OutputTerminal {
  int terminal = -1;
  int master = -1;
};

struct LoopOptions {
  std::optional<std::chrono::milliseconds> walltime;
  std::chrono::milliseconds grace{5'000};
  // Processes to end at the time limit.
  std::function<std::vector<pid_t>()> members;
  // Called about every second, more often in the first; must not block.
  std::function<void()> on_second;
};

struct LoopResult {
  ChildStatus end;
  bool walltime_reached = false;
  std::uint64_t signals_received = 0;  // bit n: signal n, 1 to 63
  // The command left processes that hold its output open: see Linger.
  bool output_held = false;
};

// The signals that the loop takes over. Blocked before the command is started; it runs under the
// mask from before.
sigset_t LoopSignals();

class RunLoop {
 public:
  RunLoop(Child& child, std::vector<std::unique_ptr<Relay>>& relays, TerminalSession* session,
          std::vector<OutputTerminal> outputs, LoopOptions options, base::Clock& clock);
  // Until the command has ended and its output has been passed on, except what background processes
  // may still write.
  LoopResult Run();

 private:
  void HandleSignals();
  void HandleSignal(int signal, int code, pid_t sender);
  void HandleChild();
  void Suspend(int signal);
  void Resume();
  void KeepTime();
  bool Drained();
  int PollTimeout() const;

  Child& child_;
  std::vector<std::unique_ptr<Relay>>& relays_;
  TerminalSession* session_;
  std::vector<OutputTerminal> outputs_;
  LoopOptions options_;
  base::Clock& clock_;
  base::UniqueFd signals_;
  base::MonoTime started_;
  base::MonoTime next_second_;
  std::optional<base::MonoTime> ended_at_;
  int limit_step_ = 0;  // 0: running, 1: SIGTERM sent, 2: SIGKILL sent
  LoopResult result_;
};

// Goes on passing output from background processes, in a process of its own, as long as they hold
// it open; the caller returns at once. As alone, their output arrives and a reader of it waits for
// them.
void Linger(std::vector<std::unique_ptr<Relay>>& relays, const sigset_t& mask);

}  // namespace expanse::schedulers::host
