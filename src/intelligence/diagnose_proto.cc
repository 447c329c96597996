#include "intelligence/diagnose_proto.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/crypto.h"
#include "base/text.h"
#include "base/version.h"
#include "evidence/wire.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/analyse_proto.h"
#include "intelligence/confidence_proto.h"
#include "intelligence/predict/probability.h"

namespace expanse::intelligence {
namespace {

using base::Code;
using base::ToValidUtf8;

std::unexpected<base::Error> Invalid(std::string reason, std::string message) {
  return base::Fail(Code::kInvalidArgument, std::move(reason), std::move(message));
}

v1::PipelineStageStatus StatusOf(diagnose::StageStatus status) {
  switch (status) {
    case diagnose::StageStatus::kOk:
      return v1::PIPELINE_STAGE_STATUS_OK;
    case diagnose::StageStatus::kDegraded:
      return v1::PIPELINE_STAGE_STATUS_DEGRADED;
    case diagnose::StageStatus::kSkipped:
      return v1::PIPELINE_STAGE_STATUS_SKIPPED;
  }
  return v1::PIPELINE_STAGE_STATUS_UNSPECIFIED;
}

v1::DiagnoseFieldStatus StatusOf(diagnose::FieldStatus status) {
  switch (status) {
    case diagnose::FieldStatus::kOk:
      return v1::DIAGNOSE_FIELD_STATUS_OK;
    case diagnose::FieldStatus::kWarning:
      return v1::DIAGNOSE_FIELD_STATUS_WARNING;
    case diagnose::FieldStatus::kError:
      return v1::DIAGNOSE_FIELD_STATUS_ERROR;
  }
  return v1::DIAGNOSE_FIELD_STATUS_UNSPECIFIED;
}

std::optional<std::uint64_t> Whole(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value) || *value < 0 || *value > 1e18) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(*value));
}

void PutSnapshot(const diagnose::Snapshot& in, v1::ResourceSnapshot* out) {
  if (const auto seconds = Whole(in.runtime_s))
    out->set_runtime_seconds(static_cast<std::int64_t>(*seconds));
  out->set_gpu_type(ToValidUtf8(in.gpu_type));
  out->set_cuda_version(ToValidUtf8(in.cuda_version));
  if (const auto count = Whole(in.gpu_count))
    out->set_gpu_count(static_cast<std::uint32_t>(*count));
  if (const auto percent = Whole(in.gpu_utilisation_pct))
    out->set_gpu_utilisation_pct(static_cast<double>(*percent));
  if (const auto bytes = Whole(in.gpu_memory_available_bytes))
    out->set_gpu_memory_available_bytes(*bytes);
  if (const auto bytes = Whole(in.gpu_memory_observed_bytes))
    out->set_gpu_memory_observed_bytes(*bytes);
  if (in.cpu_requested) out->set_cpu_requested(*in.cpu_requested);
  if (const auto bytes = Whole(in.host_ram_observed_peak_bytes))
    out->set_host_ram_observed_peak_bytes(*bytes);
  if (const auto bytes = Whole(in.host_ram_requested_bytes))
    out->set_host_ram_requested_bytes(*bytes);
  if (const auto seconds = Whole(in.walltime_s))
    out->set_walltime_requested_seconds(static_cast<std::int64_t>(*seconds));
}

void PutProbability(const predict::Probability& exact, v1::Probability* out) {
  const predict::Probability in = predict::Rounded(exact);
  out->set_mean(in.mean);
  out->set_sigma(in.sigma);
  out->set_p10(in.p10);
  out->set_p90(in.p90);
  out->set_success_count(in.success_count);
  out->set_basis(std::string(predict::Name(in.basis)));
}

void PutDisplay(const diagnose::Case& of, const diagnose::Diagnosis& in, v1::DiagnoseDisplay* out) {
  out->set_target(of.execution.execution_id);
  out->set_job_name(ToValidUtf8(of.execution.name));
  out->set_state(std::string(diagnose::Name(in.state)));
  out->set_failure_class(in.failure_class);
  out->set_compute(ToValidUtf8(of.compute_name));
  PutSnapshot(in.snapshot, out->mutable_resource_snapshot());
  for (const auto& [name, status] : in.fields)
    (*out->mutable_field_status())[name] = StatusOf(status);
  if (in.recurrence) PutProbability(*in.recurrence, out->mutable_recurrence());
}

void PutEvidence(const diagnose::CitedEvidence& in, v1::DiagnoseEvidence* out) {
  out->set_execution_id(in.execution_id);
  out->set_summary(ToValidUtf8(in.summary));
  out->set_evidence_id(in.id);
  out->set_origin(in.origin);
  out->set_where(ToValidUtf8(in.where));
  out->set_quote(ToValidUtf8(in.quote));
}

void PutAlternative(const diagnose::Alternative& in, v1::DiagnoseAlternative* out) {
  out->set_failure_class(in.failure_class);
  out->set_title(in.title);
  for (const std::string& id : in.supporting) out->add_supporting(id);
  for (const std::string& id : in.against) out->add_against(id);
}

// Length before bytes, so that two different lists never read the same.
class KeyText {
 public:
  void Add(std::string_view piece) {
    text_ += std::to_string(piece.size());
    text_ += ':';
    text_ += piece;
  }
  void Add(const std::optional<double>& number) {
    Add(number ? fmt::format("{}", *number) : std::string("-"));
  }
  std::string Hash() const { return base::Sha256Hex(text_); }

