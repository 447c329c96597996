#include "cli/patch_apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/text.h"
#include "cli/patch_check.h"
#include "collect/logs/redact.h"
#include "workload/patch/unified_diff.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kMark = collect::kRedactionMark;

std::unexpected<base::Error> Refuse(std::string reason, std::string message) {
  return base::Fail(base::Code::kFailedPrecondition, std::move(reason), std::move(message));
}

std::vector<std::size_t> MarksIn(std::string_view text) {
  std::vector<std::size_t> places;
  for (std::size_t at = text.find(kMark); at != std::string_view::npos;
       at = text.find(kMark, at + kMark.size()))
    places.push_back(at);
  return places;
}

// `after` with the secrets of `original` where its marks are. A user may have written a mark
// himself, so the marks are told apart by their order, which a change of resources keeps. Nothing
// when it does not.
std::optional<std::string> PutSecretsBack(const collect::PlacedRedaction& before,
                                          std::string_view original, std::string_view after) {
  const std::vector<std::size_t> old_marks = MarksIn(before.text);
  const std::vector<std::size_t> new_marks = MarksIn(after);
  if (old_marks.size() != new_marks.size()) return std::nullopt;
  std::string out;
  out.reserve(after.size());
  std::size_t done = 0;
  auto span = before.spans.begin();
  for (std::size_t i = 0; i < old_marks.size(); ++i) {
    if (span == before.spans.end() || span->at != old_marks[i]) continue;  // the user's own
    out += after.substr(done, new_marks[i] - done);
    out += original.substr(span->original.begin, span->original.end - span->original.begin);
    done = new_marks[i] + kMark.size();
    ++span;
  }
  if (span != before.spans.end()) return std::nullopt;
  out += after.substr(done);
  return out;
}

}  // namespace

std::string RedactedForServer(std::string_view text) { return collect::Redact(text).text; }

std::string SourceHash(std::string_view text) {
  return "sha256:" + base::Sha256Hex(RedactedForServer(text));
}

base::Result<std::string> PatchOriginal(const FilePatch& patch, std::string_view original) {
  const collect::PlacedRedaction sent = collect::RedactWithPlaces(original);
  if ("sha256:" + base::Sha256Hex(sent.text) != patch.source_hash) {
    return Refuse("patch.changed", fmt::format("{} has changed since it was analysed", patch.path));
  }
  EXPANSE_ASSIGN_OR_RETURN(const std::string after,
                           workload::ApplyUnifiedDiff(patch.diff, sent.text));
  auto patched = PutSecretsBack(sent, original, after);
  // Without the change the file must come back as it is, with it what is sent next must be what the
  // server meant.
  if (!patched || PutSecretsBack(sent, original, sent.text) != original ||
      RedactedForServer(*patched) != after) {
    return Refuse("patch.secret",
                  fmt::format("the patch of {} touches a line with a secret, which the server "
                              "does not know",
                              patch.path));
  }
  EXPANSE_RETURN_IF_ERROR(CheckChange(patch.path, original, *patched));
  return *std::move(patched);
}

DiffLines CountLines(std::string_view diff) {
  DiffLines lines;
  bool in_hunk = false;
  for (std::string_view line : base::Split(diff, '\n')) {
    if (line.starts_with("@@")) {
      in_hunk = true;
    } else if (in_hunk && line.starts_with('+')) {
      ++lines.added;
    } else if (in_hunk && line.starts_with('-')) {
      ++lines.removed;
    }
  }
  return lines;
}

}  // namespace expanse::cli
