#include "workload/kubernetes/document.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "workload/kubernetes/placeholders.h"

namespace expanse::workload::kubernetes {

Builder::Builder(std::string_view text) {
  document_.text_ = std::string(text);
  document_.lines_ = LineIndex(text);
  const std::size_t newline = text.find('\n');
  if (newline != std::string_view::npos && newline > 0 && text[newline - 1] == '\r')
    document_.newline_ = "\r\n";
}

NodeId Builder::Add(Node node) {
  if (document_.nodes_.size() >= kMaxNodes) return kNoNode;
  document_.nodes_.push_back(std::move(node));
  return static_cast<NodeId>(document_.nodes_.size() - 1);
}

void Builder::Share(NodeId id) {
  std::vector<NodeId> left = {id};
  while (!left.empty()) {
    Node& at = node(left.back());
    left.pop_back();
    if (at.shared) continue;  // and so is all below it
    at.shared = true;
    for (const Entry& entry : at.entries) {
      if (entry.key != kNoNode) left.push_back(entry.key);
      left.push_back(entry.value);
    }
    if (at.target != kNoNode) left.push_back(at.target);
  }
}

Document Builder::Finish(bool is_json) {
  document_.is_json_ = is_json;
  return std::move(document_);
}

NodeId Document::Follow(NodeId id) const {
  // An alias's target is complete before the alias is read, so chains end.
  while (id != kNoNode && nodes_[id].kind == NodeKind::kAlias) id = nodes_[id].target;
  return id;
}

const Node& Document::At(NodeId id) const { return nodes_[Follow(id)]; }

namespace {

// Merges of merges of merges …
constexpr int kMaxMerges = 4;

}  // namespace

bool Document::MayRead(NodeId map, int depth) const {
  ++steps_;
  if (depth > kMaxMerges) steps_ = kMaxSteps + 1;
  return !exhausted() && Is(map, NodeKind::kMap);
}

NodeId Document::FindMerged(NodeId map, std::string_view key, int depth) const {
  if (!MayRead(map, depth)) return kNoNode;
  const Node& node = At(map);
  steps_ += node.entries.size();
  NodeId found = kNoNode;
  NodeId merged = kNoNode;
  for (const Entry& entry : node.entries) {
    const std::string_view name = Text(entry.key);
    if (name == key) found = entry.value;
    if (name == "<<" && At(entry.key).style == Style::kPlain) merged = entry.value;
  }
  if (found != kNoNode || merged == kNoNode) return Follow(found);
  if (!Is(merged, NodeKind::kSequence)) return FindMerged(merged, key, depth + 1);
  // Earlier ones of a list win (https://yaml.org/type/merge.html).
  for (const Entry& entry : At(merged).entries) {
    const NodeId inner = FindMerged(entry.value, key, depth + 1);
    if (inner != kNoNode) return inner;
  }
  return kNoNode;
}

void Document::CollectMembers(NodeId map, int depth, std::vector<Entry>& members) const {
  if (!MayRead(map, depth)) return;
  const Node& node = At(map);
  steps_ += node.entries.size();
  NodeId merged = kNoNode;
  // The last of equal keys comes first, and the first one met counts.
  for (auto entry = node.entries.rbegin(); entry != node.entries.rend(); ++entry) {
    if (Text(entry->key) == "<<" && At(entry->key).style == Style::kPlain) {
      if (merged == kNoNode) merged = entry->value;
    } else {
      members.push_back(*entry);
    }
  }
  if (merged == kNoNode) return;
  if (!Is(merged, NodeKind::kSequence)) return CollectMembers(merged, depth + 1, members);
  for (const Entry& entry : At(merged).entries) CollectMembers(entry.value, depth + 1, members);
}

std::vector<Entry> Document::Members(NodeId map) const {
  std::vector<Entry> all;
  CollectMembers(map, 0, all);
  std::vector<Entry> members;
  std::unordered_set<std::string_view> seen;
  for (const Entry& entry : all) {
    if (Is(entry.key, NodeKind::kScalar) && seen.insert(Text(entry.key)).second)
      members.push_back({.key = Follow(entry.key), .value = Follow(entry.value)});
  }
  std::reverse(members.begin(), members.end());
  return members;
}

const std::vector<Entry>& Document::Items(NodeId sequence) const {
  static const std::vector<Entry> kNone;
  if (!Is(sequence, NodeKind::kSequence) || exhausted()) return kNone;
  steps_ += At(sequence).entries.size() + 1;
  return At(sequence).entries;
}

NodeId Document::Find(NodeId map, std::string_view key) const { return FindMerged(map, key, 0); }

NodeId Document::Find(NodeId map, std::initializer_list<std::string_view> path) const {
  for (std::string_view key : path) map = Find(map, key);
  return map;
}

std::string_view Document::Text(NodeId id) const {
  return Is(id, NodeKind::kScalar) ? std::string_view(At(id).value) : std::string_view();
}

NodeId Document::ScalarAt(std::size_t begin, std::size_t end) const {
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (node.kind == NodeKind::kScalar && node.begin == begin && node.end == end) return id;
  }
  return kNoNode;
}

