#include "data/data_plane.h"

#include <utility>

#include "expanse/data/v1/ingest_service.pb.h"
#include "expanse/data/v1/query_service.pb.h"
#include "net/connect_server.h"

namespace expanse::data {
namespace {

// Adds a method that is a member function of one of the parts.
template <typename Part, typename Request, typename Response>
void Add(net::ConnectRouter& router, const char* method, Part& part,
         base::Result<Response> (Part::*handler)(const net::CallContext&, const Request&)) {
  router.Add<Request, Response>(
      method, [&part, handler](const net::CallContext& context, const Request& request) {
        return (part.*handler)(context, request);
      });
}

}  // namespace

DataPlane::DataPlane(const DataOptions& options, store::EvidenceStore& records,
                     store::SeriesStore& series, store::BlobStore& blobs, ControlClient& control,
                     base::Clock& clock, base::MetricRegistry& metrics)
    : ingest_(options, records, series, blobs, clock, metrics),
      exchange_(options, control, clock, metrics),
      queries_(options, records, blobs),
      metrics_query_(options, records, series),
      retention_(options, records, series, blobs, clock, metrics) {}

base::Result<std::unique_ptr<DataPlane>> DataPlane::Create(
    DataOptions options, store::EvidenceStore& records, store::SeriesStore& series,
    store::BlobStore& blobs, ControlClient& control, base::Clock& clock,
    base::MetricRegistry& metrics) {
  // Settings check their ranges; this is for options that were put together in code.
  if (options.max_batch_records == 0 || options.max_batch_bytes == 0 ||
      options.retention_interval.count() <= 0 || options.max_response_points == 0 ||
      options.max_response_bytes == 0) {
    return base::Fail(base::Code::kInvalidArgument, "data.options",
                      "bounds and intervals of the data plane must not be 0");
  }
  return std::unique_ptr<DataPlane>(
      new DataPlane(options, records, series, blobs, control, clock, metrics));
}

void DataPlane::AddMethods(net::ConnectRouter& router) {
  Add(router, "expanse.data.v1.IngestService.ExchangeInstallToken", exchange_,
      &InstallExchange::Exchange);
  Add(router, "expanse.data.v1.IngestService.Ingest", ingest_, &Ingest::Apply);
  Add(router, "expanse.data.v1.IngestService.ReportHealth", ingest_, &Ingest::ReportHealth);
  Add(router, "expanse.data.v1.IngestService.ReportClusterState", ingest_,
      &Ingest::ReportClusterState);
  Add(router, "expanse.data.v1.QueryService.ListExecutions", queries_, &Queries::ListExecutions);
  Add(router, "expanse.data.v1.QueryService.GetExecution", queries_, &Queries::GetExecution);
  Add(router, "expanse.data.v1.QueryService.GetLogTail", queries_, &Queries::GetLogTail);
  Add(router, "expanse.data.v1.QueryService.GetSourceBundle", queries_, &Queries::GetSourceBundle);
  Add(router, "expanse.data.v1.QueryService.GetComputeHealth", queries_,
      &Queries::GetComputeHealth);
  Add(router, "expanse.data.v1.QueryService.GetClusterState", queries_, &Queries::GetClusterState);
  Add(router, "expanse.data.v1.QueryService.ListMetrics", metrics_query_,
      &MetricsQuery::ListMetrics);
  Add(router, "expanse.data.v1.QueryService.QueryMetric", metrics_query_,
      &MetricsQuery::QueryMetric);
}

}  // namespace expanse::data
