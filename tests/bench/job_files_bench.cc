// What following the output files of very many running jobs costs: CPU of the thread that looks at
// them, and memory.
//   job_files_bench [--jobs 10000] [--minutes 60] [--grow 0.2] [--output 100000]
// Makes two files a job and lets the given share of them grow before each of its looks. Time is a
// fake clock's: an hour passes in seconds. Goal: under 2 % of a core and 30 MiB for 10,000 jobs.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>

#include "base/files.h"
#include "base/text.h"
#include "bench/bench_report.h"
#include "schedulers/slurm/files/job_follower.h"

namespace {

using namespace expanse;
using namespace expanse::schedulers::slurm;
using namespace std::chrono_literals;

struct Flags {
  int jobs = 10'000;
  int minutes = 60;
  double grow = 0.2;
  std::size_t output = 100'000;
};

double ResidentMiB() {
  const std::string text = base::ReadFile("/proc/self/statm").value_or("");
  const auto words = base::SplitSpaces(text);
  const auto pages = words.size() > 1 ? base::ParseInt<std::uint64_t>(words[1]).value_or(0) : 0;
  return double(pages) * double(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

bool Append(const std::string& path, std::string_view data) {
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  return fd.valid() && base::WriteFd(fd.get(), data).has_value();
}

std::string Lines(std::size_t bytes) {
  std::string text;
  for (int step = 0; text.size() < bytes; ++step)
    text += fmt::format("step {} loss 0.{:04} lr 3e-4 tokens/s 51200 of node{:03}\n", step,
                        step % 9999, step % 64);
  return text;
}

JobFilesRequest RequestOf(const std::string& directory, int job) {
  JobFilesRequest request;
  request.key = {evidence::SourceType::kSlurm, fmt::format("bench/{}@1800000000", 40'000 + job)};
  request.uid = ::geteuid();
  request.user = "bench";
  request.stdout_path = fmt::format("{}/{}/slurm-{}.out", directory, job % 100, job);
  request.stderr_path = fmt::format("{}/{}/slurm-{}.err", directory, job % 100, job);
  request.working_directory = directory;
  request.command = directory + "/job.sh";
  return request;
}

int Run(const Flags& flags) {
  const auto temp = base::TempDir::Create("job-files");
  if (!temp) return 1;
  const std::string& directory = temp->path();
  for (int i = 0; i < 100; ++i)
    if (::mkdir(fmt::format("{}/{}", directory, i).c_str(), 0755) != 0) return 1;
  const std::string output = Lines(flags.output);
  for (int job = 0; job < flags.jobs; ++job) {
    const JobFilesRequest request = RequestOf(directory, job);
    if (!Append(request.stdout_path, output) || !Append(request.stderr_path, "note: x\n")) {
      fmt::print(stderr, "job_files_bench: no space for the files\n");
      return 1;
    }
  }

  JobFilesOptions options;
  base::FakeClock clock;
  ResultQueue results(options.max_result_bytes);
  FilesMonitor monitor;
  JobFollower follower(options, clock, results, monitor);
  const double before = ResidentMiB();
  for (int job = 0; job < flags.jobs; ++job)
    follower.Follow(RequestOf(directory, job),
                    std::make_shared<const std::string>("#!/bin/sh\npython train.py\n"));
  std::size_t bytes = 0;
  std::size_t payloads = 0;
  const auto take = [&] {
    for (const auto& payload : results.Take(100'000)) {
      ++payloads;
      if (const auto* tail = std::get_if<evidence::LogTail>(&payload)) bytes += tail->data.size();
    }
  };
  while (follower.Step({})) take();
  take();
  const FilesMonitor::Figures begun = monitor.figures();
  const std::size_t begun_payloads = payloads;
  double peak = ResidentMiB();
  int next = 0;
  const double per_second = flags.jobs * flags.grow / 60;  // as if each grew once a minute
  for (int second = 0; second < flags.minutes * 60; ++second) {
    for (double left = per_second; left > 0; --left, next = (next + 7919) % flags.jobs)
      (void)Append(RequestOf(directory, next).stdout_path, "another line of output\n");
    clock.Advance(1s);
    while (follower.Step({})) take();
    take();
    peak = std::max(peak, ResidentMiB());
  }
  const FilesMonitor::Figures figures = monitor.figures();
  const double seconds = flags.minutes * 60;
  bench::Report report("job_files");
  report.Add("jobs", double(figures.followed), "");
  report.Add("cpu to begin, a job", begun.cpu_s / flags.jobs * 1e6, "us");
  report.Add("looks a second", double(figures.looks - begun.looks) / seconds, "");
  report.Add("tails a second", double(figures.tails) / seconds, "");
  report.Add("tail bytes a second", double(bytes) / seconds, "");
  report.Add("results", double(payloads - begun_payloads), "");
  report.Add("cpu a look",
             (figures.cpu_s - begun.cpu_s) / double(figures.looks - begun.looks) * 1e6, "us");
  report.Add("share of a core", (figures.cpu_s - begun.cpu_s) / seconds * 100, "%");
  report.Add("longest overdue", figures.overdue_s, "s");
  report.Add("memory, jobs and all", peak - before, "MiB");
  report.Print();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Cost of following output files");
  Flags flags;
  app.add_option("--jobs", flags.jobs);
  app.add_option("--minutes", flags.minutes);
  app.add_option("--grow", flags.grow);
  app.add_option("--output", flags.output);
  CLI11_PARSE(app, argc, argv);
  return Run(flags);
}
