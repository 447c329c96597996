#include "schedulers/host/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace expanse::schedulers::host {

base::Result<PseudoTerminal> OpenPseudoTerminal(int like, bool raw_output) {
  PseudoTerminal pty;
  pty.master = base::UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!pty.master.valid()) return base::FailErrno(errno, "opening a pseudo-terminal");
  if (::grantpt(pty.master.get()) != 0 || ::unlockpt(pty.master.get()) != 0) {
    return base::FailErrno(errno, "opening a pseudo-terminal");
  }
  pty.slave = base::UniqueFd(::ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave.valid()) {  // before Linux 4.13
    std::array<char, 64> name{};
    if (::ptsname_r(pty.master.get(), name.data(), name.size()) != 0)
      return base::FailErrno(errno, "ptsname");
    pty.slave = base::UniqueFd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!pty.slave.valid()) return base::FailErrno(errno, "opening a pseudo-terminal");
  }
  struct termios modes{};
  if (::tcgetattr(like, &modes) != 0) return base::FailErrno(errno, "tcgetattr");
  if (raw_output) modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  if (::tcsetattr(pty.slave.get(), TCSANOW, &modes) != 0)
    return base::FailErrno(errno, "tcsetattr");
  CopyWindowSize(like, pty.master.get());
  return pty;
}

bool CopyWindowSize(int from, int to) {
  struct winsize now{};
  struct winsize before{};
  if (::ioctl(from, TIOCGWINSZ, &now) != 0 || ::ioctl(to, TIOCGWINSZ, &before) != 0) return false;
  const bool same = now.ws_row == before.ws_row && now.ws_col == before.ws_col &&
                    now.ws_xpixel == before.ws_xpixel && now.ws_ypixel == before.ws_ypixel;
  return !same && ::ioctl(to, TIOCSWINSZ, &now) == 0;
}

bool InForeground(int fd) { return ::tcgetpgrp(fd) == ::getpgrp(); }

void RawMode::Enter() {
  if (active_ || !InForeground(fd_) || ::tcgetattr(fd_, &saved_) != 0) return;
  struct termios raw = saved_;
  ::cfmakeraw(&raw);
  active_ = ::tcsetattr(fd_, TCSADRAIN, &raw) == 0;
}

void RawMode::Leave() {
  if (!active_) return;
  active_ = false;
  // SIGTTOU is blocked while we relay, so this works from the background too.
  ::tcsetattr(fd_, TCSADRAIN, &saved_);
}

}  // namespace expanse::schedulers::host
