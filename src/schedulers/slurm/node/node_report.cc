#include "schedulers/slurm/node/node_report.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/text.h"
#include "schedulers/slurm/text/job_id.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::string_view kJobPrefix = "job:";
constexpr std::string_view kSluidPrefix = "sluid:";
// The label that says what a report is.
constexpr const char* kLabel = "slurm.report";
constexpr const char* kSluidLabel = "slurm.sluid";

constexpr std::array<std::pair<ReportKind, std::string_view>, 4> kNames = {
    {{ReportKind::kBegan, "began"},
     {ReportKind::kEnded, "ended"},
     {ReportKind::kUsage, "usage"},
     {ReportKind::kLastUsage, "last_usage"}}};

std::string_view NameOf(ReportKind kind) { return kNames[static_cast<std::size_t>(kind)].second; }

evidence::ExecutionObservation Begin(ReportKind kind, const LocalJob& job, std::string_view node) {
  evidence::ExecutionObservation report;
  report.key = LocalKey(job);
  report.execution.source_type = evidence::SourceType::kSlurm;
  report.execution.labels[kLabel] = NameOf(kind);
  if (!job.sluid.empty()) report.execution.labels[kSluidLabel] = job.sluid;
  if (!node.empty()) report.execution.nodes.emplace_back(node);
  return report;
}

// As users see them: "8800_12", "8800+1", "8812"; the parent is what stands before the sign.
void TakeIds(const HookEvent& event, evidence::Execution& execution) {
  execution.native_id = std::to_string(event.job_id);
  if (event.array_job_id && event.array_task_id) {
    execution.parent_native_id = std::to_string(*event.array_job_id);
    execution.native_id = fmt::format("{}_{}", *event.array_job_id, *event.array_task_id);
  } else if (event.het_job_id && event.het_offset) {
    execution.parent_native_id = std::to_string(*event.het_job_id);
    execution.native_id = fmt::format("{}+{}", *event.het_job_id, *event.het_offset);
  }
}

}  // namespace

evidence::ExecutionKey LocalKey(const LocalJob& job) {
  return {evidence::SourceType::kSlurm, job.job_id != 0
                                            ? fmt::format("{}{}", kJobPrefix, job.job_id)
                                            : fmt::format("{}{}", kSluidPrefix, job.sluid)};
}

std::optional<LocalJob> ParseLocalKey(const evidence::ExecutionKey& key) {
  if (key.source_type != evidence::SourceType::kSlurm) return std::nullopt;
  std::string_view text = key.identity;
  if (text.starts_with(kSluidPrefix)) {
    text.remove_prefix(kSluidPrefix.size());
    if (!IsSluid(text)) return std::nullopt;
    return LocalJob{.job_id = 0, .sluid = std::string(text)};
  }
  if (!text.starts_with(kJobPrefix)) return std::nullopt;
  text.remove_prefix(kJobPrefix.size());
  const auto id = base::ParseInt<std::uint32_t>(text);
  if (!id || *id == 0 || text.front() == '0') return std::nullopt;
  return LocalJob{.job_id = *id, .sluid = ""};
}

evidence::ExecutionObservation MakeReport(const HookEvent& event) {
  const bool began = event.kind == HookKind::kProlog;
  evidence::ExecutionObservation report =
      Begin(began ? ReportKind::kBegan : ReportKind::kEnded,
            {.job_id = event.job_id, .sluid = event.sluid}, event.node);
  evidence::Execution& execution = report.execution;
  TakeIds(event, execution);
  execution.user = event.user;
  execution.queue = event.partition;
  execution.restart_count = event.restart_count.value_or(0);
  execution.started_at = event.started_at;
  execution.exit_code = event.exit_code;
  execution.signal = event.signal;
  if (began) execution.status = evidence::ExecutionStatus::kRunning;
  return report;
}

evidence::ExecutionObservation MakeUsageReport(const LocalJob& job, std::string_view node,
                                               const evidence::Usage& usage, bool last) {
  evidence::ExecutionObservation report =
      Begin(last ? ReportKind::kLastUsage : ReportKind::kUsage, job, node);
  report.execution.used = usage;
  return report;
}

std::optional<NodeReport> ReadReport(const evidence::ExecutionObservation& seen) {
  const auto label = seen.execution.labels.find(kLabel);
  if (label == seen.execution.labels.end()) return std::nullopt;
  auto job = ParseLocalKey(seen.key);
  if (!job) return std::nullopt;
  const auto sluid = seen.execution.labels.find(kSluidLabel);
  if (sluid != seen.execution.labels.end() && IsSluid(sluid->second)) job->sluid = sluid->second;
  for (const auto& [kind, name] : kNames) {
    if (label->second != name) continue;
    const auto& nodes = seen.execution.nodes;
    return NodeReport{.kind = kind, .job = *job, .node = nodes.empty() ? "" : nodes.front()};
  }
  return std::nullopt;
}

}  // namespace expanse::schedulers::slurm
