#include "base/time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

#include "base/text.h"

namespace expanse::base {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMaxDurationMs = 100LL * 366 * 24 * 3600 * 1000;

Error DurationSyntax(std::string_view text) {
  return Error{Code::kInvalidArgument, "duration.syntax",
               fmt::format("\"{}\" is not a duration; write 90s, 15m, 2h, 1h30m or 1-02:00:00",
                           EscapeForDisplay(text))};
}

Error TimeSyntax(std::string_view text) {
  return Error{Code::kInvalidArgument, "time.syntax",
               fmt::format("\"{}\" is not an RFC 3339 time; write 2026-01-31T12:00:00Z",
                           EscapeForDisplay(text))};
}

// [days-]hh:mm:ss, [days-]hh:mm with days, mm:ss without, as in sbatch(1) --time.
Result<std::chrono::milliseconds> ParseColons(std::string_view text) {
  std::string_view rest = text;
  std::int64_t days = 0;
  bool has_days = false;
  if (auto dash = rest.find('-'); dash != std::string_view::npos) {
    auto parsed = ParseInt<std::int64_t>(rest.substr(0, dash));
    if (!parsed) return std::unexpected(DurationSyntax(text));
    days = *parsed;
    has_days = true;
    rest.remove_prefix(dash + 1);
  }
  std::array<std::int64_t, 3> parts{};
  std::size_t count = 0;
  for (std::string_view piece : Split(rest, ':')) {
    auto parsed = ParseInt<std::int64_t>(piece);
    if (!parsed || *parsed < 0 || count == 3) return std::unexpected(DurationSyntax(text));
    // Cut to what is far out of range below, so that no sum of them overflows.
    parts[count++] = std::min(*parsed, kMaxDurationMs);
  }
  std::int64_t seconds = 0;
  if (count == 3) {
    seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
  } else if (count == 2) {
    seconds = has_days ? parts[0] * 3600 + parts[1] * 60 : parts[0] * 60 + parts[1];
  } else if (has_days && count == 1) {
    seconds = parts[0] * 3600;
  } else {
    return std::unexpected(DurationSyntax(text));
  }
  if (days < 0 || days > 36600 || seconds > kMaxDurationMs / 1000) {
    return Fail(Code::kInvalidArgument, "duration.range",
                fmt::format("\"{}\" is longer than 100 years", EscapeForDisplay(text)));
  }
  return std::chrono::milliseconds((days * 86400 + seconds) * 1000);
}

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
constexpr std::array<Unit, 5> kUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};

}  // namespace

WallTime SystemClock::Now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

MonoTime SystemClock::Mono() { return std::chrono::steady_clock::now(); }

bool SystemClock::WaitFor(std::stop_token stop, Duration duration) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

FakeClock::FakeClock(WallTime start) : wall_(start) {}

WallTime FakeClock::Now() {
  std::scoped_lock lock(mutex_);
  return wall_;
}

MonoTime FakeClock::Mono() {
  std::scoped_lock lock(mutex_);
  return mono_;
}

bool FakeClock::WaitFor(std::stop_token stop, Duration duration) {
  std::unique_lock lock(mutex_);
  const MonoTime until = mono_ + duration;
  return changed_.wait(lock, stop, [&] { return mono_ >= until; });
}

void FakeClock::Advance(Duration duration) {
  {
    std::scoped_lock lock(mutex_);
    wall_ += std::chrono::duration_cast<std::chrono::microseconds>(duration);
    mono_ += duration;
  }
  changed_.notify_all();
}

void FakeClock::JumpWall(std::chrono::microseconds by) {
  std::scoped_lock lock(mutex_);
  wall_ += by;
}

std::string FormatRfc3339(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = (time - seconds).count();
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(seconds - day);
  std::string text =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", int(date.year()), unsigned(date.month()),
                  unsigned(date.day()), clock.hours().count(), clock.minutes().count(),
                  clock.seconds().count());
  if (micros % 1000 != 0) {
    text += fmt::format(".{:06}", micros);
  } else if (micros != 0) {
    text += fmt::format(".{:03}", micros / 1000);
  }
  return text + "Z";
}

