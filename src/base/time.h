// Wall and monotonic time, and the Clock through which all code but main() asks for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::base {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
using Duration = std::chrono::nanoseconds;

// Thread-safe. Passed by reference; outlives whoever holds it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Now() = 0;
  virtual MonoTime Mono() = 0;
  // Blocks for `duration` or until `stop` is requested. True when the time has passed.
  virtual bool WaitFor(std::stop_token stop, Duration duration) = 0;
};

class SystemClock final : public Clock {
 public:
  WallTime Now() override;
  MonoTime Mono() override;
  bool WaitFor(std::stop_token stop, Duration duration) override;
};

// Time moves only by Advance/Jump; WaitFor wakes when enough has been advanced.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime start = WallTime(std::chrono::seconds(1'800'000'000)));
  WallTime Now() override;
  MonoTime Mono() override;
  bool WaitFor(std::stop_token stop, Duration duration) override;

  void Advance(Duration duration);              // both clocks
  void JumpWall(std::chrono::microseconds by);  // the wall clock alone, as NTP or an operator would

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable_any changed_;
  WallTime wall_;
  MonoTime mono_{};
};

// RFC 3339 in UTC with as many fraction digits as needed (0, 3 or 6): 2026-11-30T09:08:07.250Z.
std::string FormatRfc3339(WallTime time);
// RFC 3339 with any offset and 0-9 fraction digits. Fails with time.syntax.
Result<WallTime> ParseRfc3339(std::string_view text);

// "90s", "15m", "2h", "1h30m", "250ms", "1d", Slurm's "1-02:00:00", "02:30:00", "30:00" (min:s) and
// bare "90" (seconds). Fails with duration.syntax or duration.range (over 100 years).
Result<std::chrono::milliseconds> ParseDuration(std::string_view text);
// The shortest exact spelling: "1h30m", "250ms", "0s".
std::string FormatDuration(std::chrono::milliseconds duration);

inline std::int64_t ToMicros(WallTime time) { return time.time_since_epoch().count(); }
inline WallTime FromMicros(std::int64_t micros) {
  return WallTime(std::chrono::microseconds(micros));
}
inline double ToSeconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace expanse::base
