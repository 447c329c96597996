#include "intelligence/run_metrics.h"

#include <string>

namespace expanse::intelligence {

std::string_view KindName(store::RunKind kind) {
  switch (kind) {
    case store::RunKind::kAnalyse:
      return "analyse";
    case store::RunKind::kDiagnose:
      return "diagnose";
  }
  return "unknown";
}

void RunMetrics::Ended(store::RunKind kind, std::string_view status,
                       std::chrono::duration<double> took) {
  const std::string name(KindName(kind));
  registry_
      .GetCounter("expanse_runs_total", "Questions that were answered, failed or turned away.",
                  {{"kind", name}, {"status", std::string(status)}})
      .Add();
  registry_
      .GetHistogram("expanse_run_seconds",
                    "Time that a question took, without waiting in the queue.",
                    {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
                    {{"kind", name}})
      .Observe(took.count());
}

base::Gauge& RunMetrics::queued() {
  return registry_.GetGauge("expanse_runs_queued", "Runs that wait in the queue.");
}

base::Gauge& RunMetrics::running() {
  return registry_.GetGauge("expanse_runs_running", "Questions that are being worked on.");
}

}  // namespace expanse::intelligence
