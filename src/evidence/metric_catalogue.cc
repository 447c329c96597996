#include "evidence/metric_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace expanse::evidence {
namespace {

using enum MetricScope;

// clang-format off
constexpr auto kCatalogue = std::to_array<MetricInfo>({
    {"cpu", "cores", kWorkload, "CPU", "Cores in use: two busy cores read 2.0."},
    {"cpu-user", "cores", kWorkload, "CPU, user", "The part of cpu spent in the program itself."},
    {"cpu-system", "cores", kWorkload, "CPU, system", "The part of cpu spent in the kernel on its behalf."},
    {"cpu-throttled", "cores", kWorkload, "CPU, throttled", "CPU time per second that a quota withheld."},
    {"cpu-pressure", "percent", kWorkload, "CPU pressure", "Share of time in which some task waited for a CPU."},
    {"memory", "bytes", kWorkload, "Memory", "Memory that it needs: anonymous, shared and kernel memory, no page cache."},
    {"memory-current", "bytes", kWorkload, "Memory, charged", "All memory charged to it, page cache included."},
    {"memory-peak", "bytes", kWorkload, "Memory, peak", "Highest memory-current so far, as the kernel recorded it."},
    {"memory-limit", "bytes", kWorkload, "Memory limit", "The limit at which the kernel kills; no series when there is none."},
    {"memory-anon", "bytes", kWorkload, "Memory, anonymous", "Heap, stacks and other memory without a file."},
    {"memory-file", "bytes", kWorkload, "Page cache", "Cached file contents, which the kernel can take back."},
    {"memory-shmem", "bytes", kWorkload, "Memory, shared", "Shared memory and tmpfs files."},
    {"memory-kernel", "bytes", kWorkload, "Memory, kernel", "Kernel memory used on its behalf."},
    {"memory-pressure", "percent", kWorkload, "Memory pressure", "Share of time in which some task waited for memory."},
    {"oom-kills", "count", kWorkload, "OOM kills", "Processes killed for lack of memory so far."},
    {"io-read", "bytes/s", kWorkload, "Disk reads", "Bytes read from block devices; network file systems are not in it."},
    {"io-write", "bytes/s", kWorkload, "Disk writes", "Bytes written to block devices; network file systems are not in it."},
    {"io-pressure", "percent", kWorkload, "I/O pressure", "Share of time in which some task waited for I/O."},
    {"pids", "count", kWorkload, "Tasks", "Processes and threads."},

    {"process-cpu", "cores", kProcess, "Process CPU", "Cores in use by the processes of one name, for the busiest few."},
    {"process-memory", "bytes", kProcess, "Process memory", "Resident memory of the processes of one name, for the largest few."},
    {"process-count", "count", kProcess, "Processes", "How many processes of that name there are."},

    {"gpu-util", "percent", kGpu, "GPU utilisation", "Share of time in which a kernel ran on the device."},
    {"gpu-memory-util", "percent", kGpu, "GPU memory activity", "Share of time in which device memory was read or written."},
    {"gpu-memory-used", "bytes", kGpu, "GPU memory used", "Device memory in use; of an execution's own processes where a device is shared."},
    {"gpu-memory-total", "bytes", kGpu, "GPU memory", "Device memory there is."},
    {"gpu-process-memory", "bytes", kGpu, "GPU memory of processes", "Device memory that the driver attributes to processes."},
    {"gpu-processes", "count", kGpu, "GPU processes", "Processes with a compute context on the device."},
    {"gpu-power", "watts", kGpu, "GPU power", "Electrical power of the board."},
    {"gpu-power-limit", "watts", kGpu, "GPU power limit", "Power at which the board slows itself down."},
    {"gpu-temp", "celsius", kGpu, "GPU temperature", "Temperature of the chip."},
    {"gpu-memory-temp", "celsius", kGpu, "GPU memory temperature", "Temperature of the device memory."},
    {"gpu-clock", "megahertz", kGpu, "GPU clock", "Clock of the streaming multiprocessors."},
    {"gpu-memory-clock", "megahertz", kGpu, "GPU memory clock", "Clock of the device memory."},
    {"gpu-throttle-reasons", "bits", kGpu, "GPU throttle reasons", "The driver's bit mask of what holds the clocks back."},
    {"gpu-ecc-errors", "count", kGpu, "GPU ECC errors", "Uncorrected memory errors since the driver was loaded."},

    {"host-cpu", "cores", kHost, "Host CPU", "Cores in use on the whole machine."},
    {"host-cpu-user", "cores", kHost, "Host CPU, user", "Cores in use by programs, niced ones included."},
    {"host-cpu-system", "cores", kHost, "Host CPU, system", "Cores in use by the kernel, interrupts included."},
    {"host-cpu-iowait", "cores", kHost, "Host CPU, I/O wait", "Idle cores with a task that waits for I/O."},
    {"host-cpu-steal", "cores", kHost, "Host CPU, stolen", "Cores that the hypervisor gave to other machines."},
    {"host-cpu-count", "count", kHost, "Host CPUs", "Logical CPUs that are online."},
    {"host-memory-used", "bytes", kHost, "Host memory used", "Total less available memory."},
    {"host-memory-total", "bytes", kHost, "Host memory", "Memory there is."},
    {"host-memory-available", "bytes", kHost, "Host memory available", "What can be had without swapping, as the kernel estimates it."},
    {"host-memory-cached", "bytes", kHost, "Host page cache", "Cached file contents, without shared memory."},
    {"host-memory-shmem", "bytes", kHost, "Host shared memory", "Shared memory and tmpfs files."},
    {"host-swap-used", "bytes", kHost, "Host swap used", "Swap space in use."},
    {"host-load1", "count", kHost, "Load, 1 min", "Tasks that run or wait, averaged over a minute."},
    {"host-load5", "count", kHost, "Load, 5 min", "Tasks that run or wait, averaged over five minutes."},
    {"host-load15", "count", kHost, "Load, 15 min", "Tasks that run or wait, averaged over fifteen minutes."},
    {"host-tasks", "count", kHost, "Host tasks", "Processes and threads on the machine."},
    {"host-disk-read", "bytes/s", kHost, "Host disk reads", "Bytes read from all disks."},
    {"host-disk-write", "bytes/s", kHost, "Host disk writes", "Bytes written to all disks."},
    {"host-disk-read-ops", "ops/s", kHost, "Host disk read operations", "Reads that all disks completed."},
    {"host-disk-write-ops", "ops/s", kHost, "Host disk write operations", "Writes that all disks completed."},
    {"host-disk-busy", "percent", kHost, "Busiest disk", "Share of time with a request in flight, on the busiest disk."},
    {"host-net-receive", "bytes/s", kHost, "Host network in", "Bytes received on physical interfaces."},
    {"host-net-transmit", "bytes/s", kHost, "Host network out", "Bytes sent on physical interfaces."},
    {"host-net-errors", "ops/s", kHost, "Host network errors", "Packets with errors or dropped, both ways."},
    {"host-pressure-cpu", "percent", kHost, "Host CPU pressure", "Share of time in which some task waited for a CPU."},
    {"host-pressure-memory", "percent", kHost, "Host memory pressure", "Share of time in which some task waited for memory."},
    {"host-pressure-io", "percent", kHost, "Host I/O pressure", "Share of time in which some task waited for I/O."},
    {"host-daemon-cpu", "cores", kHost, "Daemon CPU", "Cores in use by expanse-daemon itself."},
    {"host-daemon-memory", "bytes", kHost, "Daemon memory", "Resident memory of expanse-daemon itself."},
});
// clang-format on

}  // namespace

