#include "intelligence/diagnose_case/activity.h"

#include <algorithm>
#include <map>
#include <string>

namespace expanse::intelligence::diagnose_case {
namespace {

using store::SeriesResult;

constexpr std::size_t kMostBuckets = 2000;
constexpr std::chrono::seconds kMinute{60};
constexpr double kBusyGpuPct = 2;
constexpr double kBusyShare = 0.02;
constexpr double kBusyCores = 0.01;
constexpr double kLeastSpan = 600;
constexpr double kLeastFit = 0.8;

double Seconds(base::WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// Values of all series of a metric added up, bucket by bucket.
using Sums = std::map<base::WallTime, double>;

class Reader {
 public:
  Reader(store::SeriesStore& series, const evidence::Execution& execution)
      : series_(series), execution_(execution) {}

  base::Result<std::vector<SeriesResult>> Read(const char* metric) {
    const auto span = std::chrono::duration_cast<std::chrono::seconds>(*execution_.ended_at -
                                                                       *execution_.started_at);
    const auto minutes = span / kMinute / static_cast<std::int64_t>(kMostBuckets) + 1;
    return series_.Query({.compute_id = execution_.compute_id,
                          .scope = execution_.execution_id,
                          .metric = metric,
                          .source = "",
                          .gpu_index = {},
                          .nodes = {},
                          .from = *execution_.started_at,
                          .to = *execution_.ended_at + kMinute,
                          .interval = minutes * kMinute,
                          .max_points = kMostBuckets + 2});
  }

  base::Result<Sums> Sum(const char* metric) {
    EXPANSE_ASSIGN_OR_RETURN(const auto results, Read(metric));
    Sums sums;
    for (const SeriesResult& result : results) {
      for (const store::Bucket& bucket : result.buckets) sums[bucket.start] += bucket.avg();
    }
    return sums;
  }

 private:
  store::SeriesStore& series_;
  const evidence::Execution& execution_;
};

std::optional<double> IdleTail(const evidence::Execution& execution, const Sums& cpu,
                               const std::vector<SeriesResult>& gpu) {
  std::optional<double> last_sample;
  std::optional<double> last_busy;
  const auto note = [&](base::WallTime start, bool busy) {
    const double end = Seconds(start) + 60;
    last_sample = std::max(last_sample.value_or(end), end);
    if (busy) last_busy = std::max(last_busy.value_or(end), end);
  };
  const double asked =
      execution.allocated.cpu_cores.value_or(execution.requested.cpu_cores.value_or(0));
  const double busy_cores = std::max(kBusyCores, kBusyShare * asked);
  for (const auto& [start, cores] : cpu) note(start, cores >= busy_cores);
  for (const SeriesResult& device : gpu) {
    for (const store::Bucket& bucket : device.buckets)
      note(bucket.start, bucket.max >= kBusyGpuPct);
  }
  if (!last_sample || !last_busy) return std::nullopt;
  const double end = Seconds(*execution.ended_at);
  const double runtime = end - Seconds(*execution.started_at);
  if (end - *last_sample > std::max(kLeastSpan, runtime / 5)) return std::nullopt;
  return std::max(0.0, end - *last_busy);
}

std::vector<Point> SecondHalf(const evidence::Execution& execution, const Sums& memory) {
  const double start = Seconds(*execution.started_at);
  const double middle = start + (Seconds(*execution.ended_at) - start) / 2;
  std::vector<Point> points;
  for (const auto& [time, bytes] : memory) {
    if (Seconds(time) >= middle) points.push_back({.at_s = Seconds(time) - middle, .value = bytes});
  }
  return points;
}

}  // namespace

std::optional<double> GrowthOf(const std::vector<Point>& points) {
  if (points.size() < 5 || points.back().at_s - points.front().at_s < kLeastSpan)
    return std::nullopt;
  const auto count = static_cast<double>(points.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const Point& point : points) {
    mean_x += point.at_s / count;
    mean_y += point.value / count;
  }
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (const Point& point : points) {
    const double dx = point.at_s - mean_x;
    const double dy = point.value - mean_y;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  if (xx <= 0 || yy <= 0 || xy * xy / (xx * yy) < kLeastFit) return std::nullopt;
  return xy / xx;
}

base::Result<Activity> ReadActivity(store::SeriesStore& series,
                                    const evidence::Execution& execution) {
  Activity activity;
  EXPANSE_ASSIGN_OR_RETURN(
      const auto infos, series.List(execution.compute_id, execution.execution_id, /*source=*/""));
  activity.series = infos.size();
  if (infos.empty() || !execution.started_at || !execution.ended_at ||
      *execution.ended_at <= *execution.started_at)
    return activity;
  Reader reader(series, execution);
  EXPANSE_ASSIGN_OR_RETURN(const Sums cpu, reader.Sum("cpu"));
  EXPANSE_ASSIGN_OR_RETURN(const auto gpu, reader.Read("gpu-util"));
  activity.idle_tail_s = IdleTail(execution, cpu, gpu);
  EXPANSE_ASSIGN_OR_RETURN(const Sums memory, reader.Sum("memory"));
  if (const auto slope = GrowthOf(SecondHalf(execution, memory)))
    activity.memory_growth_bytes_per_hour = *slope * 3600;
  return activity;
}

}  // namespace expanse::intelligence::diagnose_case
