// What nvidia-smi last said, and whose it is. Pure: lines in, points out; the collector around it
// runs the program.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collect/collector.h"
#include "collect/gpu/smi_csv.h"

namespace expanse::collect {

// The workload that a process belongs to, or null.
using FindOwnerFn = std::function<const TrackedWorkload*(pid_t pid)>;

// Not thread-safe.
//
// A device's series of a workload says how sure it is that they are the workload's:
//   exclusive  its processes are the only ones on the device
//   shared     others are there too: utilisation, power, clocks and temperature are of the whole
//   device,
//              memory is that of the workload's own processes
//   idle_held  granted by the scheduler, and no process of the workload is on it
//   unknown    granted, but the driver's list of processes is not to be had; or the device is
//   divided
//              (MIG) and the list does not say which instance a process is on
class GpuState {
 public:
  GpuState(std::string node, std::chrono::seconds period)
      : node_(std::move(node)), period_(period) {}

  void TakeReading(GpuReading reading, base::MonoTime now);
  void TakeProcess(GpuProcess process, base::MonoTime now);
  // The list of processes is working (its header came), so that a device without any is idle.
  void SetProcessesKnown(bool known) { processes_known_ = known; }

  // Points of every device that has been read since its last points, at most one per device and
  // tick.
  void Emit(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
            const FindOwnerFn& owner, SampleSink& sink);

  std::size_t devices() const { return devices_.size(); }
  // Devices whose utilisation the driver does not give because they are divided.
  std::size_t divided() const;
  void Clear();

 private:
  struct Device {
    GpuReading reading;
    base::MonoTime at{};
    std::optional<base::MonoTime> emitted_at;  // of this very reading
    std::map<std::pair<std::string_view, std::string_view>, evidence::SeriesColumn>
        series;  // metric, attribution
  };
  struct Share {
    std::size_t processes = 0;
    double memory_bytes = 0;
    bool memory_known = true;
  };
  struct Holding {
    std::string_view attribution;
    Share own;
    bool others = false;  // somebody else's process is on the device
  };

  bool IsDue(const Device& device, base::MonoTime now) const;
  const evidence::SeriesColumn& Series(Device& device, std::string_view metric,
                                       std::string_view attribution);
  void EmitDevice(Device& device, const TrackedWorkload* workload, const Holding& holding,
                  SampleSink& sink);
  std::vector<std::pair<const TrackedWorkload*, Holding>> HoldersOf(
      const Device& device, const std::vector<TrackedWorkload>& workloads, const FindOwnerFn& owner,
      Share& all) const;

  std::string node_;
  std::chrono::seconds period_;
  bool processes_known_ = false;
  std::map<std::string, Device> devices_;  // by UUID
  std::map<std::pair<std::string, pid_t>, std::pair<GpuProcess, base::MonoTime>>
      processes_;  // by UUID and pid
};

}  // namespace expanse::collect
