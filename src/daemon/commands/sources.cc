#include "daemon/commands/sources.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>

#include "collect/cgroup/collector.h"
#include "collect/gpu/collector.h"
#include "collect/host/collector.h"
#include "collect/process/collector.h"

namespace expanse::daemon {
namespace {

// Descriptors that one collector may keep open. The usual limit of 1024 is less than two collectors
// and all else want together, and the outbox must never be the one that gets none.
std::size_t FilesOfCollector() {
  constexpr rlim_t kWanted = 4096;
  constexpr rlim_t kForAllElse = 256;
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < kWanted) {
    struct rlimit raised = limit;
    raised.rlim_cur = std::min(kWanted, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const rlim_t left = limit.rlim_cur - std::min(limit.rlim_cur, kForAllElse);
  return static_cast<std::size_t>(std::min<rlim_t>(left / 2, 512));
}

}  // namespace

std::vector<SamplerSource> MakeSources(const base::Settings& settings, const std::string& node) {
  const collect::HostView view{
      .root = settings.GetString("root"), .node = node, .open_files = FilesOfCollector()};
  const std::vector<std::string> disabled = settings.GetList("collect.disable");
  std::vector<SamplerSource> sources;
  auto add = [&](std::string_view name, auto make, bool in_young_rounds) {
    if (std::find(disabled.begin(), disabled.end(), name) != disabled.end()) return;
    sources.push_back({.collector = make(), .in_young_rounds = in_young_rounds});
  };
  add(
      "host", [&] { return std::make_unique<collect::HostCollector>(view); },
      /*in_young_rounds=*/false);
  add(
      "cgroup", [&] { return std::make_unique<collect::CgroupCollector>(view); },
      /*in_young_rounds=*/true);
  add(
      "process", [&] { return std::make_unique<collect::ProcessCollector>(view); },
      /*in_young_rounds=*/true);
  // nvidia-smi reads at a pace of its own.
  const auto period = std::max(
      std::chrono::duration_cast<std::chrono::seconds>(settings.GetDuration("sample.interval")),
      std::chrono::seconds(1));
  add(
      "gpu",
      [&] {
        return std::make_unique<collect::GpuCollector>(
            view, collect::GpuOptions{.nvidia_smi = settings.GetString("collect.nvidia_smi"),
                                      .period = period});
      },
      /*in_young_rounds=*/false);
  return sources;
}

}  // namespace expanse::daemon
