#include "collect/host/collector.h"

#include <algorithm>

#include "base/files.h"
#include "collect/cgroup/reader.h"
#include "collect/health.h"
#include "collect/host/parse.h"

namespace expanse::collect {

HostCollector::HostCollector(HostView view)
    : Collector("host"), view_(std::move(view)), series_("host", view_.node) {}

std::string HostCollector::Path(std::string_view name) const {
  return base::JoinPath(view_.root, base::JoinPath("proc", name));
}

bool HostCollector::StartImpl() {
  using Shape = KernelFile::Shape;
  stat_ = KernelFile(Path("stat"), &fds_);
  meminfo_ = KernelFile(Path("meminfo"), &fds_);
  loadavg_ = KernelFile(Path("loadavg"), &fds_);
  diskstats_ = KernelFile(Path("diskstats"), &fds_, Shape::kManyRecords);
  net_dev_ = KernelFile(Path("net/dev"), &fds_, Shape::kManyRecords);
  pressure_.clear();
  pressure_.emplace_back("host-pressure-cpu", KernelFile(Path("pressure/cpu"), &fds_));
  pressure_.emplace_back("host-pressure-memory", KernelFile(Path("pressure/memory"), &fds_));
  pressure_.emplace_back("host-pressure-io", KernelFile(Path("pressure/io"), &fds_));
  const auto bonds = base::ListDirectory(Path("net/bonding"));
  bonds_.clear();
  if (bonds) bonds_.insert(bonds->begin(), bonds->end());
  return true;
}

void HostCollector::CollectImpl(const Tick& tick, const std::vector<TrackedWorkload>& /*workloads*/,
                                SampleSink& sink) {
  checked_at_ = tick.wall;
  missing_.clear();
  points_ = 0;
  CollectCpu(tick, sink);
  CollectMemory(sink);
  CollectLoad(sink);
  CollectDisks(tick, sink);
  CollectNetwork(tick, sink);
  CollectPressure(tick, sink);
}

evidence::HealthRow HostCollector::health() const {
  evidence::HealthRow row;
  row.collector = name();
  row.status = evidence::HealthStatus::kOk;
  row.checked_at = checked_at_;
  row.figures = {{"points", static_cast<double>(points_)}};
  if (!missing_.empty()) {
    SetDegraded(row, missing_);
    if (points_ == 0) row.status = evidence::HealthStatus::kFailed;
  }
  return row;
}

bool HostCollector::HasDevice(const std::string& interface) const {
  const std::string directory = base::JoinPath(view_.root, "sys/class/net/" + interface);
  // A virtual function behind another device (Azure): that one counts its packets too.
  return base::Exists(directory + "/device") && !base::Exists(directory + "/master/device");
}

std::optional<std::string_view> HostCollector::Read(KernelFile& file) {
  const auto text = file.Read(buffer_);
  if (text) return *text;
  missing_.emplace(file.path(), MissingReason(text.error()));
  return std::nullopt;
}

void HostCollector::Point(std::string_view metric, std::optional<double> value, SampleSink& sink) {
  if (!value) return;
  ++points_;
  sink.Add(nullptr, series_[metric], *value);
}

void HostCollector::Rate(std::string_view metric, double counter, const Tick& tick,
                         SampleSink& sink) {
  Point(metric, rates_[metric].Update(counter, tick.mono), sink);
}

void HostCollector::CollectCpu(const Tick& tick, SampleSink& sink) {
  const auto text = Read(stat_);
  const auto times = text ? ParseStat(*text) : std::nullopt;
  if (!times) return;
  Rate("host-cpu", times->user + times->system, tick, sink);
  Rate("host-cpu-user", times->user, tick, sink);
  Rate("host-cpu-system", times->system, tick, sink);
  // The kernel lets this one go backwards; that reads as a reset, so one point is left out.
  Rate("host-cpu-iowait", times->iowait, tick, sink);
  Rate("host-cpu-steal", times->steal, tick, sink);
  Point("host-cpu-count", times->cpus, sink);
}

void HostCollector::CollectMemory(SampleSink& sink) {
  const auto text = Read(meminfo_);
  if (!text) return;
  const MemoryInfo info = ParseMeminfo(*text);
  const auto number = [](std::optional<std::uint64_t> bytes) {
    return bytes ? std::optional<double>(static_cast<double>(*bytes)) : std::nullopt;
  };
  Point("host-memory-total", number(info.total), sink);
  Point("host-memory-available", number(info.available), sink);
  if (info.total && info.available) {
    Point("host-memory-used",
          static_cast<double>(*info.total - std::min(*info.total, *info.available)), sink);
  }
  Point("host-memory-cached", number(info.cached), sink);
  Point("host-memory-shmem", number(info.shmem), sink);
  if (info.swap_total && info.swap_free) {
    Point("host-swap-used",
          static_cast<double>(*info.swap_total - std::min(*info.swap_total, *info.swap_free)),
          sink);
  }
}

void HostCollector::CollectLoad(SampleSink& sink) {
  const auto text = Read(loadavg_);
  const auto load = text ? ParseLoadavg(*text) : std::nullopt;
  if (!load) return;
  Point("host-load1", load->one, sink);
  Point("host-load5", load->five, sink);
  Point("host-load15", load->fifteen, sink);
  if (load->tasks != 0) Point("host-tasks", static_cast<double>(load->tasks), sink);
}

void HostCollector::CollectDisks(const Tick& tick, SampleSink& sink) {
  const auto text = Read(diskstats_);
  if (!text) return;
  // Rates per disk and then their sum: a disk that comes or goes is no jump of the sum.
  std::optional<double> reads, read_bytes, writes, write_bytes, busiest;
  const auto add = [](std::optional<double>& sum, std::optional<double> rate) {
    if (rate) sum = sum.value_or(0) + *rate;
  };
  const auto disks = ParseDiskstats(*text);
  for (const DiskCounters& disk : disks) {
    DiskRates& rates = disks_[disk.name];
    add(reads, rates.reads.Update(static_cast<double>(disk.reads), tick.mono));
    add(read_bytes, rates.read_bytes.Update(static_cast<double>(disk.read_bytes), tick.mono));
    add(writes, rates.writes.Update(static_cast<double>(disk.writes), tick.mono));
    add(write_bytes, rates.write_bytes.Update(static_cast<double>(disk.write_bytes), tick.mono));
    if (const auto busy = rates.busy.UpdateWrapping32(disk.busy_ms, tick.mono)) {
      busiest = std::max(busiest.value_or(0), std::min(*busy / 10, 100.0));  // ms per s -> percent
    }
  }
  std::erase_if(disks_, [&](const auto& known) {
    return std::ranges::find(disks, known.first, &DiskCounters::name) == disks.end();
  });
  Point("host-disk-read-ops", reads, sink);
  Point("host-disk-read", read_bytes, sink);
  Point("host-disk-write-ops", writes, sink);
  Point("host-disk-write", write_bytes, sink);
  Point("host-disk-busy", busiest, sink);
}

void HostCollector::CollectNetwork(const Tick& tick, SampleSink& sink) {
  const auto text = Read(net_dev_);
  if (!text) return;
  std::optional<double> receive, transmit, errors;
  const auto add = [](std::optional<double>& sum, std::optional<double> rate) {
    if (rate) sum = sum.value_or(0) + *rate;
  };
  auto interfaces = ParseNetDev(*text);
  std::erase_if(interfaces, [&](const InterfaceCounters& one) {
    return !IsPhysicalInterface(one.name) || bonds_.contains(one.name);
  });
  bool any_hardware = false;
  for (const InterfaceCounters& one : interfaces) {
    const auto [known, added] = interfaces_.try_emplace(one.name);
    if (added) known->second.hardware = HasDevice(one.name);
    any_hardware |= known->second.hardware;
  }
  for (const InterfaceCounters& one : interfaces) {
    InterfaceRates& rates = interfaces_[one.name];
    const auto received = rates.receive.Update(static_cast<double>(one.receive_bytes), tick.mono);
    const auto sent = rates.transmit.Update(static_cast<double>(one.transmit_bytes), tick.mono);
    const auto failed = rates.errors.Update(static_cast<double>(one.errors), tick.mono);
    // A container has none with a device: there the names decide alone.
    if (any_hardware && !rates.hardware) continue;
    add(receive, received);
    add(transmit, sent);
    add(errors, failed);
  }
  std::erase_if(interfaces_, [&](const auto& known) {
    return std::ranges::find(interfaces, known.first, &InterfaceCounters::name) == interfaces.end();
  });
  Point("host-net-receive", receive, sink);
  Point("host-net-transmit", transmit, sink);
  Point("host-net-errors", errors, sink);
}

void HostCollector::CollectPressure(const Tick& tick, SampleSink& sink) {
  for (auto& [metric, file] : pressure_) {
    const auto text = Read(file);
    const auto total = text ? ParsePressureTotal(*text) : std::nullopt;
    if (!total) continue;
    if (const auto share = rates_[metric].Update(*total, tick.mono)) {
      Point(metric, std::min(*share * 100, 100.0), sink);
    }
  }
}

}  // namespace expanse::collect
