#include "cli/analyse_apply.h"

#include <fmt/format.h>

#include "base/crypto.h"
#include "cli/ask.h"
#include "cli/patch_apply.h"
#include "cli/render.h"
#include "cli/rewrite_file.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "workload/submission.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;

// Errors of a file that is not what the patch is for.
bool IsConflict(const base::Error& error) {
  return error.reason.starts_with("patch.") || error.reason.starts_with("diff.") ||
         error.reason == "file.changed";
}

}  // namespace

base::Result<v1::Artifact> GetArtefact(Planes& planes, const std::string& id) {
  v1::GetArtifactRequest request;
  request.set_artifact_id(id);
  EXPANSE_ASSIGN_OR_RETURN(auto response,
                           planes.Intelligence<v1::GetArtifactResponse>(
                               "expanse.intelligence.v1.IntelligenceService.GetArtifact", request));
  v1::Artifact& artefact = *response.mutable_artifact();
  if (artefact.artifact_type() != v1::ARTIFACT_TYPE_UNIFIED_DIFF) {
    return base::Fail(base::Code::kUnimplemented, "artefact.type",
                      "the artefact is of a kind that this program does not know");
  }
  if (artefact.content_hash() != "sha256:" + base::Sha256Hex(artefact.data())) {
    return base::Fail(base::Code::kDataLoss, "artefact.hash",
                      "the artefact's bytes are not what its hash says");
  }
  return std::move(artefact);
}

std::expected<void, Failure> ApplyArtefact(App& app, const v1::Artifact& artefact,
                                           const std::string& path) {
  const std::string& target = path.empty() ? artefact.source_file() : path;
  const auto fail = [&](const base::Error& error) -> std::unexpected<Failure> {
    const bool conflict = IsConflict(error);
    const base::Error as_conflict{base::Code::kFailedPrecondition, error.reason, error.message};
    return std::unexpected(Failure((conflict ? as_conflict : error).With("analyse apply"),
                                   conflict ? "expanse analyse " + target : std::string()));
  };
  if (target.empty() || target == "-") {
    return FailUsage(
        "analyse apply: what was analysed is no file",
        fmt::format("expanse analyse apply --artefact {} --file FILE", artefact.artifact_id()));
  }
  const auto read = ReadForRewrite(target, workload::kMaxText);
  if (!read) return fail(read.error());
  const auto patched = PatchOriginal(
      {.path = target, .diff = artefact.data(), .source_hash = artefact.source_hash()}, read->text);
  if (!patched) return fail(patched.error());
  if (auto written = RewriteFile(target, *read, *patched); !written) return fail(written.error());
  const DiffLines lines = CountLines(artefact.data());
  Say(app, fmt::format("Applied to {}: +{} -{} lines.", target, lines.added, lines.removed));
  return {};
}

void ShowDiff(App& app, const v1::Artifact& artefact) {
  app.terminal.Out(Printable(app, artefact.data()));
}

}  // namespace expanse::cli
