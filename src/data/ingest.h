// Takes evidence from computes, exactly once: blobs first, series second, records last, then the
// acknowledgement (ARCHITECTURE.md). Whatever fails on the way leaves the watermark where it was,
// and the daemon's next try repairs it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "data/bounds.h"
#include "data/options.h"
#include "net/caller.h"
#include "store/blobs/blob_store.h"
#include "store/records/evidence_store.h"
#include "store/series/series_store.h"

namespace expanse::data::v1 {
class IngestRequest;
class IngestResponse;
class ReportClusterStateRequest;
class ReportClusterStateResponse;
class ReportHealthRequest;
class ReportHealthResponse;
}  // namespace expanse::data::v1

namespace expanse::data {

// Thread-safe. Batches of one stream are applied one at a time; a second one meanwhile is told
// unavailable (ingest.in_progress).
class Ingest {
 public:
  Ingest(const DataOptions& options, store::EvidenceStore& records, store::SeriesStore& series,
         store::BlobStore& blobs, base::Clock& clock, base::MetricRegistry& metrics);

  // Records that are malformed or out of bounds are named in the answer and count as acknowledged.
  // Fails with invalid_argument (ingest.stream, ingest.batch), resource_exhausted
  // (ingest.record_rate, ingest.sample_rate) or unavailable (ingest.in_progress, ingest.store):
  // then nothing was acknowledged and the same records may be sent again.
  base::Result<v1::IngestResponse> Apply(const net::CallContext& context,
                                         const v1::IngestRequest& request);
  base::Result<v1::ReportHealthResponse> ReportHealth(const net::CallContext& context,
                                                      const v1::ReportHealthRequest& request);
  base::Result<v1::ReportClusterStateResponse> ReportClusterState(
      const net::CallContext& context, const v1::ReportClusterStateRequest& request);

 private:
  struct Batch;
  base::Status CheckRequest(const v1::IngestRequest& request) const;
  // Decodes what is above the watermark, in order; refused records go to the batch's answer.
  void TakeRecords(const v1::IngestRequest& request, std::uint64_t watermark, Batch* batch) const;
  base::Status Store(Batch* batch);
  base::Status PutBlobs(Batch* batch);
  base::Status AppendSeries(Batch* batch);
  base::Status AppendOneByOne(std::uint64_t taken, Batch* batch);
  // The series of the record that are known already, after store said that there are too many.
  base::Status AppendKnown(std::uint64_t sequence, const evidence::SampleBatch& samples,
                           Batch* batch);
  base::Status ApplyRecords(Batch* batch);
  base::Status ApplyOneByOne(Batch* batch);

  const DataOptions options_;
  store::EvidenceStore& records_;
  store::SeriesStore& series_;
  store::BlobStore& blobs_;
  base::Clock& clock_;
  ComputeBounds bounds_;

  std::mutex mutex_;                                    // guards busy_
  std::set<std::pair<std::string, std::string>> busy_;  // (compute, stream) being applied

  base::Counter& applied_;
  base::Counter& rejected_;
  base::Counter& skipped_;
  base::Counter& samples_;
  base::Counter& store_failures_;
  base::Histogram& seconds_;
};

}  // namespace expanse::data
