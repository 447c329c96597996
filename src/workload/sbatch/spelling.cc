#include "workload/sbatch/spelling.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/text.h"

namespace expanse::workload::sbatch {
namespace {

constexpr std::string_view kUnits = "kmgt";

std::uint64_t Scale(std::size_t unit) { return std::uint64_t{1} << (10 * (unit + 1)); }

std::uint64_t DivideUp(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

std::string Padded(std::int64_t value, std::size_t digits) {
  std::string text = std::to_string(value);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return text;
}

// "1:30:00" without its days: how many digits each field has.
std::vector<std::size_t> FieldWidths(std::string_view text) {
  std::vector<std::size_t> widths;
  for (const std::string_view field : base::Split(text, ':')) widths.push_back(field.size());
  return widths;
}

std::size_t WidthAt(const std::vector<std::size_t>& widths, std::size_t i) {
  return i < widths.size() ? widths[i] : 2;
}

std::string SpellDays(std::int64_t minutes, std::string_view like) {
  const std::size_t dash = like.find('-');
  const std::string_view rest = like.substr(dash + 1);
  const auto widths = rest.empty() ? std::vector<std::size_t>() : FieldWidths(rest);
  std::string text = Padded(minutes / 1440, dash) + "-";
  if (widths.empty() && minutes % 1440 == 0) return text;
  text += Padded(minutes % 1440 / 60, WidthAt(widths, 0));
  if (widths.size() < 2 && minutes % 60 == 0) return text;
  text += ":" + Padded(minutes % 60, WidthAt(widths, 1));
  if (widths.size() > 2) text += ":" + std::string(std::max<std::size_t>(widths[2], 1), '0');
  return text;
}

}  // namespace

std::string SpellMemory(std::uint64_t bytes, std::string_view like) {
  const std::size_t digits = std::min(like.find_first_not_of("+0123456789"), like.size());
  const std::string_view suffix = like.substr(digits);
  const std::size_t known =
      suffix.empty() ? std::string_view::npos : kUnits.find(base::ToLower(suffix)[0]);
  const std::size_t mega = 1;
  const std::size_t written = known == std::string_view::npos ? mega : known;
  std::size_t unit = written;
  // Slurm counts in MiB: nothing smaller is needed, unless it is what the script uses.
  while (unit > mega && DivideUp(bytes, Scale(unit)) * Scale(unit) - bytes > bytes / 8) --unit;
  std::uint64_t count = DivideUp(bytes, Scale(unit));
  if (count == 0) count = 1;  // "0" would ask for all of the node
  std::string text = std::to_string(count);
  if (suffix.empty()) return unit == mega ? text : text + static_cast<char>(kUnits[unit] - 32);
  if (unit == written) return text.append(suffix);
  const bool upper = suffix.front() < 'a';
  text.push_back(static_cast<char>(upper ? kUnits[unit] - 32 : kUnits[unit]));
  return text.append(suffix.substr(1));
}

std::string SpellTime(std::int64_t seconds, std::string_view like) {
  const std::int64_t minutes = std::max<std::int64_t>((seconds + 59) / 60, 1);
  if (like.empty() || !base::IsDigit(like.front()) || like == "0") {
    return Padded(minutes / 60, 2) + ":" + Padded(minutes % 60, 2) + ":00";
  }
  if (like.find('-') != std::string_view::npos) return SpellDays(minutes, like);
  const auto widths = FieldWidths(like);
  if (widths.size() == 1) return Padded(minutes, like.front() == '0' ? widths[0] : 1);
  if (widths.size() == 2)
    return Padded(minutes, widths[0]) + ":" + std::string(std::max<std::size_t>(widths[1], 1), '0');
  return Padded(minutes / 60, widths[0]) + ":" + Padded(minutes % 60, widths[1]) + ":" +
         std::string(std::max<std::size_t>(widths[2], 1), '0');
}

}  // namespace expanse::workload::sbatch
