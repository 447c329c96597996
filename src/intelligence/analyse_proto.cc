#include "intelligence/analyse_proto.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/crypto.h"
#include "base/text.h"
#include "base/version.h"
#include "evidence/execution.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/confidence_proto.h"
#include "workload/submission.h"

namespace expanse::intelligence {
namespace {

using base::Code;

constexpr double kMostAmount = 1e15;                    // bytes, cores, devices, seconds
constexpr double kMostWalltime = 100.0 * 365 * 86'400;  // a century

std::unexpected<base::Error> Invalid(std::string reason, std::string message) {
  return base::Fail(Code::kInvalidArgument, std::move(reason), std::move(message));
}

base::Status CheckFile(const v1::TargetFile& file, std::string_view field, std::string reason) {
  if (file.path().empty() || file.path().size() > kLongestPath) {
    return Invalid(std::move(reason),
                   fmt::format("{}.path has from 1 to {} bytes", field, kLongestPath));
  }
  if (file.role().size() > 64)
    return Invalid(std::move(reason), fmt::format("{}.role has at most 64 bytes", field));
  return {};
}

analyse::File FileOf(const v1::TargetFile& file) {
  return {.path = file.path(), .data = file.data(), .role = file.role()};
}

base::Status TakeFiles(const v1::AnalyseRequest& in, analyse::Question* out) {
  if (!in.has_target()) return Invalid("analyse.target", "target is missing: give a file");
  EXPANSE_RETURN_IF_ERROR(CheckFile(in.target(), "target", "analyse.target"));
  if (in.target().data().size() > workload::kMaxText) {
    return Invalid("analyse.target", fmt::format("{} has {} bytes; at most {} are analysed",
                                                 base::EscapeForDisplay(in.target().path()),
                                                 in.target().data().size(), workload::kMaxText));
  }
  out->target = FileOf(in.target());
  if (in.files_size() > kMostFiles) {
    return Invalid("analyse.files", fmt::format("{} files were sent; at most {} are taken",
                                                in.files_size(), kMostFiles));
  }
  std::size_t total = 0;
  for (const v1::TargetFile& file : in.files()) {
    EXPANSE_RETURN_IF_ERROR(CheckFile(file, "files", "analyse.files"));
    total += file.data().size();
    out->files.push_back(FileOf(file));
  }
  if (total > kMostFileBytes) {
    return Invalid("analyse.files", fmt::format("the files have {} bytes together; at most {} are "
                                                "taken",
                                                total, kMostFileBytes));
  }
  return {};
}

base::Status TakeAmount(bool has, double value, double most, std::string_view field,
                        std::optional<double>* out) {
  if (!has) return {};
  if (!(value > 0 && value <= most)) {
    return Invalid("analyse.requested",
                   fmt::format("requested.{} must be above 0 and at most {:.0f}", field, most));
  }
  *out = value;
  return {};
}

base::Status TakeRequested(const v1::RequestedOverride& in, predict::Amounts* out) {
  EXPANSE_RETURN_IF_ERROR(
      TakeAmount(in.has_cpu_cores(), in.cpu_cores(), 1e6, "cpu_cores", &out->cpu_cores));
  EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_memory_bytes(), static_cast<double>(in.memory_bytes()),
                                     kMostAmount, "memory_bytes", &out->memory_bytes));
  // No GPU at all is a request too.
  if (in.has_gpu_count() && in.gpu_count() == 0) {
    out->gpu_count = 0;
  } else {
    EXPANSE_RETURN_IF_ERROR(
        TakeAmount(in.has_gpu_count(), in.gpu_count(), 1e6, "gpu_count", &out->gpu_count));
  }
  return TakeAmount(in.has_walltime_seconds(), static_cast<double>(in.walltime_seconds()),
                    kMostWalltime, "walltime_seconds", &out->walltime_s);
}

base::Status TakeVariables(const v1::AnalyseRequest& in, analyse::Question* out) {
  if (in.variables().size() > kMostVariables)
    return Invalid("analyse.variables", fmt::format("at most {} variables", kMostVariables));
  std::size_t total = 0;
  for (const auto& [name, value] : in.variables()) {
    total += name.size() + value.size();
    if (total > kMostVariableBytes) {
      return Invalid("analyse.variables",
                     fmt::format("the variables have more than {} bytes", kMostVariableBytes));
    }
    out->variables.emplace(name, value);
  }
  return {};
}

