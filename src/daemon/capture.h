// The capture loop: looks at the observers about every second, samples what runs, and makes what
// was gathered durable.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "collect/collector.h"
#include "daemon/cluster_reporter.h"
#include "daemon/health_board.h"
#include "daemon/outboxes.h"
#include "daemon/sampler.h"
#include "daemon/spool/spool_drain.h"
#include "schedulers/observer.h"

namespace expanse::daemon {

struct CaptureOptions {
  std::chrono::milliseconds observe_interval{1000};
  // A file that is written there is looked at at once (events of hooks); empty: none.
  std::string wake_directory;
  SamplerOptions sampler;
};

// One thread calls Start, then Step or Run, then Stop.
class Capture {
 public:
  // `cluster_reporter` gets the observers' snapshots; null: they are dropped. `drain` takes what
  // samplers of other hosts left; null: there are none. It may use the observers.
  Capture(CaptureOptions options, std::vector<std::unique_ptr<schedulers::Observer>> observers,
          std::vector<SamplerSource> sources, Outboxes& outboxes, HealthBoard& board,
          base::Clock& clock, ClusterReporter* cluster_reporter = nullptr,
          std::unique_ptr<spool::SpoolDrain> drain = nullptr);

  // An observer that cannot start is tried again every minute.
  void Start();
  void Step();
  // Start, steps until `stop`, then a last look and Stop.
  void Run(std::stop_token stop);
  // Observes a last time and flushes all to disk.
  void Stop();

 private:
  struct Watched {
    std::unique_ptr<schedulers::Observer> observer;
    bool started = false;
    base::MonoTime retry_at{};
    base::Error error{};
  };
  void TryStart(Watched* watched, base::MonoTime now);
  void Observe(const collect::Tick& tick);
  void FlushOutboxes();
  void PostHealth(const collect::Tick& tick);

  const CaptureOptions options_;
  std::vector<Watched> observers_;
  Outboxes& outboxes_;
  HealthBoard& board_;
  base::Clock& clock_;
  Sampler sampler_;
  std::vector<collect::TrackedWorkload> running_;
  ClusterReporter* const cluster_reporter_;
  const std::unique_ptr<spool::SpoolDrain> drain_;
  base::MonoTime next_health_{};
  base::RateLimit flush_log_{std::chrono::seconds(60)};
};

}  // namespace expanse::daemon
