// From counters that only grow to rates per second.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace expanse::collect {

// One counter. A value below the last one is a reset (a device that came back, a new cgroup of the
// old name): no rate for that interval and counting starts again. Not thread-safe.
class CounterRate {
 public:
  // Nothing on the first call, after a reset, and when no time has passed.
  std::optional<double> Update(double value, base::MonoTime now) {
    const std::optional<double> last = value_;
    const double seconds = base::ToSeconds(now - at_);
    if (last && seconds <= 0) return std::nullopt;
    value_ = value;
    at_ = now;
    if (!last || value < *last) return std::nullopt;
    return (value - *last) / seconds;
  }

  // For counters the kernel keeps in 32 bits (times in /proc/diskstats): from near the top to near
  // the bottom is a wrap, not a reset.
  std::optional<double> UpdateWrapping32(std::uint64_t value, base::MonoTime now) {
    constexpr double kRange = 4294967296.0;
    const double v = static_cast<double>(value);
    if (value_ && v < *value_ && *value_ < kRange && *value_ > 0.75 * kRange && v < 0.25 * kRange) {
      *value_ -= kRange;
    }
    return Update(v, now);
  }

 private:
  std::optional<double> value_;
  base::MonoTime at_{};
};

}  // namespace expanse::collect
