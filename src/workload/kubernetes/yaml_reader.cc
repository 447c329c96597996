// YAML through libyaml's events: the library whose port reads manifests in kubectl and the API
// server, so what it takes and refuses is what they take and refuse. Its marks count characters;
// here they become bytes. It works without recursion and fails by return codes.
#include <yaml.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

#include "workload/kubernetes/document.h"

namespace expanse::workload::kubernetes {
namespace {

constexpr std::size_t kMaxDepth = 256;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Byte offsets of the characters from an offset on.
class Characters {
 public:
  Characters(std::string_view text, std::size_t from) : text_(text) {
    std::size_t count = 0;
    for (std::size_t at = from; at < text.size(); ++at) {
      if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
      if (count++ % kStride == 0) starts_.push_back(at);
    }
  }

  std::size_t ByteAt(std::size_t character) const {
    const std::size_t stride = character / kStride;
    if (stride >= starts_.size()) return text_.size();
    std::size_t at = starts_[stride];
    for (std::size_t left = character % kStride; left > 0 && at < text_.size(); --left) {
      ++at;
      while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xc0) == 0x80) ++at;
    }
    return at;
  }

 private:
  static constexpr std::size_t kStride = 32;
  std::string_view text_;
  std::vector<std::size_t> starts_;
};

struct ParserDelete {
  void operator()(yaml_parser_t* parser) const {
    yaml_parser_delete(parser);
    delete parser;
  }
};

class YamlReader {
 public:
  YamlReader(std::string_view text, Builder& builder)
      : text_(text),
        mark_(text.starts_with("\xef\xbb\xbf") ? 3 : 0),
        characters_(text, mark_),
        builder_(builder) {}

  bool Run(Refusal& refusal) {
    const std::unique_ptr<yaml_parser_t, ParserDelete> parser(new yaml_parser_t);
    if (yaml_parser_initialize(parser.get()) == 0) std::abort();  // out of memory
    yaml_parser_set_encoding(parser.get(), YAML_UTF8_ENCODING);
    const std::string_view input = text_.substr(mark_);
    yaml_parser_set_input_string(parser.get(), reinterpret_cast<const unsigned char*>(input.data()),
                                 input.size());
    for (bool more = true; more;) {
      yaml_event_t event;
      if (yaml_parser_parse(parser.get(), &event) == 0) {
        refusal = ErrorOf(*parser);
        return false;
      }
      more = event.type != YAML_STREAM_END_EVENT;
      const bool taken = Take(event);
      yaml_event_delete(&event);
      if (!taken) {
        refusal = std::move(refusal_);
        return false;
      }
    }
    return true;
  }

 private:
  struct Open {
    NodeId id = kNoNode;
    NodeId key = kNoNode;
    std::string anchor;
  };

  bool Fail(std::size_t at, std::string_view message, std::string_view reason = "syntax") {
    const Place place = builder_.document().PlaceAt(at, at);
    refusal_ = {.line = place.line,
                .column = place.column,
                .reason = std::string(reason),
                .message = std::string(message)};
    return false;
  }

  Refusal ErrorOf(const yaml_parser_t& parser) {
    std::string message = parser.problem == nullptr ? "not YAML" : parser.problem;
    std::size_t at = parser.error == YAML_READER_ERROR
                         ? std::min(parser.problem_offset + mark_, text_.size())
                         : ByteAt(parser.problem_mark);
    // What has no end is best shown where it begins.
    if (at == text_.size() && parser.context != nullptr && parser.error != YAML_READER_ERROR) {
      message = std::string(parser.context) + ", " + message;
      at = ByteAt(parser.context_mark);
    }
    Fail(at, message);
    return std::move(refusal_);
  }

