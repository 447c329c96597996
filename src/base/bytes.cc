#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace expanse::base {
namespace {

constexpr std::string_view kPrefixes = "KMGTPE";

}  // namespace

Result<Bytes> ParseBytes(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  double amount = 0;
  const char* last = trimmed.data() + trimmed.size();
  const auto [end, error] = std::from_chars(trimmed.data(), last, amount, std::chars_format::fixed);
  const std::string unit =
      ToLower(Trim(std::string_view(end, static_cast<std::size_t>(last - end))));
  int power = -1;
  if (unit.empty() || unit == "b") {
    power = 0;
  } else {
    for (std::size_t i = 0; i < kPrefixes.size(); ++i) {
      const char prefix = static_cast<char>(kPrefixes[i] - 'A' + 'a');
      const std::string_view rest = std::string_view(unit).substr(1);
      if (unit[0] == prefix && (rest.empty() || rest == "b" || rest == "ib" || rest == "i")) {
        power = static_cast<int>(i) + 1;
      }
    }
  }
  if (error != std::errc() || power < 0 || !(amount >= 0)) {
    return Fail(Code::kInvalidArgument, "bytes.syntax",
                fmt::format("\"{}\" is not an amount of memory; write 512M, 16G or 1.5GiB",
                            EscapeForDisplay(text)));
  }
  const double bytes = std::ldexp(amount, 10 * power);
  if (bytes >= 9.2e18) {
    return Fail(Code::kInvalidArgument, "bytes.range",
                fmt::format("\"{}\" is more than 8 EiB", EscapeForDisplay(text)));
  }
  return Bytes{static_cast<std::uint64_t>(std::llround(bytes))};
}

std::string FormatBytes(Bytes bytes) {
  if (bytes.count < 1024) return fmt::format("{} B", bytes.count);
  double amount = static_cast<double>(bytes.count);
  std::size_t power = 0;
  while (amount >= 1023.5 && power < kPrefixes.size()) {
    amount /= 1024;
    ++power;
  }
  const char prefix = kPrefixes[power - 1];
  // Three significant digits, no trailing zeros.
  std::string number = fmt::format("{:.{}f}", amount, amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0);
  if (number.find('.') != std::string::npos) {
    while (number.back() == '0') number.pop_back();
    if (number.back() == '.') number.pop_back();
  }
  return fmt::format("{} {}iB", number, prefix);
}

}  // namespace expanse::base
