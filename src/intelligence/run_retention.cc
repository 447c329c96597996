#include "intelligence/run_retention.h"

#include "base/log.h"

namespace expanse::intelligence {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRunsPerStep = 200;
constexpr auto kBreath = 20ms;  // between two steps, for those who write

}  // namespace

RunRetention::RunRetention(const IntelligenceOptions& options, store::RunStore& runs,
                           base::Clock& clock, base::MetricRegistry& metrics)
    : options_(options),
      runs_(runs),
      clock_(clock),
      removed_(metrics.GetCounter("expanse_retention_removed_total",
                                  "What was removed because its time was over.",
                                  {{"kind", "runs"}})),
      failures_(metrics.GetCounter("expanse_run_retention_failures_total",
                                   "Steps of the retention of runs that failed.")) {}

void RunRetention::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    if (!clock_.WaitFor(stop, 1min)) return;
    do {
      RunOnce(stop);
    } while (clock_.WaitFor(stop, options_.retention_interval));
  });
}

void RunRetention::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void RunRetention::RunOnce(const std::stop_token& stop) {
  const base::WallTime before = clock_.Now() - options_.keep_runs;
  if (options_.keep_runs.count() > 0)
    DropAll(stop, "old runs", [&] { return runs_.DropBefore(before, kRunsPerStep); });
  DropAll(stop, "old failure classes",
          [&] { return runs_.labels().DropBefore(before, kRunsPerStep); });
  if (options_.runs_per_user > 0) {
    DropAll(stop, "runs beyond their number",
            [&] { return runs_.DropBeyond(options_.runs_per_user, kRunsPerStep); });
  }
  if (options_.auto_diagnose_runs > 0) {
    DropAll(stop, "automatic diagnoses beyond their number",
            [&] { return runs_.DropSystemBeyond(options_.auto_diagnose_runs, kRunsPerStep); });
  }
}

void RunRetention::DropAll(const std::stop_token& stop, std::string_view what,
                           const std::function<base::Result<std::size_t>()>& drop) {
  while (!stop.stop_requested()) {
    const auto dropped = drop();
    if (!dropped) {
      failures_.Add();
      base::LogWarn(
          "intelligence.retention",
          {{"what", what}, {"reason", dropped.error().reason}, {"error", dropped.error().message}});
      return;
    }
    removed_.Add(*dropped);
    if (*dropped < kRunsPerStep || !clock_.WaitFor(stop, kBreath)) return;
  }
}

}  // namespace expanse::intelligence
