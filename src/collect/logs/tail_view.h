// How the end of an output stream is shown, wherever its bytes were kept (TailRing) or read again
// (FileTail): cut at lines, without half a secret at either edge, redacted. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "evidence/records.h"

namespace expanse::collect {

struct TailOptions {
  std::size_t tail = 64U << 10;     // bytes that are shown
  std::size_t context = 16U << 10;  // more in front of them, so that a secret is seen whole
  std::size_t error_before = 1U << 10;
  std::size_t error_after = 4U << 10;
};

// Raw bytes around the first error of a stream.
struct ErrorView {
  std::string_view bytes;
  std::uint64_t offset = 0;   // of its first byte in the stream
  bool cut = false;           // begins in the middle of a line
  bool more_follows = false;  // the stream goes on behind them: the last line may be cut
};

struct TailView {
  std::string_view kept;    // the stream's last bytes; best tail + context of them or all
  std::uint64_t total = 0;  // length of the stream
  std::optional<ErrorView> error;
};

// Redacted and safe to write. `final` false: the last, perhaps unfinished line is left out, so that
// half a secret never gets out. The error region is given only where the tail does not show it.
// key and stream are the caller's to set. offset and total_bytes count the bytes of the stream, not
// those of `data` (a mark may be longer or shorter).
evidence::LogTail ShowTail(const TailView& view, const TailOptions& options, bool final);

// Offset of the first word in `text` that announces a failure (error, exception, traceback, fatal,
// killed, out of memory, segmentation fault, panic, assertion failed…), npos if there is none.
// Counts of zero ("0 errors") and similar are not taken for one.
std::size_t FindErrorWord(std::string_view text);

// Looking for error words costs 2 ns a byte; beyond this much output without one it is given up.
inline constexpr std::uint64_t kMaxErrorSearch = 256U << 20;
// Bytes of one piece of a stream to be searched again with the next, for words cut in two.
inline constexpr std::size_t kErrorCarry = 64;

}  // namespace expanse::collect