 private:
  std::string text_;
};

}  // namespace

base::Result<ExecutionName> NameOf(const v1::DiagnoseRequest& request) {
  if (request.execution_id().empty() == request.native_id().empty())
    return Invalid("diagnose.target", "give either execution_id or native_id");
  if (!request.execution_id().empty() && !base::IsUuid(request.execution_id()))
    return Invalid("diagnose.target", "execution_id is a UUID");
  if (request.native_id().size() > kLongestName || request.compute_id().size() > kLongestName)
    return Invalid("diagnose.target", fmt::format("ids have at most {} bytes", kLongestName));
  if (!common::v1::SourceType_IsValid(request.source_type()))
    return Invalid("diagnose.source_type", "source_type is not known");
  return ExecutionName{.execution_id = request.execution_id(),
                       .native_id = request.native_id(),
                       .source_type = static_cast<evidence::SourceType>(request.source_type()),
                       .compute_id = request.compute_id()};
}

base::Result<std::vector<diagnose::SourceText>> ExtraSourcesOf(const v1::DiagnoseRequest& request) {
  if (request.files_size() > kMostFiles)
    return Invalid("diagnose.files", fmt::format("at most {} files are taken", kMostFiles));
  std::vector<diagnose::SourceText> files;
  std::size_t total = 0;
  for (const v1::TargetFile& file : request.files()) {
    if (file.path().empty() || file.path().size() > kLongestPath)
      return Invalid("diagnose.files",
                     fmt::format("files.path has from 1 to {} bytes", kLongestPath));
    total += file.data().size();
    if (total > kMostFileBytes)
      return Invalid("diagnose.files",
                     fmt::format("the files have more than {} bytes together", kMostFileBytes));
    files.push_back({.path = file.path(), .role = file.role(), .data = file.data()});
  }
  return files;
}

v1::DiagnoseResult ResultOf(const diagnose::Case& of, const diagnose::Diagnosis& in) {
  v1::DiagnoseResult out;
  out.set_root_cause(ToValidUtf8(in.root_cause));
  if (!in.failure_class.empty()) out.set_confidence(LabelOf(in.confidence));
  for (const diagnose::CitedEvidence& cited : in.evidence) PutEvidence(cited, out.add_evidence());
  PutDisplay(of, in, out.mutable_display());
  for (const diagnose::Stage& stage : in.pipeline) {
    v1::PipelineStage* put = out.add_pipeline();
    put->set_name(stage.name);
    put->set_status(StatusOf(stage.status));
    put->set_summary(ToValidUtf8(stage.summary));
  }
  out.set_agent_prompt(ToValidUtf8(in.agent_prompt));
  out.set_title(in.title);
  out.set_kind(in.kind);
  out.set_owner(in.owner);
  for (const std::string& doubt : in.doubts) out.add_doubts(doubt);
  out.set_advice(ToValidUtf8(in.advice));
  out.set_retry(in.retry);
  out.set_verify(ToValidUtf8(in.verify));
  for (const std::string& name : in.explained) out.add_explained(name);
  for (const std::string& sentence : in.collect) out.add_collect(ToValidUtf8(sentence));
  for (const diagnose::Alternative& other : in.alternatives)
    PutAlternative(other, out.add_alternatives());
  return out;
}

std::string CacheKey(const diagnose::Case& of, std::string_view runbooks) {
  KeyText key;
  key.Add("diagnose");
  key.Add(base::Version());
  key.Add(runbooks);
  // All that is known of the run but when that was last heard: saying it again changes nothing.
  evidence::ExecutionObservation seen_last{.execution = of.execution};
  seen_last.execution.updated_at.reset();
  key.Add(of.execution.execution_id);
  key.Add(evidence::Encode({.payload = std::move(seen_last)}));
  key.Add(of.compute_name);
  for (const diagnose::LogText& log : of.logs) {
    key.Add(log.stream);
    key.Add(static_cast<double>(log.offset));
    key.Add(log.data);
    key.Add(log.first_error);
  }
  for (const diagnose::Event& event : of.events) key.Add(event.text);
  for (const diagnose::SourceText& source : of.sources) {
    key.Add(source.path);
    key.Add(source.data);
  }
  const diagnose::Snapshot& seen = of.snapshot;
  for (const auto& number :
       {seen.runtime_s, seen.gpu_utilisation_pct, seen.gpu_memory_observed_bytes,
        seen.host_ram_observed_peak_bytes, seen.host_ram_requested_bytes, seen.idle_tail_s,
        seen.memory_growth_bytes_per_hour})
    key.Add(number);
  for (const diagnose::SimilarRun& similar : of.similar) {
    key.Add(similar.run.execution_id);
    key.Add(similar.failure_class);
    key.Add(predict::Name(similar.run.ending));
    key.Add(similar.run.memory_peak_bytes);
    key.Add(similar.run.runtime_s);
  }
  for (const diagnose::NodeRecord& record : of.node_records) {
    key.Add(record.node);
    key.Add(record.failure_class);
    key.Add(static_cast<double>(record.executions));
    key.Add(static_cast<double>(record.users));
    key.Add(static_cast<double>(record.elsewhere));
  }
  return key.Hash();
}

}  // namespace expanse::intelligence
