// What a program says about itself on /metrics, in the Prometheus text format 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/). Lock-free to update.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::base {

class Counter {
 public:
  void Add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void Set(double v) { value_.store(v, std::memory_order_relaxed); }
  void Add(double v) { value_.fetch_add(v, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Fixed buckets; `bounds` are upper limits in ascending order, +Inf is implied.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void Observe(double v);

  const std::vector<double>& bounds() const { return bounds_; }
  std::uint64_t bucket(std::size_t i) const { return counts_[i].load(std::memory_order_relaxed); }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::deque<std::atomic<std::uint64_t>> counts_;
  std::atomic<double> sum_{0};
};

using MetricLabels = std::map<std::string, std::string>;

// Owns the instruments. Thread-safe; references stay valid as long as the registry lives. Asking
// twice for the same name and labels gives the same instrument.
class MetricRegistry {
 public:
  Counter& GetCounter(std::string_view name, std::string_view help,
                      const MetricLabels& labels = {});
  Gauge& GetGauge(std::string_view name, std::string_view help, const MetricLabels& labels = {});
  Histogram& GetHistogram(std::string_view name, std::string_view help, std::vector<double> bounds,
                          const MetricLabels& labels = {});
  std::string Render() const;

 private:
  template <typename T>
  struct Family {
    std::string help;
    std::map<MetricLabels, T> members;
  };
  mutable std::mutex mutex_;  // guards the maps, not the values in them
  std::map<std::string, Family<Counter>, std::less<>> counters_;
  std::map<std::string, Family<Gauge>, std::less<>> gauges_;
  std::map<std::string, Family<Histogram>, std::less<>> histograms_;
};

}  // namespace expanse::base
