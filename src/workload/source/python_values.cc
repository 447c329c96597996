#include "workload/source/python_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace expanse::workload::source {
namespace {

using syntax::Node;

constexpr int kMaxDepth = 12;
constexpr std::size_t kMaxSteps = 200'000;  // of one text: names that name names that …

std::optional<Literal> Arithmetic(std::string_view op, const Literal& left, const Literal& right) {
  if (left.kind != Literal::Kind::kNumber || right.kind != Literal::Kind::kNumber) {
    return std::nullopt;
  }
  double value = 0;
  if (op == "+") {
    value = left.number + right.number;
  } else if (op == "-") {
    value = left.number - right.number;
  } else if (op == "*") {
    value = left.number * right.number;
  } else if (op == "/" && right.number != 0) {
    value = left.number / right.number;
  } else if (op == "//" && right.number != 0) {
    value = std::floor(left.number / right.number);
  } else if (op == "**") {
    value = std::pow(left.number, right.number);
  } else if (op == "<<" && right.number >= 0 && right.number < 60) {
    value = left.number * std::pow(2, right.number);
  } else {
    return std::nullopt;
  }
  if (!std::isfinite(value)) return std::nullopt;
  return Literal{.kind = Literal::Kind::kNumber, .number = value, .text = {}};
}

// 1_000, 0x10, 1e-4, 3j is none.
std::optional<Literal> NumberOf(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    double value = 0;
    for (const char c : digits.substr(2)) {
      const char lower = static_cast<char>(c | 0x20);
      const bool letter = lower >= 'a' && lower <= 'f';
      if (!base::IsDigit(c) && !letter) return std::nullopt;
      value = value * 16 + (letter ? lower - 'a' + 10 : c - '0');
    }
    return Literal{.kind = Literal::Kind::kNumber, .number = value, .text = {}};
  }
  if (digits.ends_with('.')) digits += '0';
  const auto value = base::ParseDouble(digits);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return Literal{.kind = Literal::Kind::kNumber, .number = *value, .text = {}};
}

bool IsLibrary(std::string_view object) {
  constexpr std::array<std::string_view, 8> kLibraries = {"torch", "jnp",       "np", "numpy",
                                                          "tf",    "ml_dtypes", "mx", "jax.numpy"};
  return std::ranges::find(kLibraries, object) != kLibraries.end();
}

}  // namespace

std::optional<std::string> PythonString(const Node& string) {
  if (!string.is("string")) return std::nullopt;
  std::string text;
  for (Node child = string.first_child(); child; child = child.next_sibling()) {
    if (child.is("interpolation")) return std::nullopt;
    if (child.is("string_start") && child.text().find_first_of("fF") != std::string_view::npos &&
        child.next_sibling().is("interpolation")) {
      return std::nullopt;
    }
    if (!child.is("string_content")) continue;
    const std::string_view content = child.text();
    if (content.contains('\\')) return std::nullopt;
    text += content;
  }
  return text;
}

std::string DottedName(const Node& node) {
  // Innermost first is how the chain is nested: a.b.c is (a.b).c, whose text is the name itself.
  if (node.text().size() > 200) return {};
  Node at = node;
  while (at.is("attribute")) at = at.Child("object");
  if (!at.is("identifier")) return {};
  std::string name(node.text());
  std::erase_if(name, [](char c) { return base::IsSpace(c); });
  return name;
}

PythonValues::PythonValues(const syntax::Tree& tree, const std::vector<Word>& arguments)
    : given_(OptionsOf(arguments)) {
  for (const Node node : tree) {
    if (node.is("assignment")) {
      BindTarget(node.Child("left"), node.Child("right"));
    } else if (node.is("augmented_assignment") || node.is("for_statement")) {
      BindTarget(node.Child("left"), Node());  // another value each time
    } else if (node.is("default_parameter") || node.is("typed_default_parameter")) {
      Bind(&variables_, node.Child("name").text(), node.Child("value"));
    } else if (node.is("pair")) {
      if (const auto key = PythonString(node.Child("key")))
        Bind(&attributes_, *key, node.Child("value"));
    } else if (node.is("call")) {
      AddArgument(node);
    }
  }
}