Place Document::PlaceAt(std::size_t begin, std::size_t end) const {
  begin = std::min(begin, text_.size());
  return lines_.PlaceOf(begin, std::max(begin, std::min(end, text_.size())));
}

std::size_t Document::ColumnAt(std::size_t offset) const {
  const Place place = PlaceAt(offset, offset);
  const std::size_t mark = place.line == 1 && text_.starts_with("\xef\xbb\xbf") ? 3 : 0;
  return place.column - 1 - std::min<std::size_t>(mark, place.column - 1);
}

std::size_t Document::NextLine(std::size_t offset) const {
  return std::min(text_.find('\n', offset), text_.size() - 1) + 1;
}

std::size_t Document::LineStart(std::size_t offset) const {
  return offset - (PlaceAt(offset, offset).column - 1);
}

namespace {

std::unexpected<Refusal> Refuse(std::string_view text, std::size_t at, std::string reason,
                                std::string message) {
  const Place place = PlaceOf(text, at, at);
  return std::unexpected(Refusal{.line = place.line,
                                 .column = place.column,
                                 .reason = std::move(reason),
                                 .message = std::move(message)});
}

// What neither syntax allows.
Parsed<void> CheckBytes(std::string_view text) {
  if (text.size() > kMaxText)
    return std::unexpected(Refusal{.reason = "too_large", .message = "larger than 4 MiB"});
  if (!base::IsValidUtf8(text))
    return std::unexpected(Refusal{.reason = "syntax", .message = "not UTF-8 text"});
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool lonely_return = c == '\r' && (i + 1 == text.size() || text[i + 1] != '\n');
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f || lonely_return)
      return Refuse(text, i, "syntax", "a control character");
  }
  return {};
}

// One try at YAML with placeholders masked.
bool TryYaml(std::string_view text, const Masked& masked, Builder& builder, Refusal& refusal) {
  if (!ReadYaml(masked.text, builder, refusal)) {
    for (const Placeholder& placeholder : masked.placeholders) {
      if (refusal.reason != "syntax" || placeholder.comment || placeholder.in_comment) continue;
      refusal = Refuse(text, placeholder.begin, "templated",
                       "with what the template leaves open this is no YAML; render it first")
                    .error();
    }
    return false;
  }
  return Unmask(masked, builder, refusal);
}

}  // namespace

Parsed<Document> ReadDocument(std::string_view text) {
  if (const auto checked = CheckBytes(text); !checked) return std::unexpected(checked.error());
  Refusal json;
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '[')) {
    Builder builder(text);
    if (ReadJson(text, builder, json)) return builder.Finish(/*is_json=*/true);
    if (json.reason != "syntax") return std::unexpected(json);
  }
  Refusal refusal;
  {
    Builder builder(text);
    const Masked masked = MaskPlaceholders(text, /*dollar=*/false);
    if (TryYaml(text, masked, builder, refusal)) return builder.Finish(/*is_json=*/false);
  }
  if (refusal.reason != "too_large" && text.find("${") != std::string_view::npos) {
    Builder builder(text);
    Refusal second;
    const Masked masked = MaskPlaceholders(text, /*dollar=*/true);
    if (TryYaml(text, masked, builder, second)) return builder.Finish(/*is_json=*/false);
    if (second.reason == "templated" && !masked.placeholders.empty() && second.line == refusal.line)
      return std::unexpected(second);
  }
  // Of two syntaxes the one that got further was meant.
  const bool meant_json =
      std::pair(json.line, json.column) > std::pair(refusal.line, refusal.column);
  return std::unexpected(meant_json && refusal.reason == "syntax" ? json : refusal);
}

}  // namespace expanse::workload::kubernetes
