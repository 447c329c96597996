#include "base/subprocess.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/child_process.h"
#include "base/files.h"
#include "base/text.h"

namespace expanse::base {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kKillAfter{2000};     // between SIGTERM and SIGKILL
constexpr milliseconds kDrainAfterEnd{500};  // for grandchildren that still hold the pipes
constexpr milliseconds kPollWithoutPidfd{20};

// The loop behind RunProcess: feeds input, collects output, enforces the deadline.
class Run {
 public:
  Run(ChildProcess child, const ProcessOptions& options, int stop_fd)
      : child_(std::move(child)), options_(options), stop_fd_(stop_fd), left_(options.input) {
    term_at_ = SteadyClock::now() + options.deadline;
    if (left_.empty()) child_.input.Reset();
  }

  ProcessOutcome Finish() {
    while (!Done()) {
      Enforce();
      Wait();
      if (!ended_at_ && child_.Reap()) ended_at_ = SteadyClock::now();
    }
    child_.Kill(SIGKILL);  // whatever the program left behind in its group
    if (const auto& end = child_.Reap()) {
      outcome_.exit_code = end->exit_code;
      outcome_.signal = end->signal;
      outcome_.cpu = end->cpu;
    }
    return std::move(outcome_);
  }

 private:
  bool Done() const {
    if (!ended_at_) return killed_ && SteadyClock::now() >= *kill_at_;
    if (!child_.output.valid() && !child_.errors.valid()) return true;
    return SteadyClock::now() >= *ended_at_ + kDrainAfterEnd;
  }

  void Enforce() {
    const auto now = SteadyClock::now();
    if (ended_at_) return;
    if (!kill_at_ && (now >= term_at_ || stopped_ || outcome_.cut_short)) {
      outcome_.timed_out = !stopped_ && !outcome_.cut_short;
      child_.Kill(SIGTERM);
      kill_at_ = now + kKillAfter;
    } else if (kill_at_ && !killed_ && now >= *kill_at_) {
      child_.Kill(SIGKILL);
      killed_ = true;
      kill_at_ = now + kKillAfter;  // a process stuck in the kernel is given up then
    }
  }

  milliseconds Patience() const {
    const auto now = SteadyClock::now();
    const auto until = ended_at_ ? *ended_at_ + kDrainAfterEnd : kill_at_.value_or(term_at_);
    auto wait = std::chrono::ceil<milliseconds>(until - now);
    if (!ended_at_ && child_.end_fd() < 0) wait = std::min(wait, kPollWithoutPidfd);
    return std::clamp(wait, milliseconds(0), milliseconds(60'000));
  }

  void Wait() {
    enum { kOut, kErr, kIn, kEnd, kStop };
    std::array<pollfd, 5> fds = {{{child_.output.get(), POLLIN, 0},
                                  {child_.errors.get(), POLLIN, 0},
                                  {child_.input.get(), POLLOUT, 0},
                                  {ended_at_ ? -1 : child_.end_fd(), POLLIN, 0},
                                  {stopped_ ? -1 : stop_fd_, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), static_cast<int>(Patience().count())) <= 0) return;
    if (fds[kStop].revents != 0) stopped_ = true;
    if (fds[kIn].revents != 0) Feed();
    if (fds[kOut].revents != 0) {
      if (options_.on_output) {
        Pass(child_.output);
      } else {
        Take(child_.output, outcome_.out);
      }
    }
    if (fds[kErr].revents != 0) Take(child_.errors, outcome_.err);
  }

  void Feed() {
    const PipeSignalGuard guard;
    const ssize_t put = ::write(child_.input.get(), left_.data(), left_.size());
    if (put > 0) left_.remove_prefix(static_cast<std::size_t>(put));
    const bool broken = put < 0 && errno != EAGAIN && errno != EINTR;
    if (left_.empty() || broken) child_.input.Reset();
  }

  void Take(UniqueFd& fd, std::string& into) {
    if (ReadSome(fd.get(), into) == ReadOutcome::kClosed) fd.Reset();
    if (into.size() > options_.max_output) {
      into.resize(options_.max_output);
      outcome_.truncated = true;
    }
  }

  void Pass(UniqueFd& fd) {
    piece_.clear();
    if (ReadSome(fd.get(), piece_) == ReadOutcome::kClosed) fd.Reset();
    if (piece_.empty() || outcome_.cut_short) return;
    outcome_.cut_short = !options_.on_output(piece_);
  }

  ChildProcess child_;
  const ProcessOptions& options_;
  const int stop_fd_;
  std::string piece_;      // for on_output
  std::string_view left_;  // of the input
  ProcessOutcome outcome_;
  SteadyClock::time_point term_at_;
  std::optional<SteadyClock::time_point> kill_at_;   // set once SIGTERM was sent
  std::optional<SteadyClock::time_point> ended_at_;  // set once the child itself has ended
  bool stopped_ = false;
  bool killed_ = false;
};

}  // namespace

Result<ProcessOutcome> RunProcess(const ProcessOptions& options, std::stop_token stop) {
  const UniqueFd stop_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_fd.valid()) return FailErrno(errno, "eventfd");
  EXPANSE_ASSIGN_OR_RETURN(
      ChildProcess child,
      ChildProcess::Start(options.argv, options.environment, !options.input.empty()));
  const std::stop_callback wake(stop, [&] { ::eventfd_write(stop_fd.get(), 1); });
  return Run(std::move(child), options, stop_fd.get()).Finish();
}

std::optional<std::string> FindProgram(std::string_view name, std::string_view path) {
  if (name.empty() || name.find('/') != std::string_view::npos) return std::nullopt;
  for (std::string_view directory : Split(path, ':')) {
    if (!directory.starts_with('/')) continue;  // a relative entry would depend on where we run
    std::string candidate = JoinPath(directory, name);
    struct stat info{};
    if (::stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return std::nullopt;
}

}  // namespace expanse::base
