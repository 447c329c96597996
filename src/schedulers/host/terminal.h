// The user's terminal and the pseudo-terminals that stand in for it, see pty(7), termios(3).
#pragma once

#include <termios.h>

#include "base/files.h"
#include "base/result.h"

namespace expanse::schedulers::host {

struct PseudoTerminal {
  base::UniqueFd master;  // non-blocking
  base::UniqueFd slave;
};

// A pseudo-terminal with the modes and size of `like`. `raw_output`: bytes written to it come out
// unchanged, for when it carries output only and `like` does the processing of newlines.
base::Result<PseudoTerminal> OpenPseudoTerminal(int like, bool raw_output);

// Copies the window size; true if it changed. The kernel sends SIGWINCH to those behind `to`.
bool CopyWindowSize(int from, int to);

// True if `fd` is our controlling terminal and we are in its foreground.
bool InForeground(int fd);

// Puts a terminal into raw mode and back; back on destruction too.
class RawMode {
 public:
  explicit RawMode(int fd) : fd_(fd) {}
  ~RawMode() { Leave(); }
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;

  // Remembers the modes of now. No effect when already raw or in the background.
  void Enter();
  void Leave();
  bool active() const { return active_; }

 private:
  int fd_;
  bool active_ = false;
  struct termios saved_{};
};

}  // namespace expanse::schedulers::host
