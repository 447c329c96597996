#include "data/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace expanse::data {
namespace {

constexpr double kBurstSeconds = 10;
constexpr std::size_t kManyComputes = 10'000;

std::unexpected<base::Error> TooFast(std::string reason, double rate, std::string_view what) {
  return base::Fail(
      base::Code::kResourceExhausted, std::move(reason),
      fmt::format("this compute sends more than {:.0f} {} a second; send the batch again later",
                  rate, what));
}

}  // namespace

void TokenBucket::Fill(base::MonoTime now) {
  if (now <= at_) return;
  level_ = std::min(burst_, level_ + rate_ * base::ToSeconds(now - at_));
  at_ = now;
}

bool TokenBucket::CanTake(double amount, base::MonoTime now) {
  if (rate_ <= 0) return true;
  Fill(now);
  return level_ >= std::min(amount, burst_);
}

void TokenBucket::GiveBack(double amount) { level_ = std::min(burst_, level_ + amount); }

bool TokenBucket::Full(base::MonoTime now) {
  Fill(now);
  return rate_ <= 0 || level_ >= burst_;
}

base::Status ComputeBounds::Take(std::string_view compute_id, const Load& load) {
  const base::MonoTime now = clock_.Mono();
  const std::lock_guard lock(mutex_);
  auto found = computes_.find(compute_id);
  if (found == computes_.end()) {
    if (computes_.size() >= kManyComputes) ForgetIdle(now);
    const TokenBucket records(records_per_second_, records_per_second_ * kBurstSeconds, now);
    const TokenBucket samples(samples_per_second_, samples_per_second_ * kBurstSeconds, now);
    found = computes_.emplace(std::string(compute_id), Buckets{records, samples}).first;
  }
  Buckets& buckets = found->second;
  const auto records = static_cast<double>(load.records);
  const auto samples = static_cast<double>(load.samples);
  if (!buckets.records.CanTake(records, now))
    return TooFast("ingest.record_rate", records_per_second_, "records");
  if (!buckets.samples.CanTake(samples, now))
    return TooFast("ingest.sample_rate", samples_per_second_, "metric points");
  buckets.records.Take(records);
  buckets.samples.Take(samples);
  return {};
}

void ComputeBounds::GiveBack(std::string_view compute_id, const Load& load) {
  const std::lock_guard lock(mutex_);
  const auto found = computes_.find(compute_id);
  if (found == computes_.end()) return;
  found->second.records.GiveBack(static_cast<double>(load.records));
  found->second.samples.GiveBack(static_cast<double>(load.samples));
}

// A full bucket is what a new one would be.
void ComputeBounds::ForgetIdle(base::MonoTime now) {
  for (auto at = computes_.begin(); at != computes_.end();) {
    Buckets& buckets = at->second;
    at = buckets.records.Full(now) && buckets.samples.Full(now) ? computes_.erase(at)
                                                                : std::next(at);
  }
}

std::size_t ComputeBounds::tracked() const {
  const std::lock_guard lock(mutex_);
  return computes_.size();
}

}  // namespace expanse::data
