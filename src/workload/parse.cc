#include "workload/parse.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"
#include "workload/kubernetes/kubernetes.h"
#include "workload/nomad/nomad.h"
#include "workload/sbatch/sbatch.h"
#include "workload/source/source.h"

namespace expanse::workload {
namespace {

std::unexpected<Refusal> Refuse(std::string reason, std::string message) {
  return std::unexpected(
      Refusal{.line = 0, .column = 0, .reason = std::move(reason), .message = std::move(message)});
}

bool EndsInOneOf(std::string_view path, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings,
                             [&](std::string_view ending) { return path.ends_with(ending); });
}

// What the lines of a text begin with.
struct Signs {
  bool sbatch_head = false;   // #SBATCH before the first command
  bool sbatch_later = false;  // or behind it, where sbatch reads none
  bool here_document = false;
  bool api_version = false;
  bool kind = false;
  bool job_block = false;
  bool nomad_json = false;
};

bool IsNomadJob(std::string_view line) {
  if (!line.starts_with("job") && !line.starts_with("\"job\"")) return false;
  line = base::Trim(line.substr(line.starts_with('"') ? 5 : 3));
  // A label in quotes, or one that a template of Levant's or nomad-pack's has still to write.
  return (line.starts_with('"') && line.substr(1).contains('"')) || line.starts_with("[[") ||
         line.starts_with("{{");
}

Signs FindSigns(std::string_view text) {
  Signs signs;
  bool head = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view words = base::Trim(line);
    const bool directive = line.starts_with("#SBATCH");
    (head ? signs.sbatch_head : signs.sbatch_later) |= directive;
    head = head && (words.empty() || words.starts_with('#'));
    signs.here_document |= line.contains("<<");
    signs.api_version |= words.starts_with("apiVersion:") || words.contains("\"apiVersion\"");
    signs.kind |= words.starts_with("kind:") || words.contains("\"kind\"");
    signs.job_block |= IsNomadJob(words);
    signs.nomad_json |= words.contains("\"TaskGroups\"") || words.contains("\"Job\"") ||
                        words.starts_with("\"job\"") || words.starts_with("{\"job\"");
  }
  return signs;
}

}  // namespace

Parsed<Format> DetectFormat(std::string_view path, std::string_view text) {
  if (text.size() > kMaxText) return Refuse("too_large", "it is larger than 4 MiB");
  if (text.contains('\0')) return Refuse("binary", "it is a binary file");
  const std::string name = base::ToLower(path);
  const Signs signs = FindSigns(text);
  // A script may carry directives in any language whose comments begin with "#"; one that writes
  // another script has them in a here-document.
  if (signs.sbatch_head || EndsInOneOf(name, {".sbatch", ".slurm", ".sbatch.sh", ".slurm.sh"}) ||
      (signs.sbatch_later && text.starts_with("#!") && !signs.here_document)) {
    return Format::kSbatch;
  }
  const bool json = base::Trim(text).starts_with('{');
  const bool markup = EndsInOneOf(name, {".yaml", ".yml", ".json", ".nomad", ".hcl"});
  // A program that makes manifests is a program: what its name or "#!" says comes first.
  if (!markup && !SourceLanguage(path, text).empty()) return Format::kSource;
  if (json && signs.nomad_json && !signs.api_version) return Format::kNomad;
  if (signs.api_version && signs.kind) return Format::kKubernetes;
  if (signs.job_block || EndsInOneOf(name, {".nomad", ".hcl"}) || name.contains(".nomad.")) {
    return Format::kNomad;
  }
  // Refused with a better reason by the parser than there is here.
  if (markup) return Format::kKubernetes;
  return Refuse("unknown_format",
                "it is neither a batch script, a Kubernetes manifest, a Nomad jobspec nor a source "
                "file of a known language");
}

Parsed<Submission> Parse(std::string_view path, std::string_view text,
                         const ParseOptions& options) {
  const auto format = DetectFormat(path, text);
  if (!format) return std::unexpected(format.error());
  switch (*format) {
    case Format::kSbatch:
      return ParseSbatch(text);
    case Format::kKubernetes:
      return ParseKubernetes(text);
    case Format::kNomad:
      return ParseNomad(text, options);
    case Format::kSource:
      return ParseSource(path, text);
  }
  return Refuse("unknown_format", "it has no known format");
}

base::Result<std::vector<Edit>> PlanEdits(std::string_view, std::string_view text,
                                          const Submission& submission,
                                          const std::vector<Wanted>& wanted,
                                          const ParseOptions& options) {
  switch (submission.format) {
    case Format::kSbatch:
      return PlanSbatchEdits(text, submission, wanted);
    case Format::kKubernetes:
      return PlanKubernetesEdits(text, submission, wanted);
    case Format::kNomad:
      return PlanNomadEdits(text, submission, wanted, options);
    case Format::kSource:
      break;
  }
  if (wanted.empty()) return std::vector<Edit>();
  return base::Fail(base::Code::kFailedPrecondition, "patch.no_place",
                    "a source file asks for no resources: there is nothing to change in it");
}

}  // namespace expanse::workload
