#include "collect/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"

namespace expanse::collect {
namespace {

constexpr std::size_t kFirstBuffer = 8U << 10;
constexpr std::size_t kMostText = 4U << 20;  // far above what any of these files can be

// Reads from offset 0 into `buffer`; its capacity is kept between calls. Negative: -errno.
ssize_t ReadText(int fd, bool until_end, std::string& buffer) {
  if (buffer.size() < kFirstBuffer) buffer.resize(std::max(buffer.capacity(), kFirstBuffer));
  std::size_t used = 0;
  while (true) {
    const ssize_t got =
        ::pread(fd, buffer.data() + used, buffer.size() - used, static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    used += static_cast<std::size_t>(got);
    const bool full = used == buffer.size();
    if (got == 0 || (!until_end && !full) || used >= kMostText) return static_cast<ssize_t>(used);
    if (full) buffer.resize(buffer.size() * 2);
  }
}

}  // namespace

KernelFile::KernelFile(KernelFile&& other) noexcept
    : path_(std::move(other.path_)),
      budget_(other.budget_),
      shape_(other.shape_),
      fd_(std::move(other.fd_)) {}

KernelFile& KernelFile::operator=(KernelFile&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  budget_ = other.budget_;
  shape_ = other.shape_;
  fd_ = std::move(other.fd_);
  return *this;
}

void KernelFile::Close() {
  if (fd_.valid() && budget_ != nullptr) budget_->Return();
  fd_.Reset();
}

base::Result<std::string_view> KernelFile::Read(std::string& buffer) {
  base::UniqueFd opened;
  int fd = fd_.get();
  if (fd < 0) {
    opened = base::UniqueFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened.valid()) return base::FailErrno(errno, "open " + path_);
    fd = opened.get();
  }
  const ssize_t got = ReadText(fd, shape_ == Shape::kManyRecords, buffer);
  if (got < 0) {
    Close();
    return base::FailErrno(static_cast<int>(-got), "read " + path_);
  }
  if (opened.valid() && budget_ != nullptr && budget_->Take()) fd_ = std::move(opened);
  return std::string_view(buffer.data(), static_cast<std::size_t>(got));
}

bool NextLine(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const auto end = text.find('\n');
  line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return true;
}

std::string_view NextWord(std::string_view& text) {
  std::size_t start = 0;
  while (start < text.size() && base::IsSpace(text[start])) ++start;
  std::size_t end = start;
  while (end < text.size() && !base::IsSpace(text[end])) ++end;
  const std::string_view word = text.substr(start, end - start);
  text.remove_prefix(end);
  return word;
}

std::optional<std::uint64_t> NextNumber(std::string_view& text) {
  return base::ParseInt<std::uint64_t>(NextWord(text));
}

std::optional<std::uint64_t> SingleNumber(std::string_view text) {
  return base::ParseInt<std::uint64_t>(base::Trim(text));
}

}  // namespace expanse::collect
