// YAML through yaml-cpp's events. The events tell where tokens begin; the bytes of every value are
// found here by following the decoded value through the text.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "workload/kubernetes/document.h"

namespace expanse::workload::kubernetes {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Finds the ends of what begins at a position.
class Spans {
 public:
  explicit Spans(std::string_view text) : text_(text) {}

  // Past anchors, tags, blanks and comments.
  std::size_t SkipProperties(std::size_t at) const {
    for (at = SkipBlanks(at); at < text_.size() && (text_[at] == '&' || text_[at] == '!');
         at = SkipBlanks(at)) {
      while (at < text_.size() && !IsBlank(text_[at]) && text_[at] != ',' && text_[at] != ']' &&
             text_[at] != '}')
        ++at;
    }
    return at;
  }

  // Past blanks, line ends and comments.
  std::size_t SkipBlanks(std::size_t at) const {
    while (at < text_.size()) {
      if (IsBlank(text_[at])) {
        ++at;
      } else if (text_[at] == '#' && (at == 0 || IsBlank(text_[at - 1]))) {
        at = std::min(text_.find('\n', at), text_.size());
      } else {
        break;
      }
    }
    return at;
  }

  // Fills begin, end, stop and style of a scalar whose start is known; false when the text at that
  // place does not say what the value says. `indent`: column of the collection it is in, -1 at top.
  bool Scalar(Node& node, std::int64_t indent) const {
    node.begin = SkipProperties(node.start);
    const char first = node.begin < text_.size() ? text_[node.begin] : '\0';
    if (first == '\'' || first == '"') return Quoted(node, first);
    if (first == '|' || first == '>') return Block(node, indent);
    return Plain(node);
  }

  bool Plain(Node& node) const {
    node.style = Style::kPlain;
    if (node.value.empty()) return Absent(node);
    std::size_t at = node.begin;
    for (char c : node.value) {
      if (IsBlank(c)) continue;
      while (at < text_.size() && IsBlank(text_[at])) ++at;
      if (at == text_.size() || text_[at] != c) return false;
      ++at;
    }
    node.end = node.stop = at;
    return true;
  }

  // The next of the colons after a key.
  std::size_t Colon(std::size_t at) const {
    at = SkipBlanks(at);
    return at < text_.size() && text_[at] == ':' ? at + 1 : at;
  }

 private:
  bool Quoted(Node& node, char quote) const {
    node.style = quote == '"' ? Style::kDouble : Style::kSingle;
    std::size_t at = ++node.begin;
    for (; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        if (quote == '"' || at + 1 == text_.size() || text_[at + 1] != quote) break;
        ++at;
      }
    }
    // A tag without a value, before something quoted.
    if (node.value.empty() && at != node.begin) return Absent(node);
    if (at >= text_.size()) return false;
    node.end = at;
    node.stop = at + 1;
    return true;
  }

  static bool Absent(Node& node) {
    node.style = Style::kPlain;
    node.begin = node.end = node.stop = node.start;
    return true;
  }

  // Lines that are blank or further in than the collection around.
  bool Block(Node& node, std::int64_t indent) const {
    node.style = Style::kBlock;
    const std::size_t newline = text_.find('\n', node.begin);
    node.begin = node.end = std::min(newline, text_.size() - 1) + 1;
    for (std::size_t line = node.begin; line < text_.size();) {
      const std::size_t stop = std::min(text_.find('\n', line), text_.size());
      std::size_t at = line;
      while (at < stop && text_[at] == ' ') ++at;
      const bool blank = at == stop || text_[at] == '\r';
      if (!blank && static_cast<std::int64_t>(at - line) <= indent) break;
      if (!blank) node.end = stop > line && text_[stop - 1] == '\r' ? stop - 1 : stop;
      line = stop + 1;
    }
    node.stop = node.end;
    return true;
  }

  std::string_view text_;
};

// yaml-cpp takes what we throw out of its loop as it takes its own.
struct Stop {
  Refusal refusal;
};

