// What the hooks of a node add to a job: a Prolog and an Epilog as slurmd runs them, by /bin/sh
// with a scrubbed environment, while a sampler is alive; beside it a shell that does nothing, and a
// Prolog that has to start a sampler. hook_bench --jobs N --directory DIR (a tmpfs, as /run is)
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/time.h"
#include "bench/bench_report.h"
#include "schedulers/slurm/node/hook_directory.h"
#include "schedulers/slurm/node/hook_script.h"

namespace {

namespace base = expanse::base;
namespace slurm = expanse::schedulers::slurm;

void Write(const std::string& path, const std::string& text, mode_t mode) {
  if (!base::WriteFileAtomically(path, text, mode)) std::abort();
}

// Milliseconds until it has ended; a hook that fails ends the bench.
double Run(const std::vector<std::string>& argv, const std::vector<std::string>& environment) {
  const auto pointers = [](const std::vector<std::string>& words) {
    std::vector<char*> list;
    for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
    list.push_back(nullptr);
    return list;
  };
  const auto begin = std::chrono::steady_clock::now();
  pid_t pid = 0;
  if (::posix_spawn(&pid, argv[0].c_str(), nullptr, nullptr, pointers(argv).data(),
                    pointers(environment).data()) != 0) {
    std::abort();
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (status != 0) std::abort();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

class Node {
 public:
  explicit Node(const std::string& directory)
      : options_{.prefix = directory + "/srv",
                 .run_directory = directory + "/run",
                 .version = "1.2.3"},
        directory_(directory) {
    if (!base::MakeDirectories(options_.prefix + "/bin", 0755)) std::abort();
    Write(options_.prefix + "/bin/expanse-daemon", "#!/bin/sh\nexit 0\n", 0755);
    for (const std::string kind : {"prolog", "epilog"}) {
      Write(directory_ + "/" + kind,
            *slurm::MakeHookScript(*slurm::ParseHookScriptKind(kind), options_), 0755);
    }
  }
  double Hook(const std::string& kind, int job) {
    return Run({directory_ + "/" + kind},
               {"SLURM_JOB_ID=" + std::to_string(job), "SLURM_JOB_UID=2001", "SLURM_JOB_USER=mara",
                "SLURM_CLUSTER_NAME=fen", "SLURMD_NODENAME=reed07", "SLURM_JOB_PARTITION=long",
                "SLURM_NODELIST=reed[05-08]", "SLURM_JOB_GPUS=0,1", "SLURM_JOB_RESTART_COUNT=0"});
  }
  // From now on this process is the sampler that the hooks look for.
  void MarkAlive() {
    ::prctl(PR_SET_NAME, "expanse-daemon");
    Write(options_.run_directory + "/hooks/sampler",
          std::to_string(::getpid()) + " 1.2.3 sampler\n", 0644);
  }
  std::size_t TakeEvents() {
    slurm::HookDirectory hooks(options_.run_directory + "/hooks", "");
    base::SystemClock clock;
    const auto entries = hooks.Look(clock.Now(), 100'000);
    if (!entries) std::abort();
    for (const auto& entry : *entries) (void)hooks.Remove(entry);
    return entries->size();
  }

 private:
  slurm::HookScriptOptions options_;
  std::string directory_;
};

}  // namespace

int main(int argc, char** argv) {
  int jobs = 500;
  std::string directory = "/dev/shm";
  CLI::App app("what the hooks add to a job");
  app.add_option("--jobs", jobs, "how many jobs")->check(CLI::Range(1, 8000));
  app.add_option("--directory", directory, "where the node's own memory is");
  CLI11_PARSE(app, argc, argv);
  ::setenv("TMPDIR", directory.c_str(), 1);
  auto temp = base::TempDir::Create("hook_bench");
  if (!temp) return 1;
  Node node(temp->path());

  std::vector<double> first;
  std::vector<double> empty;
  std::vector<double> both;
  for (int i = 1; i <= std::min(jobs, 100); ++i) first.push_back(node.Hook("prolog", i));
  (void)node.TakeEvents();
  node.MarkAlive();
  for (int i = 1; i <= jobs; ++i) {
    empty.push_back(Run({"/bin/sh", "-c", ":"}, {}));
    both.push_back(node.Hook("prolog", i) + node.Hook("epilog", i));
  }
  if (node.TakeEvents() != std::size_t(jobs) * 2) return 1;

  expanse::bench::Report report("hook_bench");
  report.Add("jobs", jobs, "");
  report.Add("a shell that does nothing, median", expanse::bench::Quantile(empty, 0.5), "ms");
  report.Add("Prolog and Epilog of a job, median", expanse::bench::Quantile(both, 0.5), "ms");
  report.Add("Prolog and Epilog of a job, p99", expanse::bench::Quantile(both, 0.99), "ms");
  report.Add("Prolog that starts a sampler, median", expanse::bench::Quantile(first, 0.5), "ms");
  report.Add("Prolog that starts a sampler, p99", expanse::bench::Quantile(first, 0.99), "ms");
  report.Print();
  return 0;
}
