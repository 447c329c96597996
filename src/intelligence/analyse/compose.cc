#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/crypto.h"
#include "intelligence/analyse/analyse.h"
#include "intelligence/analyse/cited.h"
#include "intelligence/analyse/patch.h"
#include "intelligence/predict/recommend.h"
#include "intelligence/predict/source_estimate.h"
#include "workload/parse.h"
#include "workload/source/source_facts.h"

namespace expanse::intelligence::analyse {
namespace {

using predict::Amounts;
using predict::Change;
using predict::Recommendation;
using predict::ResourceAdvice;

constexpr std::size_t kMaxWarnings = 20;

Amounts RequestedOf(const Question& question, const workload::Request& asked) {
  Amounts amounts;
  amounts.cpu_cores = asked.cpu_cores;
  // Zero is Slurm's "all of the node": an amount that the text does not tell.
  if (asked.memory_bytes && *asked.memory_bytes > 0)
    amounts.memory_bytes = static_cast<double>(*asked.memory_bytes);
  amounts.gpu_count = asked.gpu_count;
  if (asked.walltime_s) amounts.walltime_s = static_cast<double>(*asked.walltime_s);
  const Amounts& given = question.requested;
  if (given.cpu_cores) amounts.cpu_cores = given.cpu_cores;
  if (given.memory_bytes) amounts.memory_bytes = given.memory_bytes;
  if (given.gpu_count) amounts.gpu_count = given.gpu_count;
  if (given.walltime_s) amounts.walltime_s = given.walltime_s;
  return amounts;
}

void AddWarning(Answer* answer, std::string warning) {
  if (answer->warnings.size() >= kMaxWarnings) return;
  if (std::find(answer->warnings.begin(), answer->warnings.end(), warning) ==
      answer->warnings.end())
    answer->warnings.push_back(std::move(warning));
}

void AddUnresolved(const workload::Part& part, Answer* answer) {
  for (const workload::Setting& setting : part.settings) {
    if (!setting.effective || setting.value) continue;
    answer->unresolved.push_back("line " + std::to_string(setting.place.line) + ": " +
                                 setting.name + " " + setting.written + " (" + setting.unresolved +
                                 ")");
    AddWarning(answer, "line " + std::to_string(setting.place.line) + ": what " + setting.name +
                           " asks for is not known: " + setting.unresolved);
  }
}

std::optional<std::uint64_t> Bytes(const std::optional<double>& bytes) {
  if (!bytes || !std::isfinite(*bytes) || *bytes < 0) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(*bytes));
}

std::optional<double> AmountOf(const ResourceAdvice& advice) { return advice.amount; }

void TakeRecommendation(const Recommendation& from, Answer* answer) {
  answer->recommended = {.cpu_cores = AmountOf(from.cpu),
                         .memory_bytes = AmountOf(from.memory),
                         .gpu_count = AmountOf(from.gpu),
                         .walltime_s = AmountOf(from.walltime)};
  answer->gpu.available_bytes = Bytes(from.gpu_memory_available_bytes);
  answer->gpu.peak_bytes = Bytes(from.gpu_memory_peak_bytes);
  answer->gpu.floor_bytes = Bytes(from.gpu_memory_floor_bytes);
  answer->gpu.utilisation_pct = from.gpu_utilisation_pct;
  answer->gpu.model = from.gpu_type;
  answer->rationale = from.rationale;
  answer->confidence = from.confidence;
  if (from.score) {
    answer->confidence_score = from.score;
    answer->fit = static_cast<std::uint32_t>(from.fit);
    answer->measured_runs = static_cast<std::uint32_t>(from.runs);
  }
  answer->completion = from.completion;
  answer->residual = {
      .probability = from.residual, .failure_class = from.residual_class, .summary = {}};
  for (const predict::Risk& risk : from.risks)
    answer->risks.push_back({.probability = risk.probability,
                             .failure_class = risk.risk_class,
                             .summary = risk.summary});
  answer->right_size_class = from.right_size;
}

// What the source alone tells, for a workload without a recorded run.
void AddSourceEstimate(const Question& question, const Target& target, const Amounts& requested,
                       Recommendation* recommendation) {
  std::vector<workload::SourceText> files;
  if (target.submission.format == workload::Format::kSource)
    files.push_back({.path = question.target.path, .text = question.target.data});
  for (const File& file : question.files) files.push_back({.path = file.path, .text = file.data});
  const workload::Part& part = target.submission.parts[target.part];
  const workload::SourceFacts facts = workload::ReadSourceFacts(part, files);
  predict::ApplySourceEstimate(predict::EstimateFromSource(facts, part, requested), recommendation);
}

bool Lowers(const Recommendation& recommendation) {
  for (const ResourceAdvice* advice : {&recommendation.cpu, &recommendation.memory,
                                       &recommendation.gpu, &recommendation.walltime}) {
    if (advice->change == Change::kLower) return true;
  }
  return false;
}

}  // namespace

Answer Compose(const Question& question, const Target& target, const history::Found& found,
               const Options& options) {
  const workload::Part& part = target.submission.parts[target.part];
  Answer answer;
  answer.job_name = JobNameOf(question, target);
  answer.target_kind = target.submission.format == workload::Format::kSource
                           ? target.submission.language
                           : std::string(Name(target.submission.format));
  if (target.submission.parts.size() > 1) answer.workload = NameOf(part);
  answer.requested = RequestedOf(question, part.request);
  answer.requested_gpu_model = part.request.gpu_type;

  const predict::PredictOptions predict{.target = options.target_chance,
                                        .input_size = found.input_size,
                                        .gpu_memory_available_bytes = {}};
  Recommendation recommendation =
      predict::Recommend(found.runs, found.basis, answer.requested, predict);
  if (found.runs.empty()) AddSourceEstimate(question, target, answer.requested, &recommendation);
  TakeRecommendation(recommendation, &answer);
  if (answer.gpu.model.empty()) answer.gpu.model = answer.requested_gpu_model;
  answer.evidence = Cite(found, recommendation.evidence);
  for (const std::string& warning : recommendation.warnings) AddWarning(&answer, warning);
  for (const std::string& note : found.notes) AddWarning(&answer, note);
  AddUnresolved(part, &answer);
  for (const workload::Note& note : target.submission.notes)
    AddWarning(&answer,
               (note.line > 0 ? "line " + std::to_string(note.line) + ": " : "") + note.message);

  answer.review_required = Lowers(recommendation);
  if (!question.patch) {
    answer.right_size_class = "none";
    answer.review_required = false;
  } else {
    AddPatch(question, target, recommendation, &answer);
  }
  return answer;
}

}  // namespace expanse::intelligence::analyse
