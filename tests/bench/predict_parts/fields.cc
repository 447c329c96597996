#include "bench/predict_parts/fields.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/text.h"

namespace expanse::bench {

using base::ParseDouble;
using base::ParseInt;
using base::Trim;

std::vector<std::string> SplitFields(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"')
        fields.back() += line[i++];
      else
        quoted = !quoted;
    } else if (c == separator && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

char Table::Separator(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  char best = ',';
  std::ptrdiff_t most = 0;
  for (const char separator : {'\t', '|', ',', ';'}) {
    const auto count = std::count(line.begin(), line.end(), separator);
    if (count > most) {
      most = count;
      best = separator;
    }
  }
  return best;
}

Table::Table(std::string_view text, char separator) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  bool header = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::vector<std::string> fields = SplitFields(text.substr(0, end), separator);
    text.remove_prefix(std::min(end + 1, text.size()));
    // Some tools write "|#" between fields.
    for (std::string& field : fields) {
      if (field.starts_with('#')) field.erase(0, 1);
    }
    if (header) {
      for (std::size_t i = 0; i < fields.size(); ++i)
        columns_.emplace(std::string(Trim(fields[i])), i);
      header = false;
    } else if (fields.size() > 1 || !Trim(fields[0]).empty()) {
      rows_.push_back(std::move(fields));
    }
  }
}

std::string_view Table::At(std::size_t row, std::string_view column) const {
  const auto found = columns_.find(column);
  if (found == columns_.end() || found->second >= rows_[row].size()) return {};
  return Trim(rows_[row][found->second]);
}

std::optional<double> Number(std::string_view text) {
  text = Trim(text);
  if (text.ends_with('%')) text.remove_suffix(1);
  const auto value = ParseDouble(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

namespace {

// "1-02:03:04", "02:03:04", "03:04.5".
std::optional<double> ColonDuration(std::string_view text) {
  double days = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto value = ParseDouble(text.substr(0, dash));
    if (!value) return std::nullopt;
    days = *value;
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  for (const std::string_view piece : base::Split(text, ':')) {
    const auto value = ParseDouble(piece);
    if (!value || *value < 0) return std::nullopt;
    seconds = seconds * 60 + *value;
  }
  return days * 86400 + seconds;
}

std::optional<double> UnitSeconds(std::string_view unit) {
  if (unit == "ms") return 1e-3;
  if (unit == "s") return 1;
  if (unit == "m") return 60;
  if (unit == "h") return 3600;
  if (unit == "d") return 86400;
  return std::nullopt;
}

}  // namespace

std::optional<double> Duration(std::string_view text) {
  text = Trim(text);
  if (text.empty() || text == "-") return std::nullopt;
  if (text.find(':') != std::string_view::npos) return ColonDuration(text);
  double seconds = 0;
  bool any = false;
  for (const std::string_view word : base::SplitSpaces(text)) {
    const std::size_t digits = word.find_first_not_of("0123456789.");
    const auto value = ParseDouble(word.substr(0, digits));
    if (!value || digits == std::string_view::npos) return std::nullopt;
    const auto unit = UnitSeconds(word.substr(digits));
    if (!unit) return std::nullopt;
    seconds += *value * *unit;
    any = true;
  }
  return any ? std::optional(seconds) : std::nullopt;
}

std::optional<double> Amount(std::string_view text) {
  text = Trim(text);
  const std::size_t digits = text.find_first_not_of("0123456789.");
  const auto value = ParseDouble(text.substr(0, digits));
  if (!value) return std::nullopt;
  if (digits == std::string_view::npos) return value;
  const std::string_view unit = Trim(text.substr(digits));
  double factor = 1;
  switch (unit.empty() ? 'B' : unit[0]) {
    case 'T':
      factor *= 1024;
      [[fallthrough]];
    case 'G':
      factor *= 1024;
      [[fallthrough]];
    case 'M':
      factor *= 1024;
      [[fallthrough]];
    case 'K':
    case 'k':
      factor *= 1024;
      break;
    case 'B':
      break;
    default:
      return std::nullopt;
  }
  return *value * factor;
}

std::optional<double> Moment(std::string_view text) {
  text = Trim(text);
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':') return std::nullopt;
  const auto year = ParseInt<int>(text.substr(0, 4));
  const auto month = ParseInt<unsigned>(text.substr(5, 2));
  const auto day = ParseInt<unsigned>(text.substr(8, 2));
  const auto hour = ParseInt<int>(text.substr(11, 2));
  const auto minute = ParseInt<int>(text.substr(14, 2));
  const std::size_t end = std::min(text.find_first_not_of("0123456789.", 17), text.size());
  const auto second = ParseDouble(text.substr(17, end - 17));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{*month},
                                         std::chrono::day{*day}};
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400 + *hour * 3600 + *minute * 60 + *second;
}

}  // namespace expanse::bench
