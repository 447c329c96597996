// Expressions: operators in HCL's precedence, single values and what follows them.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "workload/nomad/hcl_parser.h"

namespace expanse::workload::hcl {
namespace {

constexpr int kMaxHeight = 200;

// Loosest first; within a level the longer spelling first.
constexpr std::array<std::array<std::string_view, 4>, 6> kOperators = {{
    {"||", "", "", ""},
    {"&&", "", "", ""},
    {"==", "!=", "", ""},
    {">=", "<=", ">", "<"},
    {"+", "-", "", ""},
    {"*", "/", "%", ""},
}};

}  // namespace

bool Parser::Finish(Expression& out, std::size_t begin) {
  out.begin = begin;
  out.end = pos_;
  int height = 0;
  for (const Expression& child : out.children) height = std::max(height, child.height);
  out.height = height + 1;
  if (out.height > kMaxHeight) return Fail("expression nested too deep", "too_deep");
  return CountNode();
}

bool Parser::Parse(Expression& out) {
  const Level level(*this);
  if (depth_ > kMaxDepth) return Fail("expression nested too deep", "too_deep");
  const std::size_t begin = pos_;
  if (!Binary(0, out)) return false;
  const std::size_t value_end = pos_;
  SkipSpace(grouped_ > 0);
  if (Peek() != '?') {
    pos_ = value_end;
    return !failed_;
  }
  ++pos_;
  Expression conditional{.kind = Kind::kConditional};
  conditional.children.resize(3);
  conditional.children[0] = std::move(out);
  SkipSpace(/*lines=*/true);
  if (!Parse(conditional.children[1])) return false;
  SkipSpace(/*lines=*/true);
  if (!Eat(":")) return Fail("expected \":\" of a conditional");
  SkipSpace(/*lines=*/true);
  if (!Parse(conditional.children[2])) return false;
  out = std::move(conditional);
  return Finish(out, begin);
}

bool Parser::Binary(int level, Expression& out) {
  if (level == static_cast<int>(kOperators.size())) return Unary(out);
  const std::size_t begin = pos_;
  if (!Binary(level + 1, out)) return false;
  while (true) {
    const std::size_t value_end = pos_;
    SkipSpace(grouped_ > 0);
    if (failed_) return false;
    std::string_view found;
    for (const std::string_view candidate : kOperators[static_cast<std::size_t>(level)]) {
      if (!candidate.empty() && text_.substr(pos_).starts_with(candidate)) {
        found = candidate;
        break;
      }
    }
    // "%>" and "%}" close templates of other languages, "%{" opens one.
    if (found == "%" && (Peek(1) == '>' || Peek(1) == '}' || Peek(1) == '{')) found = {};
    if (found.empty()) {
      pos_ = value_end;
      return true;
    }
    pos_ += found.size();
    SkipSpace(grouped_ > 0);
    Expression binary{.kind = Kind::kBinary, .text = std::string(found)};
    binary.children.resize(2);
    binary.children[0] = std::move(out);
    if (!Binary(level + 1, binary.children[1])) return false;
    out = std::move(binary);
    if (!Finish(out, begin)) return false;
  }
}

bool Parser::Unary(Expression& out) {
  if (Peek() != '-' && Peek() != '!') return Postfix(out);
  const Level level(*this);
  if (depth_ > kMaxDepth) return Fail("expression nested too deep", "too_deep");
  const std::size_t begin = pos_;
  out.kind = Kind::kUnary;
  out.text = text_[pos_++];
  SkipSpace(grouped_ > 0);
  out.children.resize(1);
  if (!Unary(out.children[0])) return false;
  return Finish(out, begin);
}

bool Parser::Postfix(Expression& out) {
  if (!Primary(out)) return false;
  bool more = true;
  while (more) {
    if (!PostfixStep(out, more)) return false;
  }
  return true;
}

bool Parser::PostfixStep(Expression& out, bool& more) {
  const std::size_t begin = out.begin;
  if (out.kind == Kind::kForeign || (Peek() == '.' && Peek(1) == '.')) {
    more = false;
    return true;
  }
  if (text_.substr(pos_).starts_with("[*]") || text_.substr(pos_).starts_with(".*")) {
    return Splat(out);
  }
  Expression step;
  if (Peek() == '.' && (IsWordStart(Peek(1)) || base::IsDigit(Peek(1)))) {
    ++pos_;
    step.kind = Kind::kAttribute;
    step.text = TakeWord();
    step.children.push_back(std::move(out));
  } else if (Peek() == '[') {
    ++pos_;
    step.kind = Kind::kIndex;
    step.children.resize(2);
    step.children[0] = std::move(out);
    ++grouped_;
    SkipSpace(/*lines=*/true);
    const bool parsed = Parse(step.children[1]);
    SkipSpace(/*lines=*/true);
    --grouped_;
    if (!parsed) return false;
    if (!Eat("]")) return Fail("expected \"]\"");
  } else {
    more = false;
    return true;
  }
  out = std::move(step);
  return Finish(out, begin);
}

// a[*].b.c, a.*.b: what follows is asked of each.
bool Parser::Splat(Expression& out) {
  const std::size_t begin = out.begin;
  const bool full = Peek() == '[';
  pos_ += full ? 3 : 2;
  Expression each{.kind = Kind::kVariable, .text = "*"};
  if (!Finish(each, pos_)) return false;
  while (true) {
    const bool attribute = Peek() == '.' && (IsWordStart(Peek(1)) || base::IsDigit(Peek(1)));
    if (!attribute && !(full && Peek() == '[' && Peek(1) != '*')) break;
    bool more = true;
    if (!PostfixStep(each, more)) return false;
  }
  Expression splat{.kind = Kind::kSplat};
  splat.children.push_back(std::move(out));
  splat.children.push_back(std::move(each));
  out = std::move(splat);
  return Finish(out, begin);
}

bool Parser::Primary(Expression& out) {
  const char c = Peek();
  if (base::IsDigit(c) || (c == '.' && base::IsDigit(Peek(1)))) return Number(out);
  if (c == '"') return Quoted(out);
  if (c == '(') return Parenthesised(out);
  if (c == '<' && Peek(1) == '<') return Heredoc(out);
  if (c == '[' && Peek(1) == '[') {
    // A list of lists, or a template of Levant or nomad-pack: what cannot be read as the one is the
    // other.
    const auto [pos, grouped] = std::pair(pos_, grouped_);
    if (Tuple(out) || reason_ != "syntax") return !failed_;
    pos_ = pos;
    grouped_ = grouped;
    if (FindForeignEnd(text_, pos_, /*in_string=*/false) == 0) return false;
    failed_ = false;
    out = {};
    return ForeignValue(out);
  }
  if (c == '[') return Tuple(out);
  if ((c == '{' && Peek(1) == '{') || (c == '$' && Peek(1) == '{') ||
      (c == '<' && Peek(1) == '%') || (c == '{' && Peek(1) == '%')) {
    return ForeignValue(out);
  }
  if (c == '{') return Object(out);
  if (IsWordStart(c)) return Word(out);
  if (c == '\0' && pos_ >= text_.size()) return Fail("expected a value before the end of the file");
  return Fail("expected a value");
}

// As much as stands together: ${A}${B}, [[ .n ]]00.
bool Parser::ForeignValue(Expression& out) {
  const std::size_t begin = pos_;
  while (pos_ < text_.size()) {
    std::size_t end = FindForeignEnd(text_, pos_, /*in_string=*/false);
    if (end == 0 && text_.substr(pos_).starts_with("${")) {
      const std::size_t line_end = std::min(text_.find('\n', pos_), text_.size());
      if (!InterpolationEnd(pos_ + 2, line_end, 0, end)) end = 0;
      if (end != 0) ++end;
    }
    if (end != 0) {
      pos_ = end;
    } else if (pos_ > begin && (IsWordPart(Peek()) || Peek() == '.')) {
      ++pos_;
    } else {
      break;
    }
  }
  if (failed_) return false;
  if (pos_ == begin) return Fail("expected a value");
  out.kind = Kind::kForeign;
  out.text = text_.substr(begin, pos_ - begin);
  return Finish(out, begin);
}

bool Parser::Number(Expression& out) {
  const std::size_t begin = pos_;
  const auto digits = [&] {
    while (base::IsDigit(Peek())) ++pos_;
  };
  digits();
  if (Peek() == '.' && base::IsDigit(Peek(1))) {
    ++pos_;
    digits();
  }
  const std::size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 2 : 1;
  if ((Peek() == 'e' || Peek() == 'E') && base::IsDigit(Peek(sign))) {
    pos_ += sign;
    digits();
  }
  const auto value = base::ParseDouble(text_.substr(begin, pos_ - begin));
  if (!value || IsWordStart(Peek())) return Fail("not a number");
  out.kind = Kind::kNumber;
  out.number = *value;
  return Finish(out, begin);
}

bool Parser::Word(Expression& out) {
  const std::size_t begin = pos_;
  const std::string_view word = TakeWord();
  if (Peek() == '(' || text_.substr(pos_).starts_with("::")) {
    while (text_.substr(pos_).starts_with("::")) {
      pos_ += 2;
      TakeWord();
    }
    out.kind = Kind::kCall;
    out.text = text_.substr(begin, pos_ - begin);
    out.begin = begin;
    return Call(out);
  }
  if (word == "true" || word == "false") {
    out.kind = Kind::kBool;
    out.number = word == "true" ? 1 : 0;
  } else if (word != "null") {
    out.kind = Kind::kVariable;
    out.text = word;
  }
  return Finish(out, begin);
}

}  // namespace expanse::workload::hcl
