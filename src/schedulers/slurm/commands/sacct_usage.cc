#include "schedulers/slurm/commands/sacct_usage.h"

#include <algorithm>
#include <chrono>

#include "schedulers/slurm/text/tres.h"
#include "schedulers/slurm/text/values.h"

namespace expanse::schedulers::slurm {
namespace {

// Seconds of a CPU time; absent for none and for zero, which means "not measured".
std::optional<double> CpuSeconds(std::string_view text) {
  const auto elapsed = ParseElapsed(text);
  if (!elapsed || elapsed->count() <= 0) return std::nullopt;
  return std::chrono::duration<double>(*elapsed).count();
}

// Above it an amount is one of Slurm's words for "none" (NO_VAL64 and its neighbours) or damage.
constexpr std::uint64_t kMostBytes = 1ULL << 60;

// 0 is "not measured".
std::optional<std::uint64_t> Measured(std::optional<std::uint64_t> bytes) {
  return bytes.value_or(0) == 0 || *bytes > kMostBytes ? std::nullopt : bytes;
}

std::optional<std::uint64_t> MeasuredBytes(std::string_view text) {
  const auto memory = ParseMemory(text, kBytes);
  return Measured(memory ? std::optional(memory->bytes) : std::nullopt);
}

std::uint64_t Times(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kMostBytes / b ? kMostBytes : a * b;
}

void AddTo(std::optional<double>& sum, std::optional<double> value) {
  if (value) sum = sum.value_or(0) + *value;
}

void AddTo(std::optional<std::uint64_t>& sum, std::optional<std::uint64_t> value) {
  if (value && *value <= kMostBytes) sum = std::min(sum.value_or(0) + *value, kMostBytes);
}

// See the head of sacct_usage.h.
std::optional<std::uint64_t> StepPeak(const SacctRow& row, const TresUsage& in,
                                      std::optional<std::uint64_t> allocated_bytes) {
  const std::uint64_t tasks =
      std::max<std::uint64_t>(1, ParseCount(row[SacctField::kTaskCount]).value_or(1));
  const auto largest_task = MeasuredBytes(row[SacctField::kMaxRss]);
  auto peak = Measured(in.memory_bytes);
  if (!peak) {
    if (const auto average = MeasuredBytes(row[SacctField::kAveRss])) peak = Times(*average, tasks);
  }
  if (!peak && largest_task) peak = Times(*largest_task, tasks);
  if (!peak) return std::nullopt;
  if (tasks > 1 && allocated_bytes) peak = std::min(*peak, *allocated_bytes);
  return std::max(*peak, largest_task.value_or(0));
}

}  // namespace

evidence::Usage SacctUsage::OfJobRow(const SacctRow& row) {
  evidence::Usage used;
  used.cpu_s = CpuSeconds(row[SacctField::kTotalCpu]);
  used.cpu_user_s = CpuSeconds(row[SacctField::kUserCpu]);
  used.cpu_system_s = CpuSeconds(row[SacctField::kSystemCpu]);
  if (!used.cpu_s && (used.cpu_user_s || used.cpu_system_s))
    used.cpu_s = used.cpu_user_s.value_or(0) + used.cpu_system_s.value_or(0);
  return used;
}

std::optional<std::uint64_t> SacctUsage::TaskPeak(const SacctRow& row) {
  return MeasuredBytes(row[SacctField::kMaxRss]);
}

evidence::Usage SacctUsage::AddStep(const SacctRow& row,
                                    std::optional<std::uint64_t> allocated_bytes) {
  const TresUsage in = ParseTresUsage(row[SacctField::kTresUsageInTot]);
  evidence::Usage used = OfJobRow(row);
  if (!used.cpu_s && in.cpu_s.value_or(0) > 0) used.cpu_s = in.cpu_s;
  used.memory_peak_bytes = StepPeak(row, in, allocated_bytes);
  if (used.memory_peak_bytes) used.memory_peak_basis = "rss";
  const TresUsage out = ParseTresUsage(row[SacctField::kTresUsageOutTot]);
  if (used.memory_peak_bytes || in.disk_bytes.value_or(0) + out.disk_bytes.value_or(0) > 0) {
    used.io_read_bytes = in.disk_bytes;
    used.io_write_bytes = out.disk_bytes;
  }

  AddTo(steps_.cpu_s, used.cpu_s);
  AddTo(steps_.cpu_user_s, used.cpu_user_s);
  AddTo(steps_.cpu_system_s, used.cpu_system_s);
  AddTo(steps_.io_read_bytes, used.io_read_bytes);
  AddTo(steps_.io_write_bytes, used.io_write_bytes);
  if (used.memory_peak_bytes > steps_.memory_peak_bytes) {
    steps_.memory_peak_bytes = used.memory_peak_bytes;
    steps_.memory_peak_basis = used.memory_peak_basis;
  }
  // Of several steps the busiest: they may have run on the same GPUs.
  gpu_util_sum_ = std::max(gpu_util_sum_, in.gpu_utilisation_pct);
  gpu_memory_bytes_ = std::max(gpu_memory_bytes_, Measured(in.gpu_memory_bytes));
  return used;
}

evidence::Usage SacctUsage::Total(const evidence::Usage& of_job_row) const {
  evidence::Usage total = steps_;
  if (of_job_row.cpu_s) {
    total.cpu_s = of_job_row.cpu_s;
    total.cpu_user_s = of_job_row.cpu_user_s;
    total.cpu_system_s = of_job_row.cpu_system_s;
  }
  return total;
}

std::optional<double> SacctUsage::GpuUtil(std::uint32_t gpus) const {
  if (!gpu_util_sum_ || gpus == 0) return std::nullopt;
  const double mean = *gpu_util_sum_ / gpus;
  if (!(mean >= 0 && mean <= 100.5)) return std::nullopt;  // NaN too
  return std::min(mean, 100.0);
}

bool IsCpuSuspect(const evidence::Usage& used, std::optional<double> cpus, double elapsed_s) {
  if (!used.cpu_s || !cpus || *cpus <= 0 || elapsed_s < 0) return false;
  // Elapsed times are whole seconds: a second for each CPU is no contradiction.
  return *used.cpu_s > (elapsed_s + 1) * *cpus * 1.05;
}

}  // namespace expanse::schedulers::slurm
