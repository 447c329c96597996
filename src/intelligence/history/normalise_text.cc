#include <algorithm>

#include "base/text.h"
#include "intelligence/history/normalise.h"

namespace expanse::intelligence::history {
namespace {

// The end of the string that begins at `at` with `quote`, which may be one or three characters;
// one character's string ends at the line's end at the latest.
std::size_t StringEnd(std::string_view text, std::size_t at, std::string_view quote) {
  at += quote.size();
  while (at < text.size()) {
    if (text[at] == '\\') {
      at = std::min(at + 2, text.size());
      continue;
    }
    if (quote.size() == 1 && text[at] == '\n') return at;
    if (text.substr(at).starts_with(quote)) return at + quote.size();
    ++at;
  }
  return text.size();
}

std::size_t LineEnd(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

bool AtWordStart(std::string_view text, std::size_t at) {
  return at == 0 || base::IsSpace(text[at - 1]);
}

struct CommentRules {
  std::string_view line;        // begins a comment up to the line's end
  std::string_view other_line;  // another such word, or empty
  bool blocks = false;          // "/* … */"
  bool word_start = false;      // a comment begins a word only (YAML's "#")
  std::string_view quotes = "\"";
};

CommentRules RulesOf(Language language) {
  switch (language) {
    case Language::kHash:
      return {.line = "#", .other_line = "", .quotes = "\"'"};
    case Language::kYaml:
      return {.line = "#", .other_line = "", .word_start = true, .quotes = "\"'"};
    case Language::kHcl:
      return {.line = "#", .other_line = "//", .blocks = true};
    case Language::kSlash:
      return {.line = "//", .other_line = "", .blocks = true};
    case Language::kDash:
      return {.line = "--", .other_line = "", .quotes = "\"'"};
    case Language::kBang:
      return {.line = "!", .other_line = "", .quotes = "\"'"};
    case Language::kPercent:
      return {.line = "%", .other_line = "", .quotes = "\""};
    case Language::kUnknown:
    case Language::kShell:
    case Language::kPython:
    case Language::kJson:
      return {.line = "", .other_line = ""};
  }
  return {};
}

bool BeginsComment(std::string_view text, std::size_t at, const CommentRules& rules) {
  if (rules.word_start && !AtWordStart(text, at)) return false;
  const std::string_view rest = text.substr(at);
  return (!rules.line.empty() && rest.starts_with(rules.line)) ||
         (!rules.other_line.empty() && rest.starts_with(rules.other_line));
}

// "#!" on the first line says what runs the file.
bool IsInterpreterLine(std::string_view text, std::size_t at) {
  return at == 0 && text.starts_with("#!");
}

std::size_t IndentOf(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// Where the key of a YAML line begins, behind "- " of list items.
std::size_t KeyColumn(std::string_view line) {
  std::size_t at = IndentOf(line);
  while (line.substr(at).starts_with("- ")) at += 2 + IndentOf(line.substr(at + 2));
  return at;
}

// Brackets opened less those closed, outside strings.
int Depth(std::string_view line) {
  int depth = 0;
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == '"' || c == '\'') {
      at = StringEnd(line, at, line.substr(at, 1));
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
  }
  return depth;
}

// Keys of what is asked of the scheduler.
bool IsResourceKey(std::string_view key) {
  for (const std::string_view name : {"resources:", "minResources:", "activeDeadlineSeconds:"}) {
    if (key.starts_with(name) && (key.size() == name.size() || key[name.size()] == ' '))
      return true;
  }
  return false;
}

bool IsWordChar(char c) {
  return base::IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The place behind the bracket that closes the one at `at`; npos where none does.
std::size_t BlockEnd(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = StringEnd(text, at, "\"");
      continue;
    }
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return at + 1;
    ++at;
  }
  return std::string_view::npos;
}

std::size_t SkipSpace(std::string_view text, std::size_t at) {
  while (at < text.size() && base::IsSpace(text[at])) ++at;
  return at;
}

// The bracket of a block named "resources" whose name begins at `at`; npos: none begins here.
std::size_t ResourceBlock(std::string_view text, std::size_t at, Language language) {
  constexpr std::string_view kName = "resources";
  const bool quoted = language == Language::kJson;
  const std::size_t name = at + (quoted ? 1 : 0);
  if (name >= text.size() || (text[name] | 0x20) != 'r') return std::string_view::npos;
  if (quoted && text[at] != '"') return std::string_view::npos;
  if (!quoted && at > 0 && IsWordChar(text[at - 1])) return std::string_view::npos;
  if (base::ToLower(text.substr(name, kName.size())) != kName) return std::string_view::npos;
  std::size_t next = name + kName.size();
  if (quoted) {
    if (next >= text.size() || text[next] != '"') return std::string_view::npos;
    next = SkipSpace(text, next + 1);
    if (next >= text.size() || text[next] != ':') return std::string_view::npos;
    ++next;
  }
  next = SkipSpace(text, next);
  return next < text.size() && text[next] == '{' ? next : std::string_view::npos;
}

}  // namespace

std::string StripPythonComments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    std::size_t end = at + 1;
    if (c == '#' && !IsInterpreterLine(text, at)) {
      at = LineEnd(text, at);
      continue;
    }
    if (c == '#') end = LineEnd(text, at);
    if (c == '"' || c == '\'') {
      const std::string_view three = text.substr(at, 3);
      const bool is_long = three == "\"\"\"" || three == "'''";
      end = StringEnd(text, at, is_long ? three : text.substr(at, 1));
    }
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

std::string StripComments(std::string_view text, Language language) {
  const CommentRules rules = RulesOf(language);
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (IsInterpreterLine(text, at)) {
      end = LineEnd(text, at);
    } else if (BeginsComment(text, at, rules)) {
      at = LineEnd(text, at);
      continue;
    } else if (rules.blocks && text.substr(at).starts_with("/*")) {
      const std::size_t close = text.find("*/", at + 2);
      if (close == std::string_view::npos) return out;
      out += ' ';
      at = close + 2;
      continue;
    } else if (rules.quotes.find(text[at]) != std::string_view::npos &&
               (!rules.word_start || !at || !IsWordChar(text[at - 1]))) {
      end = StringEnd(text, at, text.substr(at, 1));
    }
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

std::string StripYamlResources(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t drop_below = std::string_view::npos;  // lines indented more than this go
  int open = 0;                                     // brackets of a flow mapping that goes
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (open > 0) {
      open += Depth(line);
      continue;
    }
    if (drop_below != std::string_view::npos && IndentOf(line) > drop_below) continue;
    drop_below = std::string_view::npos;
    const std::size_t key = KeyColumn(line);
    if (IsResourceKey(line.substr(key))) {
      drop_below = key;
      open = Depth(line.substr(key));
      if (key > IndentOf(line)) {  // keeps the item that the block was the first member of
        out += line.substr(0, key - 1);
        out += '\n';
      }
      continue;
    }
    out += line;
    out += '\n';
  }
  return out;
}

std::string StripBracedResources(std::string_view text, Language language) {
  std::string out;
  out.reserve(text.size());
  bool looking = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t block = looking ? ResourceBlock(text, at, language) : std::string_view::npos;
    std::size_t end =
        block == std::string_view::npos ? std::string_view::npos : BlockEnd(text, block);
    // One that is never closed: the file is broken from here on, and looking again would be slow.
    if (block != std::string_view::npos && end == std::string_view::npos) looking = false;
    if (end != std::string_view::npos) {
      if (language == Language::kJson) {  // with one of the commas around it
        const std::size_t comma = SkipSpace(text, end);
        if (comma < text.size() && text[comma] == ',') {
          end = comma + 1;
        } else {
          const std::size_t last = out.find_last_not_of(" \t\n");
          if (last != std::string::npos && out[last] == ',') out.resize(last);
        }
      }
      at = end;
      continue;
    }
    end = text[at] == '"' ? StringEnd(text, at, "\"") : at + 1;
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace expanse::intelligence::history
