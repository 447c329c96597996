// What a cgroup has used so far, v1 or v2. Formats: the kernel's
// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{cpuacct,memory,blkio-controller,pids}.rst.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/cgroup/hierarchy.h"
#include "collect/kernel_file.h"

namespace expanse::collect {

// Cumulative where it says so; an absent value is unknown (controller not enabled, no such file in
// this kernel, no permission), never zero. The whole subtree counts, also in v1.
struct CgroupUsage {
  std::optional<double> cpu_s;         // cumulative
  std::optional<double> cpu_user_s;    // cumulative
  std::optional<double> cpu_system_s;  // cumulative
  std::optional<double> throttled_s;   // cumulative time that a CPU quota held it back

  // What it could not run without: anonymous + shared + kernel memory; the page cache is not in it.
  std::optional<std::uint64_t> memory_need_bytes;
  std::optional<std::uint64_t> memory_current_bytes;  // all that is charged, page cache included
  std::optional<std::uint64_t> memory_peak_bytes;     // of memory_current since creation
  std::optional<std::uint64_t> memory_limit_bytes;    // absent: unlimited or unknown
  std::optional<std::uint64_t> memory_anon_bytes;
  std::optional<std::uint64_t> memory_file_bytes;  // page cache of files, without shmem
  std::optional<std::uint64_t> memory_shmem_bytes;
  std::optional<std::uint64_t> memory_kernel_bytes;
  std::optional<std::uint64_t> oom_kills;  // cumulative: processes killed for memory

  std::optional<std::uint64_t> io_read_bytes;   // cumulative, block devices
  std::optional<std::uint64_t> io_write_bytes;  // cumulative
  std::optional<std::uint64_t> pids;            // processes and threads now

  // Cumulative time in which some task waited for the resource (v2 with PSI).
  std::optional<double> cpu_pressure_s;
  std::optional<double> memory_pressure_s;
  std::optional<double> io_pressure_s;
  bool operator==(const CgroupUsage&) const = default;
};

// Follows the cgroups of one workload: `paths` are absolute directories on the host, one (v2) or
// one per v1 hierarchy, as TrackedWorkload::cgroups and CgroupsOfPid have them. Opens its files
// once. Not thread-safe. A read costs one system call per file, 7 to 11 of them.
class CgroupReader {
 public:
  // `budget` may be null and outlives the reader. `root` is "/" or a copy of a host's tree.
  CgroupReader(const std::string& root, const std::vector<std::string>& paths, FdBudget* budget);

  // kNotFound (cgroup.vanished) when none of the directories has anything to read any more, which
  // is how every workload ends; kPermissionDenied when we may read none of it.
  base::Result<CgroupUsage> Read();

 private:
  friend struct CgroupFileSet;
  enum class Content : std::uint8_t {
    kV2CpuStat,
    kV2MemoryCurrent,
    kV2MemoryPeak,
    kV2MemoryMax,
    kV2MemoryStat,
    kV2MemoryEvents,
    kV2IoStat,
    kPids,
    kV2CpuPressure,
    kV2MemoryPressure,
    kV2IoPressure,
    kV1CpuUsage,
    kV1CpuStat,
    kV1Throttling,
    kV1MemoryUsage,
    kV1MemoryPeak,
    kV1MemoryLimit,
    kV1MemoryStat,
    kV1Kernel,
    kV1OomControl,
    kV1Io,
  };
  struct Source {
    Content content;
    KernelFile file;
    std::string directory;  // kV1OomControl: where to look for sub-cgroups
  };
  void AddDirectory(const std::string& directory, FdBudget* budget);
  void Take(const Source& source, std::string_view text, CgroupUsage& usage) const;
  std::vector<Source> sources_;
  std::uint32_t device_mapper_major_ = 0;  // 0: there is none
  bool denied_ = false;                    // a directory that we may not look into
  std::string buffer_;
};

// One reading, for those who need just that.
base::Result<CgroupUsage> ReadCgroup(const std::string& root,
                                     const std::vector<std::string>& paths);

// Parsers of single files, into the fields they know; lines that are malformed change nothing.
void ParseV2CpuStat(std::string_view text, CgroupUsage& usage);
void ParseV2MemoryStat(std::string_view text, CgroupUsage& usage);
void ParseV2MemoryEvents(std::string_view text, CgroupUsage& usage);
// Devices that sit on others (md, loop, device mapper) are not added to those below them.
void ParseV2IoStat(std::string_view text, std::uint32_t device_mapper_major, CgroupUsage& usage);
void ParseV1CpuStat(std::string_view text, CgroupUsage& usage);  // after cpuacct.usage
void ParseV1Throttling(std::string_view text, CgroupUsage& usage);
void ParseV1MemoryStat(std::string_view text, CgroupUsage& usage);
void ParseV1Io(std::string_view text, std::uint32_t device_mapper_major, CgroupUsage& usage);
// "oom_kill" of memory.oom_control.
std::optional<std::uint64_t> ParseV1OomKills(std::string_view text);
// total= of the "some" line of a pressure file, in seconds.
std::optional<double> ParsePressureTotal(std::string_view text);
// Major number of the device mapper in /proc/devices, 0 if it has none.
std::uint32_t ParseDeviceMapperMajor(std::string_view devices);

}  // namespace expanse::collect
