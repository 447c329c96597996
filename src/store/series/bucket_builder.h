// Aggregation of a series' points, exact: every figure comes from the raw points of its bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/series/series_store.h"

namespace expanse::store::series {

// Takes points in ascending order of time. Not thread-safe. Holds the values of one bucket at most.
class BucketBuilder {
 public:
  // `interval_us` 0: one bucket per point. At most `max_buckets` come out, the earliest.
  BucketBuilder(std::int64_t interval_us, std::size_t max_buckets)
      : interval_us_(interval_us), max_buckets_(max_buckets) {}

  // False when the point, and so all after it, is beyond the last bucket: the result is truncated.
  bool Add(std::int64_t time_us, double value);
  bool truncated() const { return truncated_; }
  // The buckets; call once, last.
  std::vector<Bucket> Finish();

 private:
  void Close();

  const std::int64_t interval_us_;
  const std::size_t max_buckets_;
  std::vector<Bucket> buckets_;
  std::vector<double> values_;  // of the last bucket
  bool truncated_ = false;
};

// Nearest rank: the ceil(q n)-th smallest. Reorders `values`, which is not empty.
double NearestRank(std::vector<double>& values, double q);

}  // namespace expanse::store::series
