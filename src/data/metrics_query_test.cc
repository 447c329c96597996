#include "data/metrics_query.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "data/data_testing.h"
#include "data/ingest.h"
#include "expanse/data/v1/query_service.pb.h"

namespace expanse::data {
namespace {

using base::Code;
using evidence::Execution;
using std::chrono::milliseconds;
using std::chrono::seconds;

base::WallTime TimeOf(const google::protobuf::Timestamp& time) {
  return base::WallTime(seconds(time.seconds()) + std::chrono::microseconds(time.nanos() / 1000));
}
void SetTime(base::WallTime time, google::protobuf::Timestamp* out) {
  out->set_seconds(base::ToMicros(time) / 1'000'000);
  out->set_nanos(static_cast<std::int32_t>(base::ToMicros(time) % 1'000'000 * 1000));
}

class MetricsQueryTest : public testing::TestWithParam<Backend> {
 protected:
  void Put(std::vector<evidence::Record> records) {
    for (evidence::Record& record : records) record.sequence = ++sequence_;
    const auto response = ingest_.Apply(ComputeCall(), RequestOf(records));
    ASSERT_TRUE(response) << response.error().message;
    ASSERT_EQ(response->rejected_size(), 0) << response->rejected(0).message();
  }
  // A run "r1" that started at now_, with the samples.
  void PutRun(const evidence::SampleBatch& batch, std::optional<base::WallTime> ended = {}) {
    Put({RunRecord(0, now_, "r1", [&](Execution* e) { e->ended_at = ended; }),
         {.sequence = 0, .observed_at = now_, .payload = batch}});
  }
  evidence::SampleBatch Batch(std::string_view identity, std::vector<base::WallTime> times,
                              std::vector<double> values) {
    evidence::Record record = SampleRecord(0, now_, identity, 0);
    auto batch = std::get<evidence::SampleBatch>(record.payload);
    batch.times = std::move(times);
    batch.columns[0].values = std::move(values);
    return batch;
  }
  // Points a second apart from now_: 0, 1, 2, …
  evidence::SampleBatch Ramp(std::string_view identity, int count) {
    std::vector<base::WallTime> times;
    std::vector<double> values;
    for (int i = 0; i < count; ++i) times.push_back(now_ + seconds(i)), values.push_back(i);
    return Batch(identity, std::move(times), std::move(values));
  }
  v1::QueryMetricRequest Request(std::string_view metric = "cpu") {
    v1::QueryMetricRequest request;
    request.set_execution_id(IdOf("r1"));
    request.set_metric(std::string(metric));
    return request;
  }
  v1::QueryMetricResponse Query(const v1::QueryMetricRequest& request) {
    const auto response = query_.QueryMetric(UserCall(), request);
    EXPECT_TRUE(response) << response.error().message;
    return response ? *response : v1::QueryMetricResponse{};
  }
  std::string Reason(const v1::QueryMetricRequest& request) {
    const auto response = query_.QueryMetric(UserCall(), request);
    if (response) return "accepted";
    EXPECT_EQ(response.error().code, Code::kInvalidArgument);
    return response.error().reason;
  }