  std::size_t ByteAt(const yaml_mark_t& mark) const { return characters_.ByteAt(mark.index); }
  static std::string Anchor(const yaml_char_t* name) {
    return name == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(name));
  }

  bool Take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_END_EVENT:
        return true;
      case YAML_DOCUMENT_START_EVENT:
        anchors_.clear();
        return true;
      case YAML_ALIAS_EVENT:
        return Alias(event);
      case YAML_SCALAR_EVENT:
        return Scalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return Begin(NodeKind::kSequence, event, Anchor(event.data.sequence_start.anchor),
                     event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
      case YAML_MAPPING_START_EVENT:
        return Begin(NodeKind::kMap, event, Anchor(event.data.mapping_start.anchor),
                     event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return End(event);
    }
    return true;
  }

  bool Alias(const yaml_event_t& event) {
    Node node{.kind = NodeKind::kAlias};
    node.start = node.begin = ByteAt(event.start_mark);
    node.end = node.stop = ByteAt(event.end_mark);
    const auto target = anchors_.find(Anchor(event.data.alias.anchor));
    if (target == anchors_.end()) return Fail(node.start, "an alias of nothing before it");
    node.target = target->second;
    builder_.Share(node.target);
    return Leaf(std::move(node), {});
  }

  bool Scalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    Node node{.kind = NodeKind::kScalar};
    node.start = ByteAt(event.start_mark);
    node.end = node.stop = ByteAt(event.end_mark);
    node.value.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
    node.begin = scalar.anchor == nullptr && scalar.tag == nullptr
                     ? node.start
                     : SkipProperties(node.start, node.end);
    switch (scalar.style) {
      case YAML_SINGLE_QUOTED_SCALAR_STYLE:
      case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
        node.style =
            scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE ? Style::kSingle : Style::kDouble;
        ++node.begin;
        --node.end;
        break;
      case YAML_LITERAL_SCALAR_STYLE:
      case YAML_FOLDED_SCALAR_STYLE:
        node.style = Style::kBlock;
        ContentOfBlock(node);
        break;
      case YAML_ANY_SCALAR_STYLE:
      case YAML_PLAIN_SCALAR_STYLE:
        if (scalar.plain_implicit != 0 && IsNull(node.value)) node.kind = NodeKind::kNull;
        break;
    }
    return Leaf(std::move(node), Anchor(scalar.anchor));
  }

  static bool IsNull(std::string_view value) {
    return value.empty() || value == "~" || value == "null" || value == "Null" || value == "NULL";
  }

  // The lines behind the header; libyaml's end is behind the empty lines that follow.
  void ContentOfBlock(Node& node) const {
    const std::size_t newline = std::min(text_.find('\n', node.begin), node.end);
    node.begin = std::min(newline + 1, node.end);
    while (node.end > node.begin && IsBlank(text_[node.end - 1])) --node.end;
    node.stop = node.end;
  }

  // Past anchors, tags, blanks and comments.
  std::size_t SkipProperties(std::size_t at, std::size_t end) const {
    while (at < end) {
      if (IsBlank(text_[at])) {
        ++at;
      } else if (text_[at] == '#' && at > 0 && IsBlank(text_[at - 1])) {
        at = std::min(text_.find('\n', at), end);
      } else if (text_[at] == '&' || text_[at] == '!') {
        while (at < end && !IsBlank(text_[at])) ++at;
      } else {
        break;
      }
    }
    return at;
  }

  bool Store(Node node, NodeId& id) {
    const std::size_t at = node.start;
    id = builder_.Add(std::move(node));
    return id != kNoNode || Fail(at, "more values than a manifest has", "too_large");
  }

  bool Leaf(Node node, const std::string& anchor) {
    NodeId id = kNoNode;
    if (!Store(std::move(node), id)) return false;
    if (!anchor.empty()) anchors_[anchor] = id;
    Attach(id);
    return true;
  }

  void Attach(NodeId id) {
    if (open_.empty()) {
      if (builder_.node(id).kind != NodeKind::kNull) builder_.AddRoot(id);
      return;
    }
    Open& parent = open_.back();
    Node& node = builder_.node(parent.id);
    if (node.kind == NodeKind::kSequence) {
      node.entries.push_back({.value = id});
    } else if (parent.key == kNoNode) {
      parent.key = id;
    } else {
      node.entries.push_back({.key = parent.key, .value = id});
      parent.key = kNoNode;
    }
  }

  bool Begin(NodeKind kind, const yaml_event_t& event, std::string anchor, bool flow) {
    Node node{.kind = kind, .style = flow ? Style::kFlow : Style::kBlock};
    node.start = ByteAt(event.start_mark);
    if (open_.size() >= kMaxDepth) return Fail(node.start, "nested too deeply");
    // The mark after properties that are the collection's own: those of a block's first key come
    // with the key.
    const bool own = kind == NodeKind::kMap ? event.data.mapping_start.anchor != nullptr ||
                                                  event.data.mapping_start.tag != nullptr
                                            : event.data.sequence_start.anchor != nullptr ||
                                                  event.data.sequence_start.tag != nullptr;
    node.begin = own ? SkipProperties(node.start, text_.size()) : node.start;
    node.end = node.stop = node.begin;
    NodeId id = kNoNode;
    if (!Store(std::move(node), id)) return false;
    open_.push_back({.id = id, .anchor = std::move(anchor)});
    return true;
  }

  bool End(const yaml_event_t& event) {
    const Open open = std::move(open_.back());
    open_.pop_back();
    Node& node = builder_.node(open.id);
    if (!node.entries.empty()) node.stop = builder_.node(node.entries.back().value).stop;
    // "[a: b]" holds a map without braces.
    const bool bracket =
        node.begin < text_.size() && text_[node.begin] == (node.kind == NodeKind::kMap ? '{' : '[');
    if (node.style == Style::kFlow && bracket) node.stop = ByteAt(event.end_mark);
    node.end = node.stop;
    if (!open.anchor.empty()) anchors_[open.anchor] = open.id;
    Attach(open.id);
    return true;
  }

  std::string_view text_;
  std::size_t mark_;  // of the byte order, in bytes
  Characters characters_;
  Builder& builder_;
  Refusal refusal_;
  std::vector<Open> open_;
  std::map<std::string, NodeId> anchors_;
};

}  // namespace

bool ReadYaml(std::string_view text, Builder& builder, Refusal& refusal) {
  return YamlReader(text, builder).Run(refusal);
}

}  // namespace expanse::workload::kubernetes
