// What a running expanse-daemon costs on a busy node: the real program on a made-up host tree, with
// a spool full of runs, for a while. Reports its CPU as a share of one core, its memory, its
// start-up.
//   tests/bench/make_host_tree /tmp/node [--cgroups 20] [--processes 200] [--gpus 8]
//   daemon_cost_bench --root /tmp/node [--daemon FILE] [--seconds 60] [--interval 10s] [--runs 20]
// The planes are away, so uploads fail and back off; nothing of the tree is changed but the names
// of its cgroups. Goals at the defaults: under 0.1 % of a core and 25 MiB.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/crypto.h"
#include "base/files.h"
#include "base/text.h"
#include "bench/bench_report.h"
#include "daemon/health_file.h"
#include "net/compute_identity.h"
#include "schedulers/host/spool.h"

namespace {

using namespace expanse;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

// The n-th word of a file's first line, from 0.
double Word(const std::string& path, std::size_t n) {
  const std::string text = base::ReadFile(path).value_or("");
  const auto words = base::SplitSpaces(text);
  return n < words.size() ? base::ParseDouble(words[n]).value_or(0) : 0;
}

// schedstat's first word is nanoseconds on a CPU, per thread.
double CpuSeconds(pid_t pid) {
  double ns = 0;
  for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", pid))) {
    ns += Word(task.path().string() + "/schedstat", 0);
  }
  return ns / 1e9;
}

