// Statements and blocks; what all of the parser shares.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "workload/nomad/hcl_parser.h"

namespace expanse::workload::hcl {
namespace {

constexpr std::size_t kMaxForeign = 256;  // bytes of a template of another language

// The end of a template of another language that begins at `from` and ends on the same line, or 0.
std::size_t ForeignEnd(std::string_view text, std::size_t from, bool in_string) {
  static constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
      {"[[", "]]"}, {"{{", "}}"}, {"<%", "%>"}, {"{%", "%}"}};
  for (const auto& [open, close] : kMarks) {
    if (!text.substr(from).starts_with(open)) continue;
    std::string_view line = text.substr(from, kMaxForeign);
    line = line.substr(0, line.find('\n'));
    const std::size_t found = line.find(close, open.size());
    if (found == line.npos) return 0;
    std::size_t end = found + close.size();
    if (!in_string) return from + end;
    // In a string: only where quotes inside could not be the string's own.
    const std::string_view inside = line.substr(open.size(), found - open.size());
    const std::size_t quote = inside.find('"');
    if (quote == inside.npos || quote == 0) return 0;
    if (inside[quote - 1] != ' ' && inside[quote - 1] != '(') return 0;
    return from + end;
  }
  return 0;
}

}  // namespace

std::size_t FindForeignEnd(std::string_view text, std::size_t from, bool in_string) {
  if (from >= text.size() || (text[from] != '[' && text[from] != '{' && text[from] != '<'))
    return 0;
  return ForeignEnd(text, from, in_string);
}

bool HasForeignTemplate(std::string_view text) {
  return text.find("[[ ") != text.npos || text.find("[[.") != text.npos ||
         text.find("[[-") != text.npos || text.find("[[$") != text.npos ||
         text.find("[[env ") != text.npos || text.find("{{") != text.npos ||
         text.find("{%") != text.npos || text.find("<%") != text.npos;
}

const Attribute* Body::FindAttribute(std::string_view name) const {
  const auto found = std::ranges::find(attributes, name, &Attribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

const Block* Body::FindBlock(std::string_view type) const {
  const auto found = std::ranges::find(blocks, type, &Block::type);
  return found == blocks.end() ? nullptr : &*found;
}

Parsed<Body> ParseBody(std::string_view text) {
  if (text.size() > kMaxText) {
    return std::unexpected(Refusal{0, 0, "too_large", "the jobspec is larger than 4 MiB"});
  }
  Parser parser(text);
  Body body;
  if (!parser.File(body)) return std::unexpected(parser.TakeRefusal());
  return body;
}

bool Parser::Fail(std::string message, std::string reason) {
  if (failed_) return false;
  failed_ = true;
  failed_at_ = std::min(pos_, text_.size());
  message_ = std::move(message);
  reason_ = std::move(reason);
  return false;
}

Refusal Parser::TakeRefusal() const {
  const Place place = PlaceOf(text_, failed_at_, failed_at_);
  Refusal refusal{place.line, place.column, reason_, message_};
  if (reason_ != "syntax") return refusal;
  const std::size_t line_begin = failed_at_ == 0 ? 0 : text_.rfind('\n', failed_at_ - 1) + 1;
  const std::size_t line_end = std::min(text_.find('\n', failed_at_), text_.size());
  if (HasForeignTemplate(text_.substr(line_begin, line_end - line_begin))) {
    refusal.reason = "templated";
    refusal.message = "a template that has to be rendered first: " + message_;
  }
  return refusal;
}

bool Parser::CountNode() {
  if (++nodes_ > kMaxNodes) return Fail("more statements and values than are read", "too_large");
  return true;
}

bool Parser::Spend(std::size_t bytes) {
  scanned_ += bytes;
  if (scanned_ > text_size_ * 32 + (1 << 20))
    return Fail("templates nested beyond what is read", "too_large");
  return true;
}

void Parser::SkipLine() { pos_ = std::min(text_.find('\n', pos_), text_.size()); }

void Parser::SkipSpace(bool lines) {
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c == '\n') {
      if (!lines) return;
      ++pos_;
    } else if (base::IsSpace(c)) {
      ++pos_;
    } else if (c == '#' || (c == '/' && Peek(1) == '/')) {
      SkipLine();
    } else if (c == '/' && Peek(1) == '*') {
      const std::size_t close = text_.find("*/", pos_ + 2);
      if (close == text_.npos) {
        Fail("comment is not closed");
        pos_ = text_.size();
        return;
      }
      pos_ = close + 2;
    } else {
      return;
    }
  }
}

bool Parser::Eat(std::string_view token) {
  if (!text_.substr(pos_).starts_with(token)) return false;
  pos_ += token.size();
  return true;
}

