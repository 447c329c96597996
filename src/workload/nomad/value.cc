#include "workload/nomad/value.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace expanse::workload::hcl {

Value Value::Bool(bool value) {
  Value out;
  out.type_ = Type::kBool;
  out.number_ = value ? 1 : 0;
  return out;
}

Value Value::Number(double value) {
  if (!std::isfinite(value)) return Unresolved("a number out of range");
  Value out;
  out.type_ = Type::kNumber;
  out.number_ = value;
  return out;
}

Value Value::String(std::string text) {
  Value out;
  out.type_ = Type::kString;
  out.text_ = std::make_shared<const std::string>(std::move(text));
  return out;
}

Value Value::MakeList(List items) {
  Value out;
  out.type_ = Type::kList;
  for (const Value& item : items) out.size_ += item.size_;
  out.list_ = std::make_shared<const List>(std::move(items));
  return out;
}

Value Value::MakeObject(Object members) {
  Value out;
  out.type_ = Type::kObject;
  for (const auto& [key, member] : members) out.size_ += member.size_;
  out.object_ = std::make_shared<const Object>(std::move(members));
  return out;
}

Value Value::Unresolved(std::string reason, std::string written) {
  Value out;
  out.type_ = Type::kUnresolved;
  out.reason_ = std::make_shared<const std::string>(std::move(reason));
  out.text_ = std::make_shared<const std::string>(std::move(written));
  return out;
}

const std::string& Value::text() const {
  static const std::string kEmpty;
  return text_ ? *text_ : kEmpty;
}

const std::string& Value::reason() const {
  static const std::string kEmpty;
  return reason_ ? *reason_ : kEmpty;
}

const Value::List& Value::list() const {
  static const List kEmpty;
  return list_ ? *list_ : kEmpty;
}

const Value::Object& Value::object() const {
  static const Object kEmpty;
  return object_ ? *object_ : kEmpty;
}

bool Value::FullyKnown() const {
  if (type_ == Type::kUnresolved) return false;
  for (const Value& item : list()) {
    if (!item.FullyKnown()) return false;
  }
  for (const auto& [key, member] : object()) {
    if (!member.FullyKnown()) return false;
  }
  return true;
}

std::optional<double> Value::AsNumber() const {
  if (type_ == Type::kNumber) return number_;
  if (type_ != Type::kString) return std::nullopt;
  const auto value = base::ParseDouble(text());
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::string> Value::AsString() const {
  if (type_ == Type::kString) return text();
  if (type_ == Type::kBool) return bool_value() ? "true" : "false";
  if (type_ == Type::kNumber) return PrintNumber(number_);
  return std::nullopt;
}

std::optional<bool> Value::AsBool() const {
  if (type_ == Type::kBool) return bool_value();
  if (type_ != Type::kString) return std::nullopt;
  if (text() == "true" || text() == "1") return true;
  if (text() == "false" || text() == "0") return false;
  return std::nullopt;
}

bool operator==(const Value& a, const Value& b) {
  if (a.type_ != b.type_) return false;
  switch (a.type_) {
    case Value::Type::kNull:
      return true;
    case Value::Type::kBool:
    case Value::Type::kNumber:
      return a.number_ == b.number_;
    case Value::Type::kString:
      return a.text() == b.text();
    case Value::Type::kList:
      return a.list() == b.list();
    case Value::Type::kObject:
      return a.object() == b.object();
    case Value::Type::kUnresolved:
      return false;
  }
  return false;
}

std::optional<std::string> PrintNumber(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!std::isfinite(value) || std::fabs(value) >= kExact) return std::nullopt;
  if (value == 0) return "0";
  // HCL counts in decimals of any length; 15 of them are what a double surely has.
  char digits[64];
  const auto [stop, failed] =
      std::to_chars(digits, std::end(digits), value, std::chars_format::scientific, 14);
  if (failed != std::errc()) return std::nullopt;
  const bool whole = value == std::floor(value);
  const auto rounded = whole ? value : base::ParseDouble(std::string_view(digits, stop));
  char buffer[400];
  const auto [end, error] =
      std::to_chars(buffer, std::end(buffer), rounded.value_or(value), std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  return std::string(buffer, end);
}

}  // namespace expanse::workload::hcl
