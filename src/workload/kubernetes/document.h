// YAML and JSON as a tree in which every value knows its bytes. Placeholders of template languages
// are read as text of the value that holds them. Immutable after reading; not larger than a
// constant times the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "workload/line_index.h"
#include "workload/submission.h"

namespace expanse::workload::kubernetes {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = 0xffffffff;

enum class NodeKind : std::uint8_t { kNull, kScalar, kMap, kSequence, kAlias };
enum class Style : std::uint8_t { kPlain, kSingle, kDouble, kBlock, kFlow };

struct Entry {
  NodeId key = kNoNode;  // kNoNode in sequences
  NodeId value = kNoNode;
};

struct Node {
  NodeKind kind = NodeKind::kNull;
  Style style = Style::kPlain;  // kBlock, kFlow for collections
  bool templated = false;       // a scalar that holds a placeholder
  bool shared = false;          // behind an anchor that an alias refers to
  NodeId target = kNoNode;      // of an alias
  std::size_t start = 0;        // with anchor, tag and quotes
  std::size_t begin = 0;        // the value alone; of an absent one, where it would stand
  std::size_t end = 0;
  std::size_t stop = 0;    // with quotes, brackets
  std::string value = {};  // of a scalar: decoded
  std::vector<Entry> entries = {};
};

class Document {
 public:
  // Of a JSON or YAML text: the top nodes of its documents, empty ones left out.
  const std::vector<NodeId>& roots() const { return roots_; }
  // Aliases followed. A valid id is never an alias's afterwards.
  const Node& At(NodeId id) const;
  NodeId Follow(NodeId id) const;
  const Node& Raw(NodeId id) const { return nodes_[id]; }

  // The value of a key (merge keys `<<` looked through), or kNoNode; of several the last, as the
  // API server takes it. Never an alias.
  NodeId Find(NodeId map, std::string_view key) const;
  NodeId Find(NodeId map, std::initializer_list<std::string_view> path) const;
  // The entries of a map, those of merge keys after its own; of equal keys the last one.
  std::vector<Entry> Members(NodeId map) const;
  // The items of a sequence.
  const std::vector<Entry>& Items(NodeId sequence) const;
  // Aliases and merges let a small text say much; past a bound nothing is found any more, and this
  // is true.
  bool exhausted() const { return steps_ > kMaxSteps; }

  // Scalars only; "" otherwise.
  std::string_view Text(NodeId id) const;
  bool Is(NodeId id, NodeKind kind) const { return id != kNoNode && At(id).kind == kind; }

  // The scalar whose value has these bytes, or kNoNode. Linear.
  NodeId ScalarAt(std::size_t begin, std::size_t end) const;

  std::string_view text() const { return text_; }
  Place PlaceAt(std::size_t begin, std::size_t end) const;
  // From 0, a byte order mark not counted: the indentation of what stands there.
  std::size_t ColumnAt(std::size_t offset) const;
  std::uint32_t LineAt(std::size_t offset) const { return PlaceAt(offset, offset).line; }
  std::size_t LineStart(std::size_t offset) const;
  // The line after the one of an offset, or the end of the text.
  std::size_t NextLine(std::size_t offset) const;
  std::size_t size() const { return nodes_.size(); }
  std::string_view newline() const { return newline_; }  // "\n" or "\r\n"
  bool is_json() const { return is_json_; }

 private:
  friend class Builder;
  static constexpr std::size_t kMaxSteps = 20'000'000;

  bool MayRead(NodeId map, int depth) const;
  NodeId FindMerged(NodeId map, std::string_view key, int depth) const;
  void CollectMembers(NodeId map, int depth, std::vector<Entry>& members) const;

  std::string text_;
  LineIndex lines_{""};
  std::string newline_ = "\n";
  bool is_json_ = false;
  std::vector<Node> nodes_;
  std::vector<NodeId> roots_;
  mutable std::size_t steps_ = 0;
};

// Refuses with "syntax", "templated" or "too_large".
Parsed<Document> ReadDocument(std::string_view text);

// Collects nodes; shared by the readers of both syntaxes.
class Builder {
 public:
  // More nodes than a text of kMaxText with manifests in it has.
  static constexpr std::size_t kMaxNodes = 400'000;

  explicit Builder(std::string_view text);
  NodeId Add(Node node);  // kNoNode when there are too many
  Node& node(NodeId id) { return document_.nodes_[id]; }
  std::size_t size() const { return document_.nodes_.size(); }
  void AddRoot(NodeId id) { document_.roots_.push_back(id); }
  // Marks everything below as standing behind an anchor.
  void Share(NodeId id);
  Document& document() { return document_; }
  Document Finish(bool is_json);

 private:
  Document document_;
};

// JSON by RFC 8259. False when the text is none; `refusal` says where.
bool ReadJson(std::string_view text, Builder& builder, Refusal& refusal);
// YAML by libyaml; placeholders must be masked.
bool ReadYaml(std::string_view text, Builder& builder, Refusal& refusal);

}  // namespace expanse::workload::kubernetes
