// Tables and label/value blocks as text: no borders, UPPERCASE headers, user text made safe. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::cli {

enum class Align : unsigned char { kLeft, kRight };
enum class Tint : unsigned char { kNone, kGood, kBad, kBusy, kFaint };

struct Column {
  std::string header;
  Align align = Align::kLeft;
  // On a narrow terminal: cut to no less than this, with an ellipsis. 0: never cut.
  std::size_t least = 0;
  // On a terminal that is still too narrow: left out.
  bool optional = false;
};

struct Cell {
  Cell(std::string t, Tint c = Tint::kNone) : text(std::move(t)), tint(c) {}  // NOLINT
  Cell(const char* t) : text(t) {}                                            // NOLINT
  std::string text;  // as it came; escaped here
  Tint tint = Tint::kNone;
};

struct TableStyle {
  std::size_t width = 0;  // columns to fit into; 0: no limit
  bool colour = false;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void Add(std::vector<Cell> row);
  // Empty cells are "-", so that a column is never lost to awk. Two spaces between columns, none at
  // the end of a line.
  std::string Render(const TableStyle& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

struct Field {
  std::string label;  // UPPERCASE
  Cell value;
  // Sentences: on a terminal filled to its width, at spaces, under the value's first column. What
  // may be copied from there (commands, quotes) stays on one line.
  bool sentences = false;
};
// One line per field, labels padded; fields with empty values are left out.
std::string RenderFields(const std::vector<Field>& fields, const TableStyle& style);

// At most `width` columns of well-formed text, the last one an ellipsis when something was cut.
std::string CutToWidth(std::string_view text, std::size_t width);

}  // namespace expanse::cli
