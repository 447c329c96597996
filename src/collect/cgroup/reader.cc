#include "collect/cgroup/reader.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "base/files.h"

namespace expanse::collect {
namespace {

// v1 limits above this are the kernel's way to write "none": PAGE_COUNTER_MAX pages.
constexpr std::uint64_t kV1Unlimited = 0x7000'0000'0000'0000U;
constexpr int kDeepestSubCgroup = 4;
constexpr int kMostSubCgroups = 256;

// oom_kill of a v1 cgroup does not include those of the cgroups below it: adds them up. The link
// count of a directory tells without a listing that there are none.
std::uint64_t OomKillsBelow(const std::string& directory, int depth, int& budget) {
  struct stat info{};
  if (::stat(directory.c_str(), &info) != 0 || info.st_nlink == 2) return 0;
  const auto names = base::ListDirectory(directory);
  if (!names) return 0;
  std::uint64_t kills = 0;
  for (const std::string& name : *names) {
    const std::string below = base::JoinPath(directory, name);
    if (::stat(below.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || --budget < 0) continue;
    if (const auto text = base::ReadFile(base::JoinPath(below, "memory.oom_control"))) {
      kills += ParseV1OomKills(*text).value_or(0);
    }
    if (depth < kDeepestSubCgroup) kills += OomKillsBelow(below, depth + 1, budget);
  }
  return kills;
}

// With the rights that a later open has (access(2) asks for those of the real user).
bool IsThere(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

}  // namespace

// Which files there are. The order matters: what is computed from two files stands after both.
struct CgroupFileSet {
  struct Entry {
    CgroupReader::Content content;
    const char* name;
  };
  using enum CgroupReader::Content;
  static constexpr std::array<Entry, 11> kV2 = {{{kV2CpuStat, "cpu.stat"},
                                                 {kV2MemoryCurrent, "memory.current"},
                                                 {kV2MemoryPeak, "memory.peak"},
                                                 {kV2MemoryMax, "memory.max"},
                                                 {kV2MemoryStat, "memory.stat"},
                                                 {kV2MemoryEvents, "memory.events"},
                                                 {kV2IoStat, "io.stat"},
                                                 {kPids, "pids.current"},
                                                 {kV2CpuPressure, "cpu.pressure"},
                                                 {kV2MemoryPressure, "memory.pressure"},
                                                 {kV2IoPressure, "io.pressure"}}};
  static constexpr std::array<Entry, 11> kV1 = {
      {{kV1CpuUsage, "cpuacct.usage"},
       {kV1CpuStat, "cpuacct.stat"},
       {kV1Throttling, "cpu.stat"},
       {kV1MemoryUsage, "memory.usage_in_bytes"},
       {kV1MemoryPeak, "memory.max_usage_in_bytes"},
       {kV1MemoryLimit, "memory.limit_in_bytes"},
       {kV1Kernel, "memory.kmem.usage_in_bytes"},
       {kV1MemoryStat, "memory.stat"},
       {kV1OomControl, "memory.oom_control"},
       {kV1Io, "blkio.throttle.io_service_bytes_recursive"},
       {kPids, "pids.current"}}};
};

CgroupReader::CgroupReader(const std::string& root, const std::vector<std::string>& paths,
                           FdBudget* budget) {
  if (const auto devices = base::ReadFile(base::JoinPath(root, "proc/devices"))) {
    device_mapper_major_ = ParseDeviceMapperMajor(*devices);
  }
  for (const std::string& path : paths) AddDirectory(base::JoinPath(root, path), budget);
}

void CgroupReader::AddDirectory(const std::string& directory, FdBudget* budget) {
  const bool v2 = IsThere(base::JoinPath(directory, "cgroup.controllers"));
  if (!v2 && errno == EACCES) denied_ = true;
  for (const auto& [content, name] : v2 ? CgroupFileSet::kV2 : CgroupFileSet::kV1) {
    std::string path = base::JoinPath(directory, name);
    if (content == Content::kV1Io && !IsThere(path)) {
      path = base::JoinPath(directory, "blkio.throttle.io_service_bytes");  // before 5.3
    }
    if (!IsThere(path)) continue;
    sources_.push_back({content, KernelFile(std::move(path), budget), directory});
  }
}

base::Result<CgroupUsage> CgroupReader::Read() {
  CgroupUsage usage;
  bool any = false;
  std::optional<base::Error> error;
  for (Source& source : sources_) {
    const auto text = source.file.Read(buffer_);
    if (text) {
      any = true;
      Take(source, *text, usage);
    } else if (!error || text.error().code == base::Code::kPermissionDenied) {
      error = text.error();
    }
  }
  if (any) return usage;
  if (denied_ || (error && error->code == base::Code::kPermissionDenied)) {
    return base::Fail(base::Code::kPermissionDenied, "cgroup.no_permission",
                      "the cgroup's files may not be read by this user");
  }
  return base::Fail(base::Code::kNotFound, "cgroup.vanished", "the cgroup is gone");
}

void CgroupReader::Take(const Source& source, std::string_view text, CgroupUsage& usage) const {
  switch (source.content) {
    case Content::kV2CpuStat:
      ParseV2CpuStat(text, usage);
      break;
    case Content::kV2MemoryCurrent:
    case Content::kV1MemoryUsage:
      usage.memory_current_bytes = SingleNumber(text);
      break;
    case Content::kV2MemoryPeak:
    case Content::kV1MemoryPeak:
      usage.memory_peak_bytes = SingleNumber(text);
      break;
    case Content::kV2MemoryMax:
      usage.memory_limit_bytes = SingleNumber(text);
      break;
    case Content::kV1MemoryLimit:
      usage.memory_limit_bytes = SingleNumber(text);
      if (usage.memory_limit_bytes.value_or(0) >= kV1Unlimited) usage.memory_limit_bytes.reset();
      break;
    case Content::kV2MemoryStat:
      ParseV2MemoryStat(text, usage);
      break;
    case Content::kV2MemoryEvents:
      ParseV2MemoryEvents(text, usage);
      break;
    case Content::kV2IoStat:
      ParseV2IoStat(text, device_mapper_major_, usage);
      break;
    case Content::kPids:
      usage.pids = SingleNumber(text);
      break;
    case Content::kV2CpuPressure:
      usage.cpu_pressure_s = ParsePressureTotal(text);
      break;
    case Content::kV2MemoryPressure:
      usage.memory_pressure_s = ParsePressureTotal(text);
      break;
    case Content::kV2IoPressure:
      usage.io_pressure_s = ParsePressureTotal(text);
      break;
    case Content::kV1CpuUsage:
      if (const auto ns = SingleNumber(text)) usage.cpu_s = static_cast<double>(*ns) / 1e9;
      break;
    case Content::kV1CpuStat:
      ParseV1CpuStat(text, usage);
      break;
    case Content::kV1Throttling:
      ParseV1Throttling(text, usage);
      break;
    case Content::kV1Kernel:
      usage.memory_kernel_bytes = SingleNumber(text);
      break;
    case Content::kV1MemoryStat:
      ParseV1MemoryStat(text, usage);
      break;
    case Content::kV1OomControl:
      usage.oom_kills = ParseV1OomKills(text);
      if (usage.oom_kills) {
        int budget = kMostSubCgroups;
        *usage.oom_kills += OomKillsBelow(source.directory, 1, budget);
      }
      break;
    case Content::kV1Io:
      ParseV1Io(text, device_mapper_major_, usage);
      break;
  }
}

base::Result<CgroupUsage> ReadCgroup(const std::string& root,
                                     const std::vector<std::string>& paths) {
  return CgroupReader(root, paths, nullptr).Read();
}

}  // namespace expanse::collect
