// Replays public job histories and compares limits and forecasts: ours against what users asked for
// and against published policies (tests/bench/predict_parts/policies.cc). One command:
//   predict_bench DIR [--seed N] [--half all|tuned|held] [--policy NAME] [--exact] [--max-runs N]
//   [--json FILE] [--runs FILE]
// DIR is laid out like a collection of traces with an index.csv; without one, every file is tried.
// Standard output is the same for the same input and seed; times go to standard error.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/bench_report.h"
#include "bench/predict_parts/replay.h"
#include "bench/predict_parts/trace.h"

namespace {

using namespace expanse;
using bench::PolicyScore;
using bench::ResourceScore;
using bench::TraceScore;

double Share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string Dominators(const ResourceScore& score) {
  const auto better = bench::DominatedBy(score);
  return better.empty() ? "none" : fmt::format("{}", fmt::join(better, " "));
}

void PrintResource(const TraceScore& trace, const ResourceScore& score, const std::string& only) {
  if (score.policies[0].runs == 0) return;
  const bool memory = score.resource == bench::Resource::kMemory;
  fmt::print("\n{} {}: {} runs of {} groups, {:.6g} {} used; dominated by: {}\n", trace.trace,
             memory ? "memory" : "walltime", score.policies[0].runs, trace.groups, score.used,
             memory ? "GiB-h" : "core-h", Dominators(score));
  fmt::print("  {:<14} {:>7} {:>9} {:>9} {:>13} {:>9}\n", "POLICY", "RUNS", "FAILED_%", "TRIES",
             memory ? "ALLOC_GIB_H" : "ALLOC_CORE_H", "OVER_USED");
  for (const PolicyScore& policy : score.policies) {
    if (policy.runs == 0 || (!only.empty() && policy.policy != only)) continue;
    fmt::print("  {:<14} {:>7} {:>9.3f} {:>9} {:>13.6g} {:>9.3f}\n", policy.policy, policy.runs,
               100 * Share(policy.failed_first, policy.runs), policy.tries, policy.allocated,
               score.used > 0 ? policy.allocated / score.used : 0);
  }
  const auto& forecast = score.forecast;
  if (forecast.intervals == 0) return;
  fmt::print(
      "  forecast: brier {:.4f} of {}; p10-p90 covers {:.3f} ({:.3f} below, {:.3f} above); pinball "
      "p10 {:.4f} p90 {:.4f}\n  calibration (predicted>happened):",
      forecast.brier, forecast.forecasts, forecast.coverage, forecast.below_p10, forecast.above_p90,
      forecast.pinball_p10, forecast.pinball_p90);
  for (const auto& bin : forecast.bins) {
    if (bin.forecasts == 0)
      fmt::print(" -");
    else
      fmt::print(" {:.2f}>{:.2f}", bin.predicted, bin.happened);
  }
  fmt::print("\n");
}

nlohmann::json ToJson(const TraceScore& trace) {
  nlohmann::json json{{"trace", trace.trace}, {"runs", trace.runs}, {"groups", trace.groups}};
  for (const ResourceScore& score : trace.resources) {
    if (score.policies[0].runs == 0) continue;
    nlohmann::json one{{"used", score.used}, {"dominated_by", bench::DominatedBy(score)}};
    for (const PolicyScore& policy : score.policies) {
      if (policy.runs == 0) continue;
      one["policies"][policy.policy] = {{"runs", policy.runs},
                                        {"failed_first", policy.failed_first},
                                        {"tries", policy.tries},
                                        {"allocated", policy.allocated}};
    }
    const auto& forecast = score.forecast;
    one["forecast"] = {{"forecasts", forecast.forecasts},     {"brier", forecast.brier},
                       {"coverage", forecast.coverage},       {"below_p10", forecast.below_p10},
                       {"above_p90", forecast.above_p90},     {"pinball_p10", forecast.pinball_p10},
                       {"pinball_p90", forecast.pinball_p90}, {"intervals", forecast.intervals}};
    for (const auto& bin : forecast.bins)
      one["forecast"]["bins"].push_back({bin.forecasts, bin.predicted, bin.happened});
    json[score.resource == bench::Resource::kMemory ? "memory" : "walltime"] = std::move(one);
  }
  json["completion"] = {{"forecasts", trace.completion.forecasts},
                        {"brier", trace.completion.brier},
                        {"brier_of_base_rate", trace.completion.brier_of_base_rate}};
  return json;
}

// A line per run and resource: what it needed, and for each policy the first limit and all it cost.
class RunLog {
 public:
  explicit RunLog(const std::string& file) : out_(file) {
    out_ << "trace,group,resource,known,need,runtime_s,cores,requested,input_size,ours,ours_cost";
    for (const auto& kind : bench::Baselines())
      out_ << ',' << kind.name << ',' << kind.name << "_cost";
    out_ << '\n';
  }
  void Write(const std::string& trace, const bench::PlayedRun& played) {
    const bool memory = played.resource == bench::Resource::kMemory;
    const auto& run = *played.run;
    const auto requested = memory ? run.requested_memory_bytes : run.requested_walltime_s;
    out_ << fmt::format("\"{}\",\"{}\",{},{},{:.9g},{:.9g},{},{:.9g},{:.9g}", trace, run.group,
                        memory ? "memory" : "walltime", played.known, played.need, run.runtime_s,
                        run.cores, requested.value_or(0), run.input_size.value_or(0));
    for (const auto& limit : played.limits)
      out_ << fmt::format(",{:.9g},{:.9g}", limit.first, limit.allocated);
    out_ << '\n';
  }

