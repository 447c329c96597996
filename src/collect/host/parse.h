// Parsers of the machine-wide files of /proc. Formats: proc(5) and the kernel's
// Documentation/admin-guide/iostats.rst, accounting/psi.rst. Absent is unknown; malformed lines are
// left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::collect {

// The "cpu" line of /proc/stat in seconds since boot, all CPUs together. Guests are in user
// already.
struct CpuTimes {
  double user = 0;    // with nice
  double system = 0;  // with irq and softirq
  double idle = 0;
  double iowait = 0;
  double steal = 0;
  std::uint32_t cpus = 0;
};
std::optional<CpuTimes> ParseStat(std::string_view text);

// Bytes.
struct MemoryInfo {
  std::optional<std::uint64_t> total;
  std::optional<std::uint64_t> available;  // estimated as free + cached before Linux 3.14
  std::optional<std::uint64_t> cached;     // without shmem
  std::optional<std::uint64_t> shmem;
  std::optional<std::uint64_t> swap_total;
  std::optional<std::uint64_t> swap_free;
};
MemoryInfo ParseMeminfo(std::string_view text);

struct LoadAverage {
  double one = 0;
  double five = 0;
  double fifteen = 0;
  std::uint64_t tasks = 0;
};
std::optional<LoadAverage> ParseLoadavg(std::string_view text);

struct DiskCounters {
  std::string name;
  std::uint64_t reads = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t writes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t busy_ms = 0;  // 32 bits in the kernel: wraps after 49 days
};
// Whole physical or virtual disks: no partitions, and nothing that sits on other disks (device
// mapper, md, loop, ram), whose traffic would count twice.
std::vector<DiskCounters> ParseDiskstats(std::string_view text);

struct InterfaceCounters {
  std::string name;
  std::uint64_t receive_bytes = 0;
  std::uint64_t transmit_bytes = 0;
  std::uint64_t errors = 0;  // errors and drops, both ways
};
// All interfaces of /proc/net/dev.
std::vector<InterfaceCounters> ParseNetDev(std::string_view text);
// True for interfaces whose traffic passes no other interface of ours: not loopback, bridges,
// tunnels, containers' ends, VLANs.
bool IsPhysicalInterface(std::string_view name);

}  // namespace expanse::collect
