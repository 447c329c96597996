#include "data/metrics_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "data/queries.h"
#include "expanse/data/v1/query_service.pb.h"
#include "net/proto_time.h"

namespace expanse::data {
namespace {

using base::Code;
using std::chrono::seconds;

constexpr std::uint32_t kDefaultPoints = 5000;
constexpr std::uint32_t kMostPoints = 100'000;
constexpr std::size_t kLongestName = 512;
constexpr std::int64_t kLongestInterval = 366LL * 86'400;
// "No end": far away, and still a time that every backend can compute with.
constexpr base::WallTime kForever{seconds(253'402'300'799)};

std::unexpected<base::Error> Invalid(std::string reason, std::string message) {
  return base::Fail(Code::kInvalidArgument, std::move(reason), std::move(message));
}

void PutInfo(const store::SeriesInfo& in, v1::SeriesInfo* out) {
  out->set_metric(in.key.metric);
  out->set_source(in.key.source);
  out->set_node(in.key.node);
  if (in.key.gpu_index) out->set_gpu_index(*in.key.gpu_index);
  out->set_gpu_uuid(in.key.gpu_uuid);
  out->set_attribution(in.attribution);
  out->set_unit(in.unit);
  out->set_point_count(in.point_count);
  net::PutTime(in.first, out->mutable_first_at());
  net::PutTime(in.last, out->mutable_last_at());
}

double ValueOf(const store::Bucket& bucket, v1::Aggregation aggregation) {
  switch (aggregation) {
    case v1::AGGREGATION_MIN:
      return bucket.min;
    case v1::AGGREGATION_MAX:
      return bucket.max;
    case v1::AGGREGATION_SUM:
      return bucket.sum;
    case v1::AGGREGATION_P95:
      return bucket.p95;
    case v1::AGGREGATION_LAST:
      return bucket.last;
    case v1::AGGREGATION_UNSPECIFIED:
    case v1::AGGREGATION_AVG:
    // protoc's own guards for the size of the enum; refused before.
    case v1::Aggregation_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Aggregation_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return bucket.avg();
}

struct Window {
  base::WallTime from{};
  base::WallTime to = kForever;
};

base::Result<Window> TakeWindow(const v1::QueryMetricRequest& request,
                                const evidence::Execution& execution) {
  Window window;
  if (request.has_from()) {
    EXPANSE_ASSIGN_OR_RETURN(window.from, net::ReadTime(request.from(), "from"));
  }
  if (request.has_to()) {
    EXPANSE_ASSIGN_OR_RETURN(window.to, net::ReadTime(request.to(), "to"));
  }
  if (window.from >= window.to) return Invalid("window.order", "from must be before to");
  const std::optional<base::WallTime> begin =
      execution.started_at ? execution.started_at : execution.submitted_at;
  if (begin)
    window.from = std::max(window.from, base::WallTime(std::chrono::floor<seconds>(*begin)));
  if (execution.ended_at) {
    window.to = std::min(
        window.to, base::WallTime(std::chrono::floor<seconds>(*execution.ended_at) + seconds(2)));
  }
  return window;
}

base::Result<seconds> TakeInterval(const v1::QueryMetricRequest& request) {
  if (!request.has_interval()) return seconds(0);
  const google::protobuf::Duration& interval = request.interval();
  if (interval.nanos() != 0 || interval.seconds() < 1 || interval.seconds() > kLongestInterval) {
    return Invalid("interval.range", "interval is in whole seconds, from 1s to 366 days");
  }
  return seconds(interval.seconds());
}

base::Status CheckRequest(const v1::QueryMetricRequest& request) {
  if (request.metric().empty())
    return Invalid("metric.missing", "metric is missing; ListMetrics tells which there are");
  if (request.metric().size() > kLongestName || request.source().size() > kLongestName) {
    return Invalid("metric.too_long",
                   fmt::format("metric and source have at most {} bytes", kLongestName));
  }
  if (!v1::Aggregation_IsValid(request.aggregation()))
    return Invalid("aggregation.unknown", "aggregation is not known");
  if (request.max_points() > kMostPoints) {
    return Invalid("max_points.range", fmt::format("max_points is from 1 to {}", kMostPoints));
  }
  return {};
}

// How many series a query will find.
base::Result<std::size_t> CountSeries(store::SeriesStore& series, const store::SeriesQuery& query) {
  EXPANSE_ASSIGN_OR_RETURN(const std::vector<store::SeriesInfo> infos,
                           series.List(query.compute_id, query.scope, query.source));
  return static_cast<std::size_t>(
      std::count_if(infos.begin(), infos.end(), [&](const store::SeriesInfo& info) {
        return info.key.metric == query.metric && store::OfNodes(query.nodes, info.key.node) &&
               (!query.gpu_index || info.key.gpu_index == query.gpu_index);
      }));
}

void PutSeries(const store::SeriesResult& in, v1::Aggregation aggregation, bool fallback,
               v1::MetricSeries* out) {
  PutInfo(in.info, out->mutable_info());
  out->set_truncated(in.truncated);
  out->set_fallback(fallback);
  out->mutable_points()->Reserve(static_cast<int>(in.buckets.size()));
  for (const store::Bucket& bucket : in.buckets) {
    v1::MetricPoint* point = out->add_points();
    net::PutTime(bucket.start, point->mutable_timestamp());
    point->set_value(ValueOf(bucket, aggregation));
    point->set_min(bucket.min);
    point->set_max(bucket.max);
    point->set_avg(bucket.avg());
    point->set_sample_count(bucket.count);
  }
}

}  // namespace

base::Result<v1::ListMetricsResponse> MetricsQuery::ListMetrics(
    const net::CallContext& context, const v1::ListMetricsRequest& request) {
  EXPANSE_ASSIGN_OR_RETURN(const evidence::Execution execution,
                           FindExecution(records_, context, request.execution_id()));
  if (request.source().size() > kLongestName)
    return Invalid("metric.too_long", "source is too long");
  EXPANSE_ASSIGN_OR_RETURN(
      const std::vector<store::SeriesInfo> infos,
      series_.List(execution.compute_id, execution.execution_id, request.source()));
  v1::ListMetricsResponse response;
  for (const store::SeriesInfo& info : infos) PutInfo(info, response.add_series());
  return response;
}

base::Result<v1::QueryMetricResponse> MetricsQuery::QueryMetric(
    const net::CallContext& context, const v1::QueryMetricRequest& request) {
  EXPANSE_ASSIGN_OR_RETURN(const evidence::Execution execution,
                           FindExecution(records_, context, request.execution_id()));
  EXPANSE_RETURN_IF_ERROR(CheckRequest(request));
  EXPANSE_ASSIGN_OR_RETURN(const Window window, TakeWindow(request, execution));
  store::SeriesQuery query{.compute_id = execution.compute_id,
                           .scope = execution.execution_id,
                           .metric = request.metric(),
                           .source = request.source(),
                           .gpu_index = std::nullopt,
                           .nodes = {},
                           .from = window.from,
                           .to = window.to};
  if (request.has_gpu_index()) query.gpu_index = request.gpu_index();
  EXPANSE_ASSIGN_OR_RETURN(query.interval, TakeInterval(request));

  v1::QueryMetricResponse response;
  bool fallback = false;
  EXPANSE_ASSIGN_OR_RETURN(std::size_t count, CountSeries(series_, query));
  if (count == 0 && request.allow_fallback()) {
    fallback = true;
    query.scope.clear();
    query.nodes = execution.nodes;  // the compute may have others, which the run never touched
    EXPANSE_ASSIGN_OR_RETURN(count, CountSeries(series_, query));
  }
  // The asked-for window may lie outside the run's life.
  if (count == 0 || window.from >= window.to) return response;
  const std::size_t wanted = request.max_points() == 0 ? kDefaultPoints : request.max_points();
  query.max_points = std::clamp<std::size_t>(options_.max_response_points / count, 1, wanted);
  EXPANSE_ASSIGN_OR_RETURN(const std::vector<store::SeriesResult> results, series_.Query(query));
  for (const store::SeriesResult& result : results)
    PutSeries(result, request.aggregation(), fallback, response.add_series());
  return response;
}

}  // namespace expanse::data
