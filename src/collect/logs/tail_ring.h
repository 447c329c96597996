// The end of an output stream of any length in bounded memory: the last 64 KiB, how long the stream
// was, and the region around its first error, so that a cause that scrolled away is still there.
// Not thread-safe. Memory: at most about 2 x (tail + context) + the error region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collect/logs/tail_view.h"
#include "evidence/records.h"

namespace expanse::collect {

class TailRing {
 public:
  explicit TailRing(TailOptions options = {}) : options_(options) {}

  // The next bytes of the stream. Cost: a copy, and a scan for error words until one was found.
  void Append(std::string_view bytes);
  // Bytes that were not given to Append (a file of which only the end is read) but count.
  void Skip(std::uint64_t bytes);

  std::uint64_t total_bytes() const { return total_; }

  // As ShowTail has it.
  evidence::LogTail Snapshot(bool final) const;

 private:
  void LookForError(std::string_view bytes);

  TailOptions options_;
  std::string kept_;  // the stream's last bytes, up to twice tail + context
  std::uint64_t total_ = 0;
  std::string carry_;  // the last bytes of the previous Append, for words cut in two
  bool error_seen_ = false;
  std::string error_;  // raw bytes around the first error
  std::uint64_t error_offset_ = 0;
  std::size_t error_wanted_ = 0;  // bytes of error_ still to come
  bool error_cut_ = false;        // error_ begins in the middle of a line
};

}  // namespace expanse::collect
