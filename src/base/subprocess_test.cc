#include "base/subprocess.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/files.h"

namespace expanse::base {
namespace {

using namespace std::chrono_literals;

ProcessOptions Shell(std::string script) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", std::move(script)};
  options.environment = {"PATH=/usr/bin:/bin"};
  return options;
}

TEST(RunProcess, GivesOutputErrorsAndExitCode) {
  const auto outcome = RunProcess(Shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->out, "out\n");
  EXPECT_EQ(outcome->err, "err\n");
  EXPECT_EQ(outcome->exit_code, 3);
  EXPECT_EQ(outcome->signal, 0);
  EXPECT_FALSE(outcome->timed_out);
}

TEST(RunProcess, PassesArgumentsAndNothingButTheGivenEnvironment) {
  ProcessOptions options;
  options.argv = {"/usr/bin/env"};
  options.environment = {"A=x y", "B="};
  EXPECT_EQ(RunProcess(options)->out, "A=x y\nB=\n");
  options.argv = {"/bin/sh", "-c", "printf '%s|' \"$@\"", "sh", "a b", "*", ""};
  EXPECT_EQ(RunProcess(options)->out, "a b|*||");
}

TEST(RunProcess, FeedsInputLargerThanAPipe) {
  auto options = Shell("wc -c");
  options.input = std::string(1U << 20, 'x');
  EXPECT_EQ(RunProcess(options)->out, "1048576\n");
}

TEST(RunProcess, SurvivesAProgramThatReadsNoInput) {
  auto options = Shell("exit 0");
  options.input = std::string(1U << 20, 'x');
  EXPECT_EQ(RunProcess(options)->exit_code, 0);
}

TEST(RunProcess, EmptyInputIsEndOfFile) {
  EXPECT_EQ(RunProcess(Shell("cat; echo end"))->out, "end\n");
}

TEST(RunProcess, BoundsWhatItKeepsAndReadsOn) {
  auto options = Shell("head -c 3000000 /dev/zero; echo done >&2");
  options.max_output = 1000;
  const auto outcome = RunProcess(options);
  EXPECT_EQ(outcome->out.size(), 1000U);
  EXPECT_TRUE(outcome->truncated);
  EXPECT_EQ(outcome->err, "done\n");
  EXPECT_EQ(outcome->exit_code, 0);
}

TEST(RunProcess, PassesOutputOnAsItComes) {
  auto options = Shell("head -c 3000000 /dev/zero; printf last; echo done >&2");
  options.max_output = 3;
  std::size_t taken = 0;
  std::string end;
  const auto caller = std::this_thread::get_id();
  options.on_output = [&](std::string_view piece) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_LE(piece.size(), 64U << 10);
    taken += piece.size();
    end = (end + std::string(piece));
    end.erase(0, end.size() - std::min<std::size_t>(end.size(), 4));
    return true;
  };
  const auto outcome = RunProcess(options);
  EXPECT_EQ(taken, 3'000'004U);
  EXPECT_EQ(end, "last");
  EXPECT_EQ(outcome->out, "");
  EXPECT_EQ(outcome->err, "don");
  EXPECT_FALSE(outcome->cut_short);
  EXPECT_EQ(outcome->exit_code, 0);
}

TEST(RunProcess, EndsAProgramOfWhichNoMoreIsWanted) {
  auto options = Shell("while :; do echo more; done");
  int calls = 0;
  options.on_output = [&](std::string_view) { return ++calls < 3; };
  const auto outcome = RunProcess(options);
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(outcome->cut_short);
  EXPECT_FALSE(outcome->timed_out);
  EXPECT_EQ(outcome->exit_code, -1);
}

TEST(RunProcess, EndsAProgramAtItsDeadline) {
  auto options = Shell("echo started; exec sleep 60");
  options.deadline = 100ms;
  const auto outcome = RunProcess(options);
  EXPECT_TRUE(outcome->timed_out);
  EXPECT_EQ(outcome->signal, SIGTERM);
  EXPECT_EQ(outcome->out, "started\n");
}

