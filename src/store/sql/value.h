// What goes into and comes out of SQL statements: parameters, and the row under the cursor.
//
// Bytes are a type of their own. Text that users or schedulers wrote need not be UTF-8 and may hold
// NUL, which PostgreSQL's TEXT refuses and which SQLite's TEXT leaves undefined; so such text goes
// into columns of type {bytes} (BLOB in SQLite, BYTEA in PostgreSQL), which costs no encoding and
// keeps equality and order by byte. The library under this layer cannot tell empty bytes from NULL:
// an empty Bytes is stored as NULL and read as "". Columns of {bytes} are therefore never NOT NULL
// and never part of a key.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"

namespace expanse::store::sql {

struct Null {};
struct Bytes {
  std::string_view data;
};

// A parameter. Views are read before the call that they are passed to returns. An absent optional
// becomes NULL. `type` keeps the statement's parameter types stable when a value is NULL.
class Value {
 public:
  enum class Type : std::uint8_t { kInt, kReal, kText, kBytes };

  Value(Type type, Null) : type_(type) {}
  Value(bool v) : type_(Type::kInt), value_(static_cast<std::int64_t>(v)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T v) : type_(Type::kInt), value_(static_cast<std::int64_t>(v)) {}
  Value(double v) : type_(Type::kReal), value_(v) {}
  Value(std::string_view v) : type_(Type::kText), value_(v) {}
  Value(const std::string& v) : Value(std::string_view(v)) {}
  Value(const char* v) : Value(std::string_view(v)) {}
  Value(Bytes v) : type_(Type::kBytes), value_(v) {
    if (v.data.empty()) value_ = Null{};
  }
  // Times are stored as microseconds since 1970.
  Value(base::WallTime v) : Value(base::ToMicros(v)) {}
  template <typename T>
  Value(const std::optional<T>& v) : Value(v ? Value(*v) : Value(Value(T{}).type_, Null{})) {}

  Type type() const { return type_; }
  bool null() const { return std::holds_alternative<Null>(value_); }
  // The accessor of type(); only for a value that is not NULL.
  std::int64_t AsInt() const { return std::get<std::int64_t>(value_); }
  double AsReal() const { return std::get<double>(value_); }
  std::string_view AsText() const { return std::get<std::string_view>(value_); }
  std::string_view AsBytes() const { return std::get<Bytes>(value_).data; }

 private:
  Type type_;
  std::variant<Null, std::int64_t, double, std::string_view, Bytes> value_;
};

using Column = Value::Type;

// The row under the cursor; valid only during the call it is passed to. The accessor must be that
// of the column's declared type; NULL reads as 0, 0.0 or "".
class Row {
 public:
  struct Cell {
    Column type = Column::kInt;
    bool null = true;
    long long integer = 0;
    double real = 0;
    std::string text;  // also bytes
  };
  explicit Row(const std::vector<Cell>& cells) : cells_(cells) {}

  bool IsNull(std::size_t i) const { return cells_.at(i).null; }
  std::int64_t Int(std::size_t i) const { return cells_.at(i).null ? 0 : cells_.at(i).integer; }
  std::uint64_t Unsigned(std::size_t i) const { return static_cast<std::uint64_t>(Int(i)); }
  bool Bool(std::size_t i) const { return Int(i) != 0; }
  double Real(std::size_t i) const { return cells_.at(i).null ? 0 : cells_.at(i).real; }
  const std::string& Text(std::size_t i) const { return cells_.at(i).text; }
  const std::string& Blob(std::size_t i) const { return cells_.at(i).text; }
  base::WallTime Time(std::size_t i) const { return base::FromMicros(Int(i)); }
  std::optional<std::int64_t> MaybeInt(std::size_t i) const {
    return IsNull(i) ? std::nullopt : std::optional(Int(i));
  }
  std::optional<std::string> MaybeText(std::size_t i) const {
    return IsNull(i) ? std::nullopt : std::optional(Text(i));
  }
  std::optional<base::WallTime> MaybeTime(std::size_t i) const {
    return IsNull(i) ? std::nullopt : std::optional(Time(i));
  }

 private:
  const std::vector<Cell>& cells_;
};

}  // namespace expanse::store::sql
