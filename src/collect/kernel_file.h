// Files of /proc and cgroups, read again and again: the descriptor stays open, so that a further
// read is one system call. Text helpers for what stands in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"

namespace expanse::collect {

// Bounds how many descriptors the KernelFiles sharing it keep open; beyond it a file is opened for
// each read. Not thread-safe.
class FdBudget {
 public:
  explicit FdBudget(std::size_t limit) : left_(limit) {}
  bool Take() { return left_ > 0 && left_-- > 0; }
  void Return() { ++left_; }

 private:
  std::size_t left_;
};

// Not thread-safe; movable. One reader per file.
class KernelFile {
 public:
  enum class Shape : std::uint8_t {
    kOneRecord,  // the kernel gives all of it to one read(2): cgroup files, /proc/PID/*, /proc/stat
    kManyRecords,  // read until the end: /proc/diskstats, /proc/net/dev
  };
  KernelFile() = default;
  // `budget` may be null (never kept open) and outlives the file.
  KernelFile(std::string path, FdBudget* budget, Shape shape = Shape::kOneRecord)
      : path_(std::move(path)), budget_(budget), shape_(shape) {}
  KernelFile(KernelFile&& other) noexcept;
  KernelFile& operator=(KernelFile&& other) noexcept;
  ~KernelFile() { Close(); }

  // The file's text, in `buffer`, valid until that is used again. kNotFound when the file (or the
  // cgroup or process behind it) is gone, kPermissionDenied where we may not read.
  base::Result<std::string_view> Read(std::string& buffer);
  const std::string& path() const { return path_; }

 private:
  void Close();
  std::string path_;
  FdBudget* budget_ = nullptr;
  Shape shape_ = Shape::kOneRecord;
  base::UniqueFd fd_;
};

// Takes the next line, without its newline, off the front of `text`; false at the end.
bool NextLine(std::string_view& text, std::string_view& line);
// Takes the next word (separated by blanks) off the front of `text`; empty at the end.
std::string_view NextWord(std::string_view& text);
// The next word as a number that is not negative.
std::optional<std::uint64_t> NextNumber(std::string_view& text);
// Whole text of a file with one number; "max" and junk are nothing.
std::optional<std::uint64_t> SingleNumber(std::string_view text);

}  // namespace expanse::collect
