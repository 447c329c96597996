#include "bench/predict_parts/policies.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

namespace expanse::bench {
namespace {

constexpr double kMB = 1e6;
constexpr double kMiB = 1024.0 * 1024;
constexpr double kDay = 86400;

// What the user wrote; after a kill twice that, as workflow engines' retry rules do.
class UserRequest final : public Policy {
 public:
  void Learn(const Past&) override {}
  std::optional<double> Limit(const Next& next) override { return next.requested; }
  double Retry(const Next&, double failed) override { return 2 * failed; }
};

// Robusta KRR `simple`: the largest use of two weeks and 15 %, at least 100 MB; with its option for
// kills 25 % more than the limit that did not suffice.
class Krr final : public Policy {
 public:
  explicit Krr(Resource resource) : least_(resource == Resource::kMemory ? 100 * kMB : 0) {}
  void Learn(const Past& past) override {
    // A queue of maxima: older ones that a newer one exceeds can never be the largest again.
    while (!maxima_.empty() && maxima_.back().need <= past.need) maxima_.pop_back();
    maxima_.push_back(past);
  }
  std::optional<double> Limit(const Next& next) override {
    while (maxima_.size() > 1 && maxima_.front().end_s < next.submit_s - 14 * kDay)
      maxima_.pop_front();
    if (maxima_.empty()) return next.requested;
    return std::max(maxima_.front().need * 1.15, least_);
  }
  double Retry(const Next&, double failed) override { return failed * 1.25; }

 private:
  double least_;
  std::deque<Past> maxima_;
};

// Kubernetes VPA recommender: exponential buckets (ratio 1.05), weights that halve in 24 hours, the
// upper end of the 90th percentile's bucket and 15 %, at least 250 MB; after a kill the larger of
// 100 MiB and 20 % more.
class Vpa final : public Policy {
 public:
  explicit Vpa(Resource resource)
      : memory_(resource == Resource::kMemory), first_(memory_ ? 1e7 : 1.0) {}
  void Learn(const Past& past) override {
    const double weight = std::exp2(std::min((past.end_s - reference_) / kDay, 900.0));
    buckets_[BucketOf(past.need)] += weight;
    total_ += weight;
    if (weight > 0x1p100) Rebase(past.end_s);
  }
  std::optional<double> Limit(const Next& next) override {
    if (buckets_.empty()) return next.requested;
    double sum = 0;
    for (const auto& [bucket, weight] : buckets_) {
      sum += weight;
      if (sum >= 0.9 * total_) return std::max(EndOf(bucket) * 1.15, memory_ ? 250 * kMB : 0.0);
    }
    return std::max(EndOf(buckets_.rbegin()->first) * 1.15, memory_ ? 250 * kMB : 0.0);
  }
  double Retry(const Next&, double failed) override {
    return memory_ ? std::max(failed + 100 * kMiB, failed * 1.2) : failed * 1.2;
  }

 private:
  static constexpr double kRatio = 1.05;
  int BucketOf(double need) const {
    if (need < first_) return 0;
    return static_cast<int>(std::log(need * (kRatio - 1) / first_ + 1) / std::log(kRatio));
  }
  double EndOf(int bucket) const {
    return first_ * (std::pow(kRatio, bucket + 1) - 1) / (kRatio - 1);
  }
  void Rebase(double now) {
    const double factor = std::exp2(-(now - reference_) / kDay);
    for (auto& [bucket, weight] : buckets_) weight *= factor;
    total_ *= factor;
    reference_ = now;
  }

  bool memory_;
  double first_;
  double reference_ = 0;
  std::map<int, double> buckets_;
  double total_ = 0;
};

// Work Queue's first allocations (Tovar et al., TPDS 2018; CCTools category.c): needs in buckets of
// 250 MB or a minute, a new choice after every 25 ended tasks, before that the largest seen (the
// request while nothing is); a task that exceeds it is tried again with the largest seen.
class WorkQueue final : public Policy {
 public:
  enum class Aim { kWaste, kThroughput };
  WorkQueue(Resource resource, Aim aim)
      : bucket_(resource == Resource::kMemory ? 250 * kMB : 60), aim_(aim) {}
  void Learn(const Past& past) override {
    Bucket& bucket = buckets_[std::ceil(past.need / bucket_)];
    bucket.count += 1;
    bucket.time += past.runtime_s;
    largest_ = std::max(largest_, past.need);
    if (++ended_ % kEvery == 0) Choose();
  }
  std::optional<double> Limit(const Next& next) override {
    if (chosen_) return chosen_;
    if (next.requested || ended_ == 0) return next.requested;
    return MaxSeen();
  }
  double Retry(const Next& next, double failed) override {
    const double most = std::max(MaxSeen(), next.requested.value_or(0));
    return most > failed ? most : 2 * failed;
  }

