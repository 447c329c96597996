// Files and directories: bounded reads, atomic writes, descriptors that close themselves.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace expanse::base {

// Owns a file descriptor. Movable, closes on destruction.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { Reset(); }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset();

 private:
  int fd_ = -1;
};

// The whole file, or an error: files.too_large above `limit` bytes. Works on /proc and cgroup
// files, whose size says nothing. Follows symbolic links.
Result<std::string> ReadFile(const std::string& path, std::size_t limit = 16U << 20);
// The rest of `fd` from its offset, at most `limit` bytes; files.too_large above it.
Result<std::string> ReadFd(int fd, std::size_t limit);
// All of `data`, whatever short writes and EINTR do.
Status WriteFd(int fd, std::string_view data);
// Like WriteFd, at `offset`.
Status PwriteFd(int fd, std::string_view data, std::int64_t offset);

// Replaces `path` in one step: a temporary file beside it with `mode`, fsync, rename, fsync of the
// directory. A reader sees the old file or the new one, after a power cut too.
Status WriteFileAtomically(const std::string& path, std::string_view data, mode_t mode);
// mkdir -p; existing directories keep their mode, new ones get `mode`.
Status MakeDirectories(const std::string& path, mode_t mode = 0755);
Status FsyncDirectory(const std::string& path);
// Removes a file; a missing one is success.
Status RemoveFile(const std::string& path);
// rm -r without following links; a missing path is success.
Status RemoveTree(const std::string& path);
// Names in a directory, sorted, without . and ..
Result<std::vector<std::string>> ListDirectory(const std::string& path);
bool Exists(const std::string& path);
// "a" + "b" -> "a/b"; an absolute second part is appended too ("root" + "/proc" -> "root/proc").
std::string JoinPath(std::string_view a, std::string_view b);

// A directory of its own under $TMPDIR, removed with all in it on destruction. For tests and tools.
class TempDir {
 public:
  static Result<TempDir> Create(std::string_view prefix = "expanse");
  TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace expanse::base
