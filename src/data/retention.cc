#include "data/retention.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace expanse::data {
namespace {

constexpr std::size_t kExecutionsPerStep = 200;
constexpr auto kFirstRun = std::chrono::minutes(1);
// Between two steps, so that writers get their turn at the store.
constexpr auto kBreath = std::chrono::milliseconds(20);

void LogFailure(std::string_view kind, const base::Error& error) {
  base::LogWarn("data.retention_failed",
                {{"kind", kind}, {"reason", error.reason}, {"message", error.message}});
}

}  // namespace

Retention::Retention(const DataOptions& options, store::EvidenceStore& records,
                     store::SeriesStore& series, store::BlobStore& blobs, base::Clock& clock,
                     base::MetricRegistry& metrics)
    : options_(options),
      records_(records),
      series_(series),
      blobs_(blobs),
      clock_(clock),
      executions_(metrics.GetCounter("expanse_retention_removed_total",
                                     "What was removed because it was past its time.",
                                     {{"kind", "executions"}})),
      samples_(metrics.GetCounter("expanse_retention_removed_total",
                                  "What was removed because it was past its time.",
                                  {{"kind", "samples"}})),
      swept_(metrics.GetCounter("expanse_retention_removed_total",
                                "What was removed because it was past its time.",
                                {{"kind", "blobs"}})),
      failures_(metrics.GetCounter("expanse_retention_failures_total",
                                   "Steps of retention that failed.")) {}

void Retention::Start() {
  if (thread_.joinable()) return;
  thread_ = std::jthread([this](std::stop_token stop) {
    if (!clock_.WaitFor(stop, kFirstRun)) return;
    // A sweep looks at every blob there is, a million of them or more.
    const auto sweep_every =
        std::max<base::Duration>(options_.retention_interval, options_.keep_loose_blobs / 2);
    std::optional<base::MonoTime> swept;
    do {
      const bool due = !swept || clock_.Mono() - *swept >= sweep_every;
      if (due) swept = clock_.Mono();
      Pass(stop, due);
    } while (clock_.WaitFor(stop, options_.retention_interval));
  });
}

void Retention::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Retention::RunOnce(std::stop_token stop) { Pass(stop, /*sweep=*/true); }

void Retention::Pass(const std::stop_token& stop, bool sweep) {
  const base::WallTime now = clock_.Now();
  DropExecutions(stop, now);
  if (!stop.stop_requested()) DropSamples(stop, now);
  if (sweep && !stop.stop_requested()) SweepBlobs(stop, now);
}

void Retention::DropExecutions(const std::stop_token& stop, base::WallTime now) {
  if (options_.keep_executions.count() == 0) return;
  while (!stop.stop_requested()) {
    const auto dropped =
        records_.DropExecutionsBefore(now - options_.keep_executions, kExecutionsPerStep);
    if (!dropped) {
      failures_.Add();
      return LogFailure("executions", dropped.error());
    }
    executions_.Add(*dropped);
    if (*dropped < kExecutionsPerStep || !clock_.WaitFor(stop, kBreath)) return;
  }
}

void Retention::DropSamples(const std::stop_token& stop, base::WallTime now) {
  if (options_.keep_samples.count() == 0) return;
  const auto dropped = series_.DropBefore(now - options_.keep_samples, stop);
  if (!dropped) {
    failures_.Add();
    return LogFailure("samples", dropped.error());
  }
  samples_.Add(*dropped);
}

void Retention::SweepBlobs(const std::stop_token& stop, base::WallTime now) {
  std::uint64_t unsure = 0;
  const auto referenced = [&](std::string_view name) {
    if (stop.stop_requested()) return true;
    const auto answer = records_.BlobReferenced(name);
    if (answer) return *answer;
    if (unsure++ == 0) LogFailure("blobs", answer.error());
    return true;  // not known to be loose
  };
  const auto swept = blobs_.Sweep(now - options_.keep_loose_blobs, referenced);
  if (!swept || unsure > 0) failures_.Add();
  if (!swept) return LogFailure("blobs", swept.error());
  swept_.Add(*swept);
}

}  // namespace expanse::data
