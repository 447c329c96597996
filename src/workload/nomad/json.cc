// Strict JSON with places.
#include "workload/nomad/json.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace expanse::workload::hcl {
namespace {

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Parsed<Expression> File() {
    if (text_.starts_with("\xef\xbb\xbf")) pos_ = 3;
    Expression out;
    Skip();
    if (Value(out)) {
      Skip();
      if (pos_ < text_.size()) Fail("more text behind the JSON value");
    }
    if (message_.empty()) return out;
    const Place place = PlaceOf(text_, failed_at_, failed_at_);
    return std::unexpected(Refusal{place.line, place.column, reason_, message_});
  }

 private:
  bool Fail(std::string message, std::string reason = "syntax") {
    if (!message_.empty()) return false;
    message_ = std::move(message);
    reason_ = std::move(reason);
    failed_at_ = std::min(pos_, text_.size());
    return false;
  }

  void Skip() { pos_ = std::min(text_.find_first_not_of(" \t\r\n", pos_), text_.size()); }
  char Peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }

  bool Value(Expression& out) {
    if (++nodes_ > kMaxNodes) return Fail("more values than are read", "too_large");
    out.begin = pos_;
    bool parsed = false;
    if (Peek() == '{' || Peek() == '[') {
      if (depth_ >= kMaxDepth) return Fail("nested too deep", "too_deep");
      ++depth_;
      parsed = Peek() == '{' ? Object(out) : Array(out);
      --depth_;
    } else if (Peek() == '"') {
      out.kind = Kind::kString;
      parsed = String(out.text);
    } else {
      parsed = Literal(out);
    }
    out.end = pos_;
    return parsed;
  }

  bool Object(Expression& out) {
    out.kind = Kind::kObject;
    ++pos_;
    Skip();
    if (Peek() == '}') return ++pos_, true;
    while (true) {
      Expression key{.kind = Kind::kString, .begin = pos_};
      if (Peek() != '"') return Fail("expected a quoted name");
      if (!String(key.text)) return false;
      key.end = pos_;
      Skip();
      if (Peek() != ':') return Fail("expected \":\"");
      ++pos_;
      Skip();
      Expression value;
      if (!Value(value)) return false;
      out.children.push_back(std::move(key));
      out.children.push_back(std::move(value));
      Skip();
      if (Peek() == '}') return ++pos_, true;
      if (Peek() != ',') return Fail("expected \",\" or \"}\"");
      ++pos_;
      Skip();
    }
  }

  bool Array(Expression& out) {
    out.kind = Kind::kTuple;
    ++pos_;
    Skip();
    if (Peek() == ']') return ++pos_, true;
    while (true) {
      out.children.emplace_back();
      if (!Value(out.children.back())) return false;
      Skip();
      if (Peek() == ']') return ++pos_, true;
      if (Peek() != ',') return Fail("expected \",\" or \"]\"");
      ++pos_;
      Skip();
    }
  }

  bool Literal(Expression& out) {
    const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", pos_), text_.size());
    const std::string_view word = text_.substr(pos_, end - pos_);
    if (word == "true" || word == "false") {
      out.kind = Kind::kBool;
      out.number = word == "true" ? 1 : 0;
    } else if (word != "null") {
      const bool number =
          !word.empty() && (word[0] == '-' || base::IsDigit(word[0])) && base::IsDigit(word.back());
      const auto value = number ? base::ParseDouble(word) : std::nullopt;
      if (!value)
        return Fail(word.starts_with("[[") || word.starts_with("{{") || word.starts_with("${") ||
                            word.starts_with("<%")
                        ? "a template that has to be rendered first"
                        : "expected a value");
      out.kind = Kind::kNumber;
      out.number = *value;
    }
    pos_ = end;
    return true;
  }

  bool String(std::string& out) {
    const std::size_t begin = pos_++;
    while (pos_ < text_.size()) {
      const std::size_t plain = std::min(text_.find_first_of("\"\\\n", pos_), text_.size());
      out.append(text_.substr(pos_, plain - pos_));
      pos_ = plain;
      if (Peek() == '"') return ++pos_, true;
      if (Peek() != '\\') break;
      if (!Escape(out)) return false;
    }
    pos_ = begin;
    return Fail("string is not closed");
  }

  bool Escape(std::string& out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
    const char name = pos_ + 1 < text_.size() ? text_[pos_ + 1] : '\0';
    if (const std::size_t found = kNames.find(name); name != '\0' && found != kNames.npos) {
      out += kBytes[found];
      pos_ += 2;
      return true;
    }
    std::uint32_t code = 0;
    if (!Hex(code)) return Fail("not an escape of JSON");
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(pos_).starts_with("\\u")) {
      std::uint32_t low = 0;
      if (!Hex(low)) return Fail("not an escape of JSON");
      const bool pair = low >= 0xDC00 && low < 0xE000;
      code = pair ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
    }
    AppendUtf8(code, out);
    return true;
  }

  bool Hex(std::uint32_t& code) {
    if (text_.size() - pos_ < 6 || text_[pos_ + 1] != 'u') return false;
    const char* const first = text_.data() + pos_ + 2;
    const auto [end, error] = std::from_chars(first, first + 4, code, 16);
    if (error != std::errc() || end != first + 4) return false;
    pos_ += 6;
    return true;
  }

  std::string_view text_;
  std::size_t pos_ = 0;
  int depth_ = 0;
  std::size_t nodes_ = 0;
  std::string message_;
  std::string reason_;
  std::size_t failed_at_ = 0;
};

}  // namespace

Parsed<Expression> ParseJson(std::string_view text) {
  if (text.size() > kMaxText) {
    return std::unexpected(Refusal{0, 0, "too_large", "the jobspec is larger than 4 MiB"});
  }
  return JsonParser(text).File();
}

bool LooksLikeJson(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text = base::Trim(text);
  if (text.empty() || text.starts_with("[[") || text.starts_with("{{") || text.starts_with("{%")) {
    return false;
  }
  return text[0] == '{' || text[0] == '[';
}

}  // namespace expanse::workload::hcl
