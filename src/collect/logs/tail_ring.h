// The end of an output stream of any length in bounded memory: the last 64 KiB, how long the stream
// was, and the region around its first error, so that a cause that scrolled away is still there.
// Not thread-safe. Memory: at most about 2 x (tail + context) + the error region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "evidence/records.h"

namespace expanse::collect {

struct TailOptions {
  std::size_t tail = 64U << 10;     // bytes that a snapshot gives
  std::size_t context = 16U << 10;  // more of them kept in front, so that a secret is seen whole
  std::size_t error_before = 1U << 10;
  std::size_t error_after = 4U << 10;
};

class TailRing {
 public:
  explicit TailRing(TailOptions options = {}) : options_(options) {}

  // The next bytes of the stream. Cost: a copy, and a scan for error words until one was found.
  void Append(std::string_view bytes);
  // Bytes that were not given to Append (a file of which only the end is read) but count.
  void Skip(std::uint64_t bytes);

  std::uint64_t total_bytes() const { return total_; }

  // Redacted and safe to write. `final` false: the last, perhaps unfinished line is left out, so
  // that half a secret never gets out. key and stream are the caller's to set. offset and
  // total_bytes count the bytes of the stream, not those of `data` (a mark may be longer or
  // shorter).
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

// Offset of the first word in `text` that announces a failure (error, exception, traceback, fatal,
// killed, out of memory, segmentation fault, panic, assertion failed…), npos if there is none.
// Counts of zero ("0 errors") and similar are not taken for one.
std::size_t FindErrorWord(std::string_view text);

}  // namespace expanse::collect
