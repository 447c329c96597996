// How far the clock of one host is from the controller's, judged by when its segments were handed
// over and when they were seen. Pure: one instance per host, no clock of its own.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "base/time.h"
#include "daemon/spool/segment_format.h"

namespace expanse::daemon::spool {

// A segment that was not there at the look before.
struct Sighting {
  ClockReading handed_over;                 // by the host's clocks
  base::WallTime seen{};                    // by the controller's, at the look that found it
  base::WallTime looked_before{};           // at the look before that
  bool prompt = false;                      // the file system shows new files at once
  std::optional<base::WallTime> file_time;  // mtime, put right by the file server's own skew;
                                            // absent: not known
};

// Skews are positive when the host is ahead. Not thread-safe.
class HostClock {
 public:
  static constexpr std::chrono::microseconds kThreshold = std::chrono::seconds(2);

  // `correction` is the one in force before a restart.
  explicit HostClock(std::chrono::microseconds correction = {}) : correction_(correction) {}

  // A segment of `stream` in the order of sequences. `sighting` only where it was seen to come.
  // Returns true when the correction changed: it has to be made durable before it is used.
  bool Note(const std::string& stream, const ClockReading& handed_over,
            const std::optional<Sighting>& sighting);

  // To be taken from the times of segments from the last one noted on; zero below the threshold.
  std::chrono::microseconds correction() const { return correction_; }
  // The last estimate, corrected for or not; absent while nothing was seen to come.
  std::optional<std::chrono::microseconds> skew() const;

  // From one sighting: the skew nearest to zero, or to what the file's time says, that agrees with
  // the moments of the looks. Nothing when it cannot be told from a late look.
  static std::optional<std::chrono::microseconds> Estimate(const Sighting& sighting);

 private:
  void Judge();

  static constexpr std::size_t kLooks = 5;
  std::chrono::microseconds correction_;
  std::array<std::chrono::microseconds, kLooks> estimates_{};
  std::size_t count_ = 0;  // ever; the last kLooks are kept
  std::string stream_;
  ClockReading last_{};
};

}  // namespace expanse::daemon::spool
