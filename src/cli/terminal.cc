#include "cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/files.h"
#include "base/text.h"

namespace expanse::cli {
namespace {

constexpr std::size_t kMostLine = 64U << 10;
constexpr std::size_t kFlushAt = 256U << 10;

std::string Variable(const base::Settings::Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

// While it lives, SIGINT ends a wait for input instead of the process with echo switched off. It is
// held back outside of the wait, so that none is lost between the prompt and the wait.
class InterruptibleRead {
 public:
  InterruptibleRead() {
    struct sigaction action{};
    action.sa_handler = [](int) {};  // ppoll() returns EINTR
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before_);
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &mask_before_);
    waiting_ = mask_before_;
    sigdelset(&waiting_, SIGINT);
  }
  ~InterruptibleRead() {
    sigaction(SIGINT, &before_, nullptr);  // one that is pending then does what it did before
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  // True when there is something to read, false when interrupted.
  bool Wait() const {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return ppoll(&input, 1, /*timeout=*/nullptr, &waiting_) > 0;
  }
  InterruptibleRead(const InterruptibleRead&) = delete;
  InterruptibleRead& operator=(const InterruptibleRead&) = delete;

 private:
  struct sigaction before_{};
  sigset_t mask_before_{};
  sigset_t waiting_{};
};

// Echo off while it lives.
class HiddenInput {
 public:
  HiddenInput() {
    active_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!active_) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  }
  ~HiddenInput() {
    if (active_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;

 private:
  bool active_ = false;
  termios before_{};
};

class RealTerminal final : public Terminal {
 public:
  explicit RealTerminal(const base::Settings::Environment& environment)
      : out_is_terminal_(isatty(STDOUT_FILENO) == 1),
        err_is_terminal_(isatty(STDERR_FILENO) == 1),
        can_ask_(isatty(STDIN_FILENO) == 1 && err_is_terminal_),
        colour_(out_is_terminal_ && Variable(environment, "NO_COLOR").empty() &&
                Variable(environment, "TERM") != "dumb"),
        columns_(base::ParseInt<std::size_t>(Variable(environment, "COLUMNS")).value_or(0)) {}
  ~RealTerminal() override { (void)Flush(); }

  void Out(std::string_view text) override {
    buffer_ += text;
    if (buffer_.size() >= kFlushAt) (void)Flush();
  }

  void Err(std::string_view text) override {
    (void)Flush();  // what was said first is seen first
    (void)base::WriteFd(STDERR_FILENO, text);
  }

  base::Status Flush() override {
    if (!buffer_.empty() && status_) {
      if (auto written = base::WriteFd(STDOUT_FILENO, buffer_); !written) {
        status_ = std::unexpected(base::Error{written.error().code, "cli.output",
                                              "writing the result: " + written.error().message});
      }
    }
    buffer_.clear();
    return status_;
  }

  bool OutIsTerminal() const override { return out_is_terminal_; }
  bool ErrIsTerminal() const override { return err_is_terminal_; }
  bool CanAsk() const override { return can_ask_; }
  bool Colour() const override { return colour_; }

  std::size_t Width() const override {
    if (!out_is_terminal_) return 0;
    if (columns_ > 0) return columns_;
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 80;
  }

  base::Result<std::string> AskLine(std::string_view prompt) override {
    const InterruptibleRead interruptible;  // before anybody can answer
    Err(prompt);
    return ReadLine(interruptible);
  }

  base::Result<std::string> AskSecret(std::string_view prompt) override {
    const InterruptibleRead interruptible;
    const HiddenInput hidden;  // before anybody can answer
    Err(prompt);
    auto line = ReadLine(interruptible);
    Err("\n");
    return line;
  }

  base::Result<std::string> ReadInput() override {
    EXPANSE_ASSIGN_OR_RETURN(std::string text, base::ReadFd(STDIN_FILENO, kMostLine));
    return std::string(base::Trim(text));
  }

  base::Result<std::string> ReadBytes(std::size_t limit) override {
    return base::ReadFd(STDIN_FILENO, limit);
  }

 private:
  static base::Result<std::string> ReadLine(const InterruptibleRead& input) {
    std::string line;
    while (line.size() < kMostLine) {
      if (!input.Wait())
        return base::Fail(base::Code::kCancelled, "cli.interrupted", "interrupted");
      char c = 0;
      const ssize_t got = read(STDIN_FILENO, &c, 1);
      if (got < 0 && errno != EINTR) return base::FailErrno(errno, "reading the answer");
      if (got < 0 || (got == 0 && line.empty())) {
        return base::Fail(base::Code::kCancelled, "cli.interrupted", "interrupted");
      }
      if (got == 0 || c == '\n') break;
      line += c;
    }
    return std::string(base::Trim(line));
  }

  bool out_is_terminal_;
  bool err_is_terminal_;
  bool can_ask_;
  bool colour_;
  std::size_t columns_;
  std::string buffer_;
  base::Status status_;
};

}  // namespace

std::unique_ptr<Terminal> ProcessTerminal(const base::Settings::Environment& environment) {
  return std::make_unique<RealTerminal>(environment);
}

}  // namespace expanse::cli
