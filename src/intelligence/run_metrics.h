// What the plane counts about its runs, for /metrics.
#pragma once

#include <chrono>
#include <string_view>

#include "base/metrics.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence {

// Thread-safe; the registry outlives it.
class RunMetrics {
 public:
  explicit RunMetrics(base::MetricRegistry& registry) : registry_(registry) {}

  // `status`: "succeeded", "failed", "cached" (an earlier run's answer), "refused" (no run: the
  // target could not be read), "shed" (no run: too much to do).
  void Ended(store::RunKind kind, std::string_view status, std::chrono::duration<double> took);
  base::Gauge& queued();
  base::Gauge& running();

 private:
  base::MetricRegistry& registry_;
};

// "analyse", "diagnose".
std::string_view KindName(store::RunKind kind);

}  // namespace expanse::intelligence
