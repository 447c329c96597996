#include "cli/patch_apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/text.h"
#include "collect/logs/redact.h"
#include "workload/parse.h"
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

bool SameCommands(const workload::Part& a, const workload::Part& b) {
  return std::equal(a.commands.begin(), a.commands.end(), b.commands.begin(), b.commands.end(),
                    [](const workload::Command& one, const workload::Command& other) {
                      return one.words == other.words && one.launcher == other.launcher;
                    });
}

bool SameButResources(const workload::Submission& a, const workload::Submission& b) {
  const auto same_part = [](const workload::Part& one, const workload::Part& other) {
    return one.workload == other.workload && one.kind == other.kind &&
           one.name_space == other.name_space && one.group == other.group &&
           one.name == other.name && one.image == other.image && one.is_init == other.is_init &&
           one.replicas == other.replicas && one.array_size == other.array_size &&
           one.environment == other.environment && one.annotations == other.annotations &&
           SameCommands(one, other);
  };
  return a.format == b.format && a.language == b.language && a.name == b.name &&
         a.files == b.files && a.outputs == b.outputs &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), same_part);
}

std::vector<workload::Setting> SettingsOf(const workload::Submission& submission) {
  std::vector<workload::Setting> settings;
  for (const workload::Part& part : submission.parts)
    settings.insert(settings.end(), part.settings.begin(), part.settings.end());
  std::sort(settings.begin(), settings.end(),
            [](const auto& a, const auto& b) { return a.place.begin < b.place.begin; });
  return settings;
}

// A script without the values of its resources. `asked_alone`: of the lines that are one directive
// of a resource and nothing else.
struct Skeleton {
  std::vector<std::string> lines;
  std::vector<bool> asked_alone;
};

Skeleton SkeletonOf(std::string_view text, const std::vector<workload::Setting>& settings) {
  Skeleton skeleton;
  std::string line;
  std::string directive;  // what a line that only asks for the last setting looks like
  const auto end_line = [&] {
    const std::string_view words = base::Trim(line);
    const bool alone = !directive.empty() && words.starts_with(directive) &&
                       (words.size() == directive.size() || words.substr(directive.size()) == "=");
    skeleton.asked_alone.push_back(alone);
    skeleton.lines.push_back(std::exchange(line, {}));
    directive.clear();
  };
  auto setting = settings.begin();
  for (std::size_t at = 0; at < text.size();) {
    while (setting != settings.end() && setting->place.begin < at) ++setting;
    if (setting != settings.end() && setting->place.begin == at && setting->place.end > at) {
      directive = "#SBATCH " + setting->name;
      at = setting->place.end;
      continue;
    }
    if (text[at] == '\n') {
      end_line();
    } else {
      line += text[at];
    }
    ++at;
  }
  end_line();
  return skeleton;
}

// The same lines in the same order, but for values, and for directives that came.
bool SameScript(const Skeleton& before, const Skeleton& after) {
  std::size_t old = 0;
  for (std::size_t i = 0; i < after.lines.size(); ++i) {
    if (old < before.lines.size() && before.lines[old] == after.lines[i]) {
      ++old;
    } else if (!after.asked_alone[i]) {
      return false;
    }
  }
  return old == before.lines.size();
}

// A server's patch is not trusted with what the file does.
base::Status CheckChange(std::string_view path, std::string_view original,
                         std::string_view patched) {
  const auto before = workload::Parse(path, original);
  const auto after = workload::Parse(path, patched);
  bool same = before && after && SameButResources(*before, *after);
  if (same && before->format == workload::Format::kSbatch) {
    same = SameScript(SkeletonOf(original, SettingsOf(*before)),
                      SkeletonOf(patched, SettingsOf(*after)));
  }
  if (same) return {};
  return Refuse("patch.not_resources",
                fmt::format("the patch would change more of {} than requested resources", path));
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
