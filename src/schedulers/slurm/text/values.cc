#include "schedulers/slurm/text/values.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr std::uint64_t kNoVal = 0xFFFFFFFE;  // NO_VAL of slurm.h; INFINITE is one more
constexpr std::uint64_t kNoVal64 = ~std::uint64_t{1};
constexpr std::uint64_t kMemPerCpu = std::uint64_t{1} << 63;
// What a record can hold; above it are Slurm's 64-bit words for "none", and damage.
constexpr std::uint64_t kMostAmount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostSeconds = 253'402'300'799;  // the end of the year 9999
constexpr std::int64_t kMaxElapsedSeconds = std::int64_t{200} * 366 * 86400;
constexpr int kSigOom = 125;  // 253 in slurm_protocol_defs.h, of which wait(2) keeps seven bits

// Digits only, as the parts of times are; at most 10 of them, so that sums cannot overflow.
std::optional<std::int64_t> TimePart(std::string_view text) {
  if (text.size() > 10) return std::nullopt;
  const auto value = base::ParseUnsignedDigits(text);
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

// Cuts "12.345" into whole and millionths.
std::optional<microseconds> SecondsWithFraction(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto whole = TimePart(text.substr(0, dot));
  if (!whole) return std::nullopt;
  std::int64_t micros = 0;
  if (dot != std::string_view::npos) {
    const std::string_view fraction = text.substr(dot + 1);
    if (fraction.empty() || fraction.size() > 9) return std::nullopt;
    std::int64_t weight = 100'000;
    for (char c : fraction) {
      if (!base::IsDigit(c)) return std::nullopt;
      micros += (c - '0') * weight;
      weight /= 10;
    }
  }
  return seconds(*whole) + microseconds(micros);
}

// hours:minutes:seconds, or what of it there is: seconds last, or after days hours first.
std::optional<microseconds> ClockPart(std::string_view text, bool after_days) {
  std::array<std::string_view, 3> parts;
  std::size_t count = 0;
  for (std::size_t start = 0;; ++count) {
    if (count == parts.size()) return std::nullopt;
    const std::size_t end = text.find(':', start);
    parts[count] = text.substr(start, end - start);
    if (end == std::string_view::npos) break;
    start = end + 1;
  }
  ++count;
  // The unit of the first part: after days, hours; else so that the last part is seconds.
  constexpr std::array<std::int64_t, 3> kUnits = {3600, 60, 1};
  std::size_t unit = after_days ? 0 : parts.size() - count;
  microseconds sum{0};
  for (std::size_t i = 0; i < count; ++i, ++unit) {
    if (kUnits[unit] == 1) {
      const auto last = SecondsWithFraction(parts[i]);
      if (!last) return std::nullopt;
      sum += *last;
    } else {
      const auto value = TimePart(parts[i]);
      if (!value || *value > kMaxElapsedSeconds / kUnits[unit]) return std::nullopt;
      sum += seconds(*value * kUnits[unit]);
    }
  }
  return sum;
}

// 1024 to the power that the letter stands for.
std::optional<std::uint64_t> UnitFactor(char letter) {
  constexpr std::string_view kLetters = "KMGTPE";
  const std::size_t at = kLetters.find(letter >= 'a' ? static_cast<char>(letter - 32) : letter);
  if (at == std::string_view::npos) return std::nullopt;
  return std::uint64_t{1} << (10 * (at + 1));
}

// `number` (digits with an optional fraction) times `factor`, rounded; exact for whole numbers.
std::optional<std::uint64_t> Scale(std::string_view number, std::uint64_t factor) {
  if (number.empty() || !base::IsDigit(number.front())) return std::nullopt;
  if (const auto whole = base::ParseInt<std::uint64_t>(number)) {
    if (*whole > kMostAmount / factor) return std::nullopt;
    return *whole * factor;
  }
  if (number.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  const auto value = base::ParseDouble(number);
  constexpr double kLimit = 9.0e18;
  if (!value || *value * static_cast<double>(factor) > kLimit) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(*value * static_cast<double>(factor)));
}

// A calendar date and time of day, checked; what follows them is left in `rest`.
std::optional<std::int64_t> IsoSeconds(std::string_view text, std::string_view& rest) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kShape.size()) return std::nullopt;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool fits = kShape[i] == 'd'   ? base::IsDigit(text[i])
                      : kShape[i] == 'T' ? text[i] == 'T' || text[i] == ' '
                                         : text[i] == kShape[i];
    if (!fits) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    return base::ParseInt<int>(text.substr(at, length)).value_or(0);
  };
  const std::chrono::year_month_day date{std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  rest = text.substr(kShape.size());
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return std::int64_t{days} * 86400 + hour * 3600 + minute * 60 + second;
}

