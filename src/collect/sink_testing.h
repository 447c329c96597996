// A SampleSink that keeps what it gets, for tests and benches.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/collector.h"

namespace expanse::collect {

class RecordingSink final : public SampleSink {
 public:
  struct Point {
    std::string workload;  // its identity; empty: the machine
    evidence::SeriesColumn series;
    double value = 0;
  };
  void Add(const TrackedWorkload* workload, const evidence::SeriesColumn& series,
           double value) override {
    points_.push_back({workload == nullptr ? "" : workload->key.identity, series, value});
  }

  const std::vector<Point>& points() const { return points_; }
  void Clear() { points_.clear(); }
  // The only point of that metric (and workload, and GPU); nothing when there is none or more than
  // one.
  std::optional<double> Value(std::string_view metric, std::string_view workload = "",
                              std::string_view gpu = "", std::string_view source = "") const {
    std::optional<double> found;
    for (const Point& point : points_) {
      if (point.series.metric != metric || point.workload != workload) continue;
      if (!gpu.empty() && point.series.gpu_uuid != gpu) continue;
      if (!source.empty() && point.series.source != source) continue;
      if (found) return std::nullopt;
      found = point.value;
    }
    return found;
  }
  std::string Attribution(std::string_view workload, std::string_view gpu) const {
    for (const Point& point : points_) {
      if (point.workload == workload && point.series.gpu_uuid == gpu)
        return point.series.attribution;
    }
    return "";
  }

 private:
  std::vector<Point> points_;
};

}  // namespace expanse::collect
