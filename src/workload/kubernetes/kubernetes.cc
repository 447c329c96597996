#include "workload/kubernetes/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "workload/kubernetes/document.h"
#include "workload/kubernetes/kinds.h"
#include "workload/kubernetes/pod_reader.h"
#include "workload/kubernetes/read.h"

namespace expanse::workload {
namespace kubernetes {
namespace {

class ManifestReader {
 public:
  explicit ManifestReader(const Document& document)
      : document_(document),
        submission_{.format = Format::kKubernetes},
        reader_(document, submission_) {}

  Parsed<Submission> Run() {
    for (NodeId root : document_.roots()) Object(root, 0);
    if (reader_.exhausted())
      return std::unexpected(
          Refusal{.reason = "too_large", .message = "aliases make more of this than fits"});
    if (submission_.parts.empty()) return std::unexpected(NothingToRun());
    NoteDuplicates();
    std::stable_sort(submission_.notes.begin(), submission_.notes.end(),
                     [](const Note& a, const Note& b) { return a.line < b.line; });
    submission_.name = submission_.parts.front().workload;
    return std::move(submission_);
  }

 private:
  static constexpr int kMaxLists = 4;  // a List of Lists

  void Object(NodeId object, int depth) {
    if (!document_.Is(object, NodeKind::kMap))
      return Skip(document_.Is(object, NodeKind::kSequence) ? "a list" : "a text", object);
    constexpr std::size_t kMaxShown = 80;
    const NodeId version = document_.Find(object, "apiVersion");
    const std::string_view api = document_.Text(version).substr(0, kMaxShown);
    const std::string_view kind =
        document_.Text(document_.Find(object, "kind")).substr(0, kMaxShown);
    const NodeId items = document_.Find(object, "items");
    if ((kind.ends_with("List") || kind.empty()) && document_.Is(items, NodeKind::kSequence) &&
        depth < kMaxLists) {
      for (const Entry& item : document_.Items(items)) Object(item.value, depth + 1);
      return;
    }
    if (kind.empty() || api.empty()) return Skip("an object without kind and apiVersion", object);
    Owner owner = OwnerOf(object, kind);
    const std::size_t before = submission_.parts.size();
    if (ReadKnownKind(reader_, api, kind, owner, object)) {
      if (submission_.parts.size() == before) Empty(kind, api, object);
      return;
    }
    const bool never = NeverRuns(kind, api) && !document_.At(version).templated;
    if (never || !ReadByShape(reader_, owner, object)) return Skip(Title(kind, api), object);
    reader_.Note(document_.At(object).begin, "unknown_kind",
                 fmt::format("{} ({}) is read by the shape of its pod templates",
                             base::EscapeForDisplay(kind), base::EscapeForDisplay(api)));
  }

  Owner OwnerOf(NodeId object, std::string_view kind) {
    const NodeId metadata = document_.Find(object, "metadata");
    Owner owner{.kind = ShortName(kind)};
    owner.workload = ShortName(document_.Text(document_.Find(metadata, "name")));
    if (owner.workload.empty())
      owner.workload = ShortName(document_.Text(document_.Find(metadata, "generateName")));
    owner.name_space = ShortName(document_.Text(document_.Find(metadata, "namespace")));
    reader_.AddAnnotations(owner, object);
    return owner;
  }

  // Objects of Kubernetes' own groups that hold no pods, whatever is written in them.
  static bool NeverRuns(std::string_view kind, std::string_view api) {
    const std::size_t slash = api.find('/');
    const std::string_view group = slash == std::string_view::npos ? "" : api.substr(0, slash);
    return group.empty() || group.ends_with(".k8s.io") || kind == "CustomResourceDefinition";
  }

  // "Service", "Workspace (kaito.sh/v1beta1)".
  static std::string Title(std::string_view kind, std::string_view api) {
    const bool own = NeverRuns(kind, api) || api.find('.') == std::string_view::npos;
    return own ? std::string(kind) : fmt::format("{} ({}) without pod template", kind, api);
  }

  void Skip(std::string_view what, NodeId object) {
    constexpr std::size_t kMaxNames = 8;
    if (first_skipped_ == 0) first_skipped_ = document_.LineAt(document_.At(object).begin);
    const std::string name = base::EscapeForDisplay(what.substr(0, 120));
    if (std::find(skipped_.begin(), skipped_.end(), name) != skipped_.end()) return;
    if (skipped_.size() < kMaxNames) skipped_.push_back(name);
  }

  void Empty(std::string_view kind, std::string_view api, NodeId object) {
    reader_.Note(document_.At(object).begin, "no_containers",
                 fmt::format("{} ({}) has no containers", base::EscapeForDisplay(kind),
                             base::EscapeForDisplay(api)));
    Skip(fmt::format("{} without containers", kind), object);
  }

  Refusal NothingToRun() const {
    std::string found;
    for (const std::string& name : skipped_) found.append(found.empty() ? "" : ", ").append(name);
    return {.line = first_skipped_,
            .reason = "not_a_workload",
            .message = found.empty() ? std::string("nothing in it") : "found only " + found};
  }

  // The API server takes the last of equal keys, or refuses: the user should know.
  void NoteDuplicates() {
    for (NodeId id = 0; id < document_.size(); ++id) {
      const Node& node = document_.Raw(id);
      if (node.kind != NodeKind::kMap) continue;
      std::unordered_set<std::string_view> seen;
      for (const Entry& entry : node.entries) {
        const std::string_view key = document_.Text(entry.key);
        if (!key.empty() && !seen.insert(key).second)
          reader_.Note(document_.Raw(entry.key).begin, "duplicate_key",
                       fmt::format("{} is there twice; the last counts",
                                   base::EscapeForDisplay(key.substr(0, 80))));
      }
    }
  }

  const Document& document_;
  Submission submission_;
  PodReader reader_;
  std::vector<std::string> skipped_;
  std::uint32_t first_skipped_ = 0;
};

}  // namespace

Parsed<Submission> ReadSubmission(const Document& document) {
  return ManifestReader(document).Run();
}

}  // namespace kubernetes

Parsed<Submission> ParseKubernetes(std::string_view text) {
  auto document = kubernetes::ReadDocument(text);
  if (!document) return std::unexpected(std::move(document).error());
  return kubernetes::ReadSubmission(*document);
}

}  // namespace expanse::workload
