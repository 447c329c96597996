#include "cli/table.h"

#include <algorithm>

#include "base/result.h"
#include "base/text.h"

namespace expanse::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastFilled = 30;  // columns that sentences are worth being filled to

std::string_view TintCode(Tint tint) {
  switch (tint) {
    case Tint::kNone:
      return "";
    case Tint::kGood:
      return "\x1b[32m";
    case Tint::kBad:
      return "\x1b[31m";
    case Tint::kBusy:
      return "\x1b[36m";
    case Tint::kFaint:
      return "\x1b[2m";
  }
  return "";
}

std::string Tinted(const std::string& text, Tint tint, bool colour) {
  if (!colour || tint == Tint::kNone) return text;
  return std::string(TintCode(tint)) + text + "\x1b[0m";
}

std::string Shown(const Cell& cell) {
  return cell.text.empty() ? "-" : base::EscapeForDisplay(cell.text);
}

// `text` with a new line and `margin` spaces for some of its spaces, so that lines have at most
// `width` columns where words allow it.
std::string Filled(std::string_view text, std::size_t width, std::size_t margin) {
  std::string out;
  std::size_t column = 0;
  bool first = true;
  for (const std::string_view word : base::Split(text, ' ')) {
    const std::size_t columns = base::DisplayWidth(word);
    if (column > 0 && column + 1 + columns > width) {
      out += '\n' + std::string(margin, ' ');
      column = 0;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns;
    first = false;
  }
  return out;
}

std::size_t Total(const std::vector<std::size_t>& widths, const std::vector<bool>& kept) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (kept[i]) total += widths[i] + (total > 0 ? kGap : 0);
  }
  return total;
}

}  // namespace

std::string CutToWidth(std::string_view text, std::size_t width) {
  if (base::DisplayWidth(text) <= width) return std::string(text);
  std::string cut;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = at + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    const std::string_view rune = text.substr(at, next - at);
    if (base::DisplayWidth(cut) + base::DisplayWidth(rune) + 1 > width) break;
    cut += rune;
    at = next;
  }
  return cut + "…";
}

void Table::Add(std::vector<Cell> row) {
  EXPANSE_CHECK(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::Render(const TableStyle& style) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = base::DisplayWidth(columns_[i].header);
    for (const auto& row : rows_) width = std::max(width, base::DisplayWidth(Shown(row[i])));
    widths.push_back(width);
  }
  std::vector<bool> kept(columns_.size(), true);
  // The widest column that may shrink gives way first, then columns that can be missed.
  while (style.width > 0 && Total(widths, kept) > style.width) {
    std::size_t victim = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].least == 0 || widths[i] <= columns_[i].least) continue;
      if (victim == columns_.size() || widths[i] > widths[victim]) victim = i;
    }
    if (victim < columns_.size()) {
      --widths[victim];
      continue;
    }
    for (std::size_t i = columns_.size(); i-- > 0 && victim == columns_.size();) {
      if (columns_[i].optional && kept[i]) victim = i;
    }
    if (victim == columns_.size()) break;
    kept[victim] = false;
  }
  std::string out;
  const auto append_line = [&](const auto& text_of, const auto& tint_of) {
    std::string line;
    std::size_t pending = 0;  // spaces that only come if something follows
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!kept[i]) continue;
      const std::string text = CutToWidth(text_of(i), widths[i]);
      const std::size_t pad = widths[i] - std::min(widths[i], base::DisplayWidth(text));
      const bool right = columns_[i].align == Align::kRight;
      line +=
          std::string(pending + (right ? pad : 0), ' ') + Tinted(text, tint_of(i), style.colour);
      pending = kGap + (right ? 0 : pad);
    }
    out += line + '\n';
  };
  append_line([&](std::size_t i) { return columns_[i].header; },
              [](std::size_t) { return Tint::kNone; });
  for (const auto& row : rows_) {
    append_line([&](std::size_t i) { return Shown(row[i]); },
                [&](std::size_t i) { return row[i].tint; });
  }
  return out;
}

std::string RenderFields(const std::vector<Field>& fields, const TableStyle& style) {
  std::size_t widest = 0;
  for (const Field& field : fields) {
    if (!field.value.text.empty()) widest = std::max(widest, base::DisplayWidth(field.label));
  }
  std::string out;
  for (const Field& field : fields) {
    if (field.value.text.empty()) continue;
    std::string value = Shown(field.value);
    const std::size_t margin = widest + kGap;
    if (field.sentences && style.width >= margin + kLeastFilled)
      value = Filled(value, style.width - margin, margin);
    out += field.label + std::string(margin - base::DisplayWidth(field.label), ' ') +
           Tinted(value, field.value.tint, style.colour) + '\n';
  }
  return out;
}

}  // namespace expanse::cli
