// Reads of metric series of executions.
#pragma once

#include "base/result.h"
#include "data/options.h"
#include "net/caller.h"
#include "store/records/evidence_store.h"
#include "store/series/series_store.h"

namespace expanse::data::v1 {
class ListMetricsRequest;
class ListMetricsResponse;
class QueryMetricRequest;
class QueryMetricResponse;
}  // namespace expanse::data::v1

namespace expanse::data {

// Thread-safe. Errors as those of Queries.
class MetricsQuery {
 public:
  MetricsQuery(const DataOptions& options, store::EvidenceStore& records,
               store::SeriesStore& series)
      : options_(options), records_(records), series_(series) {}

  base::Result<v1::ListMetricsResponse> ListMetrics(const net::CallContext& context,
                                                    const v1::ListMetricsRequest& request);
  // The window is cut to the run's lifetime, from the whole second in which it started to the end
  // of the one after it ended: samplers stamp their last sample a moment later. A series without
  // points in it has none in the answer; an unknown metric gives no series.
  base::Result<v1::QueryMetricResponse> QueryMetric(const net::CallContext& context,
                                                    const v1::QueryMetricRequest& request);

 private:
  const DataOptions options_;
  store::EvidenceStore& records_;
  store::SeriesStore& series_;
};

}  // namespace expanse::data
