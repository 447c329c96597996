// Programs of others: argv vectors, absolute paths, a scrubbed environment, deadlines, bounded
// output. Never a shell.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::base {

struct ProcessOptions {
  std::vector<std::string> argv;               // argv[0] is an absolute path
  std::vector<std::string> environment;        // "NAME=value"; the whole environment of the child
  std::string input;                           // given on standard input, then closed
  std::chrono::milliseconds deadline{10'000};  // SIGTERM at it, SIGKILL two seconds later
  std::size_t max_output = 8U << 20;           // per stream; the rest is read and dropped
  // Takes standard output as it comes, in pieces of at most 64 KiB, on the calling thread; then
  // nothing of it is kept and max_output bounds standard error alone. False: nothing more is
  // wanted, and the program is ended as at its deadline.
  std::function<bool(std::string_view)> on_output = {};
};

struct ProcessOutcome {
  int exit_code =
      -1;  // -1 when a signal ended it, or when not even SIGKILL did (stuck in the kernel)
  int signal = 0;
  bool timed_out = false;
  bool truncated = false;
  bool cut_short = false;  // on_output wanted no more
  std::string out;
  std::string err;
  std::chrono::microseconds cpu{};  // user + system time it cost
};

// Blocks until the program ended, at most four seconds past the deadline or a stop (which ends it
// the same way). It leads a process group of its own; whatever is left of that is killed, and a
// grandchild that keeps the pipes open is waited for no longer than half a second. Fails only when
// the program could not be started: subprocess.path for one that is not absolute, or the system's
// error.
Result<ProcessOutcome> RunProcess(const ProcessOptions& options, std::stop_token stop = {});

// A program that keeps writing lines (nvidia-smi --loop). Each line, without its newline and at
// most `max_line` bytes of it, goes to `on_line` on the reader's own thread.
class LineProcess {
 public:
  static Result<std::unique_ptr<LineProcess>> Start(std::vector<std::string> argv,
                                                    std::vector<std::string> environment,
                                                    std::function<void(std::string_view)> on_line,
                                                    std::size_t max_line = 64U << 10);
  virtual ~LineProcess() = default;  // Stop()
  virtual bool running() const = 0;
  // Why it ended ("exit 9", "signal 15") and the last bytes of its standard error, once it has.
  virtual std::string EndReason() const = 0;
  // SIGTERM, then SIGKILL after `grace`; joins the reader. Idempotent. Not from `on_line`.
  virtual void Stop(std::chrono::milliseconds grace = std::chrono::seconds(2)) = 0;
};

// The program called `name` in the directories of `path` (a PATH value), as an absolute path.
std::optional<std::string> FindProgram(std::string_view name, std::string_view path);

}  // namespace expanse::base
