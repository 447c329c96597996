// Samples of the machine: cpu, memory, load, disks, network, pressure. Source "host", no privilege
// needed. To add a figure: parse it in host/parse.h, add it in collector.cc and to the catalogue.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "collect/collector.h"
#include "collect/kernel_file.h"
#include "collect/series.h"

namespace expanse::collect {

// Not thread-safe. Costs about ten system calls a tick.
class HostCollector final : public Collector {
 public:
  explicit HostCollector(HostView view);
  // degraded (not_found, no_permission) names the files that could not be read; failed when none
  // could.
  evidence::HealthRow health() const override;

 protected:
  bool StartImpl() override;
  void CollectImpl(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
                   SampleSink& sink) override;

 private:
  struct DiskRates {
    CounterRate reads, read_bytes, writes, write_bytes, busy;
  };
  struct InterfaceRates {
    CounterRate receive, transmit, errors;
    bool hardware = false;  // has a device; bridges and the like pass on what those carry
  };

  std::string Path(std::string_view name) const;
  bool HasDevice(const std::string& interface) const;
  // The file's text, or nothing after noting what is missing.
  std::optional<std::string_view> Read(KernelFile& file);
  void Point(std::string_view metric, std::optional<double> value, SampleSink& sink);
  void Rate(std::string_view metric, double counter, const Tick& tick, SampleSink& sink);
  void CollectCpu(const Tick& tick, SampleSink& sink);
  void CollectMemory(SampleSink& sink);
  void CollectLoad(SampleSink& sink);
  void CollectDisks(const Tick& tick, SampleSink& sink);
  void CollectNetwork(const Tick& tick, SampleSink& sink);
  void CollectPressure(const Tick& tick, SampleSink& sink);

  HostView view_;
  FdBudget fds_{16};
  KernelFile stat_, meminfo_, loadavg_, diskstats_, net_dev_;
  std::vector<std::pair<std::string_view, KernelFile>> pressure_;  // by metric
  SeriesTable series_;
  RateTable rates_;
  std::map<std::string, DiskRates, std::less<>> disks_;
  std::map<std::string, InterfaceRates, std::less<>> interfaces_;
  std::set<std::string, std::less<>> bonds_;  // whose members are counted instead
  std::string buffer_;

  base::WallTime checked_at_{};
  std::map<std::string, std::string> missing_;  // path -> reason, of the last tick
  std::size_t points_ = 0;                      // of the last tick
};

}  // namespace expanse::collect
