// Strings.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "workload/nomad/functions.h"
#include "workload/submission.h"

namespace expanse::workload::hcl::functions {
namespace {

using Arguments = std::vector<Value>;

// Calls `operation` with every argument as text.
template <typename Operation>
Value OfTexts(const Arguments& arguments, Operation operation) {
  std::vector<std::string> texts;
  for (const Value& argument : arguments) {
    auto text = argument.AsString();
    if (!text) return Wrong("not a text");
    texts.push_back(*std::move(text));
  }
  return operation(texts);
}

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Value Lower(const Arguments& a) {
  return OfTexts(a, [](auto& t) {
    return IsAscii(t[0]) ? Text(base::ToLower(t[0])) : Wrong("text that is not ASCII");
  });
}

Value Upper(const Arguments& a) {
  return OfTexts(a, [](auto& t) {
    if (!IsAscii(t[0])) return Wrong("text that is not ASCII");
    for (char& c : t[0]) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return Text(t[0]);
  });
}

Value Title(const Arguments& a) {
  return OfTexts(a, [](auto& t) {
    if (!IsAscii(t[0])) return Wrong("text that is not ASCII");
    bool start = true;
    for (char& c : t[0]) {
      if (start && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
      start = !base::IsDigit(c) && c != '_' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z');
    }
    return Text(t[0]);
  });
}

std::string_view TrimSet(std::string_view text, std::string_view set, bool front, bool back) {
  if (front) text.remove_prefix(std::min(text.find_first_not_of(set), text.size()));
  if (back) text = text.substr(0, text.find_last_not_of(set) + 1);
  return text;
}

Value Trim(const Arguments& a) {
  return OfTexts(a, [](auto& t) { return Text(std::string(TrimSet(t[0], t[1], true, true))); });
}
Value TrimSpace(const Arguments& a) {
  return OfTexts(a, [](auto& t) { return Text(std::string(base::Trim(t[0]))); });
}
Value Chomp(const Arguments& a) {
  return OfTexts(a, [](auto& t) { return Text(std::string(TrimSet(t[0], "\r\n", false, true))); });
}
Value TrimPrefix(const Arguments& a) {
  return OfTexts(
      a, [](auto& t) { return Text(t[0].starts_with(t[1]) ? t[0].substr(t[1].size()) : t[0]); });
}
Value TrimSuffix(const Arguments& a) {
  return OfTexts(a, [](auto& t) {
    return Text(t[0].ends_with(t[1]) ? t[0].substr(0, t[0].size() - t[1].size()) : t[0]);
  });
}

Value Replace(const Arguments& a) {
  return OfTexts(a, [](auto& t) {
    const std::string& old = t[1];
    if (old.empty()) return Wrong("nothing to replace");
    if (old.size() > 1 && old.front() == '/' && old.back() == '/') return Wrong("a pattern");
    std::string out;
    std::size_t at = 0;
    while (out.size() <= kMaxText) {
      const std::size_t found = t[0].find(old, at);
      if (found == std::string::npos) break;
      out.append(t[0], at, found - at);
      out += t[2];
      at = found + old.size();
    }
    out.append(t[0], at);
    return Text(std::move(out));
  });
}

Value Split(const Arguments& a) {
  return OfTexts(a, [](auto& t) {
    if (t[0].empty()) return Wrong("no separator");
    Value::List pieces;
    std::size_t at = 0;
    while (pieces.size() <= kMaxListed) {
      const std::size_t found = t[1].find(t[0], at);
      pieces.push_back(Value::String(t[1].substr(at, found - at)));
      if (found == std::string::npos) return Value::MakeList(std::move(pieces));
      at = found + t[0].size();
    }
    return Wrong("more pieces than are made");
  });
}

Value Join(const Arguments& a) {
  const auto separator = a[0].AsString();
  if (!separator) return Wrong("not a text");
  std::string out;
  bool first = true;
  for (std::size_t i = 1; i < a.size(); ++i) {
    if (a[i].type() != Value::Type::kList) return Wrong("not a list");
    for (const Value& item : a[i].list()) {
      const auto text = item.AsString();
      if (!text) return Wrong("not a text");
      if (!std::exchange(first, false)) out += *separator;
      out += *text;
      if (out.size() > kMaxText) return Text(std::move(out));
    }
  }
  return Text(std::move(out));
}

Value Substr(const Arguments& a) {
  const auto text = a[0].AsString();
  const auto offset = a[1].AsNumber();
  const auto length = a[2].AsNumber();
  if (!text || !offset || !length) return Wrong("a text and two numbers are expected");
  if (!IsAscii(*text)) return Wrong("text that is not ASCII");
  const double size = static_cast<double>(text->size());
  const double begin = std::clamp(*offset < 0 ? size + *offset : *offset, 0.0, size);
  const double count = *length < 0 ? size : std::min(*length, size);
  return Text(text->substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
}

Value Strlen(const Arguments& a) {
  return OfTexts(a, [](auto& t) {
    return IsAscii(t[0]) ? Value::Number(static_cast<double>(t[0].size()))
                         : Wrong("text that is not ASCII");
  });
}

Value Indent(const Arguments& a) {
  const auto spaces = a[0].AsNumber();
  const auto text = a[1].AsString();
  if (!spaces || !text || *spaces < 0 || *spaces > 1000) return Wrong("not a number of spaces");
  const std::string margin(static_cast<std::size_t>(*spaces), ' ');
  std::string out;
  for (const char c : *text) {
    out += c;
    if (c == '\n') out += margin;
    if (out.size() > kMaxText) break;
  }
  return Text(std::move(out));
}

constexpr Entry kEntries[] = {
    {"chomp", 1, 1, Chomp},           {"format", 1, kMany, Format},
    {"indent", 2, 2, Indent},         {"join", 2, kMany, Join},
    {"jsondecode", 1, 1, JsonDecode}, {"jsonencode", 1, 1, JsonEncode},
    {"lower", 1, 1, Lower},           {"replace", 3, 3, Replace},
    {"split", 2, 2, Split},           {"strlen", 1, 1, Strlen},
    {"strrev", 1, 1, ReverseText},    {"substr", 3, 3, Substr},
    {"title", 1, 1, Title},           {"trim", 2, 2, Trim},
    {"trimprefix", 2, 2, TrimPrefix}, {"trimspace", 1, 1, TrimSpace},
    {"trimsuffix", 2, 2, TrimSuffix}, {"upper", 1, 1, Upper},
};

}  // namespace

Value ReverseText(const Arguments& a) {
  return OfTexts(a, [](auto& t) {
    if (!IsAscii(t[0])) return Wrong("text that is not ASCII");
    std::ranges::reverse(t[0]);
    return Text(t[0]);
  });
}

const Entry* FindText(std::string_view name) {
  const auto* const found = std::ranges::find(kEntries, name, &Entry::name);
  return found == std::end(kEntries) ? nullptr : found;
}

}  // namespace expanse::workload::hcl::functions
