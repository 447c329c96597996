#include "cli/diagnose_render.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "cli/answer_rows.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;

using Fields = std::vector<Field>;

constexpr std::size_t kMostQuotes = 6;
constexpr std::size_t kLongestQuote = 300;

Cell ShowStage(const v1::PipelineStage& stage) {
  Tint tint = Tint::kFaint;
  std::string word = "skipped";
  if (stage.status() == v1::PIPELINE_STAGE_STATUS_OK) {
    tint = Tint::kGood;
    word = "done";
  } else if (stage.status() == v1::PIPELINE_STAGE_STATUS_DEGRADED) {
    tint = Tint::kBusy;
    word = "degraded";
  }
  return {stage.summary().empty() ? word : fmt::format("{:<9} {}", word, stage.summary()), tint};
}

Fields PipelineRows(const v1::DiagnoseResult& result) {
  Fields rows;
  for (const v1::PipelineStage& stage : result.pipeline())
    rows.push_back({stage.name(), ShowStage(stage)});
  return rows;
}

Fields HeadingRows(const v1::DiagnoseResult& result, bool cached) {
  const v1::DiagnoseDisplay& display = result.display();
  const bool failed = display.state() == "failed";
  return {{"target", display.target()},
          {"job_name", display.job_name()},
          {"state", Cell(display.state(), failed ? Tint::kBad : Tint::kNone)},
          {"failure_class", Cell(display.failure_class(),
                                 display.failure_class().empty() ? Tint::kNone : Tint::kBad)},
          {"compute", display.compute()},
          {"cached", cached ? "yes" : ""}};
}

// The tint of a row that bears on the failure.
Cell Tinted(const v1::DiagnoseResult& result, const std::string& name, std::string value) {
  const auto& statuses = result.display().field_status();
  const auto found = statuses.find(name);
  Tint tint = Tint::kNone;
  if (found != statuses.end() && found->second == v1::DIAGNOSE_FIELD_STATUS_ERROR)
    tint = Tint::kBad;
  if (found != statuses.end() && found->second == v1::DIAGNOSE_FIELD_STATUS_WARNING)
    tint = Tint::kBusy;
  return {std::move(value), tint};
}

Fields SnapshotRows(const v1::DiagnoseResult& result) {
  const v1::ResourceSnapshot& seen = result.display().resource_snapshot();
  Fields rows;
  const auto put = [&](const char* name, bool known, std::string value) {
    if (known) rows.push_back({name, Tinted(result, name, std::move(value))});
  };
  put("runtime_s", seen.has_runtime_seconds(), std::to_string(seen.runtime_seconds()));
  put("walltime_requested_s", seen.has_walltime_requested_seconds(),
      std::to_string(seen.walltime_requested_seconds()));
  put("gpu_type", !seen.gpu_type().empty(), seen.gpu_type());
  put("cuda_version", !seen.cuda_version().empty(), seen.cuda_version());
  put("gpu_count", seen.has_gpu_count(), std::to_string(seen.gpu_count()));
  put("gpu_utilisation_pct", seen.has_gpu_utilisation_pct(), Short(seen.gpu_utilisation_pct(), 1));
  put("gpu_memory_available_gb", seen.has_gpu_memory_available_bytes(),
      ShowGib(seen.gpu_memory_available_bytes()));
  put("gpu_memory_observed_gb", seen.has_gpu_memory_observed_bytes(),
      ShowGib(seen.gpu_memory_observed_bytes()));
  put("cpu_requested", seen.has_cpu_requested(), Short(seen.cpu_requested(), 2));
  put("host_ram_observed_peak_gb", seen.has_host_ram_observed_peak_bytes(),
      ShowGib(seen.host_ram_observed_peak_bytes()));
  put("host_ram_requested_gb", seen.has_host_ram_requested_bytes(),
      ShowGib(seen.host_ram_requested_bytes()));
  return rows;
}

Fields FailureRows(const v1::DiagnoseResult& result) {
  Cell confidence = ShowConfidence(result.confidence());
  if (result.doubts_size() > 0) confidence.text += " (" + result.doubts(0) + ")";
  Fields rows = {{"pattern", Cell(result.display().failure_class(), Tint::kBad)},
                 {"confidence", confidence}};
  if (result.display().has_recurrence())
    rows.push_back({"recurrence", ShowProbability(result.display().recurrence())});
  rows.push_back({"owner", result.owner()});
  rows.push_back({"root_cause", result.root_cause(), /*sentences=*/true});
  return rows;
}

Fields EvidenceRows(const v1::DiagnoseResult& result) {
  Fields rows;
  std::size_t quotes = 0;
  for (const v1::DiagnoseEvidence& cited : result.evidence()) {
    if (cited.quote().empty()) {
      rows.push_back({cited.origin().empty() ? "similar" : cited.origin(), cited.summary()});
      continue;
    }
    if (++quotes > kMostQuotes) continue;
    rows.push_back({cited.where(), cited.quote().substr(0, kLongestQuote)});
  }
  if (quotes > kMostQuotes)
    rows.push_back({"more", fmt::format("{} further lines, in --json", quotes - kMostQuotes)});
  return rows;
}

Fields NextRows(const v1::DiagnoseResult& result) {
  Fields rows;
  for (const v1::DiagnoseAlternative& other : result.alternatives())
    rows.push_back({"also_possible", fmt::format("{}: {}", other.failure_class(), other.title())});
  rows.push_back({"advice", result.advice(), /*sentences=*/true});
  rows.push_back({"retry", result.retry()});
  for (const std::string& sentence : result.collect())
    rows.push_back({"collect", sentence, /*sentences=*/true});
  return rows;
}

}  // namespace

std::string RenderDiagnosis(const v1::DiagnoseResult& result, bool cached,
                            const TableStyle& style) {
  std::string out;
  const auto section = [&](std::string_view title, const Fields& rows) {
    const std::string text = RenderFields(rows, style);
    if (text.empty()) return;
    out += fmt::format("{}{}\n{}", out.empty() ? "" : "\n", title, text);
  };
  section("PIPELINE DIAGNOSE", PipelineRows(result));
  section("EXPANSE DIAGNOSE", HeadingRows(result, cached));
  section("RESOURCE SNAPSHOT", SnapshotRows(result));
  if (result.display().failure_class().empty()) {
    section("RESULT", {{"state", result.root_cause(), /*sentences=*/true}});
    return out;
  }
  section("FAILURE DETECTION", FailureRows(result));
  section("EVIDENCE", EvidenceRows(result));
  section("NEXT", NextRows(result));
  return out;
}

}  // namespace expanse::cli
