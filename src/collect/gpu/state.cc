#include "collect/gpu/state.h"

#include <algorithm>

#include "collect/series.h"

namespace expanse::collect {
namespace {

constexpr std::size_t kMostDevices = 256;     // what one node can have, MIG instances included
constexpr std::size_t kMostProcesses = 8192;  // on all devices
constexpr std::chrono::minutes kDeviceForgotten{10};

}  // namespace

void GpuState::TakeReading(GpuReading reading, base::MonoTime now) {
  const auto known = devices_.find(reading.uuid);
  if (known == devices_.end() && devices_.size() >= kMostDevices) return;
  Device& device = known == devices_.end() ? devices_[reading.uuid] : known->second;
  // The index is part of the columns.
  if (device.reading.index != reading.index) device.series.clear();
  device.reading = std::move(reading);
  device.at = now;
  device.emitted_at.reset();
}

void GpuState::TakeProcess(GpuProcess process, base::MonoTime now) {
  std::pair<std::string, pid_t> key(process.gpu_uuid, process.pid);
  if (processes_.size() >= kMostProcesses && !processes_.contains(key)) return;
  processes_[std::move(key)] = {std::move(process), now};
}

std::size_t GpuState::divided() const {
  return static_cast<std::size_t>(std::ranges::count_if(devices_, [](const auto& entry) {
    return entry.second.reading.mig && !entry.second.reading.util_pct;
  }));
}

void GpuState::Clear() {
  devices_.clear();
  processes_.clear();
  processes_known_ = false;
}

bool GpuState::IsDue(const Device& device, base::MonoTime now) const {
  if (!device.emitted_at) return true;
  // nvidia-smi's loop and our ticks drift: a reading that came just before the last tick stands in
  // once for one that comes just after this tick. Not longer: a device that is gone has no values.
  return now - *device.emitted_at >= period_ * 9 / 10 && now - device.at < period_ * 3 / 2;
}

void GpuState::Emit(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
                    const FindOwnerFn& owner, SampleSink& sink) {
  std::erase_if(processes_, [&](const auto& entry) {
    return tick.mono - entry.second.second >= period_ * 8 / 5;
  });
  std::erase_if(devices_,
                [&](const auto& entry) { return tick.mono - entry.second.at >= kDeviceForgotten; });
  for (auto& [uuid, device] : devices_) {
    if (!IsDue(device, tick.mono)) continue;
    device.emitted_at = tick.mono;
    Holding whole;
    const auto holders = HoldersOf(device, workloads, owner, whole.own);
    EmitDevice(device, nullptr, whole, sink);
    for (const auto& [workload, holding] : holders) EmitDevice(device, workload, holding, sink);
  }
}

std::vector<std::pair<const TrackedWorkload*, GpuState::Holding>> GpuState::HoldersOf(
    const Device& device, const std::vector<TrackedWorkload>& workloads, const FindOwnerFn& owner,
    Share& all) const {
  std::map<const TrackedWorkload*, Share> shares;  // null: processes of no workload
  const auto first = processes_.lower_bound({device.reading.uuid, 0});
  for (auto it = first; it != processes_.end() && it->first.first == device.reading.uuid; ++it) {
    const GpuProcess& process = it->second.first;
    for (Share* share : {&shares[owner(process.pid)], &all}) {
      ++share->processes;
      share->memory_bytes += process.memory_bytes.value_or(0);
      share->memory_known &= process.memory_bytes.has_value();
    }
  }
  std::vector<std::pair<const TrackedWorkload*, Holding>> holders;
  for (const TrackedWorkload& workload : workloads) {
    const bool granted =
        std::ranges::find(workload.gpu_uuids, device.reading.uuid) != workload.gpu_uuids.end();
    const auto share = shares.find(&workload);
    const bool present = share != shares.end();
    if (!granted && !present) continue;
    Holding holding;
    if (present) holding.own = share->second;
    holding.others = shares.size() > (present ? 1U : 0U);
    if (!present) {
      holding.attribution = processes_known_ ? "idle_held" : "unknown";
    } else if (holding.others) {
      holding.attribution = "shared";
    } else {
      holding.attribution = device.reading.mig ? "unknown" : "exclusive";
    }
    holders.emplace_back(&workload, holding);
  }
  return holders;
}

const evidence::SeriesColumn& GpuState::Series(Device& device, std::string_view metric,
                                               std::string_view attribution) {
  const auto known = device.series.find({metric, attribution});
  if (known != device.series.end()) return known->second;
  evidence::SeriesColumn series = MakeSeries(metric, "nvidia-smi", node_);
  series.gpu_uuid = device.reading.uuid;
  series.gpu_index = device.reading.index;
  series.attribution = attribution;
  return device.series.emplace(std::pair(metric, attribution), std::move(series)).first->second;
}

void GpuState::EmitDevice(Device& device, const TrackedWorkload* workload, const Holding& holding,
                          SampleSink& sink) {
  const auto point = [&](std::string_view metric, std::optional<double> value) {
    if (value) sink.Add(workload, Series(device, metric, holding.attribution), *value);
  };
  const GpuReading& reading = device.reading;
  point("gpu-util", reading.util_pct);
  point("gpu-memory-util", reading.memory_util_pct);
  // Memory can be split among those on the device, so it is: the sum over workloads is never more
  // than the device has.
  const bool split =
      workload != nullptr && (holding.others || (reading.mig && holding.own.processes > 0));
  if (!split) {
    point("gpu-memory-used", reading.memory_used_bytes);
  } else if (holding.own.memory_known) {
    point("gpu-memory-used", holding.own.memory_bytes);
  }
  point("gpu-memory-total", reading.memory_total_bytes);
  point("gpu-power", reading.power_w);
  point("gpu-power-limit", reading.power_limit_w);
  point("gpu-temp", reading.temperature_c);
  point("gpu-memory-temp", reading.memory_temperature_c);
  point("gpu-clock", reading.sm_clock_mhz);
  point("gpu-memory-clock", reading.memory_clock_mhz);
  point("gpu-throttle-reasons", reading.throttle_reasons);
  point("gpu-ecc-errors", reading.ecc_errors);
  if (!processes_known_) return;
  point("gpu-processes", static_cast<double>(holding.own.processes));
  if (holding.own.memory_known) point("gpu-process-memory", holding.own.memory_bytes);
}

}  // namespace expanse::collect