  base::FakeClock clock_;
  const base::WallTime now_ = clock_.Now();
  base::MetricRegistry metrics_;
  TestStores stores_ = MakeStores(GetParam(), clock_);
  DataOptions options_{.records_per_second = 0, .samples_per_second = 0};
  Ingest ingest_{options_, *stores_.records, *stores_.series, *stores_.blobs, clock_, metrics_};
  MetricsQuery query_{options_, *stores_.records, *stores_.series};
  std::uint64_t sequence_ = 0;
};

TEST_P(MetricsQueryTest, GivesRawPointsWithoutAnInterval) {
  PutRun(Ramp("r1", 3));
  const auto response = Query(Request());
  ASSERT_EQ(response.series_size(), 1);
  const v1::MetricSeries& series = response.series(0);
  EXPECT_EQ(series.info().metric(), "cpu");
  EXPECT_EQ(series.info().source(), "cgroup");
  EXPECT_EQ(series.info().unit(), "cores");
  EXPECT_FALSE(series.info().has_gpu_index());
  EXPECT_EQ(series.info().point_count(), 3U);
  EXPECT_FALSE(series.truncated());
  EXPECT_FALSE(series.fallback());
  ASSERT_EQ(series.points_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(TimeOf(series.points(i).timestamp()), now_ + seconds(i));
    for (const double value : {series.points(i).value(), series.points(i).min(),
                               series.points(i).max(), series.points(i).avg()}) {
      EXPECT_EQ(value, i);
    }
    EXPECT_EQ(series.points(i).sample_count(), 1U);
  }
}

// What the answer must be, worked out point by point.
struct Expected {
  double min, max, avg, sum, p95, last;
  std::uint64_t count;
};
std::map<base::WallTime, Expected> BruteForce(const std::map<base::WallTime, double>& points,
                                              base::WallTime from, base::WallTime to,
                                              std::int64_t interval_s) {
  std::map<base::WallTime, std::vector<double>> groups;
  for (const auto& [time, value] : points) {
    if (time < from || time >= to) continue;
    const std::int64_t micros = base::ToMicros(time);
    groups[base::FromMicros(micros - micros % (interval_s * 1'000'000))].push_back(value);
  }
  std::map<base::WallTime, Expected> expected;
  for (const auto& [start, values] : groups) {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    double sum = 0;
    for (const double value : values) sum += value;
    const auto rank =
        static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(values.size()) - 1e-9));
    expected[start] = {sorted.front(),
                       sorted.back(),
                       sum / static_cast<double>(values.size()),
                       sum,
                       sorted[rank - 1],
                       values.back(),
                       values.size()};
  }
  return expected;
}

TEST_P(MetricsQueryTest, AgreesWithABruteForceReference) {
  std::mt19937 random(42);
  std::map<base::WallTime, double> points;
  std::vector<base::WallTime> times;
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) {
    const base::WallTime at = now_ + std::chrono::microseconds(random() % 1'000'000'000);
    const double value = std::uniform_real_distribution<double>(-1e6, 1e6)(random);
    times.push_back(at);
    values.push_back(value);
    points[at] = value;
  }
  PutRun(Batch("r1", times, values));
  for (const std::int64_t interval : {1, 7, 60, 3600}) {
    const base::WallTime from = now_ + std::chrono::microseconds(random() % 400'000'000);
    const base::WallTime to = from + std::chrono::microseconds(1 + random() % 600'000'000);
    const auto expected = BruteForce(points, from, to, interval);
    auto request = Request();
    SetTime(from, request.mutable_from());
    SetTime(to, request.mutable_to());
    request.mutable_interval()->set_seconds(interval);
    const std::pair<v1::Aggregation, double Expected::*> aggregations[] = {
        {v1::AGGREGATION_UNSPECIFIED, &Expected::avg}, {v1::AGGREGATION_AVG, &Expected::avg},
        {v1::AGGREGATION_MIN, &Expected::min},         {v1::AGGREGATION_MAX, &Expected::max},
        {v1::AGGREGATION_SUM, &Expected::sum},         {v1::AGGREGATION_P95, &Expected::p95},
        {v1::AGGREGATION_LAST, &Expected::last}};
    for (const auto& [aggregation, member] : aggregations) {
      SCOPED_TRACE(testing::Message()
                   << v1::Aggregation_Name(aggregation) << " over " << interval << "s");
      request.set_aggregation(aggregation);
      const auto response = Query(request);
      ASSERT_EQ(response.series_size(), 1);
      ASSERT_EQ(response.series(0).points_size(), static_cast<int>(expected.size()));
      auto want = expected.begin();
      for (const v1::MetricPoint& point : response.series(0).points()) {
        ASSERT_EQ(TimeOf(point.timestamp()), want->first);
        EXPECT_NEAR(point.value(), want->second.*member, 1e-6);
        EXPECT_EQ(point.min(), want->second.min);
        EXPECT_EQ(point.max(), want->second.max);
        EXPECT_NEAR(point.avg(), want->second.avg, 1e-6);
        EXPECT_EQ(point.sample_count(), want->second.count);
        ++want;
      }
    }
  }
}

