#include "schedulers/host/relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace expanse::schedulers::host {
namespace {

constexpr std::size_t kBuffer = 64U << 10;
// POSIX: poll promises room for this much in a pipe, so such a write does not block.
constexpr std::size_t kSmallWrite = 4096;

base::UniqueFd Reopen(int fd, int flags) {
  return base::UniqueFd(::open(fmt::format("/proc/self/fd/{}", fd).c_str(),
                               flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

OutputEnd::OutputEnd(int fd) : fd_(fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return;
  socket_ = S_ISSOCK(info.st_mode);
  if (S_ISFIFO(info.st_mode) || ::isatty(fd) == 1) reopened_ = Reopen(fd, O_WRONLY);
}

ssize_t OutputEnd::Write(std::string_view data) {
  ssize_t put = 0;
  if (socket_) {
    put = ::send(fd_, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } else if (reopened_.valid()) {
    put = ::write(reopened_.get(), data.data(), data.size());
  } else {
    // Asked each time: after one such write there may be no room for the next.
    struct pollfd room{fd_, POLLOUT, 0};
    if (::poll(&room, 1, 0) == 0) return 0;
    put = ::write(fd_, data.data(), std::min(data.size(), kSmallWrite));
  }
  if (put >= 0) return put;
  return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

Relay::Relay(std::string name, base::UniqueFd source, int destination)
    : name_(std::move(name)),
      source_(std::move(source)),
      destination_(destination),
      buffer_(kBuffer, '\0') {}

void Relay::AddPoll(std::vector<struct pollfd>& fds) {
  first_poll_ = fds.size();
  const bool full = !pending().empty();
  // With nothing to write, the destination is watched for its reader's going.
  if (open()) fds.push_back({destination_.poll_fd(), static_cast<short>(full ? POLLOUT : 0), 0});
  if (source_.valid() && !full) fds.push_back({source_.get(), POLLIN, 0});
}

void Relay::OnPoll(const std::vector<struct pollfd>& fds) {
  if (!open()) return;
  const bool full = !pending().empty();
  const short destination = fds[first_poll_].revents;
  idle_ = true;
  if (!full && (destination & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
    source_.Reset();
    return;
  }
  if (full) {
    idle_ = false;
    if (destination != 0) Pass();
    return;
  }
  if (source_.valid() && fds[first_poll_ + 1].revents != 0) {
    idle_ = false;
    Read();
    Pass();
  }
}

void Relay::Read() {
  begin_ = end_ = 0;
  const ssize_t got = ::read(source_.get(), buffer_.data(), buffer_.size());
  if (got > 0) {
    end_ = static_cast<std::size_t>(got);
    tail_.Append(pending());
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    source_.Reset();  // EIO: nobody has the pseudo-terminal open any more
  }
}

void Relay::Pass() {
  while (!pending().empty()) {
    const ssize_t put = destination_.Write(pending());
    if (put == 0) return;
    if (put < 0) {
      begin_ = end_ = 0;
      source_.Reset();
      return;
    }
    begin_ += static_cast<std::size_t>(put);
  }
}

InputRelay::InputRelay(int terminal, int master)
    : terminal_(terminal), master_(master), reopened_(Reopen(terminal, O_RDONLY)) {}

void InputRelay::AddPoll(std::vector<struct pollfd>& fds, bool listen) {
  first_poll_ = fds.size();
  const bool read = listen && !ended_ && pending_.empty();
  fds.push_back({read ? (reopened_.valid() ? reopened_.get() : terminal_) : -1, POLLIN, 0});
  fds.push_back({pending_.empty() ? -1 : master_, POLLOUT, 0});
}

void InputRelay::OnPoll(const std::vector<struct pollfd>& fds) {
  if (fds[first_poll_].revents != 0) {
    std::array<char, 1024> buffer{};
    const ssize_t got = ::read(fds[first_poll_].fd, buffer.data(), buffer.size());
    if (got > 0) {
      pending_.assign(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      ended_ = true;
    }
  }
  if (pending_.empty()) return;
  const ssize_t put = ::write(master_, pending_.data(), pending_.size());
  if (put > 0) {
    pending_.erase(0, static_cast<std::size_t>(put));
  } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
    pending_.clear();
    ended_ = true;
  }
}

}  // namespace expanse::schedulers::host
