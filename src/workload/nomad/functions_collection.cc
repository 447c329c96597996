// Lists and objects.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "workload/nomad/functions.h"

namespace expanse::workload::hcl::functions {
namespace {

using Arguments = std::vector<Value>;

bool IsList(const Value& value) { return value.type() == Value::Type::kList; }
bool IsObject(const Value& value) { return value.type() == Value::Type::kObject; }

std::optional<std::size_t> Whole(const Value& value) {
  const auto number = value.AsNumber();
  if (!number || *number < 0 || *number != std::floor(*number) || *number > 1e9) return {};
  return static_cast<std::size_t>(*number);
}

Value Length(const Arguments& a) {
  if (IsList(a[0])) return Value::Number(static_cast<double>(a[0].list().size()));
  if (IsObject(a[0])) return Value::Number(static_cast<double>(a[0].object().size()));
  return Wrong("not a collection");
}

Value Concat(const Arguments& a) {
  Value::List out;
  for (const Value& list : a) {
    if (!IsList(list)) return Wrong("not a list");
    out.insert(out.end(), list.list().begin(), list.list().end());
    if (out.size() > kMaxListed) return Wrong("more values than are listed");
  }
  return Value::MakeList(std::move(out));
}

Value Merge(const Arguments& a) {
  Value::Object out;
  for (const Value& object : a) {
    if (object.IsNull()) continue;
    if (!IsObject(object)) return Wrong("not an object");
    for (const auto& [key, member] : object.object()) out[key] = member;
    if (out.size() > kMaxListed) return Wrong("more values than are listed");
  }
  return Value::MakeObject(std::move(out));
}

Value Lookup(const Arguments& a) {
  const auto key = a[1].AsString();
  if (!IsObject(a[0]) || !key) return Wrong("an object and a key are expected");
  const auto found = a[0].object().find(*key);
  if (found != a[0].object().end()) return found->second;
  return a.size() == 3 ? a[2] : Wrong("no such key");
}

Value Element(const Arguments& a) {
  const auto index = Whole(a[1]);
  if (!IsList(a[0]) || a[0].list().empty() || !index) return Wrong("no such element");
  return a[0].list()[*index % a[0].list().size()];
}

Value Keys(const Arguments& a) {
  if (!IsObject(a[0])) return Wrong("not an object");
  Value::List out;
  for (const auto& [key, member] : a[0].object()) out.push_back(Value::String(key));
  return Value::MakeList(std::move(out));
}

Value Values(const Arguments& a) {
  if (!IsObject(a[0])) return Wrong("not an object");
  Value::List out;
  for (const auto& [key, member] : a[0].object()) out.push_back(member);
  return Value::MakeList(std::move(out));
}

bool AppendFlat(const Value& value, Value::List& out) {
  if (!IsList(value)) {
    out.push_back(value);
    return out.size() <= kMaxListed;
  }
  for (const Value& item : value.list()) {
    if (!AppendFlat(item, out)) return false;
  }
  return true;
}

Value Flatten(const Arguments& a) {
  Value::List out;
  if (!IsList(a[0])) return Wrong("not a list");
  if (!AppendFlat(a[0], out)) return Wrong("more values than are listed");
  return Value::MakeList(std::move(out));
}

Value Reverse(const Arguments& a) {
  if (a[0].type() == Value::Type::kString) return ReverseText(a);  // Nomad's
  if (!IsList(a[0])) return Wrong("not a list");
  return Value::MakeList(Value::List(a[0].list().rbegin(), a[0].list().rend()));
}

Value Slice(const Arguments& a) {
  const auto begin = Whole(a[1]);
  const auto end = Whole(a[2]);
  if (!IsList(a[0]) || !begin || !end || *begin > *end || *end > a[0].list().size()) {
    return Wrong("no such part of a list");
  }
  const auto first = a[0].list().begin();
  return Value::MakeList(Value::List(first + static_cast<std::ptrdiff_t>(*begin),
                                     first + static_cast<std::ptrdiff_t>(*end)));
}

Value Coalesce(const Arguments& a) {
  for (const Value& value : a) {
    if (!value.IsNull()) return value;
  }
  return Wrong("nothing that is set");
}

Value CoalesceList(const Arguments& a) {
  for (const Value& value : a) {
    if (!value.list().empty()) return value;
  }
  return Wrong("nothing that is set");
}

Value Compact(const Arguments& a) {
  if (!IsList(a[0])) return Wrong("not a list");
  Value::List out;
  for (const Value& item : a[0].list()) {
    if (!item.IsNull() && item.AsString() != "") out.push_back(item);
  }
  return Value::MakeList(std::move(out));
}

Value Contains(const Arguments& a) {
  if (!IsList(a[0])) return Wrong("not a list");
  return Value::Bool(std::ranges::find(a[0].list(), a[1]) != a[0].list().end());
}

Value Index(const Arguments& a) {
  if (!IsList(a[0])) return Wrong("not a list");
  const auto found = std::ranges::find(a[0].list(), a[1]);
  if (found == a[0].list().end()) return Wrong("no such element");
  return Value::Number(static_cast<double>(found - a[0].list().begin()));
}

Value Distinct(const Arguments& a) {
  if (!IsList(a[0]) || a[0].list().size() > 1000) return Wrong("not a list of at most 1000");
  Value::List out;
  for (const Value& item : a[0].list()) {
    if (std::ranges::find(out, item) == out.end()) out.push_back(item);
  }
  return Value::MakeList(std::move(out));
}

Value Sort(const Arguments& a) {
  if (!IsList(a[0])) return Wrong("not a list");
  std::vector<std::string> texts;
  for (const Value& item : a[0].list()) {
    auto text = item.AsString();
    if (!text) return Wrong("not a text");
    texts.push_back(*std::move(text));
  }
  std::ranges::sort(texts);
  Value::List out;
  for (std::string& text : texts) out.push_back(Value::String(std::move(text)));
  return Value::MakeList(std::move(out));
}

// Sets of text come in its order.
Value ToSet(const Arguments& a) {
  const Value once = Distinct(a);
  const bool texts = std::ranges::all_of(
      once.list(), [](const Value& item) { return item.type() == Value::Type::kString; });
  return once.known() && texts ? Sort({once}) : once;
}

Value ZipMap(const Arguments& a) {
  if (!IsList(a[0]) || !IsList(a[1]) || a[0].list().size() != a[1].list().size()) {
    return Wrong("two lists of one length are expected");
  }
  Value::Object out;
  for (std::size_t i = 0; i < a[0].list().size(); ++i) {
    const auto key = a[0].list()[i].AsString();
    if (!key) return Wrong("a key that is no text");
    out[*key] = a[1].list()[i];
  }
  return Value::MakeObject(std::move(out));
}

Value ChunkList(const Arguments& a) {
  const auto size = Whole(a[1]);
  if (!IsList(a[0]) || !size || *size == 0) return Wrong("a list and a size are expected");
  Value::List out;
  Value::List chunk;
  for (const Value& item : a[0].list()) {
    chunk.push_back(item);
    if (chunk.size() == *size) out.push_back(Value::MakeList(std::exchange(chunk, {})));
  }
  if (!chunk.empty()) out.push_back(Value::MakeList(std::move(chunk)));
  return Value::MakeList(std::move(out));
}

Value Range(const Arguments& a) {
  std::vector<double> numbers;
  for (const Value& argument : a) {
    const auto number = argument.AsNumber();
    if (!number) return Wrong("not a number");
    numbers.push_back(*number);
  }
  const double begin = numbers.size() == 1 ? 0 : numbers[0];
  const double end = numbers.size() == 1 ? numbers[0] : numbers[1];
  const double step = numbers.size() == 3 ? numbers[2] : (end < begin ? -1 : 1);
  if (step == 0) return Wrong("a step of zero");
  Value::List out;
  for (double at = begin; step > 0 ? at < end : at > end; at += step) {
    if (out.size() == 1024) return Wrong("more than 1024 numbers");  // as HCL's own range()
    out.push_back(Value::Number(at));
  }
  return Value::MakeList(std::move(out));
}

constexpr Entry kEntries[] = {
    {"chunklist", 2, 2, ChunkList, true},
    {"coalesce", 1, kMany, Coalesce, true},
    {"coalescelist", 1, kMany, CoalesceList, true},
    {"compact", 1, 1, Compact},
    {"concat", 1, kMany, Concat, true},
    {"contains", 2, 2, Contains},
    {"distinct", 1, 1, Distinct},
    {"element", 2, 2, Element, true},
    {"flatten", 1, 1, Flatten, true},
    {"index", 2, 2, Index},
    {"keys", 1, 1, Keys, true},
    {"length", 1, 1, Length, true},
    {"lookup", 2, 3, Lookup, true},
    {"merge", 1, kMany, Merge, true},
    {"range", 1, 3, Range},
    {"reverse", 1, 1, Reverse, true},
    {"slice", 3, 3, Slice, true},
    {"sort", 1, 1, Sort},
    {"tolist", 1, 1, [](const Arguments& a) { return a[0]; }, true},
    {"tomap", 1, 1, [](const Arguments& a) { return a[0]; }, true},
    {"toset", 1, 1, ToSet},
    {"values", 1, 1, Values, true},
    {"zipmap", 2, 2, ZipMap, true},
};

}  // namespace

const Entry* FindCollection(std::string_view name) {
  const auto* const found = std::ranges::find(kEntries, name, &Entry::name);
  return found == std::end(kEntries) ? nullptr : found;
}

}  // namespace expanse::workload::hcl::functions