TEST_P(MetricsQueryTest, CutsTheWindowToTheRunsLife) {
  std::vector<base::WallTime> times = {now_ - seconds(5), now_, now_ + seconds(10),
                                       now_ + seconds(10) + milliseconds(900), now_ + seconds(60)};
  PutRun(Batch("r1", times, {1, 2, 3, 4, 5}), now_ + seconds(10) + milliseconds(200));
  const auto response = Query(Request());
  ASSERT_EQ(response.series(0).points_size(), 3) << "not before the start, nor long after the end";
  EXPECT_EQ(response.series(0).points(0).value(), 2);
  EXPECT_EQ(response.series(0).points(2).value(), 4)
      << "the last sample may be stamped a moment after the end";
}

TEST_P(MetricsQueryTest, TakesAnyWindowWithinTheRun) {
  PutRun(Ramp("r1", 10));
  auto request = Request();
  SetTime(now_ + seconds(3), request.mutable_from());
  SetTime(now_ + seconds(6), request.mutable_to());
  const auto response = Query(request);
  ASSERT_EQ(response.series(0).points_size(), 3);
  EXPECT_EQ(response.series(0).points(0).value(), 3) << "from is inclusive";
  EXPECT_EQ(response.series(0).points(2).value(), 5) << "to is exclusive";
}

TEST_P(MetricsQueryTest, GivesNothingForAWindowOutsideTheRun) {
  PutRun(Ramp("r1", 5), now_ + seconds(5));
  auto request = Request();
  SetTime(now_ + seconds(100), request.mutable_from());
  EXPECT_EQ(Query(request).series_size(), 0);
}

TEST_P(MetricsQueryTest, TellsWhenPointsWereLeftOut) {
  PutRun(Ramp("r1", 10));
  auto request = Request();
  request.set_max_points(4);
  auto response = Query(request);
  EXPECT_EQ(response.series(0).points_size(), 4);
  EXPECT_TRUE(response.series(0).truncated());
  EXPECT_EQ(response.series(0).points(3).value(), 3) << "the earliest are kept";
  request.set_max_points(10);
  response = Query(request);
  EXPECT_EQ(response.series(0).points_size(), 10);
  EXPECT_FALSE(response.series(0).truncated());
}

evidence::SampleBatch GpuBatch(base::WallTime at, std::string_view identity, std::uint32_t gpus,
                               std::string_view node) {
  evidence::SampleBatch batch;
  if (!identity.empty()) batch.key = HostKey(identity);
  batch.times = {at};
  for (std::uint32_t i = 0; i < gpus; ++i) {
    batch.columns.push_back({.metric = "gpu-util",
                             .source = "nvidia-smi",
                             .node = std::string(node),
                             .gpu_index = i,
                             .gpu_uuid = "GPU-" + std::to_string(i),
                             .attribution = "exclusive",
                             .unit = "percent",
                             .values = {static_cast<double>(i)}});
  }
  return batch;
}

TEST_P(MetricsQueryTest, FiltersByGpu) {
  PutRun(GpuBatch(now_, "r1", 3, "n1"));
  auto request = Request("gpu-util");
  EXPECT_EQ(Query(request).series_size(), 3);
  request.set_gpu_index(0);
  EXPECT_EQ(Query(request).series_size(), 1);
  EXPECT_EQ(Query(request).series(0).info().gpu_index(), 0U);
  EXPECT_EQ(Query(request).series(0).info().gpu_uuid(), "GPU-0");
  EXPECT_EQ(Query(request).series(0).info().attribution(), "exclusive");
  request.set_gpu_index(7);
  EXPECT_EQ(Query(request).series_size(), 0);
}

