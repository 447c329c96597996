#include "schedulers/host/child.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace expanse::schedulers::host {
namespace {

// From the monitor to us, over a socket pair; one message per event.
struct MonitorMessage {
  pid_t pid = 0;
  int wait_status = 0;
  struct rusage usage{};
};

// Everything below runs between fork and exec: system calls only, no memory is allocated.

[[noreturn]] void ExecuteCommand(const LaunchSpec& spec, char* const* argv, int report) {
  for (int fd : spec.join_fds) {
    if (::write(fd, "0", 1) == 1) continue;
    const int refused = -errno;  // what exec says is positive
    (void)!::write(report, &refused, sizeof refused);
    if (spec.must_join) ::_exit(126);
  }
  for (int target = 0; target < 3; ++target) {
    const int source = spec.streams[static_cast<std::size_t>(target)];
    if (source >= 0 && ::dup2(source, target) < 0) ::_exit(126);
  }
  if (spec.ignore_sigchld) ::signal(SIGCHLD, SIG_IGN);
  ::sigprocmask(SIG_SETMASK, &spec.mask, nullptr);
  ::execvp(argv[0], argv);
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(error == ENOENT ? 127 : 126);
}

void KeepOnly(int fd) {
  // Whatever else we hold open could keep the other end of somebody's pipe waiting.
  if (fd != 3) ::dup2(fd, 3);
  ::close_range(4, ~0U, 0);
  for (int target = 0; target < 3; ++target) ::close(target);
}

[[noreturn]] void Monitor(const LaunchSpec& spec, char* const* argv, int report, int control) {
  ::setsid();
  ::ioctl(spec.terminal, TIOCSCTTY, 0);
  const pid_t command = ::fork();
  if (command == 0) {
    ::setpgid(0, 0);
    ::tcsetpgrp(spec.terminal, ::getpid());  // SIGTTOU is blocked here
    ExecuteCommand(spec, argv, report);
  }
  MonitorMessage message{.pid = command};
  if (command < 0) ::_exit(126);
  ::setpgid(command, command);
  (void)!::write(control, &message, sizeof message);
  KeepOnly(control);
  for (int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE}) {
    ::signal(signal, SIG_IGN);
  }
  while (true) {
    const pid_t got = ::wait4(command, &message.wait_status, WUNTRACED, &message.usage);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    (void)!::write(3, &message, sizeof message);
    if (!WIFSTOPPED(message.wait_status)) break;
  }
  // The session ends with us; what the command left in the background would get a SIGHUP.
  char byte = 0;
  while (::read(3, &byte, 1) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

base::Result<MonitorMessage> ReadMessage(int fd, int flags) {
  MonitorMessage message;
  ssize_t got = 0;
  do {
    got = ::recv(fd, &message, sizeof message, flags);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof message)) return message;
  return base::FailErrno(got == 0 ? EPIPE : errno, "monitor");
}

}  // namespace

base::Result<Child> Child::Launch(const LaunchSpec& spec) {
  std::vector<char*> argv;
  for (const std::string& argument : spec.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return base::FailErrno(errno, "pipe");
  base::UniqueFd report_read(report[0]);
  base::UniqueFd report_write(report[1]);
  base::UniqueFd control_ours;
  base::UniqueFd control_theirs;
  if (spec.terminal >= 0) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      return base::FailErrno(errno, "socketpair");
    control_ours = base::UniqueFd(pair[0]);
    control_theirs = base::UniqueFd(pair[1]);
  }
  const pid_t forked = ::fork();
  if (forked < 0) return base::FailErrno(errno, "fork");
  if (forked == 0) {
    if (spec.terminal >= 0) Monitor(spec, argv.data(), report_write.get(), control_theirs.get());
    ExecuteCommand(spec, argv.data(), report_write.get());
  }
  report_write.Reset();
  control_theirs.Reset();
  Child child;
  child.pid_ = forked;
  if (spec.terminal >= 0) {
    child.session_ = true;
    EXPANSE_ASSIGN_OR_RETURN(MonitorMessage first, ReadMessage(control_ours.get(), 0));
    child.pid_ = first.pid;
    child.control_ = std::move(control_ours);
  }
  // Ends at exec; before that the errors of joining and of exec.
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(report_read.get(), &error, sizeof error)) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof error)) break;
    (error < 0 ? child.join_error_ : child.exec_error_) = std::abs(error);
  }
  if (spec.must_join && child.join_error_ != 0) {
    if (!child.session_) ::waitpid(child.pid_, nullptr, 0);  // it left before exec
    return base::FailErrno(child.join_error_, "joining its cgroup");
  }
  child.stamp_ = StampOf(child.pid_);
  return child;
}

std::optional<ChildStatus> Child::Poll() {
  if (ended_) return std::nullopt;
  ChildStatus status;
  if (session_) {
    auto message = ReadMessage(control_.get(), MSG_DONTWAIT);
    if (!message) {
      if (message.error().reason != "os.EPIPE") return std::nullopt;
      status.wait_status = SIGKILL;  // the monitor was killed; its command has lost its terminal
    } else {
      status.wait_status = message->wait_status;
      status.usage = message->usage;
    }
  } else {
    const pid_t got = ::wait4(pid_, &status.wait_status, WNOHANG | WUNTRACED, &status.usage);
    if (got <= 0) return std::nullopt;
  }
  if (WIFSTOPPED(status.wait_status)) {
    status.stopped = true;
    status.stop_signal = WSTOPSIG(status.wait_status);
  } else {
    ended_ = true;
  }
  return status;
}

void Child::Signal(int signal) const {
  if (!ended_) ::kill(pid_, signal);
}

void Child::Continue() const {
  if (!ended_) ::kill(session_ ? -pid_ : pid_, SIGCONT);
}

}  // namespace expanse::schedulers::host
