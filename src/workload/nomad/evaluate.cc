// Names, members, operators; functions are in functions*.cc.
#include "workload/nomad/evaluate.h"

#include <algorithm>
#include <utility>

namespace expanse::workload::hcl {
namespace {

constexpr int kMaxEvaluationDepth = 300;  // expression in expression, over locals too

Value ConvertTo(const Expression* type, Value value) {
  if (type == nullptr || !value.known() || value.IsNull()) return value;
  if (type->kind != Kind::kVariable && type->kind != Kind::kString) return value;
  if (type->text == "string") {
    if (auto text = value.AsString()) return Value::String(*std::move(text));
  } else if (type->text == "number") {
    if (const auto number = value.AsNumber()) return Value::Number(*number);
  } else if (type->text == "bool") {
    if (const auto flag = value.AsBool()) return Value::Bool(*flag);
  } else {
    return value;
  }
  return Value::Unresolved("a value that is no " + type->text);
}

}  // namespace

const Expression* TraversalRoot(const Expression& expression) {
  const Expression* at = &expression;
  while (at->kind == Kind::kAttribute || at->kind == Kind::kIndex) at = &at->children[0];
  return at->kind == Kind::kVariable ? at : nullptr;
}

std::optional<std::string> TraversalText(const Expression& expression) {
  if (expression.kind == Kind::kVariable) return expression.text;
  if (expression.kind == Kind::kAttribute) {
    auto of = TraversalText(expression.children[0]);
    if (of) *of += "." + expression.text;
    return of;
  }
  if (expression.kind != Kind::kIndex) return std::nullopt;
  auto of = TraversalText(expression.children[0]);
  const Expression& key = expression.children[1];
  if (!of || (key.kind != Kind::kString && key.kind != Kind::kNumber)) return std::nullopt;
  if (key.kind == Kind::kString) {
    *of += "[\"" + key.text + "\"]";
  } else {
    const auto number = PrintNumber(key.number);
    if (!number) return std::nullopt;
    *of += "[" + *number + "]";
  }
  return of;
}

Evaluator::Evaluator(std::string_view text, const Body& file,
                     const std::map<std::string, std::string>& given)
    : text_(text) {
  for (const Block& block : file.blocks) {
    if (block.type == "variable" && !block.labels.empty()) {
      Named& named = variables_[block.labels[0].text];
      named.is_variable = true;
      if (const Attribute* value = block.body.FindAttribute("default")) {
        named.expression = &value->value;
      }
      if (const Attribute* type = block.body.FindAttribute("type")) named.type = &type->value;
    } else if (block.type == "locals") {
      for (const Attribute& local : block.body.attributes) {
        locals_[local.name].expression = &local.value;
      }
    }
  }
  for (const auto& [name, value] : given) {
    const auto found = variables_.find(name);
    if (found != variables_.end()) found->second.given = &value;
  }
}

const Expression* Evaluator::Source(std::string_view root, std::string_view name) const {
  if (root != "var" && root != "local") return nullptr;
  const Names& names = root == "var" ? variables_ : locals_;
  const auto found = names.find(name);
  if (found == names.end() || found->second.given != nullptr) return nullptr;
  return found->second.expression;
}

Value Evaluator::Unknown(std::string reason, const Expression& expression) const {
  std::size_t begin = expression.begin;
  std::size_t end = expression.end;
  const bool quoted = begin + 1 < end && text_[begin] == '"' && text_[end - 1] == '"' &&
                      (expression.kind == Kind::kString || expression.kind == Kind::kTemplate);
  if (quoted) {
    ++begin;
    --end;
  }
  constexpr std::size_t kMaxWritten = 4096;
  return Value::Unresolved(std::move(reason),
                           std::string(text_.substr(begin, std::min(end - begin, kMaxWritten))));
}

bool Evaluator::Spend(std::size_t steps, std::size_t bytes) {
  steps_ = std::min(steps_ + steps, 2 * kMaxSteps);
  bytes_ = std::min(bytes_ + bytes, 2 * kMaxBytes);
  return steps_ <= kMaxSteps && bytes_ <= kMaxBytes;
}

Value Evaluator::Evaluate(const Expression& expression, const Scope* scope) {
  if (depth_ >= kMaxEvaluationDepth) return Value::Unresolved("expressions nested too deep");
  if (!Spend(1)) return Value::Unresolved("more to evaluate than is done");
  ++depth_;
  Value value = EvaluateKind(expression, scope);
  --depth_;
  if (value.known()) return value;
  // The outermost expression is what a person sees written.
  return Unknown(value.reason(), expression);
}

Value Evaluator::EvaluateKind(const Expression& expression, const Scope* scope) {
  switch (expression.kind) {
    case Kind::kNull:
      return {};
    case Kind::kBool:
      return Value::Bool(expression.number != 0);
    case Kind::kNumber:
      return Value::Number(expression.number);
    case Kind::kString:
      if (!Spend(0, expression.text.size())) return Value::Unresolved("more text than is made");
      return Value::String(expression.text);
    case Kind::kTemplate:
      return Template(expression, scope);
    case Kind::kTemplateIf:
      return Conditional(expression, scope);
    case Kind::kTemplateFor:
      return TemplateFor(expression, scope);
    case Kind::kTuple:
      return Tuple(expression, scope);
    case Kind::kObject:
      return Object(expression, scope);
    case Kind::kVariable:
    case Kind::kAttribute:
    case Kind::kIndex:
      return Reference(expression, scope);
    case Kind::kSplat:
      return Splat(expression, scope);
    case Kind::kCall:
      return Call(expression, scope);
    case Kind::kUnary:
      return Unary(expression, scope);
    case Kind::kBinary:
      return Binary(expression, scope);
    case Kind::kConditional:
      return Conditional(expression, scope);
    case Kind::kForTuple:
    case Kind::kForObject:
      return For(expression, scope);
    case Kind::kForeign:
      return Value::Unresolved("template");
  }
  return {};
}

Value Evaluator::Given(const Named& named, const std::string& what) {
  const Expression* const type = named.type;
  const bool plain = type == nullptr || type->kind != Kind::kCall;
  if (plain && (type == nullptr || type->text != "any")) {
    return ConvertTo(type, Value::String(*named.given));
  }
  const std::string text = "value = " + *named.given + "\n";
  const auto parsed = ParseBody(text);
  if (!parsed || parsed->attributes.size() != 1) {
    return Value::Unresolved("the value given for " + what + " is not an expression");
  }
  Evaluator literal(text, *parsed, {});
  return literal.Evaluate(parsed->attributes[0].value);
}

Value Evaluator::NamedValue(Names& names, std::string_view root, std::string_view name) {
  const std::string what = std::string(root) + "." + std::string(name);
  const auto found = names.find(name);
  if (found == names.end()) return Value::Unresolved(what + " is not declared");
  Named& named = found->second;
  if (named.done) return named.value;
  if (named.started) return Value::Unresolved(what + " depends on itself");
  named.started = true;
  Value value;
  if (named.given != nullptr) {
    value = Given(named, what);
  } else if (named.expression == nullptr) {
    value = Value::Unresolved(what + " has no value");
  } else {
    value = ConvertTo(named.type, Evaluate(*named.expression));
  }
  if (!value.known() && value.reason().find(what) == std::string::npos) {
    value = Value::Unresolved(what + ": " + value.reason().substr(0, 500));
  }
  named.value = value;
  named.done = true;
  return value;
}

}  // namespace expanse::workload::hcl
