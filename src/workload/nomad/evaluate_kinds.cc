// What each kind of expression gives.
#include <algorithm>
#include <cmath>
#include <utility>

#include "workload/nomad/evaluate.h"
#include "workload/nomad/functions.h"

namespace expanse::workload::hcl {
namespace {

const Value* Bound(const Scope* scope, std::string_view name) {
  for (; scope != nullptr; scope = scope->outer) {
    if (scope->name == name) return scope->value;
  }
  return nullptr;
}

// of[key], of.key
Value MemberOf(const Value& of, const Value& key) {
  if (!of.known()) return of;
  if (!key.known()) return key;
  if (of.type() == Value::Type::kList) {
    const auto number = key.AsNumber();
    if (!number || *number < 0 || *number != std::floor(*number) ||
        *number >= static_cast<double>(of.list().size())) {
      return Value::Unresolved("no such element");
    }
    return of.list()[static_cast<std::size_t>(*number)];
  }
  const auto name = key.AsString();
  if (of.type() != Value::Type::kObject || !name) return Value::Unresolved("no such element");
  const auto found = of.object().find(*name);
  return found == of.object().end() ? Value::Unresolved("no element \"" + *name + "\"")
                                    : found->second;
}

Value Compare(std::string_view operation, double left, double right) {
  if (operation == "<") return Value::Bool(left < right);
  if (operation == ">") return Value::Bool(left > right);
  if (operation == "<=") return Value::Bool(left <= right);
  return Value::Bool(left >= right);
}

Value Arithmetic(std::string_view operation, double left, double right) {
  if (operation == "+") return Value::Number(left + right);
  if (operation == "-") return Value::Number(left - right);
  if (operation == "*") return Value::Number(left * right);
  if (right == 0) return Value::Unresolved("division by zero");
  if (operation == "/") return Value::Number(left / right);
  return Value::Number(std::fmod(left, right));
}

}  // namespace

Value Evaluator::Reference(const Expression& expression, const Scope* scope) {
  const Expression* const root = TraversalRoot(expression);
  if (root == nullptr) return Member(expression, scope);
  const Value* const bound = Bound(scope, root->text);
  if (bound != nullptr) return root == &expression ? *bound : Member(expression, scope);
  if (root->text == "var" || root->text == "local") {
    if (root == &expression) return Value::Unresolved(root->text + " without a name");
    const Expression& of = expression.children[0];
    if (&of != root) return Member(expression, scope);
    Names& names = root->text == "var" ? variables_ : locals_;
    if (expression.kind == Kind::kAttribute) {
      return NamedValue(names, root->text, expression.text);
    }
    const auto name = Evaluate(expression.children[1], scope);
    if (name.type() != Value::Type::kString) return Value::Unresolved("a name that is not known");
    return NamedValue(names, root->text, name.text());
  }
  const auto text = TraversalText(expression);
  if (!text) return Value::Unresolved("a value of the client");
  if (!Spend(0, text->size() + 3)) return Value::Unresolved("more text than is made");
  return Value::String("${" + *text + "}");
}

Value Evaluator::Member(const Expression& expression, const Scope* scope) {
  const Value of = Evaluate(expression.children[0], scope);
  if (expression.kind == Kind::kAttribute) return MemberOf(of, Value::String(expression.text));
  return MemberOf(of, Evaluate(expression.children[1], scope));
}

Value Evaluator::Template(const Expression& expression, const Scope* scope) {
  if (expression.children.size() == 1) return Evaluate(expression.children[0], scope);
  std::string out;
  for (const Expression& child : expression.children) {
    const Value value = Evaluate(child, scope);
    if (!value.known()) return value;
    const auto text = value.AsString();
    if (!text) return Value::Unresolved("a value that is no text in a template");
    if (!Spend(0, text->size())) return Value::Unresolved("more text than is made");
    out += *text;
  }
  return Value::String(std::move(out));
}

Value Evaluator::TemplateFor(const Expression& expression, const Scope* scope) {
  std::string out;
  Value why;
  const bool done = Each(expression, scope, why, [&](const Scope& inner) {
    const Value value = Evaluate(expression.children[1], &inner);
    const auto text = value.AsString();
    if (!text || !Spend(0, text->size())) {
      why = value.known() ? Value::Unresolved("a value that is no text in a template") : value;
      return false;
    }
    out += *text;
    return true;
  });
  return done ? Value::String(std::move(out)) : why;
}

Value Evaluator::Tuple(const Expression& expression, const Scope* scope) {
  Value::List items;
  items.reserve(expression.children.size());
  for (const Expression& child : expression.children) items.push_back(Evaluate(child, scope));
  Value list = Value::MakeList(std::move(items));
  return Spend(list.Size()) ? list : Value::Unresolved("more to evaluate than is done");
}

Value Evaluator::Object(const Expression& expression, const Scope* scope) {
  Value::Object members;
  for (std::size_t i = 0; i + 1 < expression.children.size(); i += 2) {
    const Value key = Evaluate(expression.children[i], scope);
    const auto name = key.AsString();
    if (!name) return key.known() ? Value::Unresolved("a key that is no text") : key;
    members[*name] = Evaluate(expression.children[i + 1], scope);
  }
  Value object = Value::MakeObject(std::move(members));
  return Spend(object.Size()) ? object : Value::Unresolved("more to evaluate than is done");
}

Value Evaluator::Splat(const Expression& expression, const Scope* scope) {
  const Value of = Evaluate(expression.children[0], scope);
  if (!of.known()) return of;
  Value::List items;
  const auto add = [&](const Value& item) {
    const Scope inner{scope, "*", &item};
    items.push_back(Evaluate(expression.children[1], &inner));
  };
  if (of.type() == Value::Type::kList) {
    for (const Value& item : of.list()) add(item);
  } else if (!of.IsNull()) {
    add(of);
  }
  Value list = Value::MakeList(std::move(items));
  return Spend(list.Size()) ? list : Value::Unresolved("more to evaluate than is done");
}

Value Evaluator::Unary(const Expression& expression, const Scope* scope) {
  const Value operand = Evaluate(expression.children[0], scope);
  if (!operand.known()) return operand;
  if (expression.text == "!") {
    const auto flag = operand.AsBool();
    return flag ? Value::Bool(!*flag) : Value::Unresolved("\"!\" of what is no bool");
  }
  const auto number = operand.AsNumber();
  return number ? Value::Number(-*number) : Value::Unresolved("\"-\" of what is no number");
}

Value Evaluator::Binary(const Expression& expression, const Scope* scope) {
  const Value left = Evaluate(expression.children[0], scope);
  const Value right = Evaluate(expression.children[1], scope);
  if (!left.known()) return left;
  if (!right.known()) return right;
  const std::string& operation = expression.text;
  if (operation == "==" || operation == "!=") {
    if (!Spend(left.Size() + right.Size()) || !left.FullyKnown() || !right.FullyKnown()) {
      return Value::Unresolved("a comparison of what is not known");
    }
    return Value::Bool((left == right) == (operation == "=="));
  }
  if (operation == "&&" || operation == "||") {
    const auto a = left.AsBool();
    const auto b = right.AsBool();
    if (!a || !b) return Value::Unresolved("\"" + operation + "\" of what is no bool");
    return Value::Bool(operation == "&&" ? *a && *b : *a || *b);
  }
  const auto a = left.AsNumber();
  const auto b = right.AsNumber();
  if (!a || !b) return Value::Unresolved("\"" + operation + "\" of what is no number");
  const bool compares = operation[0] == '<' || operation[0] == '>';
  return compares ? Compare(operation, *a, *b) : Arithmetic(operation, *a, *b);
}

Value Evaluator::Conditional(const Expression& expression, const Scope* scope) {
  const Value condition = Evaluate(expression.children[0], scope);
  if (!condition.known()) return condition;
  const auto flag = condition.AsBool();
  if (!flag) return Value::Unresolved("a condition that is no bool");
  return Evaluate(expression.children[*flag ? 1 : 2], scope);
}

bool Evaluator::Each(const Expression& expression, const Scope* scope, Value& why,
                     const std::function<bool(const Scope&)>& each) {
  const Value over = Evaluate(expression.children[0], scope);
  why = over;
  const auto visit = [&](const Value& key, const Value& value) {
    const bool both = expression.names.size() == 2;
    const Scope with_key{scope, both ? expression.names[0] : std::string_view(), &key};
    const Scope with_value{both ? &with_key : scope, expression.names.back(), &value};
    return each(with_value);
  };
  if (over.type() == Value::Type::kList) {
    double index = 0;
    for (const Value& item : over.list()) {
      if (!visit(Value::Number(index++), item)) return false;
    }
    return true;
  }
  if (over.type() == Value::Type::kObject) {
    for (const auto& [key, member] : over.object()) {
      if (!visit(Value::String(key), member)) return false;
    }
    return true;
  }
  if (over.known()) why = Value::Unresolved("\"for\" over what is no collection");
  return false;
}

Value Evaluator::For(const Expression& expression, const Scope* scope) {
  const bool object = expression.kind == Kind::kForObject;
  const std::size_t condition_at = object ? 3 : 2;
  Value::List items;
  Value::Object members;
  std::map<std::string, Value::List> groups;
  Value why;
  const bool done = Each(expression, scope, why, [&](const Scope& inner) {
    if (expression.children.size() > condition_at) {
      const Value condition = Evaluate(expression.children[condition_at], &inner);
      const auto flag = condition.AsBool();
      if (!flag) {
        why = condition.known() ? Value::Unresolved("a condition that is no bool") : condition;
        return false;
      }
      if (!*flag) return true;
    }
    Value first = Evaluate(expression.children[1], &inner);
    if (!object) {
      items.push_back(std::move(first));
      return true;
    }
    auto key = first.AsString();
    if (!key) {
      why = first.known() ? Value::Unresolved("a key that is no text") : first;
      return false;
    }
    Value value = Evaluate(expression.children[2], &inner);
    if (expression.number != 0) {
      groups[*key].push_back(std::move(value));
    } else if (!members.emplace(*key, std::move(value)).second) {
      why = Value::Unresolved("\"for\" makes the key \"" + *key + "\" twice");
      return false;
    }
    return true;
  });
  if (!done) return why;
  for (auto& [key, list] : groups) members[key] = Value::MakeList(std::move(list));
  Value out = object ? Value::MakeObject(std::move(members)) : Value::MakeList(std::move(items));
  return Spend(out.Size()) ? out : Value::Unresolved("more to evaluate than is done");
}

Value Evaluator::Call(const Expression& expression, const Scope* scope) {
  std::vector<Value> arguments;
  std::size_t size = 0;
  for (const Expression& child : expression.children) {
    arguments.push_back(Evaluate(child, scope));
    size += arguments.back().Size();
  }
  if (expression.number != 0 && !arguments.empty()) {
    const Value last = std::move(arguments.back());
    arguments.pop_back();
    if (!last.known()) return last;
    if (last.type() != Value::Type::kList) return Value::Unresolved("\"...\" of what is no list");
    arguments.insert(arguments.end(), last.list().begin(), last.list().end());
  }
  if (!Spend(size)) return Value::Unresolved("more to evaluate than is done");
  Value out = CallFunction(expression.text, arguments);
  if (!Spend(out.Size(), out.text().size())) {
    return Value::Unresolved("more to evaluate than is done");
  }
  return out;
}

}  // namespace expanse::workload::hcl