std::span<const MetricInfo> MetricCatalogue() { return kCatalogue; }

const MetricInfo* FindMetric(std::string_view name) {
  const auto at = std::ranges::find(kCatalogue, name, &MetricInfo::name);
  return at == kCatalogue.end() ? nullptr : &*at;
}

std::string_view Name(MetricScope scope) {
  switch (scope) {
    case MetricScope::kWorkload:
      return "execution";
    case MetricScope::kHost:
      return "host";
    case MetricScope::kProcess:
      return "process";
    case MetricScope::kGpu:
      return "GPU";
  }
  return "";
}

std::string MetricsMarkdown() {
  std::string text =
      "# Metrics\n\n"
      "Generated from `src/evidence/metric_catalogue.cc`; run the `evidence_test` program with\n"
      "`EXPANSE_UPDATE_GOLDEN=1` after a change there.\n\n"
      "A value that is unknown (a counter that this driver or kernel does not have, no permission) "
      "has no\n"
      "point: it is never zero. Rates are averages over the time since the point before.\n\n"
      "Each series names its source: `host`, `cgroup`, `process` (the process tree, where an "
      "execution has\n"
      "no cgroup of its own), `process:NAME` (all processes called NAME) or `nvidia-smi`. A GPU's "
      "series of\n"
      "an execution also says how sure its attribution is: `exclusive` (no other execution is on "
      "the\n"
      "device), `shared` (others are; utilisation, power and clocks are of the whole device and "
      "must not be\n"
      "added up), `idle_held` (granted, but no process uses it) or `unknown`.\n";
  for (MetricScope scope : {kWorkload, kProcess, kGpu, kHost}) {
    text += fmt::format("\n## Per {}\n\n| Metric | Unit | Meaning |\n| --- | --- | --- |\n",
                        Name(scope));
    for (const MetricInfo& metric : kCatalogue) {
      if (metric.scope == scope)
        text += fmt::format("| `{}` | {} | {} |\n", metric.name, metric.unit, metric.help);
    }
  }
  return text;
}

}  // namespace expanse::evidence