TEST_P(MetricsQueryTest, FiltersBySource) {
  PutRun(Ramp("r1", 2));
  auto request = Request();
  request.set_source("cgroup");
  EXPECT_EQ(Query(request).series_size(), 1);
  request.set_source("dcgm");
  EXPECT_EQ(Query(request).series_size(), 0);
}

TEST_P(MetricsQueryTest, KeepsOneAnswerWithinItsBound) {
  PutRun(GpuBatch(now_, "r1", 4, "n1"));
  for (int i = 1; i < 50; ++i)
    Put({{.sequence = 0,
          .observed_at = now_,
          .payload = GpuBatch(now_ + seconds(i), "r1", 4, "n1")}});
  MetricsQuery bounded({.max_response_points = 100}, *stores_.records, *stores_.series);
  const auto response = bounded.QueryMetric(UserCall(), Request("gpu-util"));
  ASSERT_TRUE(response);
  ASSERT_EQ(response->series_size(), 4);
  for (const auto& series : response->series()) {
    EXPECT_EQ(series.points_size(), 25);
    EXPECT_TRUE(series.truncated());
  }
}

TEST_P(MetricsQueryTest, WidensToTheComputeOnlyWhenAskedAndOnlyWithoutOwnSeries) {
  evidence::SampleBatch compute = Ramp("", 5);
  Put({RunRecord(0, now_ + seconds(1), "r1",
                 [&](Execution* e) { e->ended_at = now_ + seconds(2); }),
       {.sequence = 0, .observed_at = now_, .payload = compute}});
  auto request = Request();
  EXPECT_EQ(Query(request).series_size(), 0);
  request.set_allow_fallback(true);
  auto response = Query(request);
  ASSERT_EQ(response.series_size(), 1);
  EXPECT_TRUE(response.series(0).fallback());
  EXPECT_EQ(response.series(0).points_size(), 3) << "cut to the run's life";
  Put({{.sequence = 0, .observed_at = now_, .payload = Batch("r1", {now_ + seconds(1)}, {9})}});
  response = Query(request);
  ASSERT_EQ(response.series_size(), 1);
  EXPECT_FALSE(response.series(0).fallback());
  EXPECT_EQ(response.series(0).points(0).value(), 9);
}

TEST_P(MetricsQueryTest, WidensToNoNodeThatTheRunWasNotOn) {
  Put({RunRecord(0, now_, "r1", [](Execution* e) { e->nodes = {"n2"}; }),
       {.sequence = 0, .observed_at = now_, .payload = GpuBatch(now_, "", 1, "n1")},
       {.sequence = 0, .observed_at = now_, .payload = GpuBatch(now_, "", 1, "n2")}});
  auto request = Request("gpu-util");
  request.set_allow_fallback(true);
  const auto response = Query(request);
  ASSERT_EQ(response.series_size(), 1);
  EXPECT_EQ(response.series(0).info().node(), "n2");
}

TEST_P(MetricsQueryTest, SharesTheBoundOnPointsOnlyAmongTheNodesOfTheRun) {
  std::vector<evidence::Record> records = {
      RunRecord(0, now_, "r1", [](Execution* e) { e->nodes = {"n0"}; })};
  for (int node = 0; node < 4; ++node) {
    evidence::SampleBatch batch = Ramp("", 8);
    batch.columns.front().node = "n" + std::to_string(node);
    records.push_back({.sequence = 0, .observed_at = now_, .payload = batch});
  }
  Put(records);
  MetricsQuery bounded({.max_response_points = 8}, *stores_.records, *stores_.series);
  auto request = Request();
  request.set_allow_fallback(true);
  const auto response = bounded.QueryMetric(UserCall(), request);
  ASSERT_TRUE(response) << response.error().message;
  ASSERT_EQ(response->series_size(), 1);
  EXPECT_FALSE(response->series(0).truncated());
  EXPECT_EQ(response->series(0).points_size(), 8);
}

