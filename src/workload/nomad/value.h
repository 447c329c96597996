// Values of HCL expressions. What cannot be known is a value of its own, with the reason and the
// text as written, so that a list of arguments may hold one and still be a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::workload::hcl {

class Value {
 public:
  enum class Type : std::uint8_t { kNull, kBool, kNumber, kString, kList, kObject, kUnresolved };
  using List = std::vector<Value>;
  using Object = std::map<std::string, Value>;

  Value() = default;  // null
  static Value Bool(bool value);
  static Value Number(double value);
  static Value String(std::string text);
  static Value MakeList(List items);
  static Value MakeObject(Object members);
  // `reason` for people ("variable var.x has no value"), `written` as the file has it.
  static Value Unresolved(std::string reason, std::string written = {});

  Type type() const { return type_; }
  bool known() const { return type_ != Type::kUnresolved; }
  bool IsNull() const { return type_ == Type::kNull; }
  bool bool_value() const { return number_ != 0; }
  double number() const { return number_; }
  const std::string& text() const;    // of a string; as written of an unresolved
  const std::string& reason() const;  // of an unresolved
  const List& list() const;           // empty for what is no list
  const Object& object() const;

  // True where nothing in it is unresolved.
  bool FullyKnown() const;
  // How many values it holds, itself included.
  std::size_t Size() const { return size_; }

  // As HCL converts: "5" is a number, 5 and true are strings.
  std::optional<double> AsNumber() const;
  std::optional<std::string> AsString() const;
  std::optional<bool> AsBool() const;

  // Equal in type and content, without conversion; false where something is unresolved.
  friend bool operator==(const Value& a, const Value& b);

 private:
  Type type_ = Type::kNull;
  double number_ = 0;
  std::shared_ptr<const std::string> text_;  // shared, as all that is large: copies are cheap
  std::shared_ptr<const std::string> reason_;
  std::shared_ptr<const List> list_;
  std::shared_ptr<const Object> object_;
  std::size_t size_ = 1;
};

// A number as HCL prints it: whole ones without a point. Nothing for what a double cannot hold
// exactly enough to print (from 2^53 on).
std::optional<std::string> PrintNumber(double value);

}  // namespace expanse::workload::hcl
