// What one tick of all collectors costs on a node like a busy GPU node: CPU time and memory.
//   collect_bench [--root DIR] [--cgroups 20] [--processes 200] [--gpus 8] [--ticks 200] [--trees]
// Without --root it makes a tree with tests/bench/make_host_tree. Goal: under 10 ms of CPU a tick
// (0.1 % of a core at 10 s) and 25 MiB for the whole daemon.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "bench/bench_report.h"
#include "collect/cgroup/collector.h"
#include "collect/cgroup/procs.h"
#include "collect/gpu/collector.h"
#include "collect/host/collector.h"
#include "collect/process/collector.h"

namespace {

using namespace expanse;
using namespace std::chrono_literals;

constexpr auto kPeriod = 10s;       // as the collectors are told
constexpr auto kRealPeriod = 50ms;  // between two ticks of the bench

struct Flags {
  std::string root;
  int cgroups = 20;
  int processes = 200;
  int gpus = 8;
  int ticks = 200;
  bool trees = false;
};

class CountingSink final : public collect::SampleSink {
 public:
  void Add(const collect::TrackedWorkload*, const evidence::SeriesColumn&, double) override {
    ++points;
  }
  std::size_t points = 0;
};

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentMiB() {
  const std::string text = base::ReadFile("/proc/self/statm").value_or("");
  const auto words = base::SplitSpaces(text);
  const auto pages = words.size() > 1 ? base::ParseInt<std::uint64_t>(words[1]).value_or(0) : 0;
  return double(pages) * double(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

base::Status MakeTree(const Flags& flags, const std::string& directory) {
  base::ProcessOptions options;
  options.argv = {BENCH_SOURCE_DIR "/make_host_tree",
                  directory,
                  "--cgroups",
                  std::to_string(flags.cgroups),
                  "--processes",
                  std::to_string(flags.processes),
                  "--gpus",
                  std::to_string(flags.gpus)};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.deadline = 120s;
  EXPANSE_ASSIGN_OR_RETURN(const auto outcome, base::RunProcess(options));
  if (outcome.exit_code != 0) return base::Fail(base::Code::kInternal, "bench.tree", outcome.err);
  return base::WriteFileAtomically(base::JoinPath(directory, "bin/fast"), "", 0644);
}

std::vector<collect::TrackedWorkload> WorkloadsOf(const std::string& root, bool trees) {
  const std::string slice = "/sys/fs/cgroup/jobs.slice";
  std::vector<collect::TrackedWorkload> workloads;
  for (const std::string& name :
       base::ListDirectory(base::JoinPath(root, slice)).value_or(std::vector<std::string>{})) {
    collect::TrackedWorkload workload;
    workload.key = {evidence::SourceType::kHost, name};
    const std::string cgroup = base::JoinPath(slice, name);
    const auto pids = collect::CgroupPids(root, {cgroup});
    if (!pids.empty()) workload.roots = {{pids.front(), 0}};
    if (!trees) workload.cgroups = {cgroup};
    workloads.push_back(std::move(workload));
  }
  return workloads;
}

int Run(Flags flags) {
  std::optional<base::TempDir> temp;
  if (flags.root.empty()) {
    auto made = base::TempDir::Create("host-tree");
    if (!made) return 1;
    temp.emplace(std::move(*made));
    flags.root = temp->path();
    if (const auto status = MakeTree(flags, flags.root); !status) {
      fmt::print(stderr, "collect_bench: {}\n", status.error().message);
      return 1;
    }
  }
  const double rss_before = ResidentMiB();
  const auto workloads = WorkloadsOf(flags.root, flags.trees);
  const collect::HostView view{flags.root, "bench"};
  std::vector<std::unique_ptr<collect::Collector>> collectors;
  collectors.push_back(std::make_unique<collect::HostCollector>(view));
  collectors.push_back(std::make_unique<collect::CgroupCollector>(view));
  collectors.push_back(std::make_unique<collect::ProcessCollector>(view));
  collectors.push_back(std::make_unique<collect::GpuCollector>(
      view, collect::GpuOptions{base::JoinPath(flags.root, "bin/nvidia-smi"), kPeriod}));
  for (auto& collector : collectors) collector->Start();

  CountingSink sink;
  std::vector<double> cpu_ms;
  std::vector<double> by_collector(collectors.size(), 0);
  collect::Tick tick{base::WallTime(1'800'000'000s), base::MonoTime(1000s)};
  double before = CpuSeconds();
  for (int i = 0; i < flags.ticks; ++i, tick.wall += kPeriod, tick.mono += kPeriod) {
    for (std::size_t c = 0; c < collectors.size(); ++c) {
      const double start = CpuSeconds();
      collectors[c]->Collect(tick, workloads, sink);
      if (i > 0) by_collector[c] += CpuSeconds() - start;
    }
    // The time of nvidia-smi's reader falls between two ticks; it counts for the one before.
    std::this_thread::sleep_for(kRealPeriod);
    const double now = CpuSeconds();
    if (i > 0) cpu_ms.push_back((now - before) * 1000);  // the first tick opens everything
    before = now;
  }
  double sum = 0;
  for (double ms : cpu_ms) sum += ms;
  const double mean = sum / double(std::max<std::size_t>(1, cpu_ms.size()));
  bench::Report report("collect");
  report.Add("workloads", double(workloads.size()), "");
  report.Add("points per tick", double(sink.points) / flags.ticks, "");
  report.Add("cpu per tick, mean", mean, "ms");
  report.Add("cpu per tick, median", bench::Quantile(cpu_ms, 0.5), "ms");
  report.Add("cpu per tick, p99", bench::Quantile(cpu_ms, 0.99), "ms");
  report.Add("share of a core at 10 s", mean / 1000 / 10 * 100, "%");
  for (std::size_t c = 0; c < collectors.size(); ++c) {
    report.Add(fmt::format("cpu per tick, {}", collectors[c]->name()),
               by_collector[c] * 1000 / std::max(1, flags.ticks - 1), "ms");
  }
  report.Add("resident before", rss_before, "MiB");
  report.Add("resident after", ResidentMiB(), "MiB");
  report.Print();
  for (auto& collector : collectors) collector->Stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Cost of the collectors on a synthetic host");
  Flags flags;
  app.add_option("--root", flags.root, "Directory made by make_host_tree; empty: make one");
  app.add_option("--cgroups", flags.cgroups, "Workloads")->capture_default_str();
  app.add_option("--processes", flags.processes, "Processes of all workloads")
      ->capture_default_str();
  app.add_option("--gpus", flags.gpus, "Devices")->capture_default_str();
  app.add_option("--ticks", flags.ticks, "Ticks to measure")->capture_default_str();
  app.add_flag("--trees", flags.trees, "Workloads have no cgroups: follow their processes");
  CLI11_PARSE(app, argc, argv);
  return Run(flags);
}
