// The parsers of single cgroup files; see collect/cgroup/reader.h.
#include <algorithm>

#include "base/text.h"
#include "collect/cgroup/reader.h"

namespace expanse::collect {
namespace {

constexpr double kTicksPerSecond =
    100;  // USER_HZ, the same on every architecture that Linux runs on
constexpr std::uint32_t kLoopMajor = 7;
constexpr std::uint32_t kMdMajor = 9;

// Reads and writes of block devices, apart for those that sit on others.
struct IoTotals {
  std::uint64_t read = 0;
  std::uint64_t write = 0;
};

std::optional<std::uint32_t> MajorOf(std::string_view device) {
  return base::ParseInt<std::uint32_t>(device.substr(0, device.find(':')));
}

bool IsStacked(std::uint32_t major, std::uint32_t device_mapper_major) {
  return major == kLoopMajor || major == kMdMajor ||
         (device_mapper_major != 0 && major == device_mapper_major);
}

void SetIo(const IoTotals& below, const IoTotals& stacked, CgroupUsage& usage) {
  usage.io_read_bytes = std::max(below.read, stacked.read);
  usage.io_write_bytes = std::max(below.write, stacked.write);
}

void SetNeed(CgroupUsage& usage) {
  if (!usage.memory_anon_bytes) return;
  usage.memory_need_bytes = *usage.memory_anon_bytes + usage.memory_shmem_bytes.value_or(0) +
                            usage.memory_kernel_bytes.value_or(0);
}

}  // namespace

void ParseV2CpuStat(std::string_view text, CgroupUsage& usage) {
  std::string_view line;
  while (NextLine(text, line)) {
    const std::string_view key = NextWord(line);
    const auto value = NextNumber(line);
    if (!value) continue;
    const double seconds = static_cast<double>(*value) / 1e6;
    if (key == "usage_usec") usage.cpu_s = seconds;
    if (key == "user_usec") usage.cpu_user_s = seconds;
    if (key == "system_usec") usage.cpu_system_s = seconds;
    if (key == "throttled_usec") usage.throttled_s = seconds;
  }
}

void ParseV2MemoryStat(std::string_view text, CgroupUsage& usage) {
  std::optional<std::uint64_t> file;
  std::uint64_t kernel_parts = 0;  // kernels before 5.18 have no line for the sum
  std::string_view line;
  while (NextLine(text, line)) {
    const std::string_view key = NextWord(line);
    const auto value = NextNumber(line);
    if (!value) continue;
    if (key == "anon") usage.memory_anon_bytes = value;
    if (key == "file") file = value;
    if (key == "shmem") usage.memory_shmem_bytes = value;
    if (key == "kernel") usage.memory_kernel_bytes = value;
    if (key == "kernel_stack" || key == "pagetables" || key == "percpu" || key == "slab") {
      kernel_parts += *value;
    }
    // What follows are event counts, which we do not keep.
    if (key == "workingset_refault_anon" || key == "pgfault") break;
  }
  if (!usage.memory_anon_bytes) return;
  if (!usage.memory_kernel_bytes) usage.memory_kernel_bytes = kernel_parts;
  // "file" counts tmpfs and shared memory too.
  if (file) usage.memory_file_bytes = *file - std::min(*file, usage.memory_shmem_bytes.value_or(0));
  SetNeed(usage);
}

void ParseV2MemoryEvents(std::string_view text, CgroupUsage& usage) {
  std::string_view line;
  while (NextLine(text, line)) {
    if (NextWord(line) == "oom_kill") usage.oom_kills = NextNumber(line);
  }
}

void ParseV2IoStat(std::string_view text, std::uint32_t device_mapper_major, CgroupUsage& usage) {
  IoTotals below;
  IoTotals stacked;
  std::string_view line;
  while (NextLine(text, line)) {
    const auto major = MajorOf(NextWord(line));
    if (!major) continue;
    IoTotals& totals = IsStacked(*major, device_mapper_major) ? stacked : below;
    for (std::string_view word = NextWord(line); !word.empty(); word = NextWord(line)) {
      const auto equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const auto value = base::ParseInt<std::uint64_t>(word.substr(equals + 1)).value_or(0);
      if (word.starts_with("rbytes=")) totals.read += value;
      if (word.starts_with("wbytes=")) totals.write += value;
    }
  }
  SetIo(below, stacked, usage);
}

void ParseV1CpuStat(std::string_view text, CgroupUsage& usage) {
  std::optional<std::uint64_t> user;
  std::optional<std::uint64_t> system;
  std::string_view line;
  while (NextLine(text, line)) {
    const std::string_view key = NextWord(line);
    if (key == "user") user = NextNumber(line);
    if (key == "system") system = NextNumber(line);
  }
  if (!user || !system) return;
  const double sum = static_cast<double>(*user) + static_cast<double>(*system);
  // cpuacct.stat counts in ticks; cpuacct.usage is exact, so it is divided in the ratio of the two.
  const double total = usage.cpu_s.value_or(sum / kTicksPerSecond);
  // At most the total: rounding would leave less than nothing to the system.
  usage.cpu_user_s = sum > 0 ? std::min(total, total * static_cast<double>(*user) / sum) : 0;
  usage.cpu_system_s = total - *usage.cpu_user_s;
}

void ParseV1Throttling(std::string_view text, CgroupUsage& usage) {
  std::string_view line;
  while (NextLine(text, line)) {
    if (NextWord(line) != "throttled_time") continue;
    if (const auto value = NextNumber(line)) usage.throttled_s = static_cast<double>(*value) / 1e9;
  }
}

void ParseV1MemoryStat(std::string_view text, CgroupUsage& usage) {
  std::optional<std::uint64_t> cache;
  std::string_view line;
  while (NextLine(text, line)) {
    const std::string_view key = NextWord(line);
    if (key == "total_cache") cache = NextNumber(line);
    if (key == "total_rss") usage.memory_anon_bytes = NextNumber(line);
    if (key == "total_shmem") usage.memory_shmem_bytes = NextNumber(line);
  }
  if (cache)
    usage.memory_file_bytes = *cache - std::min(*cache, usage.memory_shmem_bytes.value_or(0));
  SetNeed(usage);
}

void ParseV1Io(std::string_view text, std::uint32_t device_mapper_major, CgroupUsage& usage) {
  IoTotals below;
  IoTotals stacked;
  std::string_view line;
  while (NextLine(text, line)) {
    const auto major = MajorOf(NextWord(line));
    const std::string_view operation = NextWord(line);
    const auto value = NextNumber(line);
    if (!major || !value) continue;
    IoTotals& totals = IsStacked(*major, device_mapper_major) ? stacked : below;
    if (operation == "Read") totals.read += *value;
    if (operation == "Write") totals.write += *value;
  }
  SetIo(below, stacked, usage);
}

std::optional<std::uint64_t> ParseV1OomKills(std::string_view text) {
  std::string_view line;
  while (NextLine(text, line)) {
    if (NextWord(line) == "oom_kill") return NextNumber(line);
  }
  return std::nullopt;  // kernels before 4.13
}

std::optional<double> ParsePressureTotal(std::string_view text) {
  std::string_view line;
  while (NextLine(text, line)) {
    if (NextWord(line) != "some") continue;
    const auto at = line.find("total=");
    if (at == std::string_view::npos) return std::nullopt;
    std::string_view rest = line.substr(at + 6);
    const auto micros = NextNumber(rest);
    if (!micros) return std::nullopt;
    return static_cast<double>(*micros) / 1e6;
  }
  return std::nullopt;
}

std::uint32_t ParseDeviceMapperMajor(std::string_view devices) {
  std::string_view line;
  while (NextLine(devices, line)) {
    const auto major = NextNumber(line);
    if (major && NextWord(line) == "device-mapper") return static_cast<std::uint32_t>(*major);
  }
  return 0;
}

}  // namespace expanse::collect