// "", "Z", "+0200", "+02:00": what to subtract.
std::optional<std::int64_t> OffsetSeconds(std::string_view text) {
  if (text.empty() || text == "Z") return 0;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  const bool colon = text.size() == 6 && text[3] == ':';
  if (text.size() != 5 && !colon) return std::nullopt;
  const auto hours = base::ParseUnsignedDigits(text.substr(1, 2));
  const auto minutes = base::ParseUnsignedDigits(text.substr(colon ? 4 : 3));
  if (!hours || !minutes || *hours > 18 || *minutes > 59) return std::nullopt;
  const auto offset = static_cast<std::int64_t>(*hours * 3600 + *minutes * 60);
  return text[0] == '-' ? -offset : offset;
}

}  // namespace

bool IsAbsent(std::string_view text) {
  text = base::Trim(text);
  if (text.empty()) return true;
  constexpr std::array<std::string_view, 9> kWords = {
      "(null)", "n/a", "none", "unknown", "none assigned", "invalid", "not_set", "null", "?"};
  if (text.size() > 13) return false;
  const std::string lower = base::ToLower(text);
  for (std::string_view word : kWords) {
    if (lower == word) return true;
  }
  return false;
}

std::optional<microseconds> ParseElapsed(std::string_view text) {
  text = base::Trim(text);
  const std::size_t dash = text.find('-');
  std::int64_t days = 0;
  if (dash != std::string_view::npos) {
    const auto value = TimePart(text.substr(0, dash));
    if (!value || *value > kMaxElapsedSeconds / 86400) return std::nullopt;
    days = *value;
    text.remove_prefix(dash + 1);
  }
  const auto clock = ClockPart(text, /*after_days=*/dash != std::string_view::npos);
  if (!clock) return std::nullopt;
  const microseconds sum = seconds(days * 86400) + *clock;
  if (sum > seconds(kMaxElapsedSeconds)) return std::nullopt;
  return sum;
}

std::optional<TimeLimit> ParseTimeLimit(std::string_view text) {
  const std::string lower = base::ToLower(base::Trim(text.substr(0, 64)));
  if (lower == "unlimited" || lower == "infinite") {
    return TimeLimit{.kind = TimeLimit::Kind::kUnlimited, .limit = seconds(0)};
  }
  if (lower == "partition_limit") {
    return TimeLimit{.kind = TimeLimit::Kind::kPartition, .limit = seconds(0)};
  }
  const auto elapsed = ParseElapsed(lower);
  if (!elapsed) return std::nullopt;
  return TimeLimit{.kind = TimeLimit::Kind::kLimited,
                   .limit = std::chrono::duration_cast<seconds>(*elapsed)};
}

std::optional<base::WallTime> ParseTimestamp(std::string_view text) {
  text = base::Trim(text);
  std::int64_t epoch = 0;
  if (const auto digits = base::ParseUnsignedDigits(text)) {
    if (text.size() > 12 || *digits == kNoVal || *digits == kNoVal + 1) return std::nullopt;
    epoch = static_cast<std::int64_t>(*digits);
  } else {
    std::string_view rest;
    const auto local = IsoSeconds(text, rest);
    if (!local) return std::nullopt;
    const auto offset = OffsetSeconds(rest);
    if (!offset) return std::nullopt;
    epoch = *local - *offset;
  }
  if (epoch <= 2 * 86400 || epoch > kMostSeconds) return std::nullopt;
  return base::WallTime(seconds(epoch));
}