base::Status TakeName(const std::string& in, std::string_view field, std::string* out) {
  if (in.size() > kLongestName) {
    return Invalid("analyse.name", fmt::format("{} has more than {} bytes", field, kLongestName));
  }
  *out = in;
  return {};
}

// --- answers

std::string Text(std::string_view text) { return base::ToValidUtf8(text); }

double Round(double value, double per_unit) {
  const double rounded = std::round(value * per_unit) / per_unit;
  return rounded == 0 ? 0 : rounded;  // never -0
}
double Hundredths(double value) { return Round(value, 100); }

// Whole units, up; nothing for what is no amount.
template <typename T>
std::optional<T> Whole(const std::optional<double>& value) {
  if (!value || !(*value >= 0)) return std::nullopt;
  if (*value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  // What is a hair above a whole number by the way it was computed is that number.
  return static_cast<T>(std::ceil(*value - 1e-6));
}

// Sets the fields that both messages of resources have.
template <typename Message>
void PutAmounts(const predict::Amounts& in, Message* out) {
  if (in.cpu_cores && *in.cpu_cores >= 0) out->set_cpu_cores(Round(*in.cpu_cores, 1000));
  if (const auto bytes = Whole<std::uint64_t>(in.memory_bytes)) out->set_memory_bytes(*bytes);
  if (const auto count = Whole<std::uint32_t>(in.gpu_count)) out->set_gpu_count(*count);
  if (const auto time = Whole<std::int64_t>(in.walltime_s)) out->set_walltime_seconds(*time);
}

void PutRecommended(const analyse::Answer& in, v1::RecommendedResources* out) {
  PutAmounts(in.recommended, out);
  out->set_rationale(Text(in.rationale));
  out->set_gpu_model(Text(in.gpu.model));
  if (in.gpu.available_bytes) out->set_gpu_memory_available_bytes(*in.gpu.available_bytes);
  if (in.gpu.peak_bytes) out->set_gpu_memory_peak_bytes(*in.gpu.peak_bytes);
  if (in.gpu.utilisation_pct) out->set_gpu_utilisation_pct(Hundredths(*in.gpu.utilisation_pct));
  if (in.gpu.floor_bytes) out->set_gpu_memory_floor_bytes(*in.gpu.floor_bytes);
  // A workload with GPUs says whether their use is known; one without says nothing.
  const bool has_gpus = in.recommended.gpu_count.value_or(0) > 0 ||
                        in.requested.gpu_count.value_or(0) > 0 || in.gpu.utilisation_pct;
  if (has_gpus) out->set_gpu_utilisation_known(in.gpu.utilisation_pct.has_value());
}

void PutRequested(const analyse::Answer& in, v1::RequestedResources* out) {
  PutAmounts(in.requested, out);
  out->set_gpu_model(Text(in.requested_gpu_model));
  for (const std::string& line : in.unresolved) out->add_unresolved(Text(line));
}

void PutProbability(const predict::Probability& in, v1::Probability* out) {
  out->set_mean(Hundredths(in.mean));
  out->set_sigma(Hundredths(in.sigma));
  out->set_p10(Hundredths(in.p10));
  out->set_p90(Hundredths(in.p90));
  out->set_success_count(in.success_count);
  if (in.basis != predict::Basis::kNone) out->set_basis(std::string(predict::Name(in.basis)));
}

void PutRisk(const analyse::Risk& in, v1::FailureRisk* out) {
  if (in.probability) PutProbability(*in.probability, out->mutable_probability());
  out->set_class_(Text(in.failure_class));
  out->set_summary(Text(in.summary));
}

void PutCited(const analyse::Cited& in, v1::CitedExecution* out) {
  out->set_execution_id(Text(in.execution_id));
  out->set_native_id(Text(in.native_id));
  if (const auto type = evidence::ParseSourceType(in.source_type))
    out->set_source_type(static_cast<common::v1::SourceType>(*type));
  out->set_compute_id(Text(in.compute_id));
  out->set_similarity(Hundredths(in.similarity));
  out->set_ending(std::string(predict::Name(in.ending)));
  out->set_summary(Text(in.summary));
}

void PutRightSize(const analyse::Answer& in, const std::optional<store::RunArtifactRow>& artifact,
                  v1::AnalyseResult* out) {
  out->mutable_right_size()->set_class_(Text(in.right_size_class));
  out->mutable_right_size()->set_review_required(in.review_required);
  if (!artifact) return;
  out->mutable_right_size()->set_source_file(Text(artifact->source_file));
  out->mutable_right_size()->set_artifact_id(artifact->artifact_id);
  v1::Artifact* named = out->add_artifacts();
  named->set_artifact_id(artifact->artifact_id);
  named->set_artifact_type(v1::ARTIFACT_TYPE_UNIFIED_DIFF);
  named->set_content_hash(artifact->content_hash);
}

}  // namespace

