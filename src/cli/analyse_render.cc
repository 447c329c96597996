#include "cli/analyse_render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/answer_rows.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;

using Fields = std::vector<Field>;

std::string GibOrUnknown(bool known, std::uint64_t bytes) {
  return known ? ShowGib(bytes) : std::string(kUnknown);
}

Cell ShowFit(const v1::AnalyseResult& result) {
  Cell cell = ShowConfidence(result.confidence());
  if (result.has_confidence_score()) {
    cell.text += fmt::format(" ({:.2f}, {} of {} measured runs fit)", result.confidence_score(),
                             result.confidence_score_fit(), result.confidence_score_runs());
  }
  return cell;
}

Fields HeadingRows(const AnalyseHeading& heading, const v1::AnalyseResult* result) {
  const std::string workload = result != nullptr ? result->workload() : "";
  const std::string job_name =
      result != nullptr && !result->job_name().empty() ? result->job_name() : heading.job_name;
  const bool failed = heading.status == v1::RUN_STATUS_FAILED;
  return {{"target", heading.target},
          {"job_name", job_name},
          {"workload", workload == job_name ? "" : workload},
          {"run", heading.run_id},
          {"status", Cell(StatusLabel(heading.status), failed ? Tint::kBad : Tint::kNone)},
          {"cached", heading.cached ? "yes" : ""},
          {"error", heading.error}};
}

// What a row reads of which the answer says nothing: a job whose file was understood and does not
// ask for it asks for none; of a source file one cannot tell.
std::string NotAsked(const v1::AnalyseResult& result, std::string_view none) {
  const bool is_request = result.target_kind() == "sbatch" ||
                          result.target_kind() == "kubernetes" || result.target_kind() == "nomad";
  const bool understood = result.requested_resources().unresolved().empty();
  return std::string(is_request && understood ? none : kUnknown);
}

// Only the count where nothing is known of GPUs.
void AddGpuRows(const v1::AnalyseResult& result, Fields* rows) {
  const v1::RecommendedResources& r = result.recommended_resources();
  const bool none = r.has_gpu_count() && r.gpu_count() == 0;
  const bool silent = !r.has_gpu_count() && !result.requested_resources().has_gpu_count() &&
                      !r.has_gpu_memory_floor_bytes() && r.gpu_model().empty();
  if (none || silent) {
    rows->push_back({"gpu_count", none ? "0" : NotAsked(result, "0")});
    return;
  }
  rows->push_back({"gpu_type", r.gpu_model().empty() ? std::string(kUnknown) : r.gpu_model()});
  rows->push_back(
      {"gpu_count", r.has_gpu_count() ? std::to_string(r.gpu_count()) : std::string(kUnknown)});
  rows->push_back({"gpu_memory_available_gb", GibOrUnknown(r.has_gpu_memory_available_bytes(),
                                                           r.gpu_memory_available_bytes())});
  rows->push_back({"gpu_memory_peak_gb",
                   GibOrUnknown(r.has_gpu_memory_peak_bytes(), r.gpu_memory_peak_bytes())});
  const bool utilisation_known =
      r.has_gpu_utilisation_pct() && (!r.has_gpu_utilisation_known() || r.gpu_utilisation_known());
  rows->push_back({"gpu_utilisation_pct",
                   utilisation_known ? Short(r.gpu_utilisation_pct(), 1) : std::string(kUnknown)});
}

Fields RecommendationRows(const v1::AnalyseResult& result) {
  const v1::RecommendedResources& r = result.recommended_resources();
  const v1::RequestedResources& requested = result.requested_resources();
  Fields rows = {{"walltime_s", r.has_walltime_seconds() ? std::to_string(r.walltime_seconds())
                                                         : std::string(kUnknown)}};
  AddGpuRows(result, &rows);
  const bool uses_gpus = rows.size() > 2;
  rows.push_back(
      {"cpu_cores", r.has_cpu_cores() ? Short(r.cpu_cores(), 2) : std::string(kUnknown)});
  rows.push_back({"host_ram_gb", GibOrUnknown(r.has_memory_bytes(), r.memory_bytes())});
  if (uses_gpus) {
    rows.push_back({"gpu_memory_floor_gb",
                    GibOrUnknown(r.has_gpu_memory_floor_bytes(), r.gpu_memory_floor_bytes())});
  }
  rows.push_back({"host_ram_requested_gb", requested.has_memory_bytes()
                                               ? ShowGib(requested.memory_bytes())
                                               : NotAsked(result, "none")});
  rows.push_back({"completion_probability", ShowProbability(result.completion_probability())});
  rows.push_back({"confidence", ShowFit(result)});
  for (const std::string& line : requested.unresolved()) rows.push_back({"unresolved", line});
  return rows;
}

Fields RiskRows(const v1::AnalyseResult& result) {
  Fields rows;
  for (const v1::FailureRisk& risk : result.failure_risks()) {
    if (risk.class_() == "none" || risk.class_().empty()) continue;
    rows.push_back({"class", Cell(risk.class_(), Tint::kBad)});
    rows.push_back({"probability", ShowProbability(risk.probability())});
    rows.push_back({"summary", risk.summary()});
  }
  if (!rows.empty()) return rows;
  // Nothing threatens what is known to complete; of what never ran one cannot tell.
  const bool known = result.completion_probability().has_mean();
  return {{"class", known ? "none" : std::string(kUnknown)}};
}

