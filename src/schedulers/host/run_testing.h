// What the tests of `expanse run` share: a spool of their own, and real commands started through a
// real `expanse run` (testing/run_harness.cc).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/crypto.h"
#include "base/files.h"
#include "base/text.h"
#include "schedulers/host/spool.h"

namespace expanse::schedulers::host {

using std::chrono::milliseconds;
using Words = std::vector<std::string>;
inline const std::string kChild = EXPANSE_RUN_CHILD;

struct Started {
  pid_t pid = -1;
  base::UniqueFd out;  // what the test reads of its output
  base::UniqueFd err;
};

// Everything from `fd` until its end, or until `marker` was in it, for at most ten seconds.
inline std::string ReadUntil(int fd, std::string_view marker = "",
                             milliseconds patience = milliseconds(10'000)) {
  std::string data;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    struct pollfd poll_fd{fd, POLLIN, 0};
    if (::poll(&poll_fd, 1, 50) <= 0) continue;
    char buffer[65536];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) break;
    data.append(buffer, static_cast<std::size_t>(got));
    if (!marker.empty() && data.find(marker) != std::string::npos) break;
  }
  return data;
}

inline int WaitFor(pid_t pid) {
  int status = 0;
  for (int i = 0; i < 2'000; ++i) {
    if (::waitpid(pid, &status, WNOHANG) == pid) return status;
    std::this_thread::sleep_for(milliseconds(5));
  }
  ::kill(pid, SIGKILL);
  ADD_FAILURE() << "the run did not end";
  ::waitpid(pid, &status, 0);
  return status;
}

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::mkdir(spool_.c_str(), 0700), 0);
    ::setenv("HOME", dir_.path().c_str(), 1);
  }

  Words Argv(Words command, const Words& flags = {}) const {
    Words argv = {EXPANSE_RUN_HARNESS, "--spool", spool_};
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.push_back("--");
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }

  [[noreturn]] static void Exec(const Words& argv) {
    std::vector<char*> pointers;
    for (const std::string& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(97);
  }

  // Output and error on pipes, input from /dev/null. `prepare` runs in the child before exec.
  Started Start(const Words& argv, const std::function<void()>& prepare = {}) {
    int out[2];
    int err[2];
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(err, O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const int null = ::open("/dev/null", O_RDONLY);
      ::dup2(null, 0);
      ::close(null);
      ::dup2(out[1], 1);
      ::dup2(err[1], 2);
      if (prepare) prepare();
      Exec(argv);
    }
    ::close(out[1]);
    ::close(err[1]);
    return {pid, base::UniqueFd(out[0]), base::UniqueFd(err[0])};
  }

  struct Ran {
    int code = -1;
    std::string out;
    std::string err;
  };
  Ran Run(const Words& command, const Words& flags = {},
          const std::function<void()>& prepare = {}) {
    Started started = Start(Argv(command, flags), prepare);
    Ran ran;
    ran.out = ReadUntil(started.out.get());
    ran.err = ReadUntil(started.err.get());
    const int status = WaitFor(started.pid);
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return ran;
  }

  std::vector<SpoolEvent> Events(const std::string& directory) {
    std::vector<SpoolEvent> events;
    auto reader = SpoolReader::Open(directory).value();
    std::vector<std::string> strange;
    const Words names = reader.List(strange).value();
    for (const std::string& name : names) {
      events.push_back(reader.Read(name, base::SystemClock().Now()).value().event);
    }
    return events;
  }
  // The execution of the last event of a kind; the spool holds one run.
  evidence::Execution Recorded(SpoolKind kind = SpoolKind::kEnd) {
    for (const SpoolEvent& event : Events(spool_)) {
      if (event.kind != kind) continue;
      for (const auto& record : event.records) {
        if (auto* seen = std::get_if<evidence::ExecutionObservation>(&record.payload))
          return seen->execution;
      }
    }
    ADD_FAILURE() << "no such event";
    return {};
  }
  std::string Tail(const std::string& stream) {
    for (const SpoolEvent& event : Events(spool_)) {
      for (const auto& record : event.records) {
        const auto* tail = std::get_if<evidence::LogTail>(&record.payload);
        if (tail != nullptr && tail->stream == stream) return tail->data;
      }
    }
    return "(none)";
  }

  base::TempDir dir_ = base::TempDir::Create("run").value();
  std::string spool_ = base::JoinPath(dir_.path(), "spool");
};

}  // namespace expanse::schedulers::host