class Events : public YAML::EventHandler {
 public:
  Events(std::string_view text, std::size_t bom, Builder& builder)
      : text_(text), spans_(text), bom_(bom), builder_(builder) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    anchors_.clear();
    const std::size_t at = At(mark);
    // yaml-cpp begins a new document wherever one ended; YAML wants a marker between.
    if (documents_++ > 0 && !text_.substr(at).starts_with("---") && !AfterEndMarker(at))
      Fail(at, "nothing but \"---\" can follow here");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node{.kind = NodeKind::kNull};
    node.start = node.begin = node.end = node.stop = Absent();
    const std::size_t at = spans_.SkipProperties(At(mark));
    for (std::string_view word : {"null", "Null", "NULL", "~"}) {
      // Where nothing stands, the mark is that of the next token: a key `null:`, `nullable:`.
      const std::size_t stop = at + word.size();
      if (!text_.substr(at).starts_with(word)) continue;
      if (stop < text_.size() && !IsBlank(text_[stop]) &&
          std::string_view(",]}").find(text_[stop]) == std::string_view::npos)
        continue;
      node.start = At(mark);
      node.begin = at;
      node.end = node.stop = stop;
      break;
    }
    Leaf(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node{.kind = NodeKind::kAlias};
    node.start = node.begin = At(mark);
    const auto target = anchors_.find(anchor);
    if (target == anchors_.end()) Fail(node.start, "an alias inside of what it stands for");
    node.target = target->second;
    node.end = node.begin + 1;
    while (node.end < text_.size() && !IsBlank(text_[node.end]) &&
           std::string_view(",[]{}").find(text_[node.end]) == std::string_view::npos)
      ++node.end;
    node.stop = node.end;
    builder_.Share(node.target);
    Leaf(std::move(node), YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node{.kind = NodeKind::kScalar, .start = At(mark), .value = value};
    const std::int64_t indent = open_.empty() ? -1 : open_.back().column;
    if (!spans_.Scalar(node, indent)) Fail(node.start, "a value whose end is not clear");
    Leaf(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    Begin(NodeKind::kSequence, mark, anchor, style);
  }
  void OnSequenceEnd() override { End(']'); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Begin(NodeKind::kMap, mark, anchor, style);
  }
  void OnMapEnd() override { End('}'); }

 private:
  struct Open {
    NodeId id = kNoNode;
    NodeId key = kNoNode;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::int64_t column = -1;
  };

  [[noreturn]] void Fail(std::size_t at, std::string_view message,
                         std::string_view why = "syntax") {
    const Place place = builder_.document().PlaceAt(at, at);
    throw Stop{{.line = place.line,
                .column = place.column,
                .reason = std::string(why),
                .message = std::string(message)}};
  }

  std::size_t At(const YAML::Mark& mark) const {
    return std::min(text_.size(), static_cast<std::size_t>(std::max(mark.pos, 0)) + bom_);
  }

  bool AfterEndMarker(std::size_t at) const {
    const std::size_t marker = text_.substr(0, at).rfind("\n...");
    return marker != std::string_view::npos && spans_.SkipBlanks(marker + 4) == at;
  }

  // Where a value that is left out would stand: behind the colon, or the dash.
  std::size_t Absent() const {
    if (open_.empty()) return 0;
    const Node& parent = builder_.document().Raw(open_.back().id);
    if (open_.back().key != kNoNode)
      return spans_.Colon(builder_.document().Raw(open_.back().key).stop);
    return parent.entries.empty() ? parent.begin : Last(parent);
  }
  std::size_t Last(const Node& parent) const {
    return builder_.document().Raw(parent.entries.back().value).stop;
  }

  NodeId Store(Node node) {
    const std::size_t at = node.start;
    const NodeId id = builder_.Add(std::move(node));
    if (id == kNoNode) Fail(at, "more values than a manifest has", "too_large");
    return id;
  }

  void Leaf(Node node, YAML::anchor_t anchor) {
    const NodeId id = Store(std::move(node));
    if (anchor != YAML::NullAnchor) anchors_[anchor] = id;
    Attach(id);
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

  void Begin(NodeKind kind, const YAML::Mark& mark, YAML::anchor_t anchor,
             YAML::EmitterStyle::value style) {
    Node node{.kind = kind,
              .style = style == YAML::EmitterStyle::Flow ? Style::kFlow : Style::kBlock,
              .start = At(mark)};
    node.begin = BlockBegin(node);
    node.end = node.stop = node.begin;
    const std::size_t column = builder_.document().ColumnAt(node.begin);
    const std::int64_t around = open_.empty() ? -1 : open_.back().column;
    open_.push_back(
        {.id = Store(node),
         .anchor = anchor,
         .column = node.style == Style::kBlock ? static_cast<std::int64_t>(column) : around});
  }

  // A property at the start is the collection's own, unless the collection is a map whose first
  // key begins with one: then both have the same start and no line end lies between.
  std::size_t BlockBegin(const Node& node) const {
    const std::size_t after = spans_.SkipProperties(node.start);
    const std::string_view between = text_.substr(node.start, after - node.start);
    const bool own = node.style == Style::kFlow || node.kind == NodeKind::kSequence ||
                     between.find('\n') != std::string_view::npos;
    return own ? after : node.start;
  }

  void End(char close) {
    const Open open = open_.back();
    Node& node = builder_.node(open.id);
    if (!node.entries.empty()) node.stop = Last(node);
    if (node.style == Style::kFlow && text_[node.begin] == (close == ']' ? '[' : '{'))
      CloseFlow(node, close);
    node.end = node.stop;
    open_.pop_back();
    if (open.anchor != YAML::NullAnchor) anchors_[open.anchor] = open.id;
    Attach(open.id);
  }

  void CloseFlow(Node& node, char close) {
    std::size_t at = node.entries.empty() ? node.begin + 1 : node.stop;
    for (at = spans_.SkipBlanks(at); at < text_.size() && (text_[at] == ',' || text_[at] == ':');)
      at = spans_.SkipBlanks(at + 1);
    if (at >= text_.size() || text_[at] != close)
      Fail(node.start, "brackets whose end is not clear");
    node.stop = at + 1;
  }

  std::string_view text_;
  Spans spans_;
  std::size_t bom_;
  Builder& builder_;
  std::size_t documents_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, NodeId> anchors_;
};

}  // namespace

bool ReadYaml(std::string_view text, Builder& builder, Refusal& refusal) {
  const std::size_t bom = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  Events events(text, bom, builder);
  try {
    std::istringstream stream{std::string(text.substr(bom))};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
    return true;
  } catch (const Stop& stop) {
    refusal = stop.refusal;
  } catch (const YAML::Exception& error) {
    refusal = {.line = static_cast<std::uint32_t>(std::max(error.mark.line, 0) + 1),
               .column = static_cast<std::uint32_t>(std::max(error.mark.column, 0) + 1),
               .reason = "syntax",
               .message = error.msg};
  } catch (const std::exception& error) {
    refusal = {.reason = "syntax", .message = error.what()};
  }
  return false;
}

}  // namespace expanse::workload::kubernetes
