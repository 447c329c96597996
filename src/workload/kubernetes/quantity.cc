#include "workload/kubernetes/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/text.h"

namespace expanse::workload::kubernetes {
namespace {

struct Suffix {
  std::string_view name;
  double factor;
};

// Falling, so that a smaller unit of the same family is the next.
constexpr std::array<Suffix, 6> kBinary = {{{"Ei", 0x1p60},
                                            {"Pi", 0x1p50},
                                            {"Ti", 0x1p40},
                                            {"Gi", 0x1p30},
                                            {"Mi", 0x1p20},
                                            {"Ki", 0x1p10}}};
constexpr std::array<Suffix, 10> kDecimal = {{{"E", 1e18},
                                              {"P", 1e15},
                                              {"T", 1e12},
                                              {"G", 1e9},
                                              {"M", 1e6},
                                              {"k", 1e3},
                                              {"", 1},
                                              {"m", 1e-3},
                                              {"u", 1e-6},
                                              {"n", 1e-9}}};

struct Parts {
  std::string_view number;
  std::string_view suffix;
};

Parts Split(std::string_view text) {
  std::size_t at = 0;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) ++at;
  while (at < text.size() && (base::IsDigit(text[at]) || text[at] == '.')) ++at;
  return {.number = text.substr(0, at), .suffix = text.substr(at)};
}

std::optional<double> Factor(std::string_view suffix) {
  for (const Suffix& known : kBinary) {
    if (known.name == suffix) return known.factor;
  }
  for (const Suffix& known : kDecimal) {
    if (known.name == suffix) return known.factor;
  }
  // "e9", "E-3"; a lone "E" is the suffix above.
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  std::string_view digits = suffix.substr(1);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto exponent = base::ParseInt<int>(digits);
  if (!exponent || *exponent < -18 || *exponent > 18) return std::nullopt;
  return std::pow(10.0, *exponent);
}

// Digits of a number that is known to be a multiple of a thousandth.
std::string Digits(double number) {
  std::string text = fmt::format("{:.3f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Rounding up, blind to what floating point adds.
double Ceil(double number) {
  const double nearest = std::round(number);
  const double noise = 1e-12 * std::max(1.0, std::abs(number));
  return std::abs(number - nearest) <= noise ? nearest : std::ceil(number);
}

std::optional<std::string> InUnit(double amount, const Suffix& unit, double step, double slack) {
  const double number = Ceil(amount / unit.factor / step) * step;
  if (number * unit.factor > amount * (1 + slack) && number > 0) return std::nullopt;
  return Digits(number).append(unit.name);
}

std::string InFamily(double amount, std::string_view suffix, std::span<const Suffix> family,
                     bool fractions) {
  constexpr double kSlack = 0.005;
  bool reached = false;
  for (const Suffix& unit : family) {
    reached |= unit.name == suffix;
    if (!reached) continue;
    if (auto text = InUnit(amount, unit, 1, kSlack)) return *text;
    if (!fractions || unit.name != suffix) continue;
    for (double step : {0.5, 0.1, 0.25, 0.01}) {
      if (auto text = InUnit(amount, unit, step, 1e-9)) return *text;
    }
  }
  return fmt::format("{:.0f}", Ceil(amount));
}

}  // namespace

std::optional<double> ParseQuantity(std::string_view text) {
  const Parts parts = Split(text);
  std::string_view number = parts.number;
  if (number.starts_with('+')) number.remove_prefix(1);
  if (number.empty() || number == ".") return std::nullopt;
  const auto value = base::ParseDouble(number);
  const auto factor = Factor(parts.suffix);
  if (!value || !factor || *value < 0 || !std::isfinite(*value)) return std::nullopt;
  return *value * *factor;
}

std::string FormatQuantity(double amount, std::string_view like) {
  const Parts parts = Split(like);
  const bool fractions = parts.number.find('.') != std::string_view::npos;
  for (const Suffix& known : kBinary) {
    if (known.name == parts.suffix) return InFamily(amount, parts.suffix, kBinary, fractions);
  }
  for (const Suffix& known : kDecimal) {
    // Thousandths of a byte are a slip of the pen, not a unit to keep.
    if (known.name == parts.suffix && known.factor != 1 && !(known.factor < 1 && amount >= 1e6))
      return InFamily(amount, parts.suffix, kDecimal, fractions);
  }
  // No suffix, or an exponent. Cores are written in fractions; bytes have none.
  return amount >= 1000 ? fmt::format("{:.0f}", Ceil(amount)) : Digits(Ceil(amount * 1000) / 1000);
}

}  // namespace expanse::workload::kubernetes
