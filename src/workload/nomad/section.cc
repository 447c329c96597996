#include "workload/nomad/section.h"

#include <algorithm>
#include <utility>

namespace expanse::workload::nomad {
namespace {

using hcl::Block;
using hcl::Body;
using hcl::Expression;
using hcl::Kind;
using hcl::Scope;
using hcl::Value;

constexpr std::size_t kMaxNotes = 1000;
constexpr std::size_t kMaxTaken = std::size_t{16} << 20;

// { a = 1 } as a body; null for what is no object, or has keys that are put together.
std::unique_ptr<const Body> MakeBody(const Expression& object, hcl::Style style) {
  if (object.kind != Kind::kObject) return nullptr;
  auto body = std::make_unique<Body>();
  body->style = style;
  body->open = object.begin + 1;
  body->close = object.end - 1;
  for (std::size_t i = 0; i + 1 < object.children.size(); i += 2) {
    const Expression& key = object.children[i];
    if (key.kind != Kind::kString) return nullptr;
    body->attributes.push_back({key.text, key.begin, key.end, object.children[i + 1]});
  }
  return body;
}

Section MakeSection(const Block& block, const Body& body, const Scope* scope) {
  Section section{.body = &body, .scope = scope, .begin = block.begin};
  if (!block.labels.empty()) {
    section.label = block.labels[0].text;
    section.label_begin = block.labels[0].begin;
    section.label_end = block.labels[0].end;
  }
  return section;
}

bool VisitDynamic(Context& context, const Section& in, const Block& dynamic,
                  const std::function<bool(const Section&)>& visit) {
  const Block* const content = dynamic.body.FindBlock("content");
  const hcl::Attribute* const over = dynamic.body.FindAttribute("for_each");
  if (content == nullptr || over == nullptr) {
    context.AddNote(dynamic.begin, "dynamic",
                    "dynamic block without for_each or content: left out");
    return true;
  }
  std::string iterator = dynamic.labels[0].text;
  if (const auto* named = dynamic.body.FindAttribute("iterator")) {
    if (named->value.kind == Kind::kVariable) iterator = named->value.text;
  }
  const auto visit_one = [&](const Value& key, const Value& value, bool repeated) {
    const Value bound = Value::MakeObject({{"key", key}, {"value", value}});
    const Scope scope{in.scope, iterator, &bound};
    Section section = MakeSection(dynamic, content->body, &scope);
    section.label.clear();
    section.label_begin = section.label_end = 0;
    section.repeated = repeated || in.repeated;
    if (const auto* labels = dynamic.body.FindAttribute("labels")) {
      const Value names = context.evaluator.Evaluate(labels->value, &scope);
      if (!names.list().empty()) {
        section.label = names.list()[0].AsString().value_or(names.list()[0].text());
      }
    }
    return visit(section);
  };
  const Value each = context.evaluator.Evaluate(over->value, in.scope);
  const bool many = each.list().size() + each.object().size() > 1;
  if (each.type() == Value::Type::kList) {
    double index = 0;
    for (const Value& item : each.list()) {
      if (!visit_one(Value::Number(index++), item, many)) return false;
    }
    return true;
  }
  if (each.type() == Value::Type::kObject) {
    for (const auto& [key, member] : each.object()) {
      if (!visit_one(Value::String(key), member, many)) return false;
    }
    return true;
  }
  context.AddNote(over->begin, "dynamic",
                  "how often \"" + iterator + "\" is made is not known" +
                      (each.known() ? "" : ": " + each.reason()) + "; read once");
  const Value unknown = Value::Unresolved("for_each is not known");
  return visit_one(unknown, unknown, true);
}

}  // namespace

void Context::AddNote(std::size_t offset, std::string reason, std::string message) {
  if (notes.size() >= kMaxNotes) return;
  const std::uint32_t line = lines.PlaceOf(offset, offset).line;
  notes.push_back({line, std::move(reason), std::move(message)});
}

bool Context::Take(std::size_t bytes) {
  if (taken_ > kMaxTaken) return false;
  taken_ += bytes + sizeof(Word);
  if (taken_ <= kMaxTaken) return true;
  AddNote(0, "too_large", "not all of the tasks' commands, environment and meta is read");
  return false;
}

const Expression* Section::Find(std::string_view name) const {
  const Expression* const found = FindWritten(name);
  return found != nullptr && found->kind == Kind::kNull ? nullptr : found;
}

const Expression* Section::FindWritten(std::string_view name) const {
  // Of names written twice JSON takes the last; HCL has none.
  const auto& attributes = body->attributes;
  const auto found =
      std::ranges::find(attributes.rbegin(), attributes.rend(), name, &hcl::Attribute::name);
  return found == attributes.rend() ? nullptr : &found->value;
}

bool ForEachSection(Context& context, const Section& in, std::string_view type,
                    const std::function<bool(const Section&)>& visit) {
  for (const Block& block : in.body->blocks) {
    if (block.type != type) continue;
    Section section = MakeSection(block, block.body, in.scope);
    section.repeated = in.repeated;
    if (!visit(section)) return false;
  }
  for (const hcl::Attribute& attribute : in.body->attributes) {
    if (attribute.name != type) continue;
    const auto [made, fresh] = context.made.try_emplace(&attribute.value);
    if (fresh) made->second = MakeBody(attribute.value, in.body->style);
    const Body* const body = made->second.get();
    if (body == nullptr) continue;
    Section section{.body = body, .scope = in.scope, .begin = attribute.begin};
    section.is_object = true;
    section.repeated = in.repeated;
    if (!visit(section)) return false;
  }
  for (const Block& block : in.body->blocks) {
    if (block.type != "dynamic" || block.labels.empty() || block.labels[0].text != type) continue;
    if (!VisitDynamic(context, in, block, visit)) return false;
  }
  return true;
}

Value Members(Context& context, const Section& in, std::string_view type) {
  Value::Object members;
  for (const Block& block : in.body->blocks) {
    if (block.type != type) continue;
    for (const hcl::Attribute& attribute : block.body.attributes) {
      members[attribute.name] = context.evaluator.Evaluate(attribute.value, in.scope);
    }
  }
  for (const hcl::Attribute& attribute : in.body->attributes) {
    if (attribute.name != type) continue;
    const Value value = context.evaluator.Evaluate(attribute.value, in.scope);
    for (const auto& [key, member] : value.object()) members[key] = member;
  }
  return Value::MakeObject(std::move(members));
}

Value Get(Context& context, const Section& in, std::string_view name) {
  const Expression* const expression = in.Find(name);
  return expression == nullptr ? Value() : context.evaluator.Evaluate(*expression, in.scope);
}

std::string GetName(Context& context, const Section& in, std::string_view name) {
  const Value value = Get(context, in, name);
  return value.AsString().value_or(value.text()).substr(0, 1024);
}

Place PlaceOfValue(const Context& context, const Expression& expression) {
  std::size_t begin = expression.begin;
  std::size_t end = expression.end;
  const bool quoted = expression.kind == Kind::kString || expression.kind == Kind::kTemplate;
  if (quoted && end - begin >= 2 && context.text[begin] == '"') {
    ++begin;
    --end;
  }
  return context.lines.PlaceOf(begin, end);
}

bool IsRuntimeText(std::string_view text) {
  return text.find("${") != text.npos || hcl::HasForeignTemplate(text);
}

}  // namespace expanse::workload::nomad