std::optional<Memory> ParseMemory(std::string_view text, std::uint64_t bare_unit) {
  text = base::Trim(text);
  Memory memory;
  if (!text.empty() && (text.back() == 'c' || text.back() == 'n')) {
    memory.scope = text.back() == 'c' ? MemoryScope::kPerCpu : MemoryScope::kPerNode;
    text.remove_suffix(1);
  }
  if (text.empty()) return std::nullopt;
  if (const auto bare = base::ParseInt<std::uint64_t>(text)) {
    std::uint64_t count = *bare;
    if (count == kNoVal64 || count == kNoVal64 + 1) return std::nullopt;
    if ((count & kMemPerCpu) != 0) {
      memory.scope = MemoryScope::kPerCpu;
      count &= ~kMemPerCpu;
    }
    if (count > kMostAmount / bare_unit) return std::nullopt;
    memory.bytes = count * bare_unit;
    return memory;
  }
  std::uint64_t factor = bare_unit;
  if (!base::IsDigit(text.back())) {
    const auto unit = UnitFactor(text.back());
    if (!unit) return std::nullopt;
    factor = *unit;
    text.remove_suffix(1);
  }
  const auto bytes = Scale(text, factor);
  if (!bytes) return std::nullopt;
  memory.bytes = *bytes;
  return memory;
}

std::optional<std::uint64_t> TotalBytes(const Memory& memory, std::optional<std::uint64_t> cpus,
                                        std::optional<std::uint64_t> nodes) {
  if (memory.bytes == 0) return std::nullopt;
  std::uint64_t times = 1;
  if (memory.scope == MemoryScope::kPerCpu) times = cpus.value_or(0);
  if (memory.scope == MemoryScope::kPerNode) times = nodes.value_or(0);
  if (times == 0 || memory.bytes > kMostAmount / times) return std::nullopt;
  return memory.bytes * times;
}

std::optional<std::uint64_t> ParseCount(std::string_view text) {
  text = base::Trim(text);
  text = text.substr(0, text.find('-', 1));  // a range: at least the first
  if (text.empty()) return std::nullopt;
  if (base::IsDigit(text.back())) {
    const auto value = base::ParseInt<std::uint64_t>(text);
    // All kinds of "no value" of slurm.h, 16, 32 and 64 bits; a count of 65534 is possible.
    if (value && (*value == kNoVal || *value == kNoVal + 1 || *value > kMostAmount)) {
      return std::nullopt;
    }
    return value ? value : Scale(text, 1);
  }
  const auto unit = UnitFactor(text.back());
  if (!unit) return std::nullopt;
  return Scale(text.substr(0, text.size() - 1), *unit);
}

std::optional<ExitStatus> ParseExitCode(std::string_view text) {
  text = base::Trim(text);
  const std::size_t colon = text.find(':');
  const auto code = base::ParseUnsignedDigits(text.substr(0, colon));
  if (!code || *code > 0xFFFF) return std::nullopt;
  ExitStatus status{.exit_code = static_cast<std::int32_t>(*code)};
  if (colon == std::string_view::npos) return status;
  const auto signal = base::ParseUnsignedDigits(text.substr(colon + 1));
  if (!signal || *signal > 0xFFFF) return std::nullopt;
  status.signal = static_cast<std::int32_t>(*signal);
  if (status.signal > 128 && status.signal < 256) {
    status.core_dumped = status.signal != 128 + kSigOom;
    status.signal -= 128;
  }
  status.out_of_memory = status.signal == kSigOom;
  return status;
}

ExitStatus ExitStatusFromWait(std::uint32_t wait_status) {
  ExitStatus status;
  status.signal = static_cast<std::int32_t>(wait_status & 0x7F);
  if (status.signal == 0) status.exit_code = static_cast<std::int32_t>((wait_status >> 8) & 0xFF);
  status.core_dumped = status.signal != 0 && status.signal != kSigOom && (wait_status & 0x80) != 0;
  status.out_of_memory = status.signal == kSigOom;
  return status;
}

}  // namespace expanse::schedulers::slurm