Result<WallTime> ParseRfc3339(std::string_view text) {
  // Fixed layout up to the seconds: YYYY-MM-DDThh:mm:ss
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':' ||
      (text[10] != 'T' && text[10] != 't' && text[10] != ' ')) {
    return std::unexpected(TimeSyntax(text));
  }
  auto number = [&](std::size_t at, std::size_t length) {
    return ParseUnsignedDigits(text.substr(at, length));
  };
  const auto year = number(0, 4), month = number(5, 2), day = number(8, 2), hour = number(11, 2),
             minute = number(14, 2), second = number(17, 2);
  if (!year || !month || !day || !hour || !minute || !second) {
    return std::unexpected(TimeSyntax(text));
  }
  const std::chrono::year_month_day date{std::chrono::year(int(*year)),
                                         std::chrono::month(unsigned(*month)),
                                         std::chrono::day(unsigned(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) {
    return std::unexpected(TimeSyntax(text));
  }
  std::size_t at = 19;
  std::int64_t micros = 0;
  if (text[at] == '.') {
    std::int64_t scale = 100'000;
    const std::size_t first = ++at;
    for (; at < text.size() && IsDigit(text[at]) && at < first + 9; ++at) {
      micros += scale * (text[at] - '0');
      scale /= 10;
    }
    if (at == first) return std::unexpected(TimeSyntax(text));
  }
  std::int64_t offset_minutes = 0;
  const std::string_view zone = text.substr(at);
  if (zone != "Z" && zone != "z") {
    if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') {
      return std::unexpected(TimeSyntax(text));
    }
    const auto hours = ParseUnsignedDigits(zone.substr(1, 2));
    const auto minutes = ParseUnsignedDigits(zone.substr(4, 2));
    if (!hours || !minutes || *hours > 23 || *minutes > 59) {
      return std::unexpected(TimeSyntax(text));
    }
    offset_minutes =
        (std::int64_t(*hours) * 60 + std::int64_t(*minutes)) * (zone[0] == '-' ? -1 : 1);
  }
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(*hour) +
         std::chrono::minutes(std::int64_t(*minute) - offset_minutes) +
         std::chrono::seconds(*second) + std::chrono::microseconds(micros);
}

Result<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  if (trimmed.empty()) return std::unexpected(DurationSyntax(text));
  if (trimmed.find(':') != std::string_view::npos || trimmed.find('-') != std::string_view::npos) {
    return ParseColons(trimmed);
  }
  std::int64_t total = 0;
  std::size_t at = 0;
  while (at < trimmed.size()) {
    double amount = 0;
    const char* begin = trimmed.data() + at;
    const auto [end, error] =
        std::from_chars(begin, trimmed.data() + trimmed.size(), amount, std::chars_format::fixed);
    if (error != std::errc() || end == begin) return std::unexpected(DurationSyntax(text));
    at = static_cast<std::size_t>(end - trimmed.data());
    std::size_t unit_end = at;
    while (unit_end < trimmed.size() && !IsDigit(trimmed[unit_end])) ++unit_end;
    const std::string_view unit = Trim(trimmed.substr(at, unit_end - at));
    at = unit_end;
    std::int64_t factor = 0;
    if (unit.empty() && begin == trimmed.data()) factor = 1000;  // a bare number, and nothing else
    for (const Unit& known : kUnits) {
      if (known.name == unit) factor = known.ms;
    }
    if (factor == 0 || !(amount >= 0)) return std::unexpected(DurationSyntax(text));
    if (amount * double(factor) > double(kMaxDurationMs) - double(total)) {
      return Fail(Code::kInvalidArgument, "duration.range",
                  fmt::format("\"{}\" is longer than 100 years", EscapeForDisplay(text)));
    }
    total += static_cast<std::int64_t>(amount * double(factor) + 0.5);
  }
  return std::chrono::milliseconds(total);
}

std::string FormatDuration(std::chrono::milliseconds duration) {
  std::int64_t rest = duration.count();
  if (rest == 0) return "0s";
  std::string text;
  if (rest < 0) {
    text = "-";
    rest = -rest;
  }
  for (const Unit& unit : kUnits) {
    if (rest >= unit.ms) {
      text += fmt::format("{}{}", rest / unit.ms, unit.name);
      rest %= unit.ms;
    }
  }
  return text;
}

}  // namespace expanse::base