void PythonValues::Bind(Names* names, std::string_view name, const Node& value) {
  if (name.empty() || name.size() > 100) return;
  const auto [found, added] = names->try_emplace(std::string(name), Bound{.value = value});
  if (!added && found->second.value.text() != value.text()) found->second.ambiguous = true;
  if (!value) found->second.ambiguous = true;
}

void PythonValues::BindTarget(const Node& target, const Node& value) {
  if (target.is("identifier")) {
    // "x: int" declares and binds nothing.
    if (value || !target.next_sibling().is(":")) Bind(&variables_, target.text(), value);
  } else if (target.is("attribute")) {
    // self.lr = lr says nothing new; its value is looked for under the other name.
    Bind(&attributes_, target.Child("attribute").text(), value);
  } else if (target.is("pattern_list") || target.is("tuple_pattern")) {
    for (const Node& part : target.NamedChildren()) BindTarget(part, Node());
  }
}

void PythonValues::AddArgument(const Node& call) {
  const Node function = call.Child("function");
  const std::string_view name =
      function.is("attribute") ? function.Child("attribute").text() : function.text();
  const bool absl = name.starts_with("DEFINE_");
  if (name != "add_argument" && name != "option" && name != "Option" && !absl) return;
  Argument argument{.name = {}, .spellings = {}, .fallback = {}, .call = call};
  std::size_t position = 0;
  for (const Node& child : call.Child("arguments").NamedChildren()) {
    if (child.is("keyword_argument")) {
      if (child.Child("name").text() == "default") argument.fallback = child.Child("value");
      if (child.Child("name").text() == "dest") {
        argument.name = PythonString(child.Child("value")).value_or(argument.name);
      }
      continue;
    }
    const auto text = PythonString(child);
    if (absl && position == 0 && text) argument.spellings.push_back("--" + *text);
    if (absl && position == 1) argument.fallback = child;
    if (!absl && text && !text->empty()) argument.spellings.push_back(*text);
    ++position;
  }
  if (argument.spellings.empty()) return;
  if (argument.name.empty()) {
    // The first long one; "-b" alone is b.
    const auto long_one = std::ranges::find_if(
        argument.spellings, [](const std::string& spelling) { return spelling.starts_with("--"); });
    const std::string& chosen =
        long_one != argument.spellings.end() ? *long_one : argument.spellings.front();
    argument.name = SettingName(chosen);
  }
  argument_index_.emplace(argument.name, arguments_.size());
  arguments_.push_back(std::move(argument));
}

std::optional<Literal> PythonValues::OnCommandLine(std::string_view name) const {
  const auto found = given_.find(SettingName(name));
  if (found == given_.end()) return std::nullopt;
  return found->second;
}

std::optional<Literal> PythonValues::ValueOf(const Argument& argument) const {
  for (const std::string& spelling : argument.spellings) {
    if (const auto given = OnCommandLine(spelling)) return given;
  }
  return argument.fallback ? Evaluate(argument.fallback) : std::nullopt;
}

std::optional<Literal> PythonValues::Evaluate(const Node& expression) const {
  return Evaluate(expression, 0);
}

