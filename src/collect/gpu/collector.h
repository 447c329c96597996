// Samples of NVIDIA GPUs from nvidia-smi, source "nvidia-smi": two long-lived children, one for the
// devices and one for the processes on them. Devices are told apart by UUID, never by index.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "collect/collector.h"
#include "collect/gpu/smi_stream.h"
#include "collect/gpu/state.h"
#include "collect/process/owner.h"
#include "collect/series.h"

namespace expanse::collect {

struct GpuOptions {
  std::string nvidia_smi;           // absolute path; empty: looked for in the usual directories
  std::chrono::seconds period{10};  // between two readings of the devices; at least 1
};

// Not thread-safe.
class GpuCollector final : public Collector {
 public:
  GpuCollector(HostView view, GpuOptions options);
  ~GpuCollector() override;
  // disabled: not_found (no nvidia-smi). failed: driver_error (with the driver's words). degraded:
  // no_devices, no_permission, no_processes (whose a device is cannot be said), mig (utilisation of
  // divided devices is not told).
  evidence::HealthRow health() const override;

 protected:
  bool StartImpl() override;
  void CollectImpl(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
                   SampleSink& sink) override;
  void StopImpl() override;

 private:
  void Take(std::vector<SmiLine> lines, base::MonoTime now);

  HostView view_;
  GpuOptions options_;
  GpuState state_;
  std::unique_ptr<OwnerFinder> owners_;
  std::unique_ptr<SmiStream> devices_;
  std::unique_ptr<SmiStream> processes_;
  base::WallTime checked_at_{};
};

}  // namespace expanse::collect
