#include "schedulers/host/streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/files.h"
#include "schedulers/host/terminal.h"

namespace expanse::schedulers::host {
namespace {

constexpr std::uint64_t kMaxFileRead = 4U << 20;

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_rdev == b.st_rdev;
}

bool IsReserved(int fd) { return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; }

StreamMode ModeOf(int fd, bool capture) {
  struct stat info{};
  if (::fstat(fd, &info) != 0 || IsReserved(fd)) return StreamMode::kClosed;
  if (!capture) return StreamMode::kPassThrough;
  if (S_ISREG(info.st_mode)) return StreamMode::kFile;
  if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) return StreamMode::kPipe;
  if (::isatty(fd) == 1) return StreamMode::kTerminal;
  const bool null = S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
  return null ? StreamMode::kPipe : StreamMode::kPassThrough;
}

}  // namespace

StreamPlan PlanStreams(bool capture) {
  StreamPlan plan{.out = ModeOf(1, capture), .err = ModeOf(2, capture)};
  struct stat in{};
  struct stat out{};
  struct stat err{};
  ::fstat(0, &in);
  ::fstat(1, &out);
  ::fstat(2, &err);
  plan.joined = plan.out == plan.err && plan.out >= StreamMode::kFile && SameFile(out, err);
  // Only when the whole conversation is with one terminal: with a pipe on one side somebody else
  // (less) may be reading the keyboard, and the command stays in our session.
  plan.session = plan.out == StreamMode::kTerminal && ::isatty(0) == 1 && SameFile(in, out) &&
                 (plan.err != StreamMode::kTerminal || SameFile(out, err)) && InForeground(0);
  return plan;
}

void ReserveStandardStreams() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int got = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (got >= 0 && got != fd) ::close(got);  // cannot be: the lowest free number is given
  }
}

FileTail::FileTail(std::string name, int fd) : name_(std::move(name)), fd_(fd) {
  std::array<char, 4096> path{};
  const ssize_t size =
      ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path.data(), path.size());
  if (size > 0) path_.assign(path.data(), static_cast<std::size_t>(size));
  struct stat info{};
  if (::fstat(fd, &info) != 0) return;
  const bool append = (::fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const off_t offset = append ? info.st_size : ::lseek(fd, 0, SEEK_CUR);
  begin_ = offset > 0 ? static_cast<std::uint64_t>(offset) : 0;
}

collect::TailRing FileTail::Read() const {
  collect::TailRing tail;
  base::UniqueFd file(
      ::open(fmt::format("/proc/self/fd/{}", fd_).c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return tail;
  const auto size = static_cast<std::uint64_t>(std::max<off_t>(info.st_size, 0));
  const std::uint64_t begin = std::min(begin_, size);  // it may have been truncated meanwhile
  const std::uint64_t from = size - begin > kMaxFileRead ? size - kMaxFileRead : begin;
  tail.Skip(from - begin);
  std::array<char, 65536> buffer{};
  for (std::uint64_t at = from; at < size;) {
    const std::size_t want = std::min<std::uint64_t>(buffer.size(), size - at);
    const ssize_t got = ::pread(file.get(), buffer.data(), want, static_cast<off_t>(at));
    if (got <= 0) break;
    tail.Append(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    at += static_cast<std::uint64_t>(got);
  }
  return tail;
}

}  // namespace expanse::schedulers::host