 private:
  static constexpr std::size_t kEvery = 25;
  struct Bucket {
    double count = 0;
    double time = 0;
  };
  double MaxSeen() const { return std::ceil((largest_ + bucket_ / 3) / bucket_) * bucket_; }
  void Choose() {
    double count = 0;
    double time = 0;
    for (const auto& [end, bucket] : buckets_) {
      count += bucket.count;
      time += bucket.time;
    }
    const double most = MaxSeen();
    double best = 0;
    double above_count = count;
    double above_time = time;
    for (const auto& [index, bucket] : buckets_) {
      above_count -= bucket.count;
      above_time -= bucket.time;
      const double amount = index * bucket_;
      const double fits = 1 - above_count / count;
      double value = 0;
      if (aim_ == Aim::kWaste)
        value = -(amount * time + most * above_time);
      else
        value = (most / amount * fits + (1 - fits)) / (time + above_time);
      if (chosen_ && value <= best && &bucket != &buckets_.begin()->second) continue;
      best = value;
      chosen_ = amount;
    }
  }

  double bucket_;
  Aim aim_;
  std::map<double, Bucket> buckets_;
  double largest_ = 0;
  std::size_t ended_ = 0;
  std::optional<double> chosen_;
};

// Witt et al. (HPCS 2019): least squares of need on input size as tasks end (their mean where no
// size is known), and the spread of the errors so far on top; a failed task is tried again
// with twice as much.
class Witt final : public Policy {
 public:
  void Learn(const Past& past) override {
    if (const auto predicted = Predict(past.input_size)) {
      const double error = past.need - *predicted;
      ++errors_;
      error_sum_ += error;
      error_squares_ += error * error;
    }
    const double x = past.input_size.value_or(0);
    if (!past.input_size) sized_ = false;
    n_ += 1;
    const double dx = x - mean_x_;
    const double dy = past.need - mean_y_;
    mean_x_ += dx / n_;
    mean_y_ += dy / n_;
    xx_ += dx * (x - mean_x_);
    xy_ += dx * (past.need - mean_y_);
    least_ = n_ == 1 ? past.need : std::min(least_, past.need);
  }
  std::optional<double> Limit(const Next& next) override {
    const auto predicted = Predict(next.input_size);
    if (!predicted || errors_ < 2)
      return n_ > 0 && !next.requested ? std::optional(2 * mean_y_) : next.requested;
    const double mean = error_sum_ / errors_;
    const double spread = std::sqrt(std::max(0.0, error_squares_ / errors_ - mean * mean));
    return *predicted + spread;
  }
  double Retry(const Next&, double failed) override { return 2 * failed; }

 private:
  std::optional<double> Predict(std::optional<double> size) const {
    if (n_ < 1) return std::nullopt;
    if (!sized_ || !size || !(xx_ > 0)) return mean_y_;
    return std::max(mean_y_ + xy_ / xx_ * (*size - mean_x_), least_ / 2);
  }
  double n_ = 0, mean_x_ = 0, mean_y_ = 0, xx_ = 0, xy_ = 0, least_ = 0;
  bool sized_ = true;
  double errors_ = 0, error_sum_ = 0, error_squares_ = 0;
};

// Tsafrir et al. (TPDS 2007): the mean of the last two run times, never above the request. As a
// limit; a job that exceeds it gets what its user asked for (the kill time of the paper).
class LastTwo final : public Policy {
 public:
  void Learn(const Past& past) override {
    last_.push_back(past.need);
    if (last_.size() > 2) last_.pop_front();
  }
  std::optional<double> Limit(const Next& next) override {
    if (last_.empty()) return next.requested;
    double mean = 0;
    for (const double need : last_) mean += need / static_cast<double>(last_.size());
    return next.requested ? std::min(mean, *next.requested) : mean;
  }
  double Retry(const Next& next, double failed) override {
    return next.requested && *next.requested > failed ? *next.requested : 2 * failed;
  }

 private:
  std::deque<double> last_;
};

template <typename P>
std::unique_ptr<Policy> Make(Resource resource) {
  if constexpr (std::is_constructible_v<P, Resource>)
    return std::make_unique<P>(resource);
  else
    return std::make_unique<P>();
}

}  // namespace

const std::vector<PolicyKind>& Baselines() {
  static const std::vector<PolicyKind> kinds = {
      {"user", "what the user asked for", Make<UserRequest>},
      {"krr", "max seen x 1.15", Make<Krr>},
      {"vpa", "decayed p90 x 1.15", Make<Vpa>},
      {"wq-waste", "Work Queue, least waste",
       [](Resource resource) -> std::unique_ptr<Policy> {
         return std::make_unique<WorkQueue>(resource, WorkQueue::Aim::kWaste);
       }},
      {"wq-throughput", "Work Queue, most throughput",
       [](Resource resource) -> std::unique_ptr<Policy> {
         return std::make_unique<WorkQueue>(resource, WorkQueue::Aim::kThroughput);
       }},
      {"witt", "regression on input size with offset", Make<Witt>},
      {"last-two", "mean of the last two, at most the request", Make<LastTwo>},
  };
  return kinds;
}

}  // namespace expanse::bench
