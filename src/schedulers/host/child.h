// Starts the command of a run and follows it until it ends: fork and exec without a shell, signal
// mask and dispositions as `expanse run` got them, the cgroup joined before exec.
//
// Two shapes. Direct: the command is our child in our own process group, so that the terminal's
// signals and the shell's job control reach it as if it were alone. In a session: behind a
// pseudo-terminal it needs one of its own, and a monitor between us and it, because a process group
// whose parent is in another session is orphaned and ^Z would not stop it. The monitor, and with it
// the session, lives until the Child is destroyed here and in every fork of this process.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "schedulers/host/spool_event.h"

namespace expanse::schedulers::host {

struct LaunchSpec {
  std::vector<std::string> argv;
  // What becomes descriptor 0, 1, 2; -1: left as it is.
  std::array<int, 3> streams{-1, -1, -1};
  std::vector<int> join_fds;    // see RunCgroup
  bool must_join = false;       // without all of them the command is not executed
  sigset_t mask{};              // to run under
  bool ignore_sigchld = false;  // as we were started; we ourselves must not, or its end is lost
  int terminal = -1;            // slave of the pseudo-terminal of a session of its own; -1: direct
};

struct ChildStatus {
  bool stopped = false;
  int wait_status = 0;  // of waitpid; meaningful when it ended
  int stop_signal = 0;
  struct rusage usage{};
};

// Not thread-safe. SIGCHLD must be blocked before Launch.
class Child {
 public:
  // exec's errno, where the program could not be executed, is in exec_error(); that of a cgroup
  // which it could not join in join_error().
  static base::Result<Child> Launch(const LaunchSpec& spec);

  pid_t pid() const { return pid_; }
  // Readable when Poll has something (a session only); -1: wait for SIGCHLD instead.
  int event_fd() const { return control_.get(); }
  int exec_error() const { return exec_error_; }
  int join_error() const { return join_error_; }
  const ProcessStamp& stamp() const { return stamp_; }

  // The next thing that happened, if any; never blocks.
  std::optional<ChildStatus> Poll();
  void Signal(int signal) const;
  // SIGCONT, in a session to its whole process group (^Z stopped all of it).
  void Continue() const;
  // True if the command is stopped now, as the kernel sees it.
  bool IsStopped() const;

 private:
  Child() = default;
  pid_t pid_ = 0;
  bool session_ = false;
  bool ended_ = false;
  base::UniqueFd control_;
  int exec_error_ = 0;
  int join_error_ = 0;
  ProcessStamp stamp_;
};

// Pid and start time of a process; start_ticks 0 if it is gone.
ProcessStamp StampOf(pid_t pid, const std::string& proc = "/proc");
// True while the process that was stamped lives (a zombie does not).
bool IsAlive(const ProcessStamp& stamp, const std::string& proc = "/proc");
// `root` and all its descendants, by one look at /proc.
std::vector<pid_t> ProcessTree(pid_t root);
// True if `pid` is `root` or descends from it.
bool DescendsFrom(pid_t pid, pid_t root);

}  // namespace expanse::schedulers::host
