// How fast each compute may send: token buckets on records and on metric points.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace expanse::data {

// Fills at `rate` a second up to `burst`. A take larger than what is left, but not than `burst`,
// waits until enough is there; one larger than `burst` waits for a full bucket and leaves a debt,
// so that no batch is too big for ever. Not thread-safe.
class TokenBucket {
 public:
  // `rate` 0: no bound.
  TokenBucket(double rate, double burst, base::MonoTime now)
      : rate_(rate), burst_(burst), level_(burst), at_(now) {}

  bool CanTake(double amount, base::MonoTime now);
  void Take(double amount) { level_ -= amount; }
  void GiveBack(double amount);
  bool Full(base::MonoTime now);

 private:
  void Fill(base::MonoTime now);
  double rate_;
  double burst_;
  double level_;
  base::MonoTime at_;
};

struct Load {
  std::size_t records = 0;
  std::size_t samples = 0;
};

// Thread-safe. Forgets computes that have not sent for a while.
class ComputeBounds {
 public:
  ComputeBounds(double records_per_second, double samples_per_second, base::Clock& clock)
      : records_per_second_(records_per_second),
        samples_per_second_(samples_per_second),
        clock_(clock) {}

  // Takes both amounts or none. Fails with ingest.record_rate or ingest.sample_rate
  // (resource_exhausted).
  base::Status Take(std::string_view compute_id, const Load& load);
  // Gives back what was taken for a batch that was not stored after all.
  void GiveBack(std::string_view compute_id, const Load& load);
  std::size_t tracked() const;

 private:
  struct Buckets {
    TokenBucket records;
    TokenBucket samples;
  };
  void ForgetIdle(base::MonoTime now);

  const double records_per_second_;
  const double samples_per_second_;
  base::Clock& clock_;
  mutable std::mutex mutex_;  // guards computes_
  std::map<std::string, Buckets, std::less<>> computes_;
};

}  // namespace expanse::data