TEST(RunProcess, KillsWhatIgnoresTheDeadline) {
  auto options = Shell("trap '' TERM; while :; do sleep 60; done");
  options.deadline = 100ms;
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = RunProcess(options);
  EXPECT_EQ(outcome->signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(RunProcess, DoesNotWaitForAGrandchildThatHoldsThePipe) {
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = RunProcess(Shell("sleep 60 & echo parent"));
  EXPECT_EQ(outcome->out, "parent\n");
  EXPECT_EQ(outcome->exit_code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(RunProcess, StopsWhenAsked) {
  std::stop_source source;
  std::thread stopper([&] { source.request_stop(); });
  const auto outcome = RunProcess(Shell("exec sleep 60"), source.get_token());
  stopper.join();
  EXPECT_EQ(outcome->signal, SIGTERM);
  EXPECT_FALSE(outcome->timed_out);
}

TEST(RunProcess, InheritsNoDescriptorAndNoIgnoredSignal) {
  const auto temp = TempDir::Create();
  ASSERT_TRUE(temp);
  const auto outcome = RunProcess(Shell("ls /proc/self/fd | wc -l; kill -PIPE $$"));
  EXPECT_LE(outcome->out, "4\n");  // the three and the directory that ls reads
  EXPECT_EQ(outcome->signal, SIGPIPE);
}

TEST(RunProcess, ReportsTheCpuTimeOfTheProgram) {
  const auto outcome = RunProcess(Shell("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"));
  EXPECT_GT(outcome->cpu, 1ms);
  EXPECT_LT(outcome->cpu, 10s);
}

TEST(RunProcess, SaysWhyItCouldNotStart) {
  ProcessOptions options;
  options.argv = {"/nonexistent/program"};
  const auto missing = RunProcess(options);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  options.argv = {"sh"};
  EXPECT_EQ(RunProcess(options).error().reason, "subprocess.path");
  options.argv = {};
  EXPECT_EQ(RunProcess(options).error().reason, "subprocess.path");
}

// Collects lines and lets the test wait for a number of them.
class Lines {
 public:
  std::function<void(std::string_view)> Taker() {
    return [this](std::string_view line) {
      {
        std::scoped_lock lock(mutex_);
        lines_.emplace_back(line);
      }
      changed_.notify_all();
    };
  }
  bool WaitFor(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return lines_.size() >= count; });
  }
  std::vector<std::string> Get() {
    std::scoped_lock lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

void WaitUntilEnded(const LineProcess& process) {
  for (int i = 0; i < 2000 && process.running(); ++i) std::this_thread::sleep_for(5ms);
}

TEST(LineProcess, DeliversLinesAsTheyComeAndTheUnfinishedLast) {
  Lines lines;
  auto process = LineProcess::Start({"/bin/sh", "-c", "echo a; echo; printf 'b\\nlast'; exit 9"},
                                    {"PATH=/usr/bin:/bin"}, lines.Taker());
  ASSERT_TRUE(process);
  ASSERT_TRUE(lines.WaitFor(4));
  WaitUntilEnded(**process);
  EXPECT_FALSE((*process)->running());
  EXPECT_EQ(lines.Get(), (std::vector<std::string>{"a", "", "b", "last"}));
  EXPECT_EQ((*process)->EndReason(), "exit 9");
}

TEST(LineProcess, CutsLongLinesAndGoesOn) {
  Lines lines;
  auto process =
      LineProcess::Start({"/bin/sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x; echo; echo ok"},
                         {"PATH=/usr/bin:/bin"}, lines.Taker(), /*max_line=*/10);
  ASSERT_TRUE(lines.WaitFor(2));
  EXPECT_EQ(lines.Get(), (std::vector<std::string>{"xxxxxxxxxx", "ok"}));
}

TEST(LineProcess, StopsAProgramThatIgnoresSigterm) {
  Lines lines;
  auto process =
      LineProcess::Start({"/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 60; done"},
                         {"PATH=/usr/bin:/bin"}, lines.Taker());
  ASSERT_TRUE(lines.WaitFor(1));
  EXPECT_TRUE((*process)->running());
  (*process)->Stop(50ms);
  EXPECT_FALSE((*process)->running());
  EXPECT_EQ((*process)->EndReason(), "signal 9");
  (*process)->Stop(50ms);  // idempotent
}

TEST(LineProcess, KeepsTheEndOfStandardError) {
  Lines lines;
  auto process = LineProcess::Start(
      {"/bin/sh", "-c", "head -c 100000 /dev/zero | tr '\\0' y >&2; echo 'it broke' >&2; exit 1"},
      {"PATH=/usr/bin:/bin"}, lines.Taker());
  WaitUntilEnded(**process);
  const std::string reason = (*process)->EndReason();
  EXPECT_TRUE(reason.starts_with("exit 1: y")) << reason;
  EXPECT_TRUE(reason.ends_with("it broke")) << reason;
  EXPECT_LT(reason.size(), 3000U);
}

TEST(FindProgram, LooksOnlyInAbsoluteDirectoriesForExecutableFiles) {
  auto temp = TempDir::Create();
  ASSERT_TRUE(temp);
  const std::string tool = temp->path() + "/tool";
  ASSERT_TRUE(WriteFileAtomically(tool, "#!/bin/sh\n", 0644));
  EXPECT_FALSE(FindProgram("tool", temp->path()));
  ASSERT_EQ(::chmod(tool.c_str(), 0755), 0);
  EXPECT_EQ(FindProgram("tool", ".::/nonexistent:" + temp->path()), tool);
  EXPECT_FALSE(FindProgram("../tool", temp->path() + "/x"));
  EXPECT_FALSE(FindProgram("", temp->path()));
}

}  // namespace
}  // namespace expanse::base
