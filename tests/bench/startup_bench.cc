// What starting a program costs: wall and CPU time, peak memory, size on disk.
//   startup_bench [--program FILE] [--argument WORD]... [--runs N]
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "bench/bench_report.h"

namespace {

struct Cost {
  double wall_ms = -1;  // negative: it could not be run
  double cpu_ms = 0;
  double peak_mib = 0;
};

Cost RunOnce(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) ||
      WEXITSTATUS(status) == 127) {
    return {};
  }
  const auto milliseconds = [](const timeval& t) {
    return double(t.tv_sec) * 1e3 + double(t.tv_usec) / 1e3;
  };
  return {
      .wall_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                     .count(),
      .cpu_ms = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
      .peak_mib = double(usage.ru_maxrss) / 1024};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What starting a program costs");
  std::string program = "bin/expanse";
  std::vector<std::string> arguments = {"executions", "--help"};
  int runs = 100;
  app.add_option("--program", program, "Program to start");
  app.add_option("--argument", arguments, "Arguments to give it");
  app.add_option("--runs", runs, "How often")->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);
  std::vector<double> wall;
  std::vector<double> cpu;
  double peak = 0;
  for (int i = 0; i < runs; ++i) {
    const Cost cost = RunOnce(program, arguments);
    if (cost.wall_ms < 0) {
      fmt::print(stderr, "startup_bench: {} cannot be run\n", program);
      return 1;
    }
    wall.push_back(cost.wall_ms);
    cpu.push_back(cost.cpu_ms);
    peak = std::max(peak, cost.peak_mib);
  }
  struct stat info{};
  if (stat(program.c_str(), &info) != 0) return 1;
  expanse::bench::Report report("startup");
  report.Add("wall, median", expanse::bench::Quantile(wall, 0.5), "ms");
  report.Add("wall, 95 %", expanse::bench::Quantile(wall, 0.95), "ms");
  report.Add("wall, least", expanse::bench::Quantile(wall, 0), "ms");
  report.Add("cpu, median", expanse::bench::Quantile(cpu, 0.5), "ms");
  report.Add("peak memory", peak, "MiB");
  report.Add("size on disk", double(info.st_size) / (1 << 20), "MiB");
  report.Print();
}