 private:
  std::ofstream out_;
};

struct Totals {
  std::size_t tables = 0;
  std::vector<std::string> dominated;
  std::vector<double> recommendation_us;
};

void Add(Totals& totals, const TraceScore& trace) {
  for (const ResourceScore& score : trace.resources) {
    if (score.policies[0].runs == 0) continue;
    ++totals.tables;
    if (const auto better = bench::DominatedBy(score); !better.empty())
      totals.dominated.push_back(
          fmt::format("{} {}: {}", trace.trace,
                      score.resource == bench::Resource::kMemory ? "memory" : "walltime",
                      fmt::join(better, " ")));
  }
  totals.recommendation_us.insert(totals.recommendation_us.end(), trace.recommendation_us.begin(),
                                  trace.recommendation_us.end());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"trace replay: limits and forecasts against published policies"};
  std::string folder;
  std::string json_file;
  std::string runs_file;
  std::string only_trace;
  std::string half = "all";
  bench::ReplayOptions options;
  bool exact = false;
  std::size_t max_runs = 0;
  app.add_option("folder", folder, "folder of traces")->required();
  app.add_option("--seed", options.seed, "splits the groups into halves");
  app.add_option("--half", half, "groups: all, tuned, held")
      ->check(CLI::IsMember({"all", "tuned", "held"}));
  app.add_option("--policy", options.only_policy, "print this one alone");
  app.add_option("--trace", only_trace, "traces whose name holds this text");
  app.add_option("--max-runs", max_runs, "of each trace, the first ones; 0 is all");
  app.add_option("--target", options.target, "chance to fit that a limit must have");
  app.add_flag("--exact", exact, "limits as computed, not in units that people write");
  app.add_option("--json", json_file, "write all figures here");
  app.add_option("--runs", runs_file, "write a CSV line per run here");
  CLI11_PARSE(app, argc, argv);
  options.round_to_units = !exact;
  options.half = half == "tuned"  ? bench::Half::kTuned
                 : half == "held" ? bench::Half::kHeld
                                  : bench::Half::kAll;

  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    fmt::print("skipped: no reference data\n");
    return 0;
  }
  auto traces = bench::ReadTraces(folder);
  if (!traces) {
    fmt::print(stderr, "predict_bench: {}\n", traces.error().message);
    return 1;
  }
  std::optional<RunLog> log;
  if (!runs_file.empty()) log.emplace(runs_file);
  Totals totals;
  nlohmann::json all = nlohmann::json::array();
  for (bench::Trace& trace : traces->traces) {
    if (!only_trace.empty() && trace.name.find(only_trace) == std::string::npos) continue;
    if (max_runs > 0 && trace.runs.size() > max_runs) trace.runs.resize(max_runs);
    if (log) options.on_run = [&](const auto& played) { log->Write(trace.name, played); };
    const TraceScore score = bench::Replay(trace, options);
    for (const ResourceScore& resource : score.resources)
      PrintResource(score, resource, options.only_policy);
    if (score.completion.forecasts > 0)
      fmt::print("  completion: brier {:.4f} of {} (base rate {:.4f})\n", score.completion.brier,
                 score.completion.forecasts, score.completion.brier_of_base_rate);
    std::fflush(stdout);
    all.push_back(ToJson(score));
    Add(totals, score);
  }
  fmt::print("\n{} tables; ours dominated in {}\n", totals.tables, totals.dominated.size());
  for (const std::string& one : totals.dominated) fmt::print("  {}\n", one);
  fmt::print("{} files not replayed\n", traces->skipped.size());
  for (const std::string& one : traces->skipped) fmt::print(stderr, "not replayed: {}\n", one);
  if (!totals.recommendation_us.empty()) {
    const auto calls = totals.recommendation_us.size();
    const double p50 = bench::Quantile(totals.recommendation_us, 0.5);
    const double p99 = bench::Quantile(totals.recommendation_us, 0.99);
    fmt::print(stderr, "{} recommendations: p50 {:.1f} us, p99 {:.1f} us, max {:.1f} us\n", calls,
               p50, p99, totals.recommendation_us.back());
  }
  if (!json_file.empty()) std::ofstream(json_file) << all.dump(1) << '\n';
  return 0;
}
