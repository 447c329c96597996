#include "intelligence/predict/units.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/bytes.h"

namespace expanse::intelligence::predict {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = 1024.0 * kMiB;
// An amount that is above a step by rounding errors alone stays on it.
constexpr double kSlack = 1e-9;

double RoundUpTo(double amount, double step) {
  return std::max(1.0, std::ceil(amount / step * (1 - kSlack))) * step;
}

double RoundMemory(double bytes) {
  for (const double step : {64 * kMiB, 128 * kMiB, 256 * kMiB, 512 * kMiB}) {
    if (bytes <= step) return step;
  }
  return RoundUpTo(bytes, kGiB);
}

double RoundWalltime(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (seconds <= kHour) return RoundUpTo(seconds, 5 * kMinute);
  if (seconds <= 4 * kHour) return RoundUpTo(seconds, 15 * kMinute);
  if (seconds <= 12 * kHour) return RoundUpTo(seconds, 30 * kMinute);
  return RoundUpTo(seconds, kHour);
}

std::string SayDuration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::min(seconds, 1e15)));
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  if (hours > 0 && minutes > 0) return fmt::format("{} h {} min", hours, minutes);
  if (hours > 0) return fmt::format("{} h", hours);
  if (whole % 60 == 0 && minutes > 0) return fmt::format("{} min", minutes);
  if (minutes > 0) return fmt::format("{} min {} s", minutes, whole % 60);
  return fmt::format("{} s", whole);
}

std::string SayCount(double amount, std::string_view one, std::string_view many) {
  // As many decimals as it takes, at most two.
  std::string text = fmt::format("{:.2f}", amount);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return fmt::format("{} {}", text, text == "1" ? one : many);
}

}  // namespace

double RoundUpToUnit(Resource resource, double amount) {
  switch (resource) {
    case Resource::kMemory:
      return RoundMemory(amount);
    case Resource::kWalltime:
      return RoundWalltime(amount);
    case Resource::kCpu:
    case Resource::kGpu:
      return RoundUpTo(amount, 1);
  }
  return amount;
}

std::string Say(Resource resource, double amount) {
  switch (resource) {
    case Resource::kMemory:
      return base::FormatBytes({static_cast<std::uint64_t>(std::min(amount, 1e18))});
    case Resource::kWalltime:
      return SayDuration(amount);
    case Resource::kCpu:
      return SayCount(amount, "core", "cores");
    case Resource::kGpu:
      return SayCount(amount, "GPU", "GPUs");
  }
  return {};
}

}  // namespace expanse::intelligence::predict