Fields OptimisationRows(const v1::AnalyseResult& result) {
  const v1::RightSize& right_size = result.right_size();
  if (right_size.class_().empty() || right_size.class_() == "none") return {{"class", "none"}};
  return {{"class", right_size.class_()},
          {"review_required", right_size.review_required() ? "yes" : "no"},
          {"source_file", right_size.source_file()},
          {"artefact", right_size.artifact_id()}};
}

// Runs that ended the same way, by their kind, each kind in the order of the answer.
struct RunGroup {
  std::string_view ending;
  std::string_view row;
  std::multimap<common::v1::SourceType, const v1::CitedExecution*> runs = {};
};

std::string SourceLabel(common::v1::SourceType type, bool one) {
  std::string label = "run";
  if (type == common::v1::SOURCE_TYPE_SLURM) label = "SLURM job";
  if (type == common::v1::SOURCE_TYPE_KUBERNETES) label = "Kubernetes pod";
  if (type == common::v1::SOURCE_TYPE_NOMAD) label = "Nomad allocation";
  if (type == common::v1::SOURCE_TYPE_HOST) label = "host run";
  return one ? label : label + "s";
}

std::string ShowSimilarity(const RunGroup& group) {
  const auto less = [](const auto& a, const auto& b) {
    return a.second->similarity() < b.second->similarity();
  };
  const auto [least, most] = std::minmax_element(group.runs.begin(), group.runs.end(), less);
  const std::string low = fmt::format("{:.2f}", least->second->similarity());
  const std::string high = fmt::format("{:.2f}", most->second->similarity());
  return low == high ? low : low + " to " + high;
}

// "4 (SLURM jobs 4401, 4402, 4403, 4404; similarity 0.98)"
std::string ShowGroup(const RunGroup& group, std::size_t count, std::size_t most_runs) {
  if (group.runs.empty()) return std::to_string(count);
  const std::size_t most = most_runs == 0 ? group.runs.size() : most_runs;
  std::string text = fmt::format("{} (", count);
  std::size_t shown = 0;
  for (auto run = group.runs.begin(); run != group.runs.end() && shown < most;) {
    const auto type = run->first;
    std::vector<std::string> ids;
    for (; run != group.runs.end() && run->first == type && shown < most; ++run, ++shown) {
      const v1::CitedExecution& cited = *run->second;
      ids.push_back(cited.native_id().empty() ? cited.execution_id() : cited.native_id());
    }
    text += fmt::format("{} {}; ", SourceLabel(type, ids.size() == 1), fmt::join(ids, ", "));
  }
  if (count > shown) text += fmt::format("{} more; ", count - shown);
  return text + fmt::format("similarity {})", ShowSimilarity(group));
}

Fields EvidenceRows(const v1::AnalyseResult& result, std::size_t most_runs) {
  std::array<RunGroup, 5> groups = {{{"success", "successful_runs"},
                                     {"out_of_memory", "out_of_memory_runs"},
                                     {"timeout", "timed_out_runs"},
                                     {"failure", "failed_runs"},
                                     {"", "other_runs"}}};
  for (const v1::CitedExecution& run : result.evidence()) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const RunGroup& g) { return g.ending == run.ending(); });
    if (group == groups.end()) group = groups.end() - 1;
    group->runs.emplace(run.source_type(), &run);
  }
  Fields rows;
  for (RunGroup& group : groups) {
    const bool successes = &group == groups.data();
    if (group.runs.empty() && !successes) continue;
    std::size_t count = group.runs.size();
    // The server may name fewer than it counted.
    if (successes)
      count = std::max<std::size_t>(count, result.completion_probability().success_count());
    rows.push_back({std::string(group.row), ShowGroup(group, count, most_runs)});
  }
  for (const std::string& warning : result.warnings()) {
    rows.push_back({"warning", Cell(warning, Tint::kBusy)});
  }
  return rows;
}

}  // namespace

std::string StatusLabel(v1::RunStatus status) {
  if (!v1::RunStatus_IsValid(status)) return std::to_string(static_cast<int>(status));
  return base::ToLower(v1::RunStatus_Name(status));
}

std::string RenderAnalyse(const AnalyseHeading& heading, const v1::AnalyseResult* result,
                          const AnalyseStyle& style) {
  const auto section = [&](std::string_view title, const Fields& rows) {
    return fmt::format("{}\n{}", title, RenderFields(rows, style.table));
  };
  std::string out = section("EXPANSE ANALYSE", HeadingRows(heading, result));
  if (result == nullptr) return out;
  out += "\n" + section("RESOURCE RECOMMENDATION", RecommendationRows(*result));
  out += "\n" + section("FAILURE RISK", RiskRows(*result));
  out += "\n" + section("OPTIMISATION", OptimisationRows(*result));
  out += "\n" + section("EVIDENCE", EvidenceRows(*result, style.most_runs));
  return out;
}

}  // namespace expanse::cli
