#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/cli_testing.h"

namespace expanse::cli {
namespace {

const std::string kTestData = std::string(EXPANSE_SOURCE_DIR) + "/testdata";
const std::string kId = "0191e7a0-0000-8000-8000-000000000001";

data::v1::MetricSeries MakeSeries(const std::string& metric, const std::string& source,
                                  const std::string& unit) {
  data::v1::MetricSeries series;
  series.mutable_info()->set_metric(metric);
  series.mutable_info()->set_source(source);
  series.mutable_info()->set_unit(unit);
  series.mutable_info()->set_node("n1");
  return series;
}

void AddPoint(data::v1::MetricSeries* series, std::int64_t second, double min, double avg,
              double max, int samples) {
  auto* point = series->add_points();
  point->mutable_timestamp()->set_seconds(second);
  point->mutable_timestamp()->set_nanos(500'000'000);
  point->set_value(avg);
  point->set_min(min);
  point->set_max(max);
  point->set_avg(avg);
  point->set_sample_count(static_cast<std::uint64_t>(samples));
}

class MetricsCommand : public testing::Test {
 protected:
  MetricsCommand() {
    auto memory = MakeSeries("memory", "cgroup", "bytes");
    AddPoint(&memory, 1'790'000'000, 100, 200, 300, 1);
    AddPoint(&memory, 1'790'000'010, 0, 314572800.5, 400000000, 3);
    *platform_.metrics["memory"].add_series() = memory;
    for (std::uint32_t gpu = 0; gpu < 2; ++gpu) {
      auto util = MakeSeries("gpu-util", "nvidia-smi", "percent");
      util.mutable_info()->set_gpu_index(gpu);
      util.mutable_info()->set_gpu_uuid("GPU-0\"" + std::to_string(gpu) + ",x");
      util.mutable_info()->set_attribution(gpu == 0 ? "exclusive" : "idle_held");
      AddPoint(&util, 1'790'000'000, 1.0 / 3, 2.0 / 3, 99.5, 10);
      *platform_.metrics["gpu-util"].add_series() = util;
    }
    auto counter = MakeSeries("DCGM_FI_PROF_SM_ACTIVE", "dcgm", "ratio");
    AddPoint(&counter, 1'790'000'000, 0, 0.5, 1, 2);
    *platform_.metrics["DCGM_FI_PROF_SM_ACTIVE"].add_series() = counter;
    harness_.SignIn(platform_);
  }
  FakePlatform platform_;
  CliHarness harness_;
  FakeTerminal& terminal_ = harness_.terminal;
};

TEST_F(MetricsCommand, SummaryInAPipeAndOnATerminal) {
  ASSERT_EQ(harness_.Run({"metrics", kId, "memory", "gpu-util"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "metrics-pipe.txt", terminal_.out);
  EXPECT_EQ(terminal_.err, "");
  terminal_.width = 100;
  ASSERT_EQ(harness_.Run({"metrics", kId, "memory", "gpu-util"}), 0);
  ExpectGolden(kTestData, "metrics-terminal.txt", terminal_.out);
}

TEST_F(MetricsCommand, CsvHasTheDocumentedColumns) {
  ASSERT_EQ(harness_.Run({"metrics", kId, "memory", "gpu-util", "--csv"}), 0);
  EXPECT_EQ(terminal_.out.substr(0, terminal_.out.find('\n')),
            "timestamp,metric,source,gpu_index,gpu_uuid,value,min,max,avg,sample_count,unit");
  ExpectGolden(kTestData, "metrics.csv", terminal_.out);
}

TEST_F(MetricsCommand, JsonIsOneDocumentPerMetric) {
  ASSERT_EQ(harness_.Run({"metrics", kId, "memory", "gpu-util", "--json"}), 0);
  ExpectGolden(kTestData, "metrics.json", terminal_.out);
}

TEST_F(MetricsCommand, OptionsReachTheServer) {
  ASSERT_EQ(harness_.Run({"metrics", kId, "gpu-util", "--interval", "1m", "--agg", "p95", "--from",
                          "2026-11-30T09:00:00Z", "--to", "2026-11-30T10:00:00Z", "--gpu", "1",
                          "--allow-fallback", "--dcgm", "--max-points", "100000"}),
            0)
      << terminal_.err;
  ASSERT_EQ(platform_.queried.size(), 1U);
  const auto& query = platform_.queried[0];
  EXPECT_EQ(query.execution_id(), kId);
  EXPECT_EQ(query.metric(), "gpu-util");
  EXPECT_EQ(query.source(), "dcgm");
  EXPECT_EQ(query.interval().seconds(), 60);
  EXPECT_EQ(query.aggregation(), data::v1::AGGREGATION_P95);
  EXPECT_EQ(query.to().seconds() - query.from().seconds(), 3600);
  EXPECT_EQ(query.gpu_index(), 1U);
  EXPECT_EQ(query.max_points(), 100'000U);
  EXPECT_TRUE(query.allow_fallback());
}

TEST_F(MetricsCommand, DefaultsAreRawPointsAndFiveThousandOfThem) {
  ASSERT_EQ(harness_.Run({"metrics", kId, "memory", "--since", "2h"}), 0);
  const auto& query = platform_.queried.at(0);
  EXPECT_FALSE(query.has_interval());
  EXPECT_FALSE(query.has_gpu_index());
  EXPECT_FALSE(query.has_to());
  EXPECT_EQ(query.aggregation(), data::v1::AGGREGATION_AVG);
  EXPECT_EQ(query.max_points(), 5000U);
  const auto now = base::ToMicros(harness_.clock.Now()) / 1'000'000;
  EXPECT_NEAR(static_cast<double>(query.from().seconds()), static_cast<double>(now - 7200), 5);
}

TEST_F(MetricsCommand, AllAsksForEveryMetricOfTheSource) {
  ASSERT_EQ(harness_.Run({"metrics", kId, "--dcgm", "--all", "--csv"}), 0) << terminal_.err;
  ASSERT_EQ(platform_.queried.size(), 1U);
  EXPECT_EQ(platform_.queried[0].metric(), "DCGM_FI_PROF_SM_ACTIVE");
  ASSERT_EQ(harness_.Run({"metrics", kId, "--cupti", "--all", "--csv"}), 0);
  EXPECT_NE(terminal_.err.find("the execution has no cupti series"), std::string::npos);
}

TEST_F(MetricsCommand, JobIdsAreResolved) {
  data::v1::Execution execution;
  execution.set_execution_id(kId);
  execution.set_native_id("41982");
  platform_.executions = {execution};
  ASSERT_EQ(harness_.Run({"metrics", "--job", "41982", "--source-type", "slurm", "memory"}), 0)
      << terminal_.err;
  EXPECT_EQ(platform_.got.source_type(), common::v1::SOURCE_TYPE_SLURM);
  EXPECT_EQ(platform_.queried.at(0).execution_id(), kId);
  EXPECT_EQ(harness_.Run({"metrics", "--job", "7", "memory"}), 3);
}

TEST_F(MetricsCommand, WarningsKeepTheDataClean) {
  platform_.metrics["memory"].mutable_series(0)->set_truncated(true);
  platform_.metrics["memory"].mutable_series(0)->set_fallback(true);
  ASSERT_EQ(harness_.Run({"metrics", kId, "memory", "memroy", "--csv"}), 0);
  EXPECT_EQ(terminal_.out.find("warning"), std::string::npos);
  EXPECT_EQ(terminal_.err,
            "expanse: warning: 'memory' has more points than --max-points; a wider --interval "
            "shows them all\n"
            "expanse: warning: 'memory' is the compute's own series and may include other jobs\n"
            "expanse: warning: no points of 'memroy' in this window; did you mean 'memory'?\n");
}

TEST_F(MetricsCommand, RefusesWhatDoesNotGoTogether) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"metrics"}, "EXECUTION is missing"},
      {{"metrics", kId}, "METRIC is missing"},
      {{"metrics", "cpu", "memory"}, "'cpu' is not an execution id"},
      {{"metrics", "41982", "memory"}, "Try: expanse metrics --job 41982"},
      {{"metrics", kId, "cpu", "--cupti", "--dcgm"}, "exclude each other"},
      {{"metrics", kId, "--all"}, "--all needs a source"},
      {{"metrics", kId, "cpu", "--all", "--dcgm"}, "--all takes no metric names"},
      {{"metrics", kId, "cpu", "--since", "1h", "--to", "2026-11-30T10:00:00Z"},
       "--since excludes"},
      {{"metrics", kId, "cpu", "--from", "2026-11-30T10:00:00Z", "--to", "2026-11-30T09:00:00Z"},
       "must be before"},
      {{"metrics", kId, "cpu", "--interval", "1500ms"}, "not in whole seconds"},
      {{"metrics", kId, "cpu", "--interval", "0s"}, "must be at least 1s"},
      {{"metrics", kId, "cpu", "--max-points", "0"}, "must be from 1 to 100000"},
      {{"metrics", kId, "cpu", "--gpu", "-1"}, "must be from 0"},
      {{"metrics", kId, "cpu", "--source-type", "slurm"}, "--job"},
      {{"metrics", kId, "cpu", "--csv", "--json"}, "exclude each other"},
  };
  const int before = platform_.calls();
  for (const auto& [words, message] : cases) {
    EXPECT_EQ(harness_.Run(words), 2) << message;
    EXPECT_NE(terminal_.err.find(message), std::string::npos) << terminal_.err;
    EXPECT_NE(terminal_.err.find("\nTry: "), std::string::npos) << terminal_.err;
    EXPECT_EQ(terminal_.out, "");
  }
  EXPECT_EQ(platform_.calls(), before);
}

}  // namespace
}  // namespace expanse::cli
