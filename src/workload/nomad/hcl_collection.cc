// Expressions in brackets: calls, lists, objects, for.
#include <utility>

#include "workload/nomad/hcl_parser.h"

namespace expanse::workload::hcl {

bool Parser::Call(Expression& out) {
  const std::size_t begin = out.begin;
  if (!Eat("(")) return Fail("expected \"(\"");
  ++grouped_;
  while (true) {
    SkipSpace(/*lines=*/true);
    if (Eat(")")) break;
    out.children.emplace_back();
    if (!Parse(out.children.back())) return false;
    SkipSpace(/*lines=*/true);
    if (Eat("...")) out.number = 1;
    SkipSpace(/*lines=*/true);
    if (Eat(",")) continue;
    if (Eat(")")) break;
    return Fail("expected \",\" or \")\" after an argument");
  }
  --grouped_;
  return Finish(out, begin);
}

bool Parser::Parenthesised(Expression& out) {
  const std::size_t begin = pos_++;
  ++grouped_;
  SkipSpace(/*lines=*/true);
  if (!Parse(out)) return false;
  SkipSpace(/*lines=*/true);
  if (!Eat(")")) return Fail("expected \")\"");
  --grouped_;
  out.begin = begin;
  out.end = pos_;
  return true;
}

bool Parser::Tuple(Expression& out) {
  const std::size_t begin = pos_++;
  ++grouped_;
  SkipSpace(/*lines=*/true);
  if (AtWord("for")) {
    if (!For(out, /*object=*/false)) return false;
    --grouped_;
    return Finish(out, begin);
  }
  out.kind = Kind::kTuple;
  while (true) {
    SkipSpace(/*lines=*/true);
    if (Eat("]")) break;
    out.children.emplace_back();
    if (!Parse(out.children.back())) return false;
    SkipSpace(/*lines=*/true);
    if (Eat(",")) continue;
    if (Eat("]")) break;
    return Fail("expected \",\" or \"]\" after a value of a list");
  }
  --grouped_;
  return Finish(out, begin);
}

bool Parser::Object(Expression& out) {
  const Level level(*this);
  if (depth_ > kMaxDepth) return Fail("expression nested too deep", "too_deep");
  const std::size_t begin = pos_++;
  const int grouped = std::exchange(grouped_, 0);
  SkipSpace(/*lines=*/true);
  if (AtWord("for")) {
    ++grouped_;
    if (!For(out, /*object=*/true)) return false;
    grouped_ = grouped;
    return Finish(out, begin);
  }
  out.kind = Kind::kObject;
  while (true) {
    SkipSpace(/*lines=*/true);
    if (failed_) return false;
    if (Eat("}")) break;
    if (pos_ >= text_.size()) return Fail("object is not closed");
    if (!ObjectItem(out)) return false;
    SkipSpace(/*lines=*/false);
    if (Peek() == ',') ++pos_;
  }
  grouped_ = grouped;
  return Finish(out, begin);
}

bool Parser::ObjectItem(Expression& out) {
  Expression key;
  const std::size_t begin = pos_;
  if (IsWordStart(Peek())) {
    // A bare word is its own name; words with dots are what old files call meta and labels.
    while (IsWordPart(Peek()) || (Peek() == '.' && IsWordPart(Peek(1)))) ++pos_;
    key.kind = Kind::kString;
    key.text = text_.substr(begin, pos_ - begin);
    if (!Finish(key, begin)) return false;
  } else if (!Unary(key)) {
    return false;
  }
  SkipSpace(/*lines=*/false);
  if (!Eat("=") && !Eat(":") && Peek() != '{') {  // HCL1: a block in an object
    return Fail("expected \"=\" or \":\" after a key");
  }
  SkipSpace(/*lines=*/true);
  Expression value;
  if (!Parse(value)) return false;
  out.children.push_back(std::move(key));
  out.children.push_back(std::move(value));
  return true;
}

// After "[" or "{": for k, v in collection : [key =>] value[...] [if condition], and the bracket.
bool Parser::For(Expression& out, bool object) {
  out.kind = object ? Kind::kForObject : Kind::kForTuple;
  TakeWord();
  do {
    SkipSpace(/*lines=*/true);
    if (!IsWordStart(Peek()) || out.names.size() == 2) return Fail("expected a name after \"for\"");
    out.names.emplace_back(TakeWord());
    SkipSpace(/*lines=*/true);
  } while (Eat(","));
  if (!AtWord("in")) return Fail("expected \"in\"");
  TakeWord();
  const auto part = [&] {
    SkipSpace(/*lines=*/true);
    out.children.emplace_back();
    const bool parsed = Parse(out.children.back());
    SkipSpace(/*lines=*/true);
    return parsed && !failed_;
  };
  if (!part()) return false;
  if (!Eat(":")) return Fail("expected \":\" after what \"for\" runs over");
  if (!part()) return false;
  if (object) {
    if (!Eat("=>")) return Fail("expected \"=>\"");
    if (!part()) return false;
    if (Eat("...")) out.number = 1;
    SkipSpace(/*lines=*/true);
  }
  if (AtWord("if")) {
    TakeWord();
    if (!part()) return false;
  }
  if (!Eat(object ? "}" : "]")) return Fail("\"for\" is not closed");
  return true;
}

}  // namespace expanse::workload::hcl
