// Replaces the text of a file that a user keeps, so that it stays the file it was: mode, owner,
// access lists, symbolic and hard links.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::cli {

// A file as it was read.
struct ReadFileState {
  std::string text;
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t changed_nanos = 0;  // mtime
};

// Regular files only (links are followed), at most `limit` bytes. Fails with files.not_found,
// files.not_regular, files.too_large or the system's error.
base::Result<ReadFileState> ReadForRewrite(const std::string& path, std::size_t limit);

// Puts `text` in the place of what was read. In one step, by a file beside it that takes the name;
// where that would lose something (other hard links, an owner or attributes that this user may not
// give) the file itself is written over. Fails with file.changed (aborted) when it is not as it was
// read any more, or the system's error; the file is then as it was, unless writing over it failed
// midway (file.torn, data_loss; the message names a copy of what was read).
base::Status RewriteFile(const std::string& path, const ReadFileState& read, std::string_view text);

}  // namespace expanse::cli
