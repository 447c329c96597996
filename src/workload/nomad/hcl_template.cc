// What strings and heredocs hold: literal text, ${interpolation}, %{ directives }.
//
// Where Nomad would refuse the file for an interpolation that is no expression (a shell's ${X:-y}
// in a heredoc, say) the text is kept as it stands.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "workload/nomad/hcl_parser.h"

namespace expanse::workload::hcl {
namespace {

// The escape that begins at text[0] == '\\': appended, and how many bytes it took. One that HCL
// does not know stays as written.
std::size_t Unescape(std::string_view text, std::string& out) {
  if (text.size() < 2) {
    out += text;
    return text.size();
  }
  switch (text[1]) {
    case 'n':
      out += '\n';
      return 2;
    case 'r':
      out += '\r';
      return 2;
    case 't':
      out += '\t';
      return 2;
    case '"':
    case '\\':
      out += text[1];
      return 2;
    case 'u':
    case 'U': {
      const std::size_t digits = text[1] == 'u' ? 4 : 8;
      std::uint32_t code = 0;
      const char* const first = text.data() + 2;
      if (text.size() < 2 + digits) break;
      const auto [end, error] = std::from_chars(first, first + digits, code, 16);
      if (error != std::errc() || end != first + digits) break;
      AppendUtf8(code, out);
      return 2 + digits;
    }
    default:
      break;
  }
  out += text.substr(0, 2);
  return 2;
}

void SetPlaces(Expression& tree, std::size_t begin, std::size_t end) {
  tree.begin = begin;
  tree.end = end;
  for (Expression& child : tree.children) SetPlaces(child, begin, end);
}

}  // namespace

void AppendUtf8(std::uint32_t code, std::string& out) {
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

Parsed<Expression> ParseTemplateText(std::string_view text, std::size_t begin, std::size_t end) {
  Parser parser(text);
  Expression out;
  if (!parser.Template(text.size(), /*escapes=*/false, out)) {
    return std::unexpected(parser.TakeRefusal());
  }
  SetPlaces(out, begin, end);
  return out;
}

bool Parser::Template(std::size_t end, bool escapes, Expression& out) {
  std::string stopped_at;
  const std::size_t begin = pos_;
  const int grouped = std::exchange(grouped_, 0);
  const bool parsed = TemplateParts(end, escapes, out, stopped_at);
  grouped_ = grouped;
  if (!parsed) return false;
  if (!stopped_at.empty()) return Fail("\"" + stopped_at + "\" without a directive to close");
  if (out.children.empty()) {
    out.kind = Kind::kString;
  } else if (out.children.size() == 1 && out.children[0].kind == Kind::kString) {
    Expression only = std::move(out.children[0]);
    out = std::move(only);
  }
  out.begin = begin;
  out.end = pos_ = end;
  return true;
}

// "~}" takes what is blank up to the end of its line, and the line's end; the next line is none of
// its own then, and keeps its indentation.
void Parser::SkipTrimmed(std::size_t end) {
  while (pos_ < end && (text_[pos_] == ' ' || text_[pos_] == '\t' || text_[pos_] == '\r')) ++pos_;
  if (pos_ < end && text_[pos_] == '\n') ++pos_;
}

// The indentation of <<-; blank lines keep theirs.
void Parser::SkipIndent(std::size_t end) {
  const std::size_t first = text_.find_first_not_of(" \t\r", pos_);
  if (first < end && text_[first] != '\n') pos_ = std::min(first, pos_ + indent_);
}

// Up to `end`, or behind a directive that closes one: then its word is in `stopped_at`.
bool Parser::TemplateParts(std::size_t end, bool escapes, Expression& out,
                           std::string& stopped_at) {
  out.kind = Kind::kTemplate;
  const std::size_t begin = pos_;
  Parts parts{.out = out, .stopped_at = stopped_at, .end = end, .escapes = escapes};
  bool line_start = !escapes && pos_ > 0 && text_[pos_ - 1] == '\n';
  // Behind "~}" of the directive that this is the body of.
  if (pos_ >= 2 && text_.substr(pos_ - 2, 2) == "~}") SkipTrimmed(end);
  parts.literal_begin = pos_;
  while (pos_ < end && !failed_ && stopped_at.empty()) {
    if (std::exchange(line_start, false)) {
      SkipIndent(end);
      continue;
    }
    const char c = text_[pos_];
    if (c == '\\' && escapes) {
      pos_ += Unescape(text_.substr(pos_, end - pos_), parts.literal);
      continue;
    }
    if ((c == '$' || c == '%') && Marked(parts)) continue;
    line_start = c == '\n';
    if (line_start) parts.open_line = false;
    parts.literal += c;
    ++pos_;
  }
  return !failed_ && FlushLiteral(parts) && Finish(out, begin);
}

bool Parser::FlushLiteral(Parts& parts) {
  if (parts.literal.empty()) return true;
  Expression part{.kind = Kind::kString, .text = std::exchange(parts.literal, {})};
  if (!Finish(part, parts.literal_begin)) return false;
  parts.out.children.push_back(std::move(part));
  return true;
}

// At "$" or "%": true where it was more than itself, or a failure.
bool Parser::Marked(Parts& parts) {
  const char mark = text_[pos_];
  if (pos_ + 1 >= parts.end) return false;
  if (text_[pos_ + 1] == mark && pos_ + 2 < parts.end && text_[pos_ + 2] == '{') {
    parts.literal += mark;
    parts.literal += '{';
    pos_ += 3;
    return true;
  }
  if (text_[pos_ + 1] != '{' || parts.open_line) return false;
  std::size_t close = 0;
  if (!InterpolationEnd(pos_ + 2, parts.end, 0, close)) {
    parts.open_line = true;
    return failed_;
  }
  if (mark == '%' && !IsDirective(text_.substr(pos_ + 2, close - pos_ - 2))) return false;
  AddPart(parts, close);
  return true;
}

// At "${" or "%{", whose "}" is at `close`.
void Parser::AddPart(Parts& parts, std::size_t close) {
  const std::size_t begin = pos_;
  if (Peek(2) == '~') parts.literal.erase(parts.literal.find_last_not_of(" \t\r") + 1);
  if (!FlushLiteral(parts)) return;
  Expression part;
  const bool parsed = text_[pos_] == '$'
                          ? Interpolation(close, part)
                          : Directive(parts.end, parts.escapes, part, parts.stopped_at);
  if (failed_ || !parts.stopped_at.empty()) return;
  if (parsed) {
    parts.out.children.push_back(std::move(part));
    if (text_.substr(pos_ - 2, 2) == "~}") SkipTrimmed(parts.end);
    parts.literal_begin = pos_;
  } else {
    parts.literal = text_.substr(begin, pos_ - begin);
    parts.literal_begin = begin;
  }
}

// At "${", whose "}" is at `end`. False without a failure where the inside is no expression; pos_
// is behind it in any case.
bool Parser::Interpolation(std::size_t end, Expression& out) {
  const std::string_view text = std::exchange(text_, text_.substr(0, end));
  pos_ += 2;
  Eat("~");
  ++grouped_;
  SkipSpace(/*lines=*/true);
  bool parsed = Parse(out);
  SkipSpace(/*lines=*/true);
  Eat("~");
  parsed = parsed && !failed_ && pos_ == end;
  --grouped_;
  text_ = text;
  if (failed_ && reason_ != "syntax") return false;
  failed_ = false;
  pos_ = end + 1;
  return parsed;
}

bool Parser::IsDirective(std::string_view inside) {
  if (inside.starts_with('~')) inside.remove_prefix(1);
  inside = base::Trim(inside);
  if (inside.ends_with('~')) inside.remove_suffix(1);
  const std::size_t word_end = inside.find_first_of(" \t\r\n(!\"");
  const std::string_view word = inside.substr(0, word_end);
  const bool more = word_end != inside.npos;
  return (more && (word == "if" || word == "for")) || word == "else" || word == "endif" ||
         word == "endfor";
}

// At "%{". Directives that are no expressions are failures: going back over them could be repeated.
bool Parser::Directive(std::size_t end, bool escapes, Expression& out, std::string& stopped_at) {
  const Level level(*this);
  if (depth_ > kMaxDepth) return Fail("templates nested too deep", "too_deep");
  const std::size_t begin = pos_;
  pos_ += 2;
  Eat("~");
  SkipSpace(/*lines=*/true);
  const std::string_view word = TakeWord();
  if (word != "if" && word != "for") {
    stopped_at = word;
    return DirectiveClose();
  }
  const bool parsed =
      word == "if" ? DirectiveIf(end, escapes, out) : DirectiveFor(end, escapes, out);
  return parsed && Finish(out, begin);
}

bool Parser::DirectiveClose() {
  SkipSpace(/*lines=*/true);
  Eat("~");
  return Eat("}") ? true : Fail("directive is not closed");
}

bool Parser::DirectiveIf(std::size_t end, bool escapes, Expression& node) {
  node.kind = Kind::kTemplateIf;
  node.children.resize(3);
  SkipSpace(/*lines=*/true);
  ++grouped_;
  const bool parsed = Parse(node.children[0]);
  --grouped_;
  if (!parsed || !DirectiveClose()) return false;
  std::string word;
  if (!TemplateParts(end, escapes, node.children[1], word)) return false;
  node.children[2].kind = Kind::kString;
  if (word == "else") {
    word.clear();
    if (!TemplateParts(end, escapes, node.children[2], word)) return false;
  }
  return word == "endif" ? true : Fail("\"if\" of a template without \"endif\"");
}

bool Parser::DirectiveFor(std::size_t end, bool escapes, Expression& node) {
  node.kind = Kind::kTemplateFor;
  node.children.resize(2);
  do {
    SkipSpace(/*lines=*/true);
    if (!IsWordStart(Peek()) || node.names.size() == 2)
      return Fail("expected a name after \"for\"");
    node.names.emplace_back(TakeWord());
    SkipSpace(/*lines=*/true);
  } while (Eat(","));
  if (!AtWord("in")) return Fail("expected \"in\"");
  TakeWord();
  SkipSpace(/*lines=*/true);
  ++grouped_;
  const bool parsed = Parse(node.children[0]);
  --grouped_;
  if (!parsed || !DirectiveClose()) return false;
  std::string word;
  if (!TemplateParts(end, escapes, node.children[1], word)) return false;
  return word == "endfor" ? true : Fail("\"for\" of a template without \"endfor\"");
}

}  // namespace expanse::workload::hcl
