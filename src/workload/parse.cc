// The dispatcher, with the parsers that are there: batch scripts. Other formats are told apart, so
// that sources of a source file are collected as such, and refused by Parse.
#include "workload/parse.h"

#include <algorithm>

#include "base/text.h"
#include "workload/sbatch/sbatch.h"

namespace expanse::workload {
namespace {

std::unexpected<Refusal> Refuse(std::string reason, std::string message) {
  return std::unexpected(
      Refusal{.line = 0, .column = 0, .reason = std::move(reason), .message = std::move(message)});
}

bool EndsInOneOf(std::string_view path, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

// What the lines of a text begin with.
struct Signs {
  bool sbatch = false;
  bool api_version = false;
  bool kind = false;
  bool job_block = false;
  bool nomad_json = false;
};

Signs FindSigns(std::string_view text) {
  Signs signs;
  for (std::string_view line : base::Split(text, '\n')) {
    signs.sbatch |= line.starts_with("#SBATCH");
    const std::string_view words = base::Trim(line);
    signs.api_version |= words.starts_with("apiVersion:") || words.starts_with("\"apiVersion\"");
    signs.kind |= words.starts_with("kind:") || words.starts_with("\"kind\"");
    signs.job_block |= words.starts_with("job \"");
    signs.nomad_json |= words.starts_with("\"TaskGroups\"") || words.starts_with("\"Job\"");
  }
  return signs;
}

}  // namespace

Parsed<Format> DetectFormat(std::string_view path, std::string_view text) {
  if (text.size() > kMaxText) return Refuse("too_large", "it is larger than 4 MiB");
  if (text.find('\0') != std::string_view::npos) return Refuse("binary", "it is no text");
  const Signs signs = FindSigns(text);
  if (signs.sbatch || EndsInOneOf(path, {".sbatch", ".slurm"})) return Format::kSbatch;
  if (signs.api_version && signs.kind) return Format::kKubernetes;
  if (signs.job_block || signs.nomad_json || EndsInOneOf(path, {".nomad"})) return Format::kNomad;
  if (text.starts_with("#!") || EndsInOneOf(path, {".py", ".sh", ".R", ".r", ".jl", ".pl"}))
    return Format::kSource;
  return Refuse("unknown_format",
                "it is neither a batch script, a Kubernetes manifest, a Nomad jobspec nor a source "
                "file of a known language");
}

Parsed<Submission> Parse(std::string_view path, std::string_view text, const ParseOptions&) {
  const auto format = DetectFormat(path, text);
  if (!format) return std::unexpected(format.error());
  if (*format == Format::kSbatch) return ParseSbatch(text);
  return Refuse("unsupported", "this version reads batch scripts only");
}

base::Result<std::vector<Edit>> PlanEdits(std::string_view, std::string_view text,
                                          const Submission& submission,
                                          const std::vector<Wanted>& wanted, const ParseOptions&) {
  if (submission.format == Format::kSbatch) return PlanSbatchEdits(text, submission, wanted);
  return base::Fail(base::Code::kUnimplemented, "patch.unsupported",
                    "this version patches batch scripts only");
}

}  // namespace expanse::workload
