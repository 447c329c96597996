// LineProcess of base/subprocess.h: one reader thread that owns the child.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <thread>

#include "base/child_process.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"

namespace expanse::base {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kKeptErrors = 2048;
constexpr milliseconds kPollWithoutPidfd{200};
constexpr milliseconds kDrainAfterEnd{500};
constexpr milliseconds kGiveUpAfterKill{2000};

class LineReader final : public LineProcess {
 public:
  LineReader(ChildProcess child, UniqueFd wake, std::function<void(std::string_view)> on_line,
             std::size_t max_line)
      : child_(std::move(child)),
        wake_(std::move(wake)),
        on_line_(std::move(on_line)),
        max_line_(max_line),
        thread_([this] { Read(); }) {}
  ~LineReader() override { Stop(milliseconds(2000)); }

  bool running() const override { return running_.load(); }

  std::string EndReason() const override {
    std::scoped_lock lock(mutex_);
    return reason_;
  }

  void Stop(milliseconds grace) override {
    grace_ = grace.count();
    ::eventfd_write(wake_.get(), 1);
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Read() {
    std::optional<SteadyClock::time_point> kill_at;  // set once we were asked to stop
    std::optional<SteadyClock::time_point> ended_at;
    while (true) {
      const auto now = SteadyClock::now();
      if (!ended_at && child_.Reap()) ended_at = now;
      if (ended_at && (!child_.output.valid() || now >= *ended_at + kDrainAfterEnd)) break;
      int wait = -1;
      if (kill_at && now >= *kill_at) child_.Kill(SIGKILL);
      if (kill_at && now >= *kill_at + kGiveUpAfterKill) break;  // stuck in the kernel
      if (kill_at || ended_at || child_.end_fd() < 0) {
        wait = static_cast<int>(kPollWithoutPidfd.count());
        if (kill_at && now < *kill_at) {
          const auto left = std::chrono::ceil<milliseconds>(*kill_at - now).count();
          wait = static_cast<int>(std::min<std::int64_t>(wait, left));
        }
      }
      std::array<pollfd, 4> fds = {{{child_.output.get(), POLLIN, 0},
                                    {child_.errors.get(), POLLIN, 0},
                                    {ended_at ? -1 : child_.end_fd(), POLLIN, 0},
                                    {kill_at ? -1 : wake_.get(), POLLIN, 0}}};
      if (::poll(fds.data(), fds.size(), wait) <= 0) continue;
      if (fds[0].revents != 0) TakeLines();
      if (fds[1].revents != 0) TakeErrors();
      if (fds[3].revents != 0) {
        child_.Kill(SIGTERM);
        kill_at = SteadyClock::now() + milliseconds(grace_.load());
      }
    }
    child_.Kill(SIGKILL);  // whatever it left behind in its group
    Finish();
  }

  void TakeLines() {
    std::string data;
    const ReadOutcome outcome = ReadSome(child_.output.get(), data);
    for (std::string_view rest = data; !rest.empty();) {
      const auto newline = rest.find('\n');
      const std::string_view piece = rest.substr(0, newline);
      line_.append(piece.substr(0, max_line_ - std::min(max_line_, line_.size())));
      if (newline == std::string_view::npos) break;
      on_line_(line_);
      line_.clear();
      rest.remove_prefix(newline + 1);
    }
    if (outcome == ReadOutcome::kClosed) {
      if (!line_.empty()) on_line_(line_);
      line_.clear();
      child_.output.Reset();
    }
  }

  void TakeErrors() {
    if (ReadSome(child_.errors.get(), errors_) == ReadOutcome::kClosed) child_.errors.Reset();
    if (errors_.size() > kKeptErrors) errors_.erase(0, errors_.size() - kKeptErrors);
  }

  void Finish() {
    if (child_.errors.valid()) TakeErrors();
    std::string reason = "does not end when killed";
    if (const auto& end = child_.Reap()) {
      reason = end->signal != 0 ? fmt::format("signal {}", end->signal)
                                : fmt::format("exit {}", end->exit_code);
    }
    if (!Trim(errors_).empty()) reason += ": " + std::string(Trim(errors_));
    {
      std::scoped_lock lock(mutex_);
      reason_ = std::move(reason);
    }
    running_ = false;
  }

  // Used by the reader thread alone.
  ChildProcess child_;
  const UniqueFd wake_;
  const std::function<void(std::string_view)> on_line_;
  const std::size_t max_line_;
  std::string line_;
  std::string errors_;

  std::atomic<std::int64_t> grace_{0};  // milliseconds
  std::atomic<bool> running_{true};
  mutable std::mutex mutex_;  // guards reason_
  std::string reason_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

Result<std::unique_ptr<LineProcess>> LineProcess::Start(
    std::vector<std::string> argv, std::vector<std::string> environment,
    std::function<void(std::string_view)> on_line, std::size_t max_line) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return FailErrno(errno, "eventfd");
  EXPANSE_ASSIGN_OR_RETURN(ChildProcess child,
                           ChildProcess::Start(argv, environment, /*with_input=*/false));
  return std::make_unique<LineReader>(std::move(child), std::move(wake), std::move(on_line),
                                      max_line);
}

}  // namespace expanse::base
