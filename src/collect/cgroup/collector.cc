#include "collect/cgroup/collector.h"

#include <fmt/format.h>

#include <algorithm>

namespace expanse::collect {
namespace {

constexpr std::chrono::seconds kEmptyUntilAlarm{20};

}  // namespace

CgroupCollector::CgroupCollector(HostView view)
    : Collector("cgroup"),
      view_(std::move(view)),
      fds_(view_.open_files),
      series_("cgroup", view_.node) {}

bool CgroupCollector::StartImpl() {
  const auto hierarchy = DetectHierarchy(view_.root);
  version_ = hierarchy ? hierarchy->version : CgroupVersion::kNone;
  return version_ != CgroupVersion::kNone;
}

void CgroupCollector::CollectImpl(const Tick& tick, const std::vector<TrackedWorkload>& workloads,
                                  SampleSink& sink) {
  checked_at_ = tick.wall;
  read_ = vanished_ = denied_ = 0;
  for (const TrackedWorkload& workload : workloads) {
    if (workload.cgroups.empty()) continue;
    Followed& followed = Follow(tick, workload);
    const auto usage = followed.reader.Read();
    if (usage) {
      ++read_;
      Emit(tick, workload, *usage, followed, sink);
    } else if (usage.error().code == base::Code::kPermissionDenied) {
      ++denied_;
    } else {
      ++vanished_;
    }
  }
  std::erase_if(followed_, [&](const auto& entry) {
    return tick.mono - entry.second->seen_at >= kWorkloadForgotten;
  });
  if (read_ > 0 || vanished_ == 0) {
    empty_since_.reset();
    empty_for_ = {};
  } else {
    if (!empty_since_) empty_since_ = tick.mono;
    empty_for_ = tick.mono - *empty_since_;
  }
}

CgroupCollector::Followed& CgroupCollector::Follow(const Tick& tick,
                                                   const TrackedWorkload& workload) {
  auto& followed = followed_[WorkloadKey(workload)];
  if (followed == nullptr || followed->paths != workload.cgroups) {
    followed = std::make_unique<Followed>(view_.root, workload.cgroups, &fds_);
  }
  followed->seen_at = tick.mono;
  return *followed;
}

void CgroupCollector::Emit(const Tick& tick, const TrackedWorkload& workload,
                           const CgroupUsage& usage, Followed& followed, SampleSink& sink) {
  const auto point = [&](std::string_view metric, std::optional<double> value) {
    if (value) sink.Add(&workload, series_[metric], *value);
  };
  const auto amount = [&](std::string_view metric, std::optional<std::uint64_t> value) {
    if (value) sink.Add(&workload, series_[metric], static_cast<double>(*value));
  };
  const auto rate = [&](std::string_view metric, std::optional<double> counter, double scale = 1) {
    if (!counter) return;
    auto per_second = followed.rates[metric].Update(*counter, tick.mono);
    if (!per_second && followed.first)
      per_second = RateSinceStart(*counter, workload.started, tick.wall);
    if (per_second) point(metric, *per_second * scale);
  };
  const auto share = [&](std::string_view metric, std::optional<double> seconds) {
    rate(metric, seconds, 100);
  };
  const auto number = [](std::optional<std::uint64_t> value) {
    return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
  };

  rate("cpu", usage.cpu_s);
  rate("cpu-user", usage.cpu_user_s);
  rate("cpu-system", usage.cpu_system_s);
  rate("cpu-throttled", usage.throttled_s);
  share("cpu-pressure", usage.cpu_pressure_s);
  amount("memory", usage.memory_need_bytes);
  amount("memory-current", usage.memory_current_bytes);
  amount("memory-peak", usage.memory_peak_bytes);
  amount("memory-limit", usage.memory_limit_bytes);
  amount("memory-anon", usage.memory_anon_bytes);
  amount("memory-file", usage.memory_file_bytes);
  amount("memory-shmem", usage.memory_shmem_bytes);
  amount("memory-kernel", usage.memory_kernel_bytes);
  share("memory-pressure", usage.memory_pressure_s);
  amount("oom-kills", usage.oom_kills);
  rate("io-read", number(usage.io_read_bytes));
  rate("io-write", number(usage.io_write_bytes));
  share("io-pressure", usage.io_pressure_s);
  amount("pids", usage.pids);
  followed.first = false;
}

evidence::HealthRow CgroupCollector::health() const {
  evidence::HealthRow row;
  row.collector = name();
  row.checked_at = checked_at_;
  row.status = evidence::HealthStatus::kOk;
  row.figures = {{"workloads", static_cast<double>(read_)},
                 {"vanished", static_cast<double>(vanished_)},
                 {"denied", static_cast<double>(denied_)},
                 {"version", version_ == CgroupVersion::kV2   ? 2
                             : version_ == CgroupVersion::kV1 ? 1
                                                              : 0}};
  if (version_ == CgroupVersion::kNone) {
    row.status = evidence::HealthStatus::kDisabled;
    row.reason = "not_found";
    row.message = "no cgroup hierarchy is mounted; executions are followed by their processes";
  } else if (denied_ > 0) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "no_permission";
    row.message = fmt::format("the cgroups of {} executions may not be read by this user", denied_);
  } else if (empty_for_ >= kEmptyUntilAlarm) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "not_found";
    row.message = fmt::format("{} executions run, but none of their cgroups is there", vanished_);
  }
  return row;
}

}  // namespace expanse::collect
