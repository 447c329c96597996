// A started program with pipes to it: what RunProcess and LineProcess are made of. Not for others;
// use base/subprocess.h.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace expanse::base {

// How a child ended, as wait4(2) tells it.
struct ChildEnd {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  std::chrono::microseconds cpu{};  // user + system
};

// One child in a process group of its own. Not thread-safe. The destructor kills it
// and waits for its end, a second at most.
class ChildProcess {
 public:
  // argv[0] must be absolute; all signals are at their defaults in the child, and it inherits
  // nothing but the three pipes. Without `with_input` its standard input is /dev/null. Our ends do
  // not block. Fails with subprocess.path or the error of the system call.
  static Result<ChildProcess> Start(const std::vector<std::string>& argv,
                                    const std::vector<std::string>& environment, bool with_input);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  UniqueFd input;
  UniqueFd output;
  UniqueFd errors;

  // Becomes readable when the child ended; -1 on kernels without pidfd_open (before 5.3), where the
  // caller has to ask Reap() every now and then.
  int end_fd() const { return pidfd_.get(); }
  // Non-blocking; the end once there is one (and from then on).
  const std::optional<ChildEnd>& Reap();
  // To the whole process group, also after the child itself has ended.
  void Kill(int signal) const;

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<ChildEnd> end_;
};

// What one non-blocking read found.
enum class ReadOutcome { kData, kNothingNow, kClosed };
// Appends to `buffer`, at most 64 KiB a call.
ReadOutcome ReadSome(int fd, std::string& buffer);

// Keeps SIGPIPE from the calling thread while it lives: a write to a child that closed its input
// then fails with EPIPE instead of killing us.
class PipeSignalGuard {
 public:
  PipeSignalGuard();
  ~PipeSignalGuard();
  PipeSignalGuard(const PipeSignalGuard&) = delete;
  PipeSignalGuard& operator=(const PipeSignalGuard&) = delete;

 private:
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace expanse::base
