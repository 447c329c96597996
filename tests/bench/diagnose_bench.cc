// How often the diagnosis names the right class, and how fast it is.
//   diagnose_bench --cases DIR [--healthy DIR] [--verbose] [--lines N]
// DIR holds cases (intelligence/diagnose/case_file.h). Prints top-1 and top-3 shares, per class,
// how often each confidence label was right, the share that was wrong at `high`, findings on
// healthy runs, and times: of a case, and of a log of N lines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/bench_report.h"
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

// A long noisy log with one cause in its middle.
Case LongCase(std::size_t lines) {
  std::string log;
  for (std::size_t i = 0; i < lines; ++i) {
    log += fmt::format(
        "2026-03-01T10:{:02}:{:02}.{:03} [rank{}] step {} loss {:.4f} lr {:.2e} word{} error_rate "
        "{}\n",
        i / 3600 % 60, i / 60 % 60, i % 1000, i % 64, i, 1.0 / double(i + 1), 1e-4, i * 7919 % 997,
        i % 13);
    if (i == lines / 2)
      log += "[rank17]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB\n";
  }
  Case of;
  of.execution.status = expanse::evidence::ExecutionStatus::kFailed;
  of.execution.exit_code = 1;
  of.logs.push_back({.stream = "stderr", .data = std::move(log)});
  return of;
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

  const Case long_case = LongCase(lines);
  std::vector<double> long_millis;
  Diagnosis long_said;
  for (int round = 0; round < 5; ++round)
    long_millis.push_back(MillisOf(long_case, **set, &long_said));

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
  report.Add("long log, lines", static_cast<double>(lines), "");
  report.Add("long log, median", Quantile(long_millis, 0.5), "ms");
  report.Add("long log found", long_said.failure_class == "gpu_out_of_memory", "");
  report.Print();
  return 0;
}
