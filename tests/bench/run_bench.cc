// What `expanse run` costs: how much later a command starts and the prompt is back, and how fast
// output goes through it. run_bench --runs N --megabytes M
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "bench/bench_report.h"
#include "schedulers/host/run.h"

namespace {

using Clock = std::chrono::steady_clock;
using expanse::schedulers::host::RunCommand;
using expanse::schedulers::host::RunOptions;

// The command writes one byte when it runs; standard output is the test's pipe. Milliseconds until
// that byte (first) and until the process was waited for (second).
std::pair<double, double> Time(const std::function<void()>& child) {
  int pipe_fds[2];
  if (::pipe(pipe_fds) != 0) ::_exit(1);
  const auto begin = Clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(pipe_fds[1], 1);
    ::close(pipe_fds[0]);
    ::close(pipe_fds[1]);
    child();
    ::_exit(127);
  }
  ::close(pipe_fds[1]);
  char byte = 0;
  (void)!::read(pipe_fds[0], &byte, 1);
  const auto first = Clock::now();
  while (::read(pipe_fds[0], &byte, 1) > 0) {
  }
  ::waitpid(pid, nullptr, 0);
  const auto end = Clock::now();
  ::close(pipe_fds[0]);
  const auto ms = [begin](Clock::time_point t) {
    return std::chrono::duration<double, std::milli>(t - begin).count();
  };
  return {ms(first), ms(end)};
}

// Megabytes per second that reach us from `child`'s standard output.
double Throughput(const std::function<void()>& child, double megabytes) {
  int pipe_fds[2];
  if (::pipe(pipe_fds) != 0) ::_exit(1);
  const auto begin = Clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(pipe_fds[1], 1);
    ::close(pipe_fds[0]);
    ::close(pipe_fds[1]);
    child();
    ::_exit(127);
  }
  ::close(pipe_fds[1]);
  std::vector<char> buffer(1 << 18);
  while (::read(pipe_fds[0], buffer.data(), buffer.size()) > 0) {
  }
  ::waitpid(pid, nullptr, 0);
  ::close(pipe_fds[0]);
  return megabytes / std::chrono::duration<double>(Clock::now() - begin).count();
}

void Plain(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Cost of expanse run"};
  int runs = 200;
  double megabytes = 512;
  app.add_option("--runs", runs, "Runs of each kind");
  app.add_option("--megabytes", megabytes, "Output to relay");
  CLI11_PARSE(app, argc, argv);

  auto directory = expanse::base::TempDir::Create("run_bench");
  if (!directory) return 1;
  const std::string spool = directory->path() + "/spool";
  ::mkdir(spool.c_str(), 0700);
  const std::vector<std::string> command = {"/bin/sh", "-c", "echo"};
  const auto through = [&](std::vector<std::string> what, bool capture) {
    return [what = std::move(what), &spool, capture] {
      RunOptions options;
      options.command = what;
      options.spool_directory = spool;
      options.capture_output = capture;
      const auto code = RunCommand(options);
      ::_exit(code ? *code : 1);
    };
  };

  std::vector<double> plain_first, plain_end, run_first, run_end, bare_first;
  for (int i = 0; i < runs; ++i) {  // alternating, so that both see the same load of the machine
    const auto [first, end] = Time([&] { Plain(command); });
    plain_first.push_back(first);
    plain_end.push_back(end);
    const auto [later, done] = Time(through(command, true));
    run_first.push_back(later);
    run_end.push_back(done);
    bare_first.push_back(Time(through(command, false)).first);
  }
  using expanse::bench::Quantile;
  expanse::bench::Report report("run");
  report.Add("first output, alone, median", Quantile(plain_first, 0.5), "ms");
  report.Add("first output, expanse run, median", Quantile(run_first, 0.5), "ms");
  report.Add("first output, added, median", Quantile(run_first, 0.5) - Quantile(plain_first, 0.5),
             "ms");
  report.Add("first output, added, p99", Quantile(run_first, 0.99) - Quantile(plain_first, 0.99),
             "ms");
  report.Add("first output, added without capture, median",
             Quantile(bare_first, 0.5) - Quantile(plain_first, 0.5), "ms");
  report.Add("whole run, added, median", Quantile(run_end, 0.5) - Quantile(plain_end, 0.5), "ms");
  report.Add("whole run, added, p99", Quantile(run_end, 0.99) - Quantile(plain_end, 0.99), "ms");
  const std::vector<std::string> spew = {
      "head", "-c", std::to_string(static_cast<long>(megabytes * 1e6)), "/dev/zero"};
  report.Add("output, alone", Throughput([&] { Plain(spew); }, megabytes), "MB/s");
  report.Add("output, expanse run", Throughput(through(spew, true), megabytes), "MB/s");
  report.Print();
  return 0;
}
