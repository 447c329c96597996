#include "daemon/capture.h"

#include <utility>

#include "daemon/step_pacer.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kStartAgainAfter = 1min;
constexpr auto kHealthEvery = 5s;
constexpr auto kSpoolStopsWithin = 2s;
constexpr std::string_view kSection = "capture";

}  // namespace

Capture::Capture(CaptureOptions options,
                 std::vector<std::unique_ptr<schedulers::Observer>> observers,
                 std::vector<SamplerSource> sources, Outboxes& outboxes, HealthBoard& board,
                 base::Clock& clock, ClusterReporter* cluster_reporter,
                 std::unique_ptr<spool::SpoolDrain> drain)
    : options_(options),
      outboxes_(outboxes),
      board_(board),
      clock_(clock),
      sampler_(
          std::move(options.sampler), std::move(sources),
          [&outboxes](evidence::SampleBatch batch, base::WallTime at) {
            return outboxes.EmitSamples(std::move(batch), at);
          },
          clock),
      cluster_reporter_(cluster_reporter),
      drain_(std::move(drain)) {
  for (auto& observer : observers) observers_.push_back({.observer = std::move(observer)});
}

void Capture::TryStart(Watched* watched, base::MonoTime now) {
  auto started = watched->observer->Start();
  watched->started = started.has_value();
  if (started) return;
  watched->retry_at = now + kStartAgainAfter;
  if (watched->error.message != started.error().message) {
    base::LogWarn("observer.not_started", {{"observer", watched->observer->name()},
                                           {"reason", started.error().reason},
                                           {"message", started.error().message}});
  }
  watched->error = std::move(started.error());
}

void Capture::Start() {
  for (Watched& watched : observers_) TryStart(&watched, clock_.Mono());
  sampler_.Start();
  board_.Post(kSection, {}, clock_.Mono());
}

void Capture::Observe(const collect::Tick& tick) {
  running_.clear();
  for (Watched& watched : observers_) {
    if (!watched.started && tick.mono >= watched.retry_at) TryStart(&watched, tick.mono);
    if (!watched.started) continue;
    watched.observer->Observe(tick, outboxes_);
    const auto& running = watched.observer->running();
    running_.insert(running_.end(), running.begin(), running.end());
    auto state = watched.observer->TakeClusterState();
    if (state && cluster_reporter_ != nullptr) cluster_reporter_->Post(std::move(*state));
  }
}

void Capture::FlushOutboxes() {
  if (auto flushed = outboxes_.Flush(); !flushed && flush_log_.Allow()) {
    base::LogError("outbox.flush_failed", {{"message", flushed.error().message}});
  }
}

void Capture::PostHealth(const collect::Tick& tick) {
  if (tick.mono < next_health_) {
    board_.Touch(kSection, tick.mono);
    return;
  }
  next_health_ = tick.mono + kHealthEvery;
  std::vector<evidence::HealthRow> rows = sampler_.health(tick.wall);
  if (drain_) {
    for (evidence::HealthRow& row : drain_->health(tick.wall)) rows.push_back(std::move(row));
  }
  for (const Watched& watched : observers_) {
    if (watched.started) {
      for (evidence::HealthRow& row : watched.observer->health()) rows.push_back(std::move(row));
      continue;
    }
    rows.push_back({.collector = std::string(watched.observer->name()),
                    .status = evidence::HealthStatus::kFailed,
                    .reason = watched.error.reason,
                    .message = watched.error.message,
                    .checked_at = tick.wall,
                    .figures = {}});
  }
  board_.Post(kSection, std::move(rows), tick.mono);
}

void Capture::Step() {
  const collect::Tick tick{.wall = clock_.Now(), .mono = clock_.Mono()};
  Observe(tick);
  if (drain_) drain_->Step(tick);
  sampler_.Step(tick, running_);
  FlushOutboxes();
  PostHealth(tick);
}

void Capture::Stop() {
  const collect::Tick tick{.wall = clock_.Now(), .mono = clock_.Mono()};
  Observe(tick);
  // A file server that does not answer is not waited for.
  if (drain_ && !drain_->Stop(kSpoolStopsWithin)) base::LogWarn("spool.left_behind");
  sampler_.Stop();
  for (Watched& watched : observers_) {
    if (watched.started) watched.observer->Stop();
  }
  FlushOutboxes();
}

void Capture::Run(std::stop_token stop) {
  Start();
  StepPacer pacer({.interval = options_.observe_interval, .directory = options_.wake_directory},
                  clock_);
  while (!stop.stop_requested()) {
    Step();
    pacer.Wait(stop);
  }
  Stop();
}

}  // namespace expanse::daemon
