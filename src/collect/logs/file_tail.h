// The end of an output file that somebody else writes, looked at from time to time. Nothing of it
// is kept between two looks but where one was: a file that has not changed costs one fstat, one
// that has costs reading its end again. Not thread-safe; blocks as the file system does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/time.h"
#include "collect/logs/tail_view.h"
#include "evidence/records.h"

namespace expanse::collect {

// What is remembered of a file, about 100 bytes.
struct FileTailState {
  bool seen = false;
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t begin = 0;    // of the stream in the file: what was there before is not its own
  std::uint64_t size = 0;     // of the file at the last look
  std::uint64_t scanned = 0;  // the file was searched for errors up to here
  std::optional<std::uint64_t> error_at;  // offset in the file
  std::int64_t modified_ns = 0;
  std::uint32_t head_sum = 0;  // CRC of the file's first bytes: another file under the same number?
  std::uint16_t head_size = 0;
  bool shown = false;          // size and modified_ns are those of a tail that was given
  bool held_back = false;      // its last line was not given, being unfinished
  std::uint32_t restarts = 0;  // times it was truncated or replaced
};

struct FileTailOptions {
  TailOptions tail;
  std::uint64_t scan_bytes = 1U << 20;  // at most so many are searched for errors in one look
};

// `fd` is a regular file, open for reading; its offset is not used. No tail: nothing has changed
// since the last one. offset and total_bytes of a tail count from state.begin. A file that got
// shorter, was replaced, or begins differently is a new stream from its start. `final` is as in
// ShowTail, and gives the tail also when only the unfinished line was missing, or when there was
// none yet (an empty file). Fails with files.changed when it shrank during the look (look again),
// or the system's error; `state` is then as it was.
base::Result<std::optional<evidence::LogTail>> LookAtFile(int fd, const FileTailOptions& options,
                                                          bool final, FileTailState& state);

// The first look of a stream that began at `started`: what was in the file before is not shown if
// the file was not written since. Only meaningful while `state` has seen nothing.
base::Status SkipOldContents(int fd, base::WallTime started, FileTailState& state);

}  // namespace expanse::collect
