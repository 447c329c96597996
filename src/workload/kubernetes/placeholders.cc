#include "workload/kubernetes/placeholders.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace expanse::workload::kubernetes {
namespace {

// Three bytes that no manifest has: a character for private use (U+E000). What is left of a length
// is filled with the other.
constexpr std::string_view kFill = "\xee\x80\x80";
constexpr char kRest = 'x';

void Fill(std::string& text, std::size_t begin, std::size_t end) {
  for (; end - begin >= kFill.size(); begin += kFill.size())
    text.replace(begin, kFill.size(), kFill);
  for (; begin < end; ++begin) text[begin] = kRest;
}

struct Found {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool control = false;
  bool comment = false;
};

bool StartsWithWord(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() ||
                                    !(base::IsDigit(text[word.size()]) ||
                                      std::isalpha(static_cast<unsigned char>(text[word.size()])) ||
                                      text[word.size()] == '_'));
}

void Classify(std::string_view inner, Found& found) {
  while (!inner.empty() && (inner.front() == '-' || inner.front() == '~' || inner.front() == '+' ||
                            base::IsSpace(inner.front())))
    inner.remove_prefix(1);
  constexpr std::array<std::string_view, 17> kControl = {
      "if",     "else",  "elif",   "end",      "endif", "endfor",   "range", "for",     "with",
      "define", "block", "endset", "endblock", "break", "continue", "macro", "endmacro"};
  for (std::string_view word : kControl) found.control |= StartsWithWord(inner, word);
  const std::size_t assign = inner.find('=');
  const bool variable =
      inner.starts_with('$') && assign != std::string_view::npos && assign > 0 &&
      (inner[assign - 1] == ':' || inner.substr(0, assign).find(' ') == assign - 1);
  found.comment = inner.starts_with("/*") || variable || StartsWithWord(inner, "set");
}

// The placeholder that begins at `at`, if one does. `absent_` remembers that a closing mark does
// not come again, so that many openings without one cost no more than one search.
class Finder {
 public:
  Finder(std::string_view text, bool dollar) : text_(text), dollar_(dollar) {}

  std::optional<Found> At(std::size_t at) {
    const std::string_view rest = text_.substr(at);
    if (rest.starts_with("${{")) return Until(at, 3, "}}", 0);
    if (rest.starts_with("{{")) return Until(at, 2, "}}", 0);
    if (rest.starts_with("{%")) return Until(at, 2, "%}", 1);
    if (rest.starts_with("{#") && (at == 0 || text_[at - 1] != '$')) {
      auto found = Until(at, 2, "#}", 2);
      if (found) found->comment = true;
      return found;
    }
    if (rest.starts_with("%{ ") || rest.starts_with("%{~ ")) {
      auto found = Braces(at);
      return found && found->control ? found : std::nullopt;
    }
    return dollar_ && rest.starts_with("${") ? Braces(at) : std::nullopt;
  }

 private:
  // To the next "}", which is near and in the same line.
  std::optional<Found> Braces(std::size_t at) const {
    constexpr std::size_t kMaxLength = 160;
    const std::string_view inner = text_.substr(at + 2, kMaxLength);
    const std::size_t close = inner.find('}');
    if (close == std::string_view::npos ||
        inner.substr(0, close).find('\n') != std::string_view::npos)
      return std::nullopt;
    Found found{.begin = at, .end = at + 2 + close + 1};
    Classify(inner.substr(0, close), found);
    return found;
  }

  std::optional<Found> Until(std::size_t at, std::size_t skip, std::string_view close,
                             std::size_t kind) {
    if (absent_[kind]) return std::nullopt;
    const std::size_t stop = text_.find(close, at + skip);
    if (stop == std::string_view::npos) {
      absent_[kind] = true;
      return std::nullopt;
    }
    Found found{.begin = at, .end = stop + close.size()};
    Classify(text_.substr(at + skip, stop - at - skip), found);
    return found;
  }

  std::string_view text_;
  bool dollar_;
  std::array<bool, 3> absent_ = {};
};

bool AllSpace(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return base::IsSpace(c); });
}

// Where a comment begins in a line, or its size.
std::size_t CommentIn(std::string_view line) {
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || base::IsSpace(line[at - 1])) return at;
  }
  return line.size();
}

// Lines of nothing but placeholders become comments for YAML.
void MarkLonely(Masked& masked) {
  const std::string_view text = masked.text;
  std::size_t next = 0;
  for (std::size_t line = 0; next < masked.placeholders.size();) {
    const std::size_t stop = std::min(text.find('\n', line), text.size());
    const std::size_t first = next;
    bool lonely = true;
    std::size_t at = line;
    const bool any = next < masked.placeholders.size() && masked.placeholders[next].begin < stop;
    const std::size_t comment = any ? line + CommentIn(text.substr(line, stop - line)) : stop;
    for (; next < masked.placeholders.size() && masked.placeholders[next].begin < stop; ++next) {
      Placeholder& placeholder = masked.placeholders[next];
      placeholder.in_comment = placeholder.begin > comment;
      lonely = lonely && AllSpace(text.substr(at, placeholder.begin - at));
      at = placeholder.end;
    }
    lonely = lonely && first != next && AllSpace(text.substr(at, stop - at));
    line = stop + 1;
    if (!lonely) continue;
    const Placeholder& start = masked.placeholders[first];
    masked.text[start.begin] = '#';
    Fill(masked.text, start.begin + 1, start.end);
  }
}

