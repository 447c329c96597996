// `expanse run` on a terminal: the test plays the terminal and, with a real shell, the user at it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <thread>

#include "schedulers/host/run_testing.h"

namespace expanse::schedulers::host {
namespace {

using evidence::ExecutionStatus;
using testing::HasSubstr;

// A terminal of the test's own: what is written to `fd` is typed, what is read was shown.
class TerminalTest : public RunTest {
 protected:
  pid_t Open(const Words& argv) {
    struct winsize size{.ws_row = 33, .ws_col = 101, .ws_xpixel = 0, .ws_ypixel = 0};
    int master = -1;
    const pid_t pid = ::forkpty(&master, nullptr, nullptr, &size);
    if (pid == 0) {
      ::setenv("PS1", "$ ", 1);
      ::unsetenv("ENV");
      Exec(argv);
    }
    ::fcntl(master, F_SETFD, FD_CLOEXEC);
    terminal_ = base::UniqueFd(master);
    return pid;
  }
  void Type(std::string_view text) { ASSERT_TRUE(base::WriteFd(terminal_.get(), text)); }
  std::string Show(std::string_view marker = "", milliseconds patience = milliseconds(10'000)) {
    return ReadUntil(terminal_.get(), marker, patience);
  }
  tcflag_t LocalModes() {
    struct termios modes{};
    ::tcgetattr(terminal_.get(), &modes);
    return modes.c_lflag;
  }
  base::UniqueFd terminal_;
};

TEST_F(TerminalTest, GivesTheCommandATerminalOfTheSameSize) {
  const pid_t alone = Open({kChild, "describe"});
  const std::string expected = Show();
  WaitFor(alone);
  const pid_t pid = Open(Argv({kChild, "describe"}));
  EXPECT_EQ(Show(), expected);
  EXPECT_EQ(WaitFor(pid), 0);
  for (const char* line : {"fd 0 tty", "fd 1 tty", "fd 2 tty", "size 101x33", "foreground 1"}) {
    EXPECT_THAT(expected, HasSubstr(line));
  }
  EXPECT_THAT(Tail("combined"), HasSubstr("size 101x33"));
}

TEST_F(TerminalTest, LetsControlCReachTheCommandAndRestoresTheTerminal) {
  const pid_t pid = Open(Argv({kChild, "signals", "1"}));
  const tcflag_t before = LocalModes();
  Show("ready");
  EXPECT_EQ(LocalModes() & (ICANON | ECHO | ISIG), 0U);
  Type("\x03");
  EXPECT_THAT(Show("got"), HasSubstr("got INT"));
  EXPECT_EQ(WaitFor(pid), 0);
  EXPECT_EQ(LocalModes(), before);
}

TEST_F(TerminalTest, EndsByControlCAsCancelled) {
  const pid_t pid = Open(Argv({"sh", "-c", "echo ready; exec sleep 60"}));
  Show("ready");
  Type("\x03");
  EXPECT_EQ(WEXITSTATUS(WaitFor(pid)), 130);
  EXPECT_EQ(Recorded().status, ExecutionStatus::kCancelled);
}

TEST_F(TerminalTest, TellsTheCommandThatTheWindowChanged) {
  const pid_t pid = Open(Argv({kChild, "signals", "1"}));
  Show("ready");
  struct winsize size{.ws_row = 20, .ws_col = 70, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(terminal_.get(), TIOCSWINSZ, &size);
  EXPECT_THAT(Show("x20"), HasSubstr("got WINCH 70x20"));
  EXPECT_EQ(WaitFor(pid), 0);
}

TEST_F(TerminalTest, GivesTypedInputOn) {
  const pid_t pid = Open(Argv({kChild, "cat"}));
  while ((LocalModes() & ICANON) != 0) std::this_thread::sleep_for(milliseconds(5));
  Type("hello\n\x04");
  const std::string shown = Show();
  EXPECT_EQ(WaitFor(pid), 0);
  EXPECT_EQ(shown, "hello\r\nhello\r\n");  // the echo and the answer
}

TEST_F(TerminalTest, StopsAndContinuesLikeAJob) {
  std::string line;
  // Builtins only: dash starts programs by vfork, and a ^Z between vfork and exec stops the child
  // while its parent, waiting in the kernel, cannot stop (with or without us around it).
  for (const std::string& word : Argv({"sh", "-c", "echo begun; read x; echo got $x; exit 6"})) {
    line += "'" + word + "' ";
  }
  const pid_t shell = Open({"/bin/sh", "-i"});
  Show("$ ");
  Type(line + "\n");
  Show("begun\r\n");
  Type("\x1a");
  EXPECT_THAT(Show("Stopped"), HasSubstr("Stopped"));
  EXPECT_NE(LocalModes() & ICANON, 0U);  // the shell has its terminal back
  Type("echo between\n");
  EXPECT_THAT(Show("between\r\n$"), HasSubstr("between"));
  Type("fg\n");
  std::this_thread::sleep_for(milliseconds(500));
  Type("word\n");
  EXPECT_THAT(Show("got word"), HasSubstr("got word"));
  Show("$ ");
  Type("echo code=$?\n");
  EXPECT_THAT(Show("code=6"), HasSubstr("code=6"));
  Type("exit\n");
  Show();
  WaitFor(shell);
}

TEST_F(TerminalTest, StopsInTheOutputOnlyShapeToo) {
  std::string line;
  for (const std::string& word : Argv({kChild, "stop"})) line += "'" + word + "' ";
  const pid_t shell = Open({"/bin/sh", "-i"});
  Show("$ ");
  Type(line + "</dev/null\n");
  EXPECT_THAT(Show("Stopped"), HasSubstr("Stopped"));
  Type("fg\n");
  EXPECT_THAT(Show("resumed"), HasSubstr("resumed"));
  Type("exit\n");
  Show();
  WaitFor(shell);
}

TEST_F(TerminalTest, LeavesTheKeyboardToOthersWhenOutputIsAPipe) {
  std::string line;
  for (const std::string& word : Argv({kChild, "describe"})) line += "'" + word + "' ";
  const pid_t shell = Open({"/bin/sh", "-i"});
  Show("$ ");
  Type(line + "| cat\n");
  const std::string shown = Show("foreground 1");
  EXPECT_THAT(shown, HasSubstr("fd 0 tty"));
  EXPECT_THAT(shown, HasSubstr("fd 1 open"));
  EXPECT_THAT(shown, HasSubstr("fd 2 tty"));
  Type("exit\n");
  Show();
  WaitFor(shell);
}

TEST_F(TerminalTest, CapturesNothingWhenAsked) {
  const pid_t pid = Open(Argv({"sh", "-c", "echo hi"}, {"--no-capture"}));
  EXPECT_EQ(Show(), "hi\r\n");
  EXPECT_EQ(WaitFor(pid), 0);
  EXPECT_EQ(Tail("combined"), "(none)");
}

}  // namespace
}  // namespace expanse::schedulers::host
