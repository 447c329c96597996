#include "collect/host/parse.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/text.h"
#include "collect/kernel_file.h"

namespace expanse::collect {
namespace {

constexpr double kTicksPerSecond = 100;      // USER_HZ
constexpr std::uint64_t kSectorBytes = 512;  // in /proc/diskstats, whatever the disk's own size is

bool StartsWithAny(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, base::IsDigit);
}

// "sda1" of "sda", "nvme0n1p2" of "nvme0n1".
bool IsPartitionOf(std::string_view name, std::string_view disk) {
  if (disk.empty() || name.size() <= disk.size() || !name.starts_with(disk)) return false;
  std::string_view rest = name.substr(disk.size());
  if (base::IsDigit(disk.back())) {
    if (rest.front() != 'p') return false;
    rest.remove_prefix(1);
  }
  return AllDigits(rest);
}

bool IsStackedDisk(std::string_view name) {
  constexpr std::array<std::string_view, 8> kPrefixes = {"dm-",  "md", "loop", "ram",
                                                         "zram", "sr", "fd",   "bcache"};
  return StartsWithAny(name, kPrefixes);
}

}  // namespace

std::optional<CpuTimes> ParseStat(std::string_view text) {
  CpuTimes times;
  bool found = false;
  std::string_view line;
  while (NextLine(text, line)) {
    if (!line.starts_with("cpu")) break;  // the CPUs come first
    const std::string_view key = NextWord(line);
    if (key != "cpu") {
      ++times.cpus;
      continue;
    }
    // user nice system idle iowait irq softirq steal; the last ones are missing in old kernels.
    std::array<double, 8> fields{};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto value = NextNumber(line);
      if (!value && i < 4) return std::nullopt;
      fields[i] = static_cast<double>(value.value_or(0)) / kTicksPerSecond;
    }
    times.user = fields[0] + fields[1];
    times.system = fields[2] + fields[5] + fields[6];
    times.idle = fields[3];
    times.iowait = fields[4];
    times.steal = fields[7];
    found = true;
  }
  if (!found) return std::nullopt;
  return times;
}

MemoryInfo ParseMeminfo(std::string_view text) {
  MemoryInfo info;
  std::optional<std::uint64_t> free;
  std::optional<std::uint64_t> cached;
  std::string_view line;
  while (NextLine(text, line)) {
    const std::string_view key = NextWord(line);
    auto value = NextNumber(line);
    if (!value || *value > (UINT64_MAX >> 10)) continue;
    *value <<= 10;
    if (key == "MemTotal:") info.total = value;
    if (key == "MemFree:") free = value;
    if (key == "MemAvailable:") info.available = value;
    if (key == "Cached:") cached = value;
    if (key == "Shmem:") info.shmem = value;
    if (key == "SwapTotal:") info.swap_total = value;
    if (key == "SwapFree:") info.swap_free = value;
  }
  if (cached) info.cached = *cached - std::min(*cached, info.shmem.value_or(0));
  if (!info.available && free && info.cached) info.available = *free + *info.cached;
  return info;
}

std::optional<LoadAverage> ParseLoadavg(std::string_view text) {
  const auto one = base::ParseDouble(NextWord(text));
  const auto five = base::ParseDouble(NextWord(text));
  const auto fifteen = base::ParseDouble(NextWord(text));
  const std::string_view tasks = NextWord(text);  // "running/all"
  if (!one || !five || !fifteen) return std::nullopt;
  const auto slash = tasks.find('/');
  const auto all = slash == std::string_view::npos
                       ? std::nullopt
                       : base::ParseUnsignedDigits(tasks.substr(slash + 1));
  return LoadAverage{*one, *five, *fifteen, all.value_or(0)};
}

std::vector<DiskCounters> ParseDiskstats(std::string_view text) {
  std::vector<DiskCounters> disks;
  std::string_view line;
  while (NextLine(text, line)) {
    NextWord(line);  // major
    NextWord(line);  // minor
    const std::string_view name = NextWord(line);
    std::array<std::optional<std::uint64_t>, 10> fields;
    for (auto& field : fields) field = NextNumber(line);
    // reads, merged, sectors, ms, writes, merged, sectors, ms, in flight, busy ms
    if (!fields[9] || IsStackedDisk(name)) continue;
    if (std::ranges::any_of(
            disks, [&](const DiskCounters& disk) { return IsPartitionOf(name, disk.name); }))
      continue;
    disks.push_back({std::string(name), fields[0].value_or(0), fields[2].value_or(0) * kSectorBytes,
                     fields[4].value_or(0), fields[6].value_or(0) * kSectorBytes, *fields[9]});
  }
  return disks;
}

std::vector<InterfaceCounters> ParseNetDev(std::string_view text) {
  std::vector<InterfaceCounters> interfaces;
  std::string_view line;
  while (NextLine(text, line)) {
    const auto colon = line.rfind(':');  // names of aliases hold colons too
    if (colon == std::string_view::npos) continue;
    const std::string_view name = base::Trim(line.substr(0, colon));
    std::string_view rest = line.substr(colon + 1);
    // receive: bytes packets errs drop fifo frame compressed multicast; transmit: bytes packets
    // errs drop …
    std::array<std::optional<std::uint64_t>, 12> fields;
    for (auto& field : fields) field = NextNumber(rest);
    if (name.empty() || !fields[11]) continue;
    interfaces.push_back(
        {std::string(name), fields[0].value_or(0), fields[8].value_or(0),
         fields[2].value_or(0) + fields[3].value_or(0) + fields[10].value_or(0) + *fields[11]});
  }
  return interfaces;
}

bool IsPhysicalInterface(std::string_view name) {
  constexpr std::array<std::string_view, 22> kVirtual = {
      "lo",    "veth",         "docker", "br-",    "virbr",  "vnet",    "tap",   "tun",
      "wg",    "dummy",        "ifb",    "cali",   "cni",    "flannel", "vxlan", "geneve",
      "kube-", "nodelocaldns", "lxc",    "cilium", "podman", "sit"};
  return name.find('.') == std::string_view::npos && !StartsWithAny(name, kVirtual);
}

}  // namespace expanse::collect
