// Whatever a server sends as a patch of whatever file: what comes out is the change that the diff
// makes in the file as it was sent, with the secrets in it; a directive added below the first line
// is the one thing that changes. Input: a script, byte 0x1e, a diff.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/patch_apply.h"
#include "workload/patch/unified_diff.h"

using namespace expanse;

namespace {

base::Result<std::string> Patch(std::string_view diff, std::string_view text) {
  const std::string hash = cli::SourceHash(text);
  return cli::PatchOriginal({.path = "job.slurm", .diff = diff, .source_hash = hash}, text);
}

void CheckGiven(std::string_view text, std::string_view diff) {
  (void)cli::CountLines(diff);
  const auto patched = Patch(diff, text);
  if (!patched) return;
  const auto meant = workload::ApplyUnifiedDiff(diff, cli::RedactedForServer(text));
  if (!meant || cli::RedactedForServer(*patched) != *meant) std::abort();
}

std::string WithDirective(std::string text) {
  const std::size_t line = text.find('\n');
  if (line != std::string::npos) text.insert(line + 1, "#SBATCH --mem=1G\n");
  return text;
}

void CheckInsertion(std::string_view text) {
  const std::string sent = cli::RedactedForServer(text);
  // Where a secret reaches over the first line the two are not the same place.
  if (sent.substr(0, sent.find('\n') + 1) != text.substr(0, text.find('\n') + 1)) return;
  const auto patched = Patch(workload::MakeUnifiedDiff("job", sent, WithDirective(sent)), text);
  if (patched && *patched != WithDirective(std::string(text))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 8192) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = all.find('\x1e');
  const std::string_view text = all.substr(0, cut);
  CheckGiven(text, cut == std::string_view::npos ? std::string_view() : all.substr(cut + 1));
  CheckInsertion(text);
  return 0;
}
