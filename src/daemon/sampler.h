// Runs the collectors and packs what they measure: a full round every interval, and faster rounds
// for workloads in their first minute. Points are gathered per scope (one workload, or the compute
// itself) into columns and leave for the outbox as batches. Each round's own cost is measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "collect/collector.h"
#include "evidence/records.h"

namespace expanse::daemon {

struct SamplerOptions {
  std::string node;
  std::chrono::milliseconds interval{10'000};
  std::chrono::milliseconds young_interval{1000};
  std::chrono::milliseconds young_for{60'000};  // how long a workload counts as young
  std::chrono::milliseconds flush_interval{10'000};
  std::size_t flush_points = 20'000;  // per scope; earlier than the interval when reached
  std::size_t max_scopes = 10'000;    // beyond: points are dropped and counted
  std::size_t max_columns = 4096;     // per scope; likewise
};

struct SamplerSource {
  std::unique_ptr<collect::Collector> collector;
  // Measures workloads one by one and keeps its state per workload, so that it can be asked about
  // the young ones alone.
  bool in_young_rounds = false;
};

// Where batches go; false: not taken (the points are lost, and counted there).
using BatchSink =
    std::function<base::Status(evidence::SampleBatch batch, base::WallTime observed_at)>;

// Not thread-safe; the capture thread owns it.
class Sampler final : private collect::SampleSink {
 public:
  Sampler(SamplerOptions options, std::vector<SamplerSource> sources, BatchSink sink,
          base::Clock& clock);

  void Start();
  // Runs a round if one is due at `tick`, and passes on batches that are due.
  void Step(const collect::Tick& tick, const std::vector<collect::TrackedWorkload>& running);
  // Passes on all there is, for shutdown.
  void Flush();
  void Stop();

  // A row per collector, and "sampler" with what the rounds cost.
  std::vector<evidence::HealthRow> health(base::WallTime now) const;

 private:
  struct Column {
    evidence::SeriesColumn series;  // values: one per row of the scope, NaN where there was none
    bool used = false;              // since the last batch
  };
  struct Scope {
    std::optional<evidence::ExecutionKey> key;
    std::vector<base::WallTime> times;
    std::vector<Column> columns;
    std::unordered_map<std::string, std::size_t> index;  // identity of a series -> column
    base::MonoTime since{};                              // of the first row
    std::uint64_t alive = 0;  // the last marking (MarkRunning) that found the workload running
    std::size_t points = 0;
  };

  void Add(const collect::TrackedWorkload* workload, const evidence::SeriesColumn& series,
           double value) override;
  Scope* FindScope(const collect::TrackedWorkload* workload);
  // Null when there are too many.
  Scope* FindOrMakeScope(const collect::TrackedWorkload* workload);
  bool MarkRunning(const std::vector<collect::TrackedWorkload>& running);
  void Round(const collect::Tick& tick, const std::vector<collect::TrackedWorkload>& workloads,
             bool young);
  void AddOwnCost();
  void Emit(Scope* scope);
  void EmitDue(const collect::Tick& tick, bool sweep);

  const SamplerOptions options_;
  std::vector<SamplerSource> sources_;
  const BatchSink sink_;
  base::Clock& clock_;
  const evidence::SeriesColumn cpu_series_;
  const evidence::SeriesColumn memory_series_;

  std::map<std::string, Scope, std::less<>>
      scopes_;            // by source type and identity; "" is the compute
  collect::Tick tick_{};  // of the running round
  collect::Tick last_step_{};
  std::uint64_t round_ = 0;
  bool young_round_ = false;
  base::MonoTime next_full_{};
  base::MonoTime next_young_{};
  std::uint64_t fingerprint_ = 0;  // of the workloads at the last look
  std::uint64_t alive_ = 0;
  std::string identity_buffer_;  // reused, for speed
  std::string name_buffer_;

  std::uint64_t rounds_ = 0;
  std::uint64_t points_ = 0;
  std::uint64_t points_dropped_ = 0;
  std::uint64_t batches_refused_ = 0;
  double last_cpu_ms_ = 0;
  double total_cpu_ms_ = 0;
  double own_rss_bytes_ = 0;
  double own_cpu_cores_ = 0;
  std::optional<double> own_cpu_s_;  // of the process, at own_cpu_at_
  base::MonoTime own_cpu_at_{};
  std::string last_refusal_;
  base::RateLimit refusal_log_{std::chrono::seconds(60)};
};

}  // namespace expanse::daemon
