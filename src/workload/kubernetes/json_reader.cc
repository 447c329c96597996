// JSON (RFC 8259) into nodes with their places. nlohmann's reader gives no positions of values.
#include "base/text.h"
#include "workload/kubernetes/document.h"

namespace expanse::workload::kubernetes {
namespace {

constexpr int kMaxDepth = 256;

class JsonReader {
 public:
  JsonReader(std::string_view text, Builder& builder) : text_(text), builder_(builder) {}

  bool Run(Refusal& refusal) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    NodeId root = kNoNode;
    Skip();
    if (Value(root, 0)) {
      Skip();
      if (at_ == text_.size()) {
        builder_.AddRoot(root);
        return true;
      }
      Fail("nothing expected after the value");
    }
    const Place place = builder_.document().PlaceAt(at_, at_);
    refusal = {.line = place.line, .column = place.column, .reason = reason_, .message = message_};
    return false;
  }

 private:
  bool Fail(std::string_view message) {
    if (message_.empty()) message_ = message;
    return false;
  }
  void Skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool Store(NodeId& id, Node node) {
    id = builder_.Add(std::move(node));
    if (id != kNoNode) return true;
    reason_ = "too_large";
    return Fail("more values than a manifest has");
  }

  bool Value(NodeId& id, int depth) {
    if (depth > kMaxDepth) return Fail("nested too deeply");
    const char c = Peek();
    if (c == '{' || c == '[') return Collection(id, depth);
    if (c == '"') return String(id);
    return Literal(id);
  }

  bool Collection(NodeId& id, int depth) {
    const bool is_map = text_[at_] == '{';
    const char close = is_map ? '}' : ']';
    Node node{.kind = is_map ? NodeKind::kMap : NodeKind::kSequence, .style = Style::kFlow};
    node.start = node.begin = at_++;
    if (!Store(id, std::move(node))) return false;
    Skip();
    for (bool first = true; Peek() != close; first = false) {
      if (!first && !Take(',')) return Fail("\",\" or a closing bracket expected");
      Entry entry;
      if (is_map && (!Key(entry.key) || !Take(':'))) return Fail("a key and \":\" expected");
      Skip();
      if (!Value(entry.value, depth + 1)) return false;
      builder_.node(id).entries.push_back(entry);
      Skip();
    }
    ++at_;
    builder_.node(id).end = builder_.node(id).stop = at_;
    return true;
  }

  bool Key(NodeId& id) {
    Skip();
    return Peek() == '"' && String(id);
  }
  bool Take(char c) {
    Skip();
    if (Peek() != c) return false;
    ++at_;
    return true;
  }

  bool String(NodeId& id) {
    Node node{.kind = NodeKind::kScalar, .style = Style::kDouble};
    node.start = at_++;
    node.begin = at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20)
        return Fail("a control character in a string");
      if (text_[at_] != '\\') {
        node.value.push_back(text_[at_++]);
      } else if (!Escape(node.value)) {
        return Fail("an unknown escape");
      }
    }
    if (at_ == text_.size()) return Fail("a string without an end");
    node.end = at_++;
    node.stop = at_;
    node.templated = node.value.find("{{") != std::string::npos;
    return Store(id, std::move(node));
  }

  bool Escape(std::string& value) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (at_ + 1 >= text_.size()) return false;
    const char c = text_[at_ + 1];
    if (const std::size_t index = kFrom.find(c); index != std::string_view::npos) {
      value.push_back(kTo[index]);
      at_ += 2;
      return true;
    }
    std::uint32_t point = 0;
    if (!Unit(point)) return false;
    std::uint32_t low = 0;
    if (point >= 0xd800 && point < 0xdc00 && Unit(low) && low >= 0xdc00 && low < 0xe000)
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    else if (point >= 0xd800 && point < 0xe000)
      return false;
    AppendUtf8(value, point);
    return true;
  }

  // "\uXXXX" at the position.
  bool Unit(std::uint32_t& unit) {
    if (text_.size() - at_ < 6 || text_[at_] != '\\' || text_[at_ + 1] != 'u') return false;
    const char* digits = text_.data() + at_ + 2;
    const auto [end, error] = std::from_chars(digits, digits + 4, unit, 16);
    if (error != std::errc() || end != digits + 4) return false;
    at_ += 6;
    return true;
  }

  static void AppendUtf8(std::string& out, std::uint32_t point) {
    const auto byte = [&out](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
    if (point < 0x80) return byte(point);
    if (point < 0x800) {
      byte(0xc0 | point >> 6);
    } else {
      if (point < 0x10000) {
        byte(0xe0 | point >> 12);
      } else {
        byte(0xf0 | point >> 18);
        byte(0x80 | (point >> 12 & 0x3f));
      }
      byte(0x80 | (point >> 6 & 0x3f));
    }
    byte(0x80 | (point & 0x3f));
  }

  bool Literal(NodeId& id) {
    const std::size_t stop = std::min(text_.find_first_of(",]} \n\r\t", at_), text_.size());
    Node node{.kind = NodeKind::kScalar, .style = Style::kPlain};
    node.value = text_.substr(at_, stop - at_);
    if (node.value == "null") {
      node.kind = NodeKind::kNull;
    } else if (node.value != "true" && node.value != "false" &&
               (!base::ParseDouble(node.value) ||
                node.value.find_first_not_of("-+.eE0123456789") != std::string::npos)) {
      return Fail("a value expected");
    }
    node.start = node.begin = at_;
    node.end = node.stop = stop;
    at_ = stop;
    return Store(id, std::move(node));
  }

  std::string_view text_;
  Builder& builder_;
  std::size_t at_ = 0;
  std::string reason_ = "syntax";
  std::string message_;
};

}  // namespace

bool ReadJson(std::string_view text, Builder& builder, Refusal& refusal) {
  return JsonReader(text, builder).Run(refusal);
}

}  // namespace expanse::workload::kubernetes