bool Parser::AtWord(std::string_view word) const {
  return text_.substr(pos_).starts_with(word) && !IsWordPart(Peek(word.size()));
}

std::string_view Parser::TakeWord() {
  const std::size_t begin = pos_;
  while (pos_ < text_.size() && IsWordPart(text_[pos_])) ++pos_;
  return text_.substr(begin, pos_ - begin);
}

bool Parser::File(Body& body) {
  if (text_.starts_with("\xef\xbb\xbf")) pos_ = 3;
  body.open = pos_;
  if (!Statements(body, /*in_braces=*/false)) return false;
  body.close = text_.size();
  return true;
}

bool Parser::Statements(Body& body, bool in_braces) {
  while (true) {
    SkipSpace(/*lines=*/true);
    if (failed_) return false;
    if (pos_ >= text_.size()) return in_braces ? Fail("block is not closed") : CheckNames(body);
    if (text_[pos_] == '}') {
      if (!in_braces) return Fail("\"}\" without a block to close");
      body.close = pos_++;
      return CheckNames(body);
    }
    if (text_[pos_] == ',' || text_[pos_] == ';') {  // HCL1
      ++pos_;
      continue;
    }
    if (!Statement(body)) return false;
  }
}

// Nomad takes no attribute twice.
bool Parser::CheckNames(const Body& body) {
  std::vector<const Attribute*> sorted;
  for (const Attribute& attribute : body.attributes) sorted.push_back(&attribute);
  const auto name = [](const Attribute* attribute) -> std::string_view { return attribute->name; };
  std::ranges::stable_sort(sorted, {}, name);
  const auto twice = std::ranges::adjacent_find(sorted, {}, name);
  if (twice == sorted.end()) return true;
  pos_ = (*std::next(twice))->begin;
  return Fail("\"" + (*twice)->name + "\" is written twice");
}

bool Parser::Statement(Body& body) {
  if (!CountNode()) return false;
  const std::size_t begin = pos_;
  std::string name;
  if (Peek() == '"') {
    Expression key;
    if (!Quoted(key)) return false;
    if (key.kind != Kind::kString) return Fail("a name cannot be put together");
    name = std::move(key.text);
  } else if (IsWordStart(Peek())) {
    name = TakeWord();
  } else if (FindForeignEnd(text_, pos_, /*in_string=*/false) != 0 ||
             text_.substr(pos_).starts_with("[[") || text_.substr(pos_).starts_with("{{") ||
             text_.substr(pos_).starts_with("${") || text_.substr(pos_).starts_with("%{")) {
    return Fail("a template that has to be rendered first decides what stands here", "templated");
  } else {
    return Fail("expected the name of an attribute or block");
  }
  const std::size_t name_end = pos_;
  SkipSpace(/*lines=*/false);
  if (Peek() == '=' && Peek(1) != '=') {
    ++pos_;
    SkipSpace(/*lines=*/false);
    body.attributes.push_back({std::move(name), begin, name_end, {}});
    if (!Parse(body.attributes.back().value)) return false;
    SkipSpace(/*lines=*/false);
    return true;
  }
  Block block;
  block.type = std::move(name);
  block.begin = begin;
  if (!Labels(block) || !FinishBlock(block)) return false;
  body.blocks.push_back(std::move(block));
  return true;
}

bool Parser::Labels(Block& block) {
  while (true) {
    SkipSpace(/*lines=*/false);
    if (failed_) return false;
    Label label;
    label.begin = pos_;
    if (Peek() == '"') {
      Expression text;
      if (!Quoted(text)) return false;
      label.begin = text.begin + 1;
      label.end = text.end - 1;
      const std::string_view written = text_.substr(label.begin, label.end - label.begin);
      // A label is never evaluated, not even by Nomad.
      label.text = text.kind == Kind::kString ? text.text : std::string(written);
      label.foreign = HasForeignTemplate(label.text);
    } else if (const std::size_t end = FindForeignEnd(text_, pos_, /*in_string=*/false); end != 0) {
      label.text = text_.substr(pos_, end - pos_);
      label.end = pos_ = end;
      label.foreign = true;
    } else if (IsWordStart(Peek())) {
      label.text = TakeWord();
      label.end = pos_;
    } else {
      return true;
    }
    if (block.labels.size() >= 8) return Fail("too many labels");
    block.labels.push_back(std::move(label));
  }
}

bool Parser::FinishBlock(Block& block) {
  if (!Eat("{")) return Fail("expected \"=\" or \"{\" after \"" + block.type + "\"");
  const Level level(*this);
  if (depth_ > kMaxDepth) return Fail("blocks nested too deep", "too_deep");
  block.body.open = pos_;
  return Statements(block.body, /*in_braces=*/true);
}

}  // namespace expanse::workload::hcl
