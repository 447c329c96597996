// Removes evidence past its time, in the background and in short steps, so that ingest never waits.
#pragma once

#include <cstdint>
#include <stop_token>
#include <thread>

#include "base/metrics.h"
#include "base/time.h"
#include "data/options.h"
#include "store/blobs/blob_store.h"
#include "store/records/evidence_store.h"
#include "store/series/series_store.h"

namespace expanse::data {

// Start and Stop from one thread; RunOnce is thread-safe.
class Retention {
 public:
  Retention(const DataOptions& options, store::EvidenceStore& records, store::SeriesStore& series,
            store::BlobStore& blobs, base::Clock& clock, base::MetricRegistry& metrics);
  ~Retention() { Stop(); }

  // Runs a minute after the start and then every retention_interval, on a thread of its own; loose
  // blobs are looked for twice in the time that they are kept.
  void Start();
  // Returns once the step at work is done. Idempotent.
  void Stop();
  // One pass over all kinds: a kind that fails does not keep the others from theirs.
  void RunOnce(std::stop_token stop);

 private:
  void Pass(const std::stop_token& stop, bool sweep);
  void DropExecutions(const std::stop_token& stop, base::WallTime now);
  void DropSamples(const std::stop_token& stop, base::WallTime now);
  void SweepBlobs(const std::stop_token& stop, base::WallTime now);

  const DataOptions options_;
  store::EvidenceStore& records_;
  store::SeriesStore& series_;
  store::BlobStore& blobs_;
  base::Clock& clock_;
  base::Counter& executions_;
  base::Counter& samples_;
  base::Counter& swept_;
  base::Counter& failures_;
  std::jthread thread_;
};

}  // namespace expanse::data
