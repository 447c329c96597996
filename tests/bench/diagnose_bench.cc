// How often the diagnosis names the right class, and how fast it is.
//   diagnose_bench --cases DIR [--healthy DIR] [--verbose] [--lines N]
// DIR holds cases (intelligence/diagnose/case_file.h). Prints top-1 and top-3 shares, per class,
// how often each confidence label was right, the share that was wrong at `high`, findings on
// healthy runs, and times: of a case, and of a log of N lines.
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/bench_report.h"
#include "bench/diagnose_parts/made_cases.h"
#include "intelligence/diagnose/case_file.h"
#include "intelligence/diagnose/diagnose.h"

namespace {

using expanse::bench::Quantile;
using namespace expanse::intelligence;            // NOLINT: a program, not a header
using namespace expanse::intelligence::diagnose;  // NOLINT

struct Tally {
  int cases = 0;
  int top1 = 0;
  int top3 = 0;
};

const char* Label(predict::Confidence confidence) {
  static constexpr std::array<const char*, 3> kNames = {"low", "medium", "high"};
  return kNames[static_cast<std::size_t>(confidence)];
}

double MillisOf(const Case& of, const RunbookSet& set, Diagnosis* diagnosis) {
  const auto start = std::chrono::steady_clock::now();
  *diagnosis = Diagnose(of, set);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

struct Timing {
  double median = 0;
  double cpu_median = 0;  // of this thread: what a busy machine does not distort
  double p99 = 0;
  std::string failure_class;
};

double ThreadCpuMillis() {
  timespec at{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at) != 0) return 0;
  return static_cast<double>(at.tv_sec) * 1e3 + static_cast<double>(at.tv_nsec) / 1e6;
}

Timing TimeOf(const Case& of, const RunbookSet& set, int rounds) {
  std::vector<double> millis;
  std::vector<double> cpu;
  Diagnosis said;
  for (int round = 0; round < rounds; ++round) {
    const double before = ThreadCpuMillis();
    millis.push_back(MillisOf(of, set, &said));
    cpu.push_back(ThreadCpuMillis() - before);
  }
  return {.median = Quantile(millis, 0.5),
          .cpu_median = Quantile(cpu, 0.5),
          .p99 = Quantile(millis, 0.99),
          .failure_class = said.failure_class};
}

double PeakMemoryMiB() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<double>(usage.ru_maxrss) / 1024 : 0;
}

void AddSpeed(const RunbookSet& set, std::size_t lines, expanse::bench::Report* report) {
  const Timing ordinary = TimeOf(expanse::bench::OrdinaryCase(), set, 200);
  report->Add("an ordinary run, median", ordinary.median, "ms");
  report->Add("an ordinary run, median CPU", ordinary.cpu_median, "ms");
  report->Add("an ordinary run, p99", ordinary.p99, "ms");
  const double before = PeakMemoryMiB();
  const Timing long_log = TimeOf(expanse::bench::LongCase(lines), set, 5);
  report->Add("long log, lines", static_cast<double>(lines), "");
  report->Add("long log, median", long_log.median, "ms");
  report->Add("long log, median CPU", long_log.cpu_median, "ms");
  report->Add("long log found", long_log.failure_class == "gpu_out_of_memory", "");
  const Timing distinct = TimeOf(expanse::bench::DistinctCase(lines), set, 5);
  report->Add("long log, all lines differ, median", distinct.median, "ms");
  report->Add("long log, all lines differ, median CPU", distinct.cpu_median, "ms");
  report->Add("peak memory before long logs", before, "MiB");
  report->Add("peak memory", PeakMemoryMiB(), "MiB");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Accuracy and speed of the diagnosis"};
  std::string cases_dir;
  std::string healthy_dir;
  bool verbose = false;
  std::size_t lines = 100'000;
  app.add_option("--cases", cases_dir, "folder of cases")->required();
  app.add_option("--healthy", healthy_dir, "folder of cases in which nothing failed");
  app.add_flag("--verbose", verbose, "a line for each case that is not right");
  app.add_option("--lines", lines, "length of the long log");
  CLI11_PARSE(app, argc, argv);

  const auto set = RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
  if (!set) return std::fprintf(stderr, "%s\n", set.error().message.c_str()), 1;
  const auto cases = ReadCases(cases_dir);
  if (!cases) return std::fprintf(stderr, "%s\n", cases.error().message.c_str()), 1;

  std::map<std::string, Tally> classes;
  std::map<std::string, Tally> labels;
  std::vector<double> millis;
  Tally all;
  int wrong_at_high = 0;
  for (const LabelledCase& each : *cases) {
    Diagnosis said;
    millis.push_back(MillisOf(each.what, **set, &said));
    const std::string first = said.failure_class.empty() ? "none" : said.failure_class;
    bool third = IsRight(each, first);
    for (const Alternative& other : said.alternatives) third |= IsRight(each, other.failure_class);
    const bool right = IsRight(each, first);
    for (Tally* tally : {&all, &classes[each.true_class], &labels[Label(said.confidence)]}) {
      ++tally->cases;
      tally->top1 += right;
      tally->top3 += third;
    }
    if (!right && said.confidence == predict::Confidence::kHigh) ++wrong_at_high;
    if (verbose && !right) {
      std::string others;
      for (const Alternative& other : said.alternatives) others += " " + other.failure_class;
      fmt::print("{:<48} is {:<28} said {} ({}){}\n", each.id, each.true_class, first,
                 Label(said.confidence), others.empty() ? "" : " then" + others);
    }
  }
  fmt::print("{:<34} {:>6} {:>6} {:>6}\n", "class", "cases", "top-1", "top-3");
  for (const auto& [name, tally] : classes)
    fmt::print("{:<34} {:>6} {:>6} {:>6}\n", name, tally.cases, tally.top1, tally.top3);
  fmt::print("\n{:<34} {:>6} {:>6}\n", "confidence", "cases", "right");
  for (const auto& [name, tally] : labels)
    fmt::print("{:<34} {:>6} {:>5.0f}%\n", name, tally.cases,
               100.0 * tally.top1 / std::max(1, tally.cases));

  int false_findings = 0;
  int healthy_count = 0;
  if (!healthy_dir.empty()) {
    const auto healthy = ReadCases(healthy_dir);
    if (!healthy) return std::fprintf(stderr, "%s\n", healthy.error().message.c_str()), 1;
    for (const LabelledCase& each : *healthy) {
      ++healthy_count;
      const Diagnosis said = Diagnose(each.what, **set);
      if (said.failure_class.empty()) continue;
      ++false_findings;
      fmt::print("false finding: {} said {}\n", each.id, said.failure_class);
    }
  }

  const double count = std::max(1, all.cases);
  expanse::bench::Report report("diagnose");
  report.Add("cases", all.cases, "");
  report.Add("top-1", 100.0 * all.top1 / count, "%");
  report.Add("top-3", 100.0 * all.top3 / count, "%");
  report.Add("wrong at high", 100.0 * wrong_at_high / count, "%");
  report.Add("healthy runs", healthy_count, "");
  report.Add("false findings", false_findings, "");
  report.Add("a case, median", Quantile(millis, 0.5), "ms");
  report.Add("a case, p99", Quantile(millis, 0.99), "ms");
  AddSpeed(**set, lines, &report);
  report.Print();
  return 0;
}