base::Result<analyse::Question> QuestionOf(const v1::AnalyseRequest& request) {
  analyse::Question question;
  EXPANSE_RETURN_IF_ERROR(TakeFiles(request, &question));
  EXPANSE_RETURN_IF_ERROR(TakeRequested(request.requested(), &question.requested));
  EXPANSE_RETURN_IF_ERROR(TakeName(request.local_user(), "local_user", &question.local_user));
  EXPANSE_RETURN_IF_ERROR(TakeName(request.workload(), "workload", &question.workload));
  EXPANSE_RETURN_IF_ERROR(TakeVariables(request, &question));
  std::string compute_id;  // checked here like the others; it is no part of the question
  EXPANSE_RETURN_IF_ERROR(TakeName(request.compute_id(), "compute_id", &compute_id));
  question.patch = !request.no_patch();
  return question;
}

std::optional<store::RunArtifactRow> ArtifactOf(const analyse::Answer& answer, base::WallTime now) {
  if (!answer.patch) return std::nullopt;
  return store::RunArtifactRow{.artifact_id = base::NewUuid(now),
                               .type = store::RunArtifactType::kUnifiedDiff,
                               .content_hash = "sha256:" + base::Sha256Hex(answer.patch->diff),
                               .source_file = answer.patch->source_file,
                               .source_hash = answer.patch->source_hash,
                               .data = answer.patch->diff,
                               .created_at = now};
}

v1::AnalyseResult ResultOf(const analyse::Answer& answer,
                           const std::optional<store::RunArtifactRow>& artifact) {
  v1::AnalyseResult result;
  PutRecommended(answer, result.mutable_recommended_resources());
  v1::RequestedResources requested;
  PutRequested(answer, &requested);
  if (requested.ByteSizeLong() > 0) *result.mutable_requested_resources() = std::move(requested);
  result.set_confidence(LabelOf(answer.confidence));
  if (answer.confidence_score) {
    result.set_confidence_score(Hundredths(*answer.confidence_score));
    result.set_confidence_score_fit(answer.fit);
    result.set_confidence_score_runs(answer.measured_runs);
  }
  if (answer.completion)
    PutProbability(*answer.completion, result.mutable_completion_probability());
  if (answer.residual.probability || !answer.residual.failure_class.empty())
    PutRisk(answer.residual, result.mutable_residual_failure_risk());
  for (const analyse::Risk& risk : answer.risks) PutRisk(risk, result.add_failure_risks());
  PutRightSize(answer, artifact, &result);
  for (const analyse::Cited& cited : answer.evidence) PutCited(cited, result.add_evidence());
  for (const std::string& warning : answer.warnings) result.add_warnings(Text(warning));
  result.set_job_name(Text(answer.job_name));
  result.set_target_kind(Text(answer.target_kind));
  result.set_workload(Text(answer.workload));
  return result;
}

std::string CacheKey(const analyse::Question& question, std::string_view compute_id,
                     std::string_view history_version) {
  std::string all;
  const auto add = [&all](std::string_view part) {
    // Digests have one length, so that no two lists of parts look alike.
    all += base::Sha256(part);
  };
  const auto add_file = [&](const analyse::File& file) {
    add(file.path);
    add(file.role);
    add(file.data);
  };
  const auto add_amount = [&](const std::optional<double>& amount) {
    add(amount ? fmt::format("{}", *amount) : std::string());
  };
  add(base::Version());
  add(history_version);
  add(compute_id);
  add_file(question.target);
  add(std::to_string(question.files.size()));
  for (const analyse::File& file : question.files) add_file(file);
  add_amount(question.requested.cpu_cores);
  add_amount(question.requested.memory_bytes);
  add_amount(question.requested.gpu_count);
  add_amount(question.requested.walltime_s);
  add(question.local_user);
  add(question.workload);
  add(question.patch ? "patch" : "");
  for (const auto& [name, value] : question.variables) {
    add(name);
    add(value);
  }
  return base::Sha256Hex(all);
}

}  // namespace expanse::intelligence
