#include "intelligence/diagnose/log_prefix.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/text.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr std::size_t kLongest = 120;  // bytes of a prefix

bool IsWord(char c) {
  return base::IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '.' || c == '-' || c == '/';
}

std::size_t Word(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && end < kLongest && IsWord(text[end])) ++end;
  return end;
}

std::size_t Level(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kLevels = {
      "CRITICAL", "DEBUG", "ERROR", "FATAL", "INFO", "WARNING", "WARN"};
  for (const std::string_view level : kLevels)
    if (text.starts_with(level)) return level.size();
  return 0;
}

// Whether `text` begins with `form`, in which 0 is a digit.
bool HasForm(std::string_view text, std::string_view form) {
  if (text.size() < form.size()) return false;
  return std::ranges::equal(text.substr(0, form.size()), form, [](char c, char wanted) {
    return wanted == '0' ? base::IsDigit(c) : c == wanted;
  });
}

void TrimLeft(std::string_view* text) {
  while (text->starts_with(' ')) text->remove_prefix(1);
}

// "core.py:708] ", with or without the opening bracket.
bool TakePlace(std::string_view* text) {
  std::string_view rest = *text;
  if (rest.starts_with('[')) rest.remove_prefix(1);
  const std::size_t name = Word(rest);
  if (name < 3 || rest.substr(0, name).find('.') == std::string_view::npos) return false;
  rest.remove_prefix(name);
  if (!rest.starts_with(':')) return false;
  std::size_t end = 1;
  while (end < rest.size() && base::IsDigit(rest[end])) ++end;
  if (end == 1 || !rest.substr(end).starts_with("] ")) return false;
  rest.remove_prefix(end + 2);
  *text = rest;
  return true;
}

bool TakeActor(std::string_view* text) {
  if (!text->starts_with('(')) return false;
  const std::size_t end = text->substr(0, kLongest).find(") ");
  if (end == std::string_view::npos) return false;
  const std::string_view inside = text->substr(1, end - 1);
  const std::size_t name = Word(inside);
  if (name == 0 || (name < inside.size() && !inside.substr(name).starts_with(" pid=")))
    return false;
  if (name == inside.size() && inside != "raylet" && inside != "gcs_server") return false;
  text->remove_prefix(end + 2);
  return true;
}

bool TakeLevel(std::string_view* text) {
  const std::size_t level = Level(*text);
  if (level == 0) return false;
  std::string_view rest = text->substr(level);
  if (HasForm(rest, " 00-00 00:00:00 ")) {
    rest.remove_prefix(std::string_view(" 00-00 00:00:00 ").size());
  } else if (rest.starts_with(':')) {
    const std::size_t name = Word(rest.substr(1));
    if (name == 0 || !rest.substr(name + 1).starts_with(':')) return false;
    rest.remove_prefix(name + 2);
  } else {
    return false;
  }
  *text = rest;
  return true;
}

bool TakeGlog(std::string_view* text) {
  if (text->empty() || std::string_view("EFIW").find(text->front()) == std::string_view::npos)
    return false;
  std::string_view rest = text->substr(1);
  if (!HasForm(rest, "0000 00:00:00.")) return false;
  const std::size_t end = rest.substr(0, kLongest).find("] ");
  if (end == std::string_view::npos) return false;
  rest.remove_prefix(end + 2);
  *text = rest;
  return true;
}

}  // namespace

bool TakeLoggerPrefix(std::string_view* text) {
  std::string_view rest = *text;
  if (!TakeActor(&rest) && !TakeLevel(&rest) && !TakeGlog(&rest) && !TakePlace(&rest)) return false;
  TrimLeft(&rest);
  *text = rest;
  return true;
}

}  // namespace expanse::intelligence::diagnose
