#include "store/series/bucket_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace expanse::store::series {
namespace {

constexpr double kP95 = 0.95;

// The multiple of `interval` at or before `time`, before 1970 too.
std::int64_t AlignDown(std::int64_t time, std::int64_t interval) {
  const std::int64_t rest = time % interval;
  return time - (rest < 0 ? rest + interval : rest);
}

}  // namespace

double NearestRank(std::vector<double>& values, double q) {
  const double n = static_cast<double>(values.size());
  const auto rank = static_cast<std::size_t>(std::clamp(std::ceil(q * n), 1.0, n));
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

bool BucketBuilder::Add(std::int64_t time_us, double value) {
  const std::int64_t start = interval_us_ == 0 ? time_us : AlignDown(time_us, interval_us_);
  if (buckets_.empty() || interval_us_ == 0 || base::ToMicros(buckets_.back().start) != start) {
    if (buckets_.size() >= max_buckets_) {
      truncated_ = true;
      return false;
    }
    Close();
    buckets_.push_back({.start = base::FromMicros(start), .min = value, .max = value});
  }
  Bucket& bucket = buckets_.back();
  bucket.min = std::min(bucket.min, value);
  bucket.max = std::max(bucket.max, value);
  bucket.sum += value;
  bucket.last = value;
  ++bucket.count;
  values_.push_back(value);
  return true;
}

void BucketBuilder::Close() {
  if (!values_.empty()) buckets_.back().p95 = NearestRank(values_, kP95);
  values_.clear();
}

std::vector<Bucket> BucketBuilder::Finish() {
  Close();
  return std::move(buckets_);
}

}  // namespace expanse::store::series
