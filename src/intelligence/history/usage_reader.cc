#include "intelligence/history/usage_reader.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::intelligence::history {
namespace {

using store::SeriesInfo;
using store::SeriesResult;

constexpr std::chrono::seconds kMinute{60};
// What a driver counts as busy without anything running.
constexpr double kIdleUtilisation = 1;

// The samples of one run.
class Samples {
 public:
  Samples(store::SeriesStore& series, const evidence::Execution& execution)
      : series_(series), execution_(execution) {}

  // False: there are none.
  base::Result<bool> Look() {
    EXPANSE_ASSIGN_OR_RETURN(infos_, series_.List(execution_.compute_id, execution_.execution_id,
                                                  /*source=*/""));
    for (const SeriesInfo& info : infos_) {
      first_ = first_ ? std::min(*first_, info.first) : info.first;
      last_ = last_ ? std::max(*last_, info.last) : info.last;
    }
    return first_.has_value();
  }
  // In buckets of at least a minute, of the run's whole time.
  base::Result<std::vector<SeriesResult>> Read(std::string_view metric) {
    const auto count = static_cast<std::size_t>(
        std::count_if(infos_.begin(), infos_.end(),
                      [&](const SeriesInfo& info) { return info.key.metric == metric; }));
    if (count == 0) return std::vector<SeriesResult>{};
    // Two more where the first and the last bucket are only touched.
    const auto most = std::clamp<std::size_t>(kMostBucketsInAll / count, 3, kMostBuckets) - 2;
    const auto span = std::chrono::duration_cast<std::chrono::seconds>(*last_ - *first_);
    const auto minutes = span / kMinute / static_cast<std::int64_t>(most) + 1;
    return series_.Query({.compute_id = execution_.compute_id,
                          .scope = execution_.execution_id,
                          .metric = std::string(metric),
                          .source = "",
                          .gpu_index = {},
                          .nodes = {},
                          .from = *first_,
                          .to = *last_ + std::chrono::microseconds(1),
                          .interval = minutes * kMinute,
                          .max_points = kMostBuckets});
  }

 private:
  store::SeriesStore& series_;
  const evidence::Execution& execution_;
  std::vector<SeriesInfo> infos_;
  std::optional<base::WallTime> first_;
  std::optional<base::WallTime> last_;
};

double HighestOf(const SeriesResult& result) {
  double highest = 0;
  for (const store::Bucket& bucket : result.buckets) highest = std::max(highest, bucket.max);
  return highest;
}

// The highest bucket, `value` of each series added up over nodes.
template <typename F>
std::optional<double> HighestSum(const std::vector<SeriesResult>& results, F&& value) {
  std::map<base::WallTime, double> sums;
  for (const SeriesResult& result : results) {
    // A workload's cores and memory come from its cgroup or its process tree, never from both.
    for (const store::Bucket& bucket : result.buckets) sums[bucket.start] += value(bucket);
  }
  std::optional<double> highest;
  for (const auto& [start, sum] : sums) highest = std::max(highest.value_or(sum), sum);
  return highest;
}

std::string DeviceOf(const SeriesInfo& info) {
  if (!info.key.gpu_uuid.empty()) return info.key.gpu_uuid;
  return info.key.node + "/" + std::to_string(info.key.gpu_index.value_or(0));
}

base::Status AddDeviceMemory(Samples& samples, predict::Run* run) {
  EXPANSE_ASSIGN_OR_RETURN(const auto used, samples.Read("gpu-memory-used"));
  EXPANSE_ASSIGN_OR_RETURN(const auto total, samples.Read("gpu-memory-total"));
  std::map<std::string, double> sizes;
  for (const SeriesResult& result : total) {
    if (!result.buckets.empty()) sizes[DeviceOf(result.info)] = HighestOf(result);
  }
  for (const SeriesResult& result : used) {
    if (result.buckets.empty()) continue;
    const double peak = HighestOf(result);
    if (run->gpu_memory_peak_bytes && *run->gpu_memory_peak_bytes >= peak) continue;
    run->gpu_memory_peak_bytes = peak;
    const auto size = sizes.find(DeviceOf(result.info));
    run->gpu_memory_available_bytes =
        size == sizes.end() ? std::nullopt : std::optional(size->second);
  }
  if (used.empty() && !sizes.empty()) run->gpu_memory_available_bytes = sizes.begin()->second;
  return {};
}

base::Status AddDeviceUse(Samples& samples, predict::Run* run) {
  EXPANSE_ASSIGN_OR_RETURN(const auto utilisation, samples.Read("gpu-util"));
  EXPANSE_ASSIGN_OR_RETURN(const auto processes, samples.Read("gpu-processes"));
  std::map<std::string, bool> active;
  double sum = 0;
  double count = 0;
  for (const SeriesResult& result : utilisation) {
    if (result.buckets.empty()) continue;
    // Of a shared device nobody knows whose work it was.
    const bool shared = result.info.attribution == "shared";
    bool& busy = active[DeviceOf(result.info)];
    busy = busy || (!shared && HighestOf(result) >= kIdleUtilisation);
    if (shared) continue;
    for (const store::Bucket& bucket : result.buckets) {
      sum += bucket.sum;
      count += static_cast<double>(bucket.count);
    }
  }
  for (const SeriesResult& result : processes) {
    if (result.buckets.empty()) continue;
    bool& busy = active[DeviceOf(result.info)];
    busy = busy || (result.info.attribution != "idle_held" && HighestOf(result) > 0);
  }
  if (count > 0) run->gpu_utilisation_pct = sum / count;
  if (!active.empty()) {
    run->gpus_active = static_cast<double>(std::count_if(
        active.begin(), active.end(), [](const auto& device) { return device.second; }));
  }
  return {};
}

}  // namespace

base::Status AddSampledUsage(store::SeriesStore& series, const evidence::Execution& execution,
                             predict::Run* run) {
  Samples samples(series, execution);
  EXPANSE_ASSIGN_OR_RETURN(const bool any, samples.Look());
  if (!any) return {};
  EXPANSE_ASSIGN_OR_RETURN(const auto cpu, samples.Read("cpu"));
  run->cpu_peak_cores = HighestSum(cpu, [](const store::Bucket& bucket) { return bucket.avg(); });
  if (!run->memory_peak_bytes) {
    EXPANSE_ASSIGN_OR_RETURN(const auto memory, samples.Read("memory"));
    run->memory_peak_bytes =
        HighestSum(memory, [](const store::Bucket& bucket) { return bucket.max; });
    run->memory_is_floor = run->memory_peak_bytes.has_value();
  }
  EXPANSE_RETURN_IF_ERROR(AddDeviceMemory(samples, run));
  return AddDeviceUse(samples, run);
}

}  // namespace expanse::intelligence::history
