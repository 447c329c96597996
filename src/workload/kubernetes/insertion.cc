#include "workload/kubernetes/insertion.h"

#include <algorithm>
#include <string>
#include <utility>

namespace expanse::workload::kubernetes {
namespace {

constexpr std::size_t kStep = 2;

bool AllBlank(std::string_view text) {
  return text.find_first_not_of(" \t") == std::string_view::npos;
}

// "requests:\n  memory: " for the keys left, each level further in.
std::string Nested(const Document& document, const std::vector<std::string_view>& path,
                   std::size_t from, std::size_t column) {
  std::string text;
  for (std::size_t i = from; i < path.size(); ++i) {
    if (i > from) text.append(document.newline());
    text.append(column + (i - from) * kStep, ' ').append(path[i]).append(":");
  }
  return text + " ";
}

// Lines at a place where a line begins, or behind the text's last line that has no end.
Insertion AtLine(const Document& document, std::size_t offset, std::string lines) {
  const std::string_view text = document.text();
  const bool open_end = offset == text.size() && !text.empty() && text.back() != '\n';
  if (open_end) return {.offset = offset, .before = std::string(document.newline()) + lines};
  return {.offset = offset, .before = std::move(lines), .after = std::string(document.newline())};
}

// True when nothing but a comment follows in the line.
bool EndsItsLine(const Document& document, std::size_t offset) {
  const std::size_t next = document.NextLine(offset);
  const std::string_view rest = document.text().substr(offset, next - offset);
  const std::size_t first = rest.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos || (rest[first] == '#' && first > 0);
}

class Inserter {
 public:
  Inserter(const Document& document, const NewValue& value) : document_(document), value_(value) {}

  std::optional<Insertion> Run(NodeId map) {
    std::size_t at = 0;
    for (; at + 1 < value_.path.size(); ++at) {
      const NodeId child = document_.Find(map, value_.path[at]);
      if (child == kNoNode) break;
      const Node& node = document_.At(child);
      if (node.shared) return std::nullopt;
      if (node.kind == NodeKind::kNull) return UnderEmpty(map, node, at + 1);
      if (node.kind != NodeKind::kMap) return std::nullopt;
      map = child;
    }
    if (!document_.Is(map, NodeKind::kMap) || document_.At(map).shared) return std::nullopt;
    const Node& node = document_.At(map);
    if (node.style == Style::kFlow) return InFlow(node, at);
    return at == 0 ? InBlock(node, at) : BehindLast(node, at);
  }

 private:
  // "requests:" with nothing behind it.
  std::optional<Insertion> UnderEmpty(NodeId map, const Node& null, std::size_t at) const {
    const Node& parent = document_.At(map);
    if (parent.style == Style::kFlow || parent.shared || null.begin != null.end ||
        !EndsItsLine(document_, null.begin))
      return std::nullopt;
    const std::size_t column = document_.ColumnAt(parent.begin) + kStep;
    return AtLine(document_, document_.NextLine(null.begin),
                  Nested(document_, value_.path, at, column));
  }

  std::optional<Insertion> InBlock(const Node& map, std::size_t at) const {
    const std::size_t column = document_.ColumnAt(map.begin);
    const std::size_t line = document_.LineStart(map.begin);
    const std::string lines = Nested(document_, value_.path, at, column);
    for (std::string_view name : value_.behind) {
      for (const Entry& entry : map.entries) {
        const std::size_t stop = document_.Raw(entry.value).stop;
        if (document_.Text(entry.key) == name && EndsItsLine(document_, stop))
          return AtLine(document_, document_.NextLine(stop), lines);
      }
    }
    const bool first_alone =
        AllBlank(document_.text().substr(map.begin - column, column)) && map.begin - column >= line;
    if (value_.behind.empty() && first_alone) return AtLine(document_, map.begin - column, lines);
    return BehindLast(map, at);
  }

  std::optional<Insertion> BehindLast(const Node& map, std::size_t at) const {
    if (map.entries.empty()) return std::nullopt;
    const std::size_t stop = document_.Raw(map.entries.back().value).stop;
    if (!EndsItsLine(document_, stop)) return std::nullopt;
    return AtLine(document_, document_.NextLine(stop),
                  Nested(document_, value_.path, at, document_.ColumnAt(map.begin)));
  }

  std::optional<Insertion> InFlow(const Node& map, std::size_t at) const {
    if (map.stop <= map.begin + 1 || document_.text()[map.begin] != '{') return std::nullopt;
    const std::string_view quote = document_.is_json() ? "\"" : "";
    Insertion insertion{.offset = map.begin + 1};
    if (!map.entries.empty()) {
      insertion.offset = document_.Raw(map.entries.back().value).stop;
      const std::size_t key = document_.Raw(map.entries.back().key).start;
      const std::size_t line = document_.LineStart(key);
      const std::string_view indent = document_.text().substr(line, key - line);
      const bool own_line = line > map.begin && AllBlank(indent);
      insertion.before = own_line ? std::string(",").append(document_.newline()).append(indent)
                                  : std::string(", ");
    }
    for (std::size_t i = at; i < value_.path.size(); ++i) {
      if (i > at) insertion.before.append("{");
      insertion.before.append(quote).append(value_.path[i]).append(quote).append(": ");
      if (i > at) insertion.after.append("}");
    }
    if (document_.is_json() && value_.quoted) {
      insertion.before.append("\"");
      insertion.after.insert(0, "\"");
    }
    return insertion;
  }

  const Document& document_;
  const NewValue& value_;
};

}  // namespace

std::optional<Insertion> FindInsertion(const Document& document, NodeId map, const NewValue& value,
                                       Quantity quantity, Bound bound) {
  auto insertion = Inserter(document, value).Run(map);
  if (!insertion) return std::nullopt;
  insertion->quantity = quantity;
  insertion->bound = bound;
  return insertion;
}

}  // namespace expanse::workload::kubernetes
