// The real terminal on a pseudo-terminal: what a person sees and what they do not.
#include "cli/terminal.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>

#include "base/files.h"

namespace expanse::cli {
namespace {

// A child on a terminal of its own, 100 columns wide.
class OnTerminal {
 public:
  explicit OnTerminal(const std::function<int(Terminal&)>& body,
                      base::Settings::Environment environment = {}) {
    winsize size{};
    size.ws_col = 100;
    size.ws_row = 24;
    int master = -1;
    child_ = forkpty(&master, nullptr, nullptr, &size);
    if (child_ == 0) {
      int code = 0;
      {
        const auto terminal = ProcessTerminal(environment);
        code = body(*terminal);
        (void)terminal->Flush();
      }
      _exit(code);
    }
    master_ = base::UniqueFd(master);
  }

  // Waits until the screen shows `text`, at most five seconds.
  bool Sees(std::string_view text) {
    while (screen.find(text) == std::string::npos) {
      pollfd entry{.fd = master_.get(), .events = POLLIN, .revents = 0};
      char bytes[256];
      if (poll(&entry, 1, 5000) <= 0) return false;
      const ssize_t got = read(master_.get(), bytes, sizeof bytes);
      if (got <= 0) return false;  // EIO: the child is gone
      screen.append(bytes, static_cast<std::size_t>(got));
    }
    return true;
  }
  void Type(std::string_view text) { ASSERT_TRUE(base::WriteFd(master_.get(), text)); }
  int Wait() {
    (void)Sees("\x01never shown");  // reads to the end
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string screen;

 private:
  pid_t child_ = -1;
  base::UniqueFd master_;
};

TEST(ProcessTerminal, SecretsAreNotEchoed) {
  OnTerminal child([](Terminal& terminal) {
    const auto secret = terminal.AskSecret("Key: ");
    return secret && *secret == "exp_user_typed" ? 0 : 1;
  });
  ASSERT_TRUE(child.Sees("Key: "));
  child.Type("exp_user_typed\n");
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(child.screen.find("exp_user_typed"), std::string::npos) << child.screen;
}

TEST(ProcessTerminal, AnswersAreEchoed) {
  OnTerminal child([](Terminal& terminal) {
    const auto answer = terminal.AskLine("Sure? ");
    return answer && *answer == "yes" ? 0 : 1;
  });
  ASSERT_TRUE(child.Sees("Sure? "));
  child.Type(" yes \n");
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_NE(child.screen.find("yes"), std::string::npos);
}

TEST(ProcessTerminal, InterruptAndEndOfInputCancelAndRestoreEcho) {
  for (const char* key : {"\x03", "\x04"}) {
    OnTerminal child([](Terminal& terminal) {
      const auto secret = terminal.AskSecret("Key: ");
      if (secret || secret.error().code != base::Code::kCancelled) return 1;
      return terminal.AskLine("Again: ") ? 0 : 2;
    });
    ASSERT_TRUE(child.Sees("Key: "));
    child.Type(key);
    ASSERT_TRUE(child.Sees("Again: "));
    child.Type("seen\n");
    EXPECT_EQ(child.Wait(), 0);
    EXPECT_NE(child.screen.find("seen"), std::string::npos) << child.screen;
  }
}

TEST(ProcessTerminal, KnowsItsWidthAndWhetherToColour) {
  const auto report = [](Terminal& terminal) {
    terminal.Out("width " + std::to_string(terminal.Width()) +
                 (terminal.Colour() ? " colour" : " plain") + ".\n");
    return terminal.OutIsTerminal() && terminal.ErrIsTerminal() && terminal.CanAsk() ? 0 : 1;
  };
  const std::pair<base::Settings::Environment, std::string> cases[] = {
      {{}, "width 100 colour."},
      {{{"COLUMNS", "40"}}, "width 40 colour."},
      {{{"NO_COLOR", "1"}}, "width 100 plain."},
      {{{"TERM", "dumb"}}, "width 100 plain."}};
  for (const auto& [environment, expected] : cases) {
    OnTerminal child(report, environment);
    EXPECT_EQ(child.Wait(), 0);
    EXPECT_NE(child.screen.find(expected), std::string::npos) << child.screen;
  }
}

}  // namespace
}  // namespace expanse::cli