// The scalars in text order with the placeholders inside each.
class Unmasker {
 public:
  Unmasker(const Masked& masked, Builder& builder) : masked_(masked), builder_(builder) {}

  bool Run(Refusal& refusal) {
    std::vector<bool> used(masked_.placeholders.size(), false);
    for (NodeId id = 0; id < builder_.size(); ++id) {
      Node& node = builder_.node(id);
      if (node.kind == NodeKind::kMap && !KeysAreClear(node, refusal)) return false;
      if (node.kind != NodeKind::kScalar) continue;
      const std::size_t first = FirstFrom(node.start);
      std::size_t last = first;
      for (; last < used.size() && masked_.placeholders[last].begin < node.stop; ++last)
        used[last] = true;
      if (first == last) continue;
      node.templated = true;
      Restore(node, first, last);
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      const Placeholder& placeholder = masked_.placeholders[i];
      if (used[i] || placeholder.comment || placeholder.in_comment) continue;
      return Refuse(placeholder, refusal);
    }
    return true;
  }

 private:
  bool Refuse(const Placeholder& placeholder, Refusal& refusal) const {
    const Place place = builder_.document().PlaceAt(placeholder.begin, placeholder.end);
    refusal = {.line = place.line,
               .column = place.column,
               .reason = "templated",
               .message = "a template decides what stands here; render it first"};
    return false;
  }

  // `{{ if x }}key{{ end }}: value`: not even whether there is a key is known.
  bool KeysAreClear(const Node& map, Refusal& refusal) const {
    for (const Entry& entry : map.entries) {
      const Node& key = builder_.node(entry.key);
      for (std::size_t i = FirstFrom(key.start);
           i < masked_.placeholders.size() && masked_.placeholders[i].begin < key.stop; ++i) {
        if (masked_.placeholders[i].control) return Refuse(masked_.placeholders[i], refusal);
      }
    }
    return true;
  }

  std::size_t FirstFrom(std::size_t offset) const {
    const auto& all = masked_.placeholders;
    return static_cast<std::size_t>(
        std::lower_bound(all.begin(), all.end(), offset,
                         [](const Placeholder& p, std::size_t at) { return p.begin < at; }) -
        all.begin());
  }

  // Runs of the filler in the decoded value are the placeholders in order. The odd end of one over
  // several lines, two bytes long, stays filled.
  void Restore(Node& node, std::size_t first, std::size_t last) const {
    const std::string_view text = builder_.document().text();
    std::string value;
    std::size_t at = 0;
    for (std::size_t i = first; i < last; ++i) {
      const Placeholder& placeholder = masked_.placeholders[i];
      const bool lonely = masked_.text[placeholder.begin] == '#';
      if (placeholder.end - placeholder.begin - (lonely ? 1 : 0) < kFill.size()) continue;
      std::size_t run = node.value.find(kFill, at);
      if (run == std::string::npos) break;
      if (lonely && run > at && node.value[run - 1] == '#') --run;
      value.append(node.value, at, run - at);
      value.append(text.substr(placeholder.begin, placeholder.end - placeholder.begin));
      at = std::min(node.value.size(), run + (placeholder.end - placeholder.begin));
    }
    value.append(node.value, at);
    node.value = std::move(value);
  }

  const Masked& masked_;
  Builder& builder_;
};

}  // namespace

Masked MaskPlaceholders(std::string_view text, bool dollar) {
  Masked masked{.text = std::string(text)};
  Finder finder(text, dollar);
  for (std::size_t at = text.find_first_of("{$%"); at != std::string_view::npos;
       at = text.find_first_of("{$%", at)) {
    const auto found = finder.At(at);
    if (!found) {
      ++at;
      continue;
    }
    // Line by line: a YAML reader must see the line ends.
    for (std::size_t begin = found->begin; begin < found->end;) {
      std::size_t end = std::min(text.substr(0, found->end).find('\n', begin), found->end);
      const std::size_t next = end + 1;
      if (end > begin && text[end - 1] == '\r') --end;
      while (begin > found->begin && begin < end && base::IsSpace(text[begin])) ++begin;
      if (end > begin) {
        Fill(masked.text, begin, end);
        masked.placeholders.push_back(
            {.begin = begin, .end = end, .control = found->control, .comment = found->comment});
      }
      begin = next;
    }
    at = found->end;
  }
  MarkLonely(masked);
  return masked;
}

bool Unmask(const Masked& masked, Builder& builder, Refusal& refusal) {
  return Unmasker(masked, builder).Run(refusal);
}

}  // namespace expanse::workload::kubernetes