TEST_P(MetricsQueryTest, GivesNoSeriesForAnUnknownMetric) {
  PutRun(Ramp("r1", 2));
  auto request = Request("no-such-metric");
  EXPECT_EQ(Query(request).series_size(), 0);
  request.set_allow_fallback(true);
  EXPECT_EQ(Query(request).series_size(), 0);
}

TEST_P(MetricsQueryTest, RefusesBadRequests) {
  PutRun(Ramp("r1", 2));
  const auto with = [&](const std::function<void(v1::QueryMetricRequest*)>& change) {
    auto request = Request();
    change(&request);
    return Reason(request);
  };
  using Q = v1::QueryMetricRequest;
  EXPECT_EQ(with([](Q* r) { r->clear_metric(); }), "metric.missing");
  EXPECT_EQ(with([](Q* r) { r->set_metric(std::string(600, 'm')); }), "metric.too_long");
  EXPECT_EQ(with([](Q* r) { r->mutable_interval()->set_seconds(0); }), "interval.range");
  EXPECT_EQ(with([](Q* r) { r->mutable_interval()->set_seconds(-1); }), "interval.range");
  EXPECT_EQ(with([](Q* r) { r->mutable_interval()->set_nanos(500'000'000); }), "interval.range");
  EXPECT_EQ(with([](Q* r) { r->mutable_interval()->set_seconds(INT64_MAX); }), "interval.range");
  EXPECT_EQ(with([](Q* r) { r->set_max_points(100'001); }), "max_points.range");
  EXPECT_EQ(with([](Q* r) { r->set_aggregation(static_cast<v1::Aggregation>(42)); }),
            "aggregation.unknown");
  EXPECT_EQ(with([](Q* r) { r->mutable_from()->set_seconds(INT64_MAX); }), "time.range");
  EXPECT_EQ(with([](Q* r) { r->mutable_from()->set_seconds(9), r->mutable_to()->set_seconds(9); }),
            "window.order");
  EXPECT_EQ(with([](Q* r) { r->set_execution_id("41982"); }), "execution.id");
}

TEST_P(MetricsQueryTest, ListsTheSeriesOfARun) {
  PutRun(Ramp("r1", 4));
  Put({{.sequence = 0, .observed_at = now_, .payload = GpuBatch(now_, "r1", 2, "n1")},
       SampleRecord(0, now_, "", 1, "load")});
  v1::ListMetricsRequest request;
  request.set_execution_id(IdOf("r1"));
  const auto response = query_.ListMetrics(UserCall(), request);
  ASSERT_TRUE(response) << response.error().message;
  ASSERT_EQ(response->series_size(), 3) << "not those of the compute";
  EXPECT_EQ(response->series(0).metric(), "cpu");
  EXPECT_EQ(response->series(0).point_count(), 4U);
  EXPECT_EQ(TimeOf(response->series(0).first_at()), now_);
  EXPECT_EQ(TimeOf(response->series(0).last_at()), now_ + seconds(3));
  EXPECT_EQ(response->series(2).gpu_index(), 1U);
  request.set_source("nvidia-smi");
  EXPECT_EQ(query_.ListMetrics(UserCall(), request)->series_size(), 2);
}

TEST_P(MetricsQueryTest, HidesRunsOfOtherOrganisations) {
  PutRun(Ramp("r1", 2));
  const auto response = query_.QueryMetric(UserCall("org-2"), Request());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kNotFound);
  v1::ListMetricsRequest list;
  list.set_execution_id(IdOf("r1"));
  EXPECT_EQ(query_.ListMetrics(UserCall("org-2"), list).error().code, Code::kNotFound);
  EXPECT_EQ(query_.ListMetrics(ComputeCall(), list).error().code, Code::kPermissionDenied);
}

INSTANTIATE_TEST_SUITE_P(Backends, MetricsQueryTest, testing::ValuesIn(AllBackends()),
                         [](const auto& test) { return BackendName(test.param); });

}  // namespace
}  // namespace expanse::data
