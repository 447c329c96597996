// Delimited tables and the spellings of times and amounts in traces.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::bench {

// Fields of one line; double quotes keep separators, and are taken off.
std::vector<std::string> SplitFields(std::string_view line, char separator);

class Table {
 public:
  // The first line is the header; a byte order mark, '#' and quotes around names are taken off.
  Table(std::string_view text, char separator);
  // The separator that the first line has most of: tab, comma, pipe or semicolon.
  static char Separator(std::string_view text);

  bool Has(std::string_view column) const { return columns_.contains(column); }
  std::size_t rows() const { return rows_.size(); }
  // Empty for a missing column.
  std::string_view At(std::size_t row, std::string_view column) const;

 private:
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::optional<double> Number(std::string_view text);  // nothing for "-", "NA", ""
std::optional<double> Duration(
    std::string_view text);  // "1-02:03:04", "02:03:04.5", "1h 2m 3s", "54ms"
std::optional<double> Amount(std::string_view text);  // "2.3 GB", "17703340K", "250G" (2^10 steps)
std::optional<double> Moment(
    std::string_view text);  // "2023-04-19 08:59:00.753", RFC 3339: epoch seconds

}  // namespace expanse::bench
