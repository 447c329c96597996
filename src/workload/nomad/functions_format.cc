// format() and JSON.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "workload/nomad/functions.h"
#include "workload/nomad/json.h"

namespace expanse::workload::hcl::functions {
namespace {

void AppendJsonString(std::string_view text, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || c == '<' || c == '>' || c == '&') {  // as Go's encoder does
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

// False for what is too large, or a number that cannot be printed.
bool AppendJson(const Value& value, std::string& out) {
  if (out.size() > kMaxText) return false;
  switch (value.type()) {
    case Value::Type::kNull:
      out += "null";
      return true;
    case Value::Type::kBool:
    case Value::Type::kNumber: {
      const auto text = value.AsString();
      if (text) out += *text;
      return text.has_value();
    }
    case Value::Type::kString:
      AppendJsonString(value.text(), out);
      return true;
    case Value::Type::kList: {
      out += '[';
      bool first = true;
      for (const Value& item : value.list()) {
        if (!std::exchange(first, false)) out += ',';
        if (!AppendJson(item, out)) return false;
      }
      out += ']';
      return true;
    }
    case Value::Type::kObject: {
      out += '{';
      bool first = true;
      for (const auto& [key, member] : value.object()) {
        if (!std::exchange(first, false)) out += ',';
        AppendJsonString(key, out);
        out += ':';
        if (!AppendJson(member, out)) return false;
      }
      out += '}';
      return true;
    }
    case Value::Type::kUnresolved:
      return false;
  }
  return false;
}

Value FromJson(const Expression& tree) {
  if (tree.kind == Kind::kBool) return Value::Bool(tree.number != 0);
  if (tree.kind == Kind::kNumber) return Value::Number(tree.number);
  if (tree.kind == Kind::kString) return Value::String(tree.text);
  if (tree.kind == Kind::kTuple) {
    Value::List items;
    for (const Expression& child : tree.children) items.push_back(FromJson(child));
    return Value::MakeList(std::move(items));
  }
  if (tree.kind != Kind::kObject) return {};
  Value::Object members;
  for (std::size_t i = 0; i + 1 < tree.children.size(); i += 2) {
    members[tree.children[i].text] = FromJson(tree.children[i + 1]);
  }
  return Value::MakeObject(std::move(members));
}

struct Verb {
  bool left = false;
  bool zero = false;
  bool plus = false;
  std::size_t width = 0;
  std::optional<int> precision;
};

// The flags, width and precision behind "%", and how many bytes they took.
std::size_t ReadVerb(std::string_view text, Verb& verb) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '-') {
      verb.left = true;
    } else if (text[at] == '0') {
      verb.zero = true;
    } else if (text[at] == '+') {
      verb.plus = true;
    } else {
      break;
    }
  }
  const auto number = [&] {
    std::size_t value = 0;
    while (at < text.size() && base::IsDigit(text[at])) {
      value = std::min<std::size_t>(value * 10 + static_cast<std::size_t>(text[at++] - '0'), 10000);
    }
    return value;
  };
  verb.width = number();
  if (at < text.size() && text[at] == '.') {
    ++at;
    verb.precision = static_cast<int>(number());
  }
  return at;
}

std::string Padded(std::string text, const Verb& verb, bool numeric) {
  if (text.size() >= verb.width) return text;
  const std::size_t missing = verb.width - text.size();
  if (verb.left) return text + std::string(missing, ' ');
  if (!verb.zero || !numeric) return std::string(missing, ' ') + text;
  const bool sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  return text.insert(sign ? 1 : 0, missing, '0');
}

std::optional<std::string> FormatNumber(double number, char conversion, const Verb& verb) {
  if (std::fabs(number) >= 9007199254740992.0) return std::nullopt;
  char buffer[512];
  std::to_chars_result end{};
  if (conversion == 'f') {
    const int precision = std::min(verb.precision.value_or(6), 100);
    end = std::to_chars(buffer, std::end(buffer), number, std::chars_format::fixed, precision);
  } else {
    if (number != std::floor(number) || (conversion != 'd' && number < 0)) return std::nullopt;
    const int base = conversion == 'd' ? 10 : (conversion == 'o' ? 8 : 16);
    end = std::to_chars(buffer, std::end(buffer), static_cast<std::int64_t>(number), base);
  }
  if (end.ec != std::errc()) return std::nullopt;
  std::string out(buffer, end.ptr);
  if (conversion == 'X') {
    for (char& c : out) c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  if (verb.plus && number >= 0) out.insert(0, 1, '+');
  return out;
}

// One argument as a verb asks; nothing for verbs and values that do not go together.
std::optional<std::string> FormatValue(const Value& value, char conversion, const Verb& verb) {
  if (verb.width > 1000 || verb.precision.value_or(0) > 1000) return std::nullopt;
  if (conversion == 's' || conversion == 'q' || conversion == 't') {
    auto text = value.AsString();
    if (!text || (conversion == 't' && !value.AsBool())) return std::nullopt;
    if (verb.precision) *text = text->substr(0, static_cast<std::size_t>(*verb.precision));
    if (conversion == 'q') {
      std::string quoted;
      AppendJsonString(*text, quoted);
      return Padded(std::move(quoted), verb, false);
    }
    return Padded(*std::move(text), verb, false);
  }
  if (conversion == 'v') {
    if (value.type() == Value::Type::kString) return Padded(value.text(), verb, false);
    std::string out;
    if (!AppendJson(value, out)) return std::nullopt;
    return Padded(std::move(out), verb, value.type() == Value::Type::kNumber);
  }
  if (std::string_view("dfxXo").find(conversion) == std::string_view::npos) return std::nullopt;
  const auto number = value.AsNumber();
  if (!number) return std::nullopt;
  auto text = FormatNumber(*number, conversion, verb);
  if (text) text = Padded(*std::move(text), verb, true);
  return text;
}

}  // namespace

Value Format(const std::vector<Value>& arguments) {
  const auto pattern = arguments[0].AsString();
  if (!pattern) return Wrong("not a text");
  std::string out;
  std::size_t next = 1;
  for (std::size_t at = 0; at < pattern->size() && out.size() <= kMaxText; ++at) {
    const char c = (*pattern)[at];
    if (c != '%') {
      out += c;
      continue;
    }
    ++at;
    Verb verb;
    at += ReadVerb(std::string_view(*pattern).substr(std::min(at, pattern->size())), verb);
    const char conversion = at < pattern->size() ? (*pattern)[at] : '\0';
    if (conversion == '%') {
      out += '%';
      continue;
    }
    if (next >= arguments.size()) return Wrong("fewer values than are formatted");
    const auto text = FormatValue(arguments[next++], conversion, verb);
    if (!text) return Wrong("a value that is not formatted");
    out += *text;
  }
  if (next < arguments.size()) return Wrong("more values than are formatted");
  return Text(std::move(out));
}

Value JsonEncode(const std::vector<Value>& arguments) {
  std::string out;
  if (!AppendJson(arguments[0], out)) return Wrong("a value that is not encoded");
  return Text(std::move(out));
}

Value JsonDecode(const std::vector<Value>& arguments) {
  const auto text = arguments[0].AsString();
  if (!text) return Wrong("not a text");
  const auto tree = ParseJson(*text);
  if (!tree) return Wrong("not JSON");
  return FromJson(*tree);
}

}  // namespace expanse::workload::hcl::functions