std::optional<Literal> PythonValues::Evaluate(const Node& expression, int depth) const {
  if (!expression || depth > kMaxDepth || steps_ >= kMaxSteps) return std::nullopt;
  ++steps_;
  const std::string_view kind = expression.kind();
  if (kind == "integer" || kind == "float") return NumberOf(expression.text());
  if (kind == "true" || kind == "false") return LiteralOf(kind);
  if (kind == "string") {
    auto text = PythonString(expression);
    if (!text) return std::nullopt;
    return Literal{.kind = Literal::Kind::kText, .text = *std::move(text)};
  }
  if (kind == "identifier") return Lookup(variables_, expression.text(), depth);
  if (kind == "attribute") return EvaluateAttribute(expression, depth);
  if (kind == "call") return EvaluateCall(expression, depth);
  if (kind == "parenthesized_expression") {
    const auto inner = expression.NamedChildren();
    return inner.size() == 1 ? Evaluate(inner[0], depth + 1) : std::nullopt;
  }
  if (kind == "unary_operator") {
    const auto value = Evaluate(expression.Child("argument"), depth + 1);
    if (!value || expression.Child("operator").text() != "-") return std::nullopt;
    return Arithmetic("-", {}, *value);
  }
  if (kind == "binary_operator") {
    const auto left = Evaluate(expression.Child("left"), depth + 1);
    const auto right = left ? Evaluate(expression.Child("right"), depth + 1) : std::nullopt;
    if (!right) return std::nullopt;
    return Arithmetic(expression.Child("operator").text(), *left, *right);
  }
  if (kind == "subscript") {  // config["batch_size"]
    const auto key = PythonString(expression.Child("subscript"));
    return key ? NamedArgument(*key, depth) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Literal> PythonValues::Lookup(const Names& names, std::string_view name,
                                            int depth) const {
  const auto found = names.find(name);
  if (found == names.end() || found->second.ambiguous) return std::nullopt;
  return Evaluate(found->second.value, depth + 1);
}

// args.batch_size, cfg.batch_size, config["batch_size"]: the argument, or what is set under the
// name.
std::optional<Literal> PythonValues::NamedArgument(std::string_view name, int depth) const {
  if (const auto index = argument_index_.find(name); index != argument_index_.end()) {
    const Argument& argument = arguments_[index->second];
    for (const std::string& spelling : argument.spellings) {
      if (const auto given = OnCommandLine(spelling)) return given;
    }
    return argument.fallback ? Evaluate(argument.fallback, depth + 1) : std::nullopt;
  }
  if (const auto given = OnCommandLine(name)) return given;
  if (const auto set = Lookup(attributes_, name, depth)) return set;
  return std::nullopt;
}

std::optional<Literal> PythonValues::EvaluateAttribute(const Node& attribute, int depth) const {
  const std::string object = DottedName(attribute.Child("object"));
  const std::string_view name = attribute.Child("attribute").text();
  if (IsLibrary(object)) {
    return Literal{.kind = Literal::Kind::kSymbol, .text = std::string(attribute.text())};
  }
  if (const auto value = NamedArgument(name, depth)) return value;
  // The field of a dataclass, or self.x = x of a parameter with a default.
  return Lookup(variables_, name, depth);
}

// int("4"), float(x), os.environ.get("N", 4), os.getenv("N", "4"), torch.device("cuda").
std::optional<Literal> PythonValues::EvaluateCall(const Node& call, int depth) const {
  const std::string name = DottedName(call.Child("function"));
  const auto arguments = call.Child("arguments").NamedChildren();
  if ((name == "int" || name == "float" || name == "str" || name == "torch.device") &&
      arguments.size() == 1) {
    auto value = Evaluate(arguments[0], depth + 1);
    if (value && value->kind == Literal::Kind::kText && (name == "int" || name == "float")) {
      value = LiteralOf(value->text);
      if (value->kind != Literal::Kind::kNumber) return std::nullopt;
    }
    if (value && name == "int") value->number = std::trunc(value->number);
    return value;
  }
  if ((name == "field" || name == "dataclasses.field" || name == "Field") && !arguments.empty()) {
    for (const Node& argument : arguments) {
      if (argument.is("keyword_argument") && argument.Child("name").text() == "default") {
        return Evaluate(argument.Child("value"), depth + 1);
      }
    }
  }
  return std::nullopt;
}

}  // namespace expanse::workload::source
