#include "collect/gpu/collector.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/subprocess.h"

namespace expanse::collect {
namespace {

constexpr std::string_view kUsualDirectories =
    "/usr/bin:/usr/local/bin:/bin:/usr/local/nvidia/bin:/opt/bin:/usr/lib/wsl/lib:/run/"
    "current-system/sw/bin";

// Both names of the throttle reasons: drivers before 535 know the one, later ones may drop it.
const std::vector<std::string> kDeviceFields = {"index",
                                                "uuid",
                                                "name",
                                                "pci.bus_id",
                                                "mig.mode.current",
                                                "utilization.gpu",
                                                "utilization.memory",
                                                "memory.used",
                                                "memory.total",
                                                "power.draw",
                                                "enforced.power.limit",
                                                "temperature.gpu",
                                                "temperature.memory",
                                                "clocks.current.sm",
                                                "clocks.current.memory",
                                                "clocks_event_reasons.active",
                                                "clocks_throttle_reasons.active",
                                                "ecc.errors.uncorrected.volatile.total"};
const std::vector<std::string> kProcessFields = {"gpu_uuid", "pid", "used_gpu_memory"};

}  // namespace

GpuCollector::GpuCollector(HostView view, GpuOptions options)
    : Collector("gpu"),
      view_(std::move(view)),
      options_(std::move(options)),
      state_(view_.node, options_.period) {}

GpuCollector::~GpuCollector() { StopImpl(); }

bool GpuCollector::StartImpl() {
  std::string program = options_.nvidia_smi;
  if (program.empty()) program = base::FindProgram("nvidia-smi", kUsualDirectories).value_or("");
  if (program.empty() || !base::Exists(program)) return false;
  owners_ = std::make_unique<OwnerFinder>(view_.root);
  SmiStream::Options options;
  options.program = program;
  options.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  options.period = std::max(options_.period, std::chrono::seconds(1));
  options.query = "query-gpu";
  options.fields = kDeviceFields;
  // The first reading of many devices without persistence mode takes long.
  options.silence_allowed = 3 * options.period + std::chrono::seconds(30);
  devices_ = std::make_unique<SmiStream>(options);
  options.query = "query-compute-apps";
  options.fields = kProcessFields;
  options.silence_allowed = std::chrono::seconds(0);  // an idle device has no rows
  processes_ = std::make_unique<SmiStream>(options);
  return true;
}

void GpuCollector::StopImpl() {
  devices_.reset();
  processes_.reset();
  state_.Clear();
}

void GpuCollector::Take(std::vector<SmiLine> lines, base::MonoTime now) {
  for (SmiLine& line : lines) {
    if (auto* reading = std::get_if<GpuReading>(&line))
      state_.TakeReading(std::move(*reading), now);
    if (auto* process = std::get_if<GpuProcess>(&line))
      state_.TakeProcess(std::move(*process), now);
  }
}

void GpuCollector::CollectImpl(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
                               SampleSink& sink) {
  checked_at_ = tick.wall;
  // Processes first: so the owners of a device are at most as old as its reading.
  Take(processes_->Poll(tick.mono), tick.mono);
  Take(devices_->Poll(tick.mono), tick.mono);
  state_.SetProcessesKnown(processes_->healthy());
  state_.Emit(tick, workloads, [&](pid_t pid) { return owners_->Find(pid, workloads); }, sink);
  owners_->Sweep();
}

evidence::HealthRow GpuCollector::health() const {
  using Kind = SmiNotice::Kind;
  evidence::HealthRow row;
  row.collector = name();
  row.checked_at = checked_at_;
  row.status = evidence::HealthStatus::kOk;
  row.figures = {{"devices", static_cast<double>(state_.devices())}};
  const auto set = [&](evidence::HealthStatus status, std::string reason, std::string message) {
    row.status = status;
    row.reason = std::move(reason);
    row.message = std::move(message);
  };
  if (devices_ == nullptr) {
    set(evidence::HealthStatus::kDisabled, "not_found", "there is no nvidia-smi on this host");
    return row;
  }
  row.figures["starts"] = devices_->starts() + processes_->starts();
  const SmiNotice& trouble = devices_->trouble();
  if (!trouble.detail.empty() && trouble.kind == Kind::kNoDevices) {
    set(evidence::HealthStatus::kDegraded, "no_devices", trouble.detail);
  } else if (!trouble.detail.empty() && trouble.kind == Kind::kNoPermission) {
    set(evidence::HealthStatus::kDegraded, "no_permission", trouble.detail);
  } else if (!trouble.detail.empty()) {
    set(evidence::HealthStatus::kFailed, "driver_error", trouble.detail);
  } else if (!processes_->healthy() && !processes_->trouble().detail.empty()) {
    set(evidence::HealthStatus::kDegraded, "no_processes",
        "the driver does not tell which processes use the GPUs: " + processes_->trouble().detail);
  } else if (state_.divided() > 0) {
    set(evidence::HealthStatus::kDegraded, "mig",
        fmt::format(
            "{} devices are divided into instances, whose utilisation nvidia-smi does not give",
            state_.divided()));
  }
  return row;
}

}  // namespace expanse::collect
