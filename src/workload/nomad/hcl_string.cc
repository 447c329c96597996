// Quoted strings and heredocs: where they end.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "workload/nomad/hcl_parser.h"

namespace expanse::workload::hcl {
namespace {

constexpr std::size_t kLookCost = 16;      // of one look ahead, in bytes
constexpr std::size_t kForeignCost = 256;  // of one for a template of another language

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

// White space in front of every line that is not blank and does not continue one that ends in "~}".
std::size_t CommonIndent(std::string_view text) {
  std::optional<std::size_t> least;
  bool continued = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!IsBlank(line)) {
      const std::size_t indent = line.find_first_not_of(" \t\r");
      if (!continued) least = std::min(least.value_or(indent), indent);
      continued = base::Trim(line).ends_with("~}");
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return least.value_or(0);
}

}  // namespace

// The "}" that ends an interpolation whose inside begins at `from`.
bool Parser::InterpolationEnd(std::size_t from, std::size_t limit, int nesting, std::size_t& end) {
  int braces = 0;
  std::size_t at = from;
  while (at < limit) {
    const char c = text_[at];
    if (c == '"') {
      std::size_t close = 0;
      if (nesting > kMaxDepth || !QuotedEnd(at + 1, limit, nesting + 1, close)) break;
      at = close;
    } else if (c == '{') {
      ++braces;
    } else if (c == '}' && braces-- == 0) {
      end = at;
      return Spend(at - from + kLookCost);
    }
    ++at;
  }
  Spend(at - from + kLookCost);
  return false;
}

// The quote that ends a string whose inside begins at `from`.
bool Parser::QuotedEnd(std::size_t from, std::size_t limit, int nesting, std::size_t& end) {
  std::size_t at = from;
  bool literal = false;  // a "${" was not closed: the others are not looked at
  while (at < limit && text_[at] != '\n' && !failed_) {
    const char c = text_[at];
    if (c == '"') {
      end = at;
      return Spend(at - from + kLookCost);
    }
    if (c == '\\') {
      at += 2;
      continue;
    }
    if ((c == '$' || c == '%') && at + 1 < limit && text_[at + 1] == '{' && !literal) {
      const bool escaped = at > from && text_[at - 1] == c;
      std::size_t close = 0;
      if (!escaped && InterpolationEnd(at + 2, limit, nesting, close)) {
        at = close + 1;
        continue;
      }
      if (!escaped) literal = true;
    }
    const bool opens = (c == '[' || c == '{' || c == '<') && at + 1 < limit &&
                       (text_[at + 1] == c || text_[at + 1] == '%');
    if (opens && !Spend(kForeignCost)) return false;
    const std::size_t foreign =
        opens ? FindForeignEnd(text_.substr(0, limit), at, /*in_string=*/true) : 0;
    at = foreign != 0 ? foreign : at + 1;
  }
  Spend(at - from + kLookCost);
  return false;
}

bool Parser::Quoted(Expression& out) {
  const std::size_t begin = pos_;
  std::size_t end = 0;
  if (!QuotedEnd(begin + 1, text_.size(), 0, end)) return Fail("string is not closed");
  pos_ = begin + 1;
  if (!Template(end, /*escapes=*/true, out)) return false;
  pos_ = end + 1;
  return Finish(out, begin);
}

bool Parser::Heredoc(Expression& out) {
  const std::size_t begin = pos_;
  pos_ += 2;
  const bool dedent = Eat("-") || Eat("~");
  const std::string_view marker = TakeWord();
  if (marker.empty()) return Fail("expected the name of a heredoc after \"<<\"");
  while (Peek() == ' ' || Peek() == '\t' || Peek() == '\r') ++pos_;
  if (!Eat("\n")) return Fail("expected a new line after the name of a heredoc");
  const std::size_t content = pos_;
  std::size_t line = content;
  while (true) {
    if (line >= text_.size()) {
      Spend(line - content);
      return Fail("heredoc \"" + std::string(marker) + "\" is not closed");
    }
    const std::size_t line_end = std::min(text_.find('\n', line), text_.size());
    if (base::Trim(text_.substr(line, line_end - line)) == marker) break;
    line = line_end + 1;
  }
  if (!Spend(line - content)) return false;
  const std::size_t indent =
      std::exchange(indent_, dedent ? CommonIndent(text_.substr(content, line - content)) : 0);
  const bool parsed = Template(line, /*escapes=*/false, out);
  indent_ = indent;
  if (!parsed) return false;
  pos_ = text_.find(marker, line) + marker.size();
  return Finish(out, begin);
}

}  // namespace expanse::workload::hcl
