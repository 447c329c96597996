// Moves bytes of one output stream from the command to where they were meant to go, unchanged and
// with back-pressure, and keeps their end. Reads only when the last piece has been passed on, so a
// slow reader slows the command as it would alone. When the reader has gone, the command's end is
// closed and it gets its SIGPIPE or EPIPE.
#pragma once

#include <poll.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "collect/logs/tail_ring.h"

namespace expanse::schedulers::host {

// A descriptor of ours that writes to what `fd` refers to and never blocks, without changing the
// file description that we share with others. Not thread-safe.
class OutputEnd {
 public:
  explicit OutputEnd(int fd);
  int poll_fd() const { return reopened_.valid() ? reopened_.get() : fd_; }
  // Bytes written (0: not now), or -1 when it can never be written to again.
  ssize_t Write(std::string_view data);

 private:
  int fd_;
  base::UniqueFd reopened_;
  bool socket_ = false;
};

class Relay {
 public:
  // `source` is non-blocking. `name`: "stdout", "stderr" or "combined".
  Relay(std::string name, base::UniqueFd source, int destination);

  // Adds what to wait for to `fds`, and takes what poll answered: `fds` from where AddPoll began.
  void AddPoll(std::vector<struct pollfd>& fds);
  void OnPoll(const std::vector<struct pollfd>& fds);

  bool open() const { return source_.valid() || !pending().empty(); }
  // Nothing came at the last look and nothing waits to be passed on.
  bool idle() const { return idle_ && pending().empty(); }
  const std::string& name() const { return name_; }
  const collect::TailRing& tail() const { return tail_; }

 private:
  std::string_view pending() const {
    return std::string_view(buffer_).substr(begin_, end_ - begin_);
  }
  void Read();
  void Pass();

  std::string name_;
  base::UniqueFd source_;
  OutputEnd destination_;
  collect::TailRing tail_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool idle_ = false;
  std::size_t first_poll_ = 0;
};

// Keyboard input from the terminal to the master of a pseudo-terminal.
class InputRelay {
 public:
  InputRelay(int terminal, int master);
  // `listen`: we may read from the terminal now (foreground, raw).
  void AddPoll(std::vector<struct pollfd>& fds, bool listen);
  void OnPoll(const std::vector<struct pollfd>& fds);

 private:
  int terminal_;
  int master_;
  base::UniqueFd reopened_;
  bool ended_ = false;
  std::string pending_;
  std::size_t first_poll_ = 0;
};

}  // namespace expanse::schedulers::host
