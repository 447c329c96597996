// The one back-off of the project: exponential, capped, with full jitter.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace expanse::base {

struct BackoffPolicy {
  std::chrono::milliseconds first{200};
  std::chrono::milliseconds most{30'000};
};

// Not thread-safe; one per retry loop.
class Backoff {
 public:
  Backoff(BackoffPolicy policy, std::uint64_t seed) : policy_(policy), random_(seed) {}

  // How long to wait before the next try: uniform in [0.5, 1] x min(most, first x 2^tries).
  std::chrono::milliseconds Next() {
    const auto full = std::min(policy_.most.count(), policy_.first.count() << std::min(tries_, 20));
    if (tries_ < 20) ++tries_;
    return std::chrono::milliseconds(
        std::uniform_int_distribution<std::int64_t>((full + 1) / 2, full)(random_));
  }
  void Reset() { tries_ = 0; }
  int tries() const { return tries_; }

 private:
  BackoffPolicy policy_;
  std::mt19937_64 random_;
  int tries_ = 0;
};

}  // namespace expanse::base
