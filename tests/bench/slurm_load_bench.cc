// What observing a large Slurm cluster costs: the real observer at its default intervals, real
// processes in place of squeue, sacct and scontrol (slurm_stand_in.h), the real outbox.
//   slurm_load_bench [--running 10000] [--pending 100000] [--seconds 180] [--no-files]
// First all jobs are told (as after an installation), then the steady state is measured for the
// given time. Only this process counts, not the stand-ins. Goals: under 2 % of a core in the steady
// state, 200 MiB, four commands a minute.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/bench_report.h"
#include "bench/slurm_stand_in.h"
#include "daemon/file_io.h"
#include "daemon/outboxes.h"
#include "schedulers/slurm/observer.h"

namespace {

using namespace expanse;
using namespace std::chrono_literals;

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// "VmRSS:" or "VmHWM:" of /proc/self/status.
double StatusMiB(std::string_view key) {
  const std::string text = base::ReadFile("/proc/self/status").value_or("");
  for (const std::string_view line : base::Split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    const auto words = base::SplitSpaces(line);
    return words.size() < 2 ? 0 : double(base::ParseInt<std::int64_t>(words[1]).value_or(0)) / 1024;
  }
  return 0;
}

// The stand-ins, and everything else of the run.
class Cluster {
 public:
  Cluster(const bench::ClusterSize& size, bool with_files) : temp_(*base::TempDir::Create()) {
    const std::string bin = temp_.path() + "/bin";
    EXPANSE_CHECK(base::MakeDirectories(bin));
    EXPANSE_CHECK(base::WriteFileAtomically(bin + "/size", size.Encode(), 0644));
    const std::string self = std::string(4096, '\0');
    const ssize_t length =
        ::readlink("/proc/self/exe", const_cast<char*>(self.data()), self.size());
    for (const char* name : {"/squeue", "/sacct", "/scontrol"})
      EXPANSE_CHECK(::symlink(self.substr(0, std::size_t(length)).c_str(), (bin + name).c_str()) ==
                    0);
    auto outboxes = daemon::Outboxes::Open({.directory = temp_.path() + "/outbox"}, files_, clock_);
    EXPANSE_CHECK(outboxes);
    outboxes_ = *std::move(outboxes);
    schedulers::slurm::SlurmObserverOptions options;
    options.state_directory = temp_.path() + "/slurm";
    options.host = "head";
    options.runner.bin_directory = bin;
    options.files.switches.logs = with_files;
    options.files.switches.sources = with_files;
    observer_ = std::make_unique<schedulers::slurm::SlurmObserver>(options, clock_);
    EXPANSE_CHECK(observer_->Start());
  }
  ~Cluster() { observer_->Stop(); }

  // As the daemon does on a Slurm controller, four times a second.
  void Pass(std::chrono::seconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) {
      Look();
      std::this_thread::sleep_for(250ms);
    }
  }
  void Look() {
    const auto begin = std::chrono::steady_clock::now();
    observer_->Observe({.wall = clock_.Now(), .mono = clock_.Mono()}, *outboxes_);
    (void)observer_->TakeClusterState();
    longest_look_ = std::max(longest_look_, std::chrono::steady_clock::now() - begin);
  }
  double Figure(std::string_view row, const std::string& figure) const {
    for (const evidence::HealthRow& one : observer_->health()) {
      if (one.collector != row) continue;
      const auto found = one.figures.find(figure);
      return found == one.figures.end() ? 0 : found->second;
    }
    return 0;
  }
  double TakeLongestLook() {
    return std::chrono::duration<double, std::milli>(std::exchange(longest_look_, {})).count();
  }

 private:
  base::TempDir temp_;
  base::SystemClock clock_;
  daemon::SystemFileIo files_;
  std::unique_ptr<daemon::Outboxes> outboxes_;
  std::unique_ptr<schedulers::slurm::SlurmObserver> observer_;
  std::chrono::steady_clock::duration longest_look_{};
};

int Run(const bench::ClusterSize& size, int seconds, bool with_files) {
  // As the daemon does.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 10);
  base::ConfigureLog(base::LogLevel::kError, base::LogFormat::kText);
  bench::Report report("slurm_load");
  Cluster cluster(size, with_files);
  const auto begun = std::chrono::steady_clock::now();
  const double wanted = double(size.running + size.pending);
  while (cluster.Figure("slurm_jobs", "queued") + cluster.Figure("slurm_jobs", "running") <
         wanted) {
    cluster.Pass(1s);
    if (std::chrono::steady_clock::now() - begun > 10min) return 1;
  }
  report.Add("first: all jobs told after",
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(), "s");
  report.Add("first: cpu", CpuSeconds(), "s");
  report.Add("first: peak rss", StatusMiB("VmHWM:"), "MiB");
  report.Add("first: longest look", cluster.TakeLongestLook(), "ms");

  cluster.Pass(65s);  // the listings after it, and the first state file
  (void)cluster.TakeLongestLook();
  const double cpu = CpuSeconds();
  const double commands = cluster.Figure("slurm_cost", "commands");
  const auto steady = std::chrono::steady_clock::now();
  cluster.Pass(std::chrono::seconds(seconds));
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - steady).count();
  report.Add("steady: time", passed, "s");
  report.Add("steady: cpu", (CpuSeconds() - cpu) / passed * 100, "% of a core");
  report.Add("steady: commands a minute",
             (cluster.Figure("slurm_cost", "commands") - commands) / passed * 60, "");
  report.Add("steady: longest look", cluster.TakeLongestLook(), "ms");
  report.Add("steady: rss", StatusMiB("VmRSS:"), "MiB");
  report.Add("peak rss", StatusMiB("VmHWM:"), "MiB");
  report.Add("rows of the last listing", cluster.Figure("slurm_squeue", "rows"), "");
  report.Add("squeue's latency", cluster.Figure("slurm_squeue", "latency_ms"), "ms");
  report.Add("finals of sacct", cluster.Figure("slurm_sacct", "finals"), "");
  report.Add("lost", cluster.Figure("slurm_jobs", "lost"), "");
  report.Print();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = bench::RunStandIn(argc, argv)) return *code;
  bench::ClusterSize size;
  int seconds = 180;
  bool no_files = false;
  CLI::App app("what observing a large Slurm cluster costs");
  app.add_option("--running", size.running, "jobs that run");
  app.add_option("--pending", size.pending, "jobs that wait");
  app.add_option("--seconds", seconds, "how long to measure");
  app.add_option("--run-seconds", size.run_s, "mean run time of a job");
  app.add_flag("--no-files", no_files, "do not follow output files");
  CLI11_PARSE(app, argc, argv);
  return Run(size, seconds, !no_files);
}
