#include "daemon/spool/host_clock.h"

#include <algorithm>

namespace expanse::daemon::spool {
namespace {

using std::chrono::microseconds;

// A wall clock that moves against the monotonic one by more than this was set, not slewed.
constexpr microseconds kStep = std::chrono::seconds(1);
// Estimates that agree lie within this of each other.
constexpr microseconds kAgreement = std::chrono::seconds(2);

microseconds BeyondThreshold(microseconds skew) {
  return std::chrono::abs(skew) > HostClock::kThreshold ? skew : microseconds(0);
}

}  // namespace

std::optional<microseconds> HostClock::Estimate(const Sighting& sighting) {
  // It was handed over before it was seen, and where new files show at once after the look before.
  const microseconds least = sighting.handed_over.wall - sighting.seen;
  if (sighting.prompt) {
    const microseconds most = sighting.handed_over.wall - sighting.looked_before;
    if (most < least) return std::nullopt;  // the controller's own clock was set
    return std::clamp(microseconds(0), least, most);
  }
  if (!sighting.file_time) return least > microseconds(0) ? std::optional(least) : std::nullopt;
  return std::max<microseconds>(sighting.handed_over.wall - *sighting.file_time, least);
}

std::optional<microseconds> HostClock::skew() const {
  if (count_ == 0) return std::nullopt;
  return estimates_[(count_ - 1) % kLooks];
}

void HostClock::Judge() {
  if (count_ < kLooks) return;
  std::array<microseconds, kLooks> sorted = estimates_;
  std::ranges::sort(sorted);
  const microseconds median = sorted[kLooks / 2];
  if (sorted.back() - sorted.front() > kAgreement) return;
  // What is in force stays while it is right: each change is written to disk.
  if (std::chrono::abs(median - correction_) > kThreshold) correction_ = BeyondThreshold(median);
}

bool HostClock::Note(const std::string& stream, const ClockReading& handed_over,
                     const std::optional<Sighting>& sighting) {
  const microseconds before = correction_;
  const auto estimate = sighting ? Estimate(*sighting) : std::nullopt;
  const bool began_anew = !stream_.empty() && stream != stream_;
  if (began_anew && estimate && std::chrono::abs(*estimate) <= kThreshold) {
    // A clock that is right is no matter of opinion: it was set, and the sampler or the host began
    // anew. To go on with the old correction would put what it tells before its jobs began.
    correction_ = microseconds(0);
    count_ = 0;
  }
  if (stream == stream_) {
    const auto wall = handed_over.wall - last_.wall;
    const auto mono = std::chrono::duration_cast<microseconds>(handed_over.mono - last_.mono);
    if (const microseconds step = wall - mono; std::chrono::abs(step) > kStep) {
      // The host's clock was set. What was known of it before moves along.
      for (microseconds& known : estimates_) known += step;
      if (correction_ != microseconds(0)) correction_ = BeyondThreshold(correction_ + step);
      Judge();
    }
  }
  stream_ = stream;
  last_ = handed_over;
  if (estimate) {
    estimates_[count_++ % kLooks] = *estimate;
    Judge();
  }
  return correction_ != before;
}

}  // namespace expanse::daemon::spool