double ResidentMiB(pid_t pid) {
  return Word(fmt::format("/proc/{}/statm", pid), 1) * double(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Field 22 of /proc/PID/stat; the name in field 2 may hold spaces and parentheses (proc(5)).
std::uint64_t StartTicks(const std::string& path) {
  const std::string text = base::ReadFile(path).value_or("");
  const auto fields = base::SplitSpaces(std::string_view(text).substr(text.rfind(')') + 1));
  return fields.size() > 19 ? base::ParseInt<std::uint64_t>(fields[19]).value_or(0) : 0;
}

// Gives the tree's first `runs` jobs the cgroup names of runs and puts their starts into the spool.
base::Status MakeRuns(const std::string& root, const std::string& spool, int runs) {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(spool, 0700));
  schedulers::host::SpoolWriter writer(spool, "");
  const std::string slice = root + "/sys/fs/cgroup/jobs.slice";
  std::error_code error;
  std::vector<fs::path> jobs;
  for (const auto& entry : fs::directory_iterator(slice, error)) {
    if (entry.is_directory()) jobs.push_back(entry.path());
  }
  std::sort(jobs.begin(), jobs.end());
  if (int(jobs.size()) < runs) {
    return base::Fail(base::Code::kNotFound, "bench.tree",
                      fmt::format("{} has only {} jobs", root, jobs.size()));
  }
  const base::WallTime now = base::SystemClock().Now();
  for (int i = 0; i < runs; ++i) {
    schedulers::host::SpoolEvent event{.run_id = base::NewUuid(now)};
    const std::string procs = base::ReadFile(jobs[std::size_t(i)] / "cgroup.procs").value_or("");
    const auto pids = base::SplitSpaces(procs);
    if (pids.empty()) continue;
    event.root.pid = base::ParseInt<std::int32_t>(pids[0]).value_or(0);
    event.root.start_ticks = StartTicks(fmt::format("{}/proc/{}/stat", root, pids[0]));
    event.runner = event.root;
    const std::string name = "/jobs.slice/expanse-" + event.run_id;
    fs::rename(jobs[std::size_t(i)], root + "/sys/fs/cgroup" + name, error);
    if (error) return base::FailErrno(error.value(), "rename " + jobs[std::size_t(i)].string());
    for (std::string_view pid : pids) {
      EXPANSE_RETURN_IF_ERROR(base::WriteFileAtomically(fmt::format("{}/proc/{}/cgroup", root, pid),
                                                        "0::" + name + "\n", 0644));
    }
    event.cgroups = {"/sys/fs/cgroup" + name};
    evidence::ExecutionObservation seen;
    seen.key = {evidence::SourceType::kHost, event.run_id};
    seen.execution.name = "bench";
    seen.execution.started_at = now - 2h;  // no longer young
    event.records.push_back({.sequence = 1, .observed_at = now, .payload = std::move(seen)});
    EXPANSE_RETURN_IF_ERROR(writer.Write(event, /*durable=*/false));
  }
  return {};
}

pid_t StartDaemon(std::vector<std::string> arguments, const std::string& log) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs expanse-daemon on a made-up host and reports what it costs.");
  std::string root;
  std::string daemon_path = fs::canonical("/proc/self/exe").parent_path() / "../bin/expanse-daemon";
  std::string interval = "10s";
  int seconds = 60;
  int runs = 20;
  app.add_option("--root", root, "A tree made by make_host_tree")->required();
  app.add_option("--daemon", daemon_path, "The program to measure");
  app.add_option("--interval", interval, "Of its samples");
  app.add_option("--seconds", seconds, "To measure, after five to settle");
  app.add_option("--runs", runs, "Workloads to follow, each in a cgroup of the tree");
  CLI11_PARSE(app, argc, argv);

  auto temp = base::TempDir::Create();
  if (!temp) return 1;
  const std::string config = temp->path() + "/config.json";
  auto ready = MakeRuns(root, temp->path() + "/spool", runs);
  if (ready) {
    ready = net::WriteComputeIdentity(config, {.compute_id = "bench",
                                               .type = "host",
                                               .credential = "none",
                                               .control_plane_url = "http://127.0.0.1:1",
                                               .data_plane_url = "http://127.0.0.1:1"});
  }
  if (!ready) {
    fmt::print(stderr, "daemon_cost_bench: {}\n", ready.error().message);
    return 1;
  }
  const std::string state = temp->path() + "/state";
  const std::string log = temp->path() + "/log";
  const auto begin = std::chrono::steady_clock::now();
  const pid_t daemon =
      StartDaemon({daemon_path, "--config", config, "--state-dir", state, "--spool-dir",
                   temp->path() + "/spool", "--root", root, "--sample-interval", interval,
                   "--collect-nvidia-smi", root + "/bin/nvidia-smi"},
                  log);
  const std::string health_path = state + "/health.json";
  while (!base::Exists(health_path)) {
    if (::waitpid(daemon, nullptr, WNOHANG) != 0 ||
        std::chrono::steady_clock::now() - begin > 30s) {
      fmt::print(stderr, "daemon_cost_bench: the daemon did not start:\n{}\n",
                 base::ReadFile(log).value_or(""));
      return 1;
    }
    std::this_thread::sleep_for(1ms);
  }
  const double started = base::ToSeconds(std::chrono::steady_clock::now() - begin);
  std::this_thread::sleep_for(5s);
  const double cpu = CpuSeconds(daemon);
  const auto from = std::chrono::steady_clock::now();
  double peak = 0;
  for (int i = 0; i < seconds; ++i) {
    std::this_thread::sleep_for(1s);
    peak = std::max(peak, ResidentMiB(daemon));
  }
  const double passed = base::ToSeconds(std::chrono::steady_clock::now() - from);
  const double used = CpuSeconds(daemon) - cpu;
  const auto health = daemon::ParseHealth(base::ReadFile(health_path).value_or(""));
  ::kill(daemon, SIGTERM);
  ::waitpid(daemon, nullptr, 0);

  bench::Report report("daemon_cost");
  report.Add("start to first heartbeat", started * 1e3, "ms");
  report.Add("CPU", used / passed * 100, "% of a core");
  report.Add("CPU", used / passed * 1e3, "ms/s");
  report.Add("resident, most", peak, "MiB");
  for (const auto& row : health ? health->rows : std::vector<evidence::HealthRow>{}) {
    // That there was something to do.
    for (const char* figure : {"running", "events", "quarantined", "points", "rounds"}) {
      if (const auto found = row.figures.find(figure); found != row.figures.end()) {
        report.Add(row.collector + ", " + figure, found->second, "");
      }
    }
    if (row.status == evidence::HealthStatus::kOk) continue;
    fmt::print("  {}: {} {}\n", row.collector, row.reason, row.message);
  }
  report.Print();
  return 0;
}
