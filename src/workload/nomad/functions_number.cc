// Numbers, and conversions between types.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "base/text.h"
#include "workload/nomad/functions.h"

namespace expanse::workload::hcl::functions {
namespace {

using Arguments = std::vector<Value>;

template <typename Operation>
Value OfNumber(const Value& argument, Operation operation) {
  const auto number = argument.AsNumber();
  return number ? Value::Number(operation(*number)) : Wrong("not a number");
}

Value Abs(const Arguments& a) {
  return OfNumber(a[0], [](double x) { return std::fabs(x); });
}
Value Ceil(const Arguments& a) {
  return OfNumber(a[0], [](double x) { return std::ceil(x); });
}
Value Floor(const Arguments& a) {
  return OfNumber(a[0], [](double x) { return std::floor(x); });
}
Value Signum(const Arguments& a) {
  return OfNumber(a[0], [](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0); });
}

template <typename Better>
Value Extreme(const Arguments& arguments, Better better) {
  std::optional<double> found;
  for (const Value& argument : arguments) {
    const auto number = argument.AsNumber();
    if (!number) return Wrong("not a number");
    if (!found || better(*number, *found)) found = number;
  }
  return Value::Number(*found);
}
Value Max(const Arguments& a) {
  return Extreme(a, [](double x, double y) { return x > y; });
}
Value Min(const Arguments& a) {
  return Extreme(a, [](double x, double y) { return x < y; });
}

Value Pow(const Arguments& a) {
  const auto base = a[0].AsNumber();
  const auto exponent = a[1].AsNumber();
  if (!base || !exponent) return Wrong("not a number");
  return Value::Number(std::pow(*base, *exponent));
}

Value Log(const Arguments& a) {
  const auto number = a[0].AsNumber();
  const auto base = a[1].AsNumber();
  if (!number || !base) return Wrong("not a number");
  return Value::Number(std::log(*number) / std::log(*base));
}

Value ParseIntFunction(const Arguments& a) {
  const auto text = a[0].AsString();
  const auto base = a[1].AsNumber();
  if (!text || !base || *base < 2 || *base > 36 || *base != std::floor(*base)) {
    return Wrong("a number and a base from 2 to 36 are expected");
  }
  std::int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value, static_cast<int>(*base));
  if (error != std::errc() || stop != end) return Wrong("not a number of that base");
  return Value::Number(static_cast<double>(value));
}

Value ToString(const Arguments& a) {
  auto text = a[0].AsString();
  return text ? Text(*std::move(text)) : Wrong("no text");
}
Value ToNumber(const Arguments& a) {
  const auto number = a[0].AsNumber();
  return number ? Value::Number(*number) : Wrong("not a number");
}
Value ToBool(const Arguments& a) {
  const auto flag = a[0].AsBool();
  return flag ? Value::Bool(*flag) : Wrong("not a bool");
}

// convert(value, type): the type arrives as the text of an unknown name.
Value Convert(const Arguments& a) {
  const auto type = a[1].AsString();
  if (type == "${string}") return ToString(a);
  if (type == "${number}") return ToNumber(a);
  if (type == "${bool}") return ToBool(a);
  return Wrong("a type that is not converted to");
}

constexpr Entry kEntries[] = {
    {"abs", 1, 1, Abs},           {"ceil", 1, 1, Ceil},
    {"convert", 2, 2, Convert},   {"floor", 1, 1, Floor},
    {"log", 2, 2, Log},           {"max", 1, kMany, Max},
    {"min", 1, kMany, Min},       {"parseint", 2, 2, ParseIntFunction},
    {"pow", 2, 2, Pow},           {"signum", 1, 1, Signum},
    {"tobool", 1, 1, ToBool},     {"tonumber", 1, 1, ToNumber},
    {"tostring", 1, 1, ToString},
};

}  // namespace

const Entry* FindNumber(std::string_view name) {
  const auto* const found = std::ranges::find(kEntries, name, &Entry::name);
  return found == std::end(kEntries) ? nullptr : found;
}

}  // namespace expanse::workload::hcl::functions
