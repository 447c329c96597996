// The series of a collector: each metric's column built once, with its unit from the catalogue; and
// the counters behind its rates.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "collect/collector.h"
#include "collect/rate.h"
#include "evidence/metric_catalogue.h"

namespace expanse::collect {

// What a collector looks at. `root` is "/" or a copy of a host's tree (tests, a container with the
// host's file system mounted).
struct HostView {
  std::string root = "/";
  std::string node;
  std::size_t open_files = 512;  // descriptors that one collector may keep open
};

// A metric that is not in the catalogue is a bug of ours.
inline evidence::SeriesColumn MakeSeries(std::string_view metric, std::string source,
                                         std::string node) {
  const evidence::MetricInfo* info = evidence::FindMetric(metric);
  EXPANSE_CHECK(info != nullptr);
  evidence::SeriesColumn series;
  series.metric = metric;
  series.source = std::move(source);
  series.node = std::move(node);
  series.unit = info->unit;
  return series;
}

// Columns of one source on one node, made when first asked for. Keys must be string literals. Not
// thread-safe.
class SeriesTable {
 public:
  SeriesTable(std::string source, std::string node)
      : source_(std::move(source)), node_(std::move(node)) {}
  const evidence::SeriesColumn& operator[](std::string_view metric) {
    const auto it = columns_.find(metric);
    if (it != columns_.end()) return it->second;
    return columns_.emplace(metric, MakeSeries(metric, source_, node_)).first->second;
  }

 private:
  std::string source_;
  std::string node_;
  std::map<std::string_view, evidence::SeriesColumn> columns_;
};

// Counters by metric. Keys must be string literals.
using RateTable = std::map<std::string_view, CounterRate>;

// What is known of a workload is kept that long after it was last among those to collect: a tick
// may be about some of them only (young ones are looked at more often).
constexpr std::chrono::minutes kWorkloadForgotten{2};

// The average rate since a workload started, for its first point: without it a run shorter than two
// ticks would have no rate at all. Nothing for a workload that started before we could watch it
// (its average over hours says nothing about now) or just now.
inline std::optional<double> RateSinceStart(double value, base::WallTime started,
                                            base::WallTime now) {
  constexpr std::chrono::seconds kLongest{60};
  constexpr std::chrono::milliseconds kShortest{100};
  const auto age = now - started;
  if (started == base::WallTime{} || age < kShortest || age > kLongest) return std::nullopt;
  return value / base::ToSeconds(age);
}

}  // namespace expanse::collect
