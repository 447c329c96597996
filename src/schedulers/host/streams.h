// How the command's standard output and error are handed on: what each of ours is decides it.
#pragma once

#include <cstdint>
#include <string>

#include "collect/logs/tail_ring.h"

namespace expanse::schedulers::host {

enum class StreamMode : std::uint8_t {
  kClosed,       // it was closed, it stays closed
  kPassThrough,  // the command gets ours; nothing is captured
  kFile,         // the command gets ours; the end is read from the file afterwards
  kPipe,         // relayed through a pipe
  kTerminal,     // relayed through a pseudo-terminal
};

struct StreamPlan {
  StreamMode out = StreamMode::kPassThrough;
  StreamMode err = StreamMode::kPassThrough;
  bool joined = false;  // both are the same file: one relay or one tail for both, "combined"
  bool session =
      false;  // input is this terminal too: the command gets a session on a pty of its own
};

StreamPlan PlanStreams(bool capture);

// Opens /dev/null for those of 0, 1, 2 that are closed, close-on-exec, so that no file that we open
// gets their numbers; the command still finds them closed. Call before anything else is opened.
void ReserveStandardStreams();

// A regular file that the command writes to by itself.
class FileTail {
 public:
  // Notes where the run begins in it: at its end if it is appended to, else at the offset.
  FileTail(std::string name, int fd);
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  // The end of what was written since, from at most 4 MiB before it.
  collect::TailRing Read() const;

 private:
  std::string name_;
  int fd_;
  std::string path_;
  std::uint64_t begin_ = 0;
};

}  // namespace expanse::schedulers::host
