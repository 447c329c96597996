#include "intelligence/diagnose_case/assemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "intelligence/diagnose_case/activity.h"
#include "intelligence/history/history_testing.h"

namespace expanse::intelligence::diagnose_case {
namespace {

using history::TestJob;
using testing::ElementsAre;

constexpr double kGiB = 1024.0 * 1024 * 1024;

TEST(GrowthOf, FindsAStraightLine) {
  std::vector<Point> points;
  for (int minute = 0; minute < 30; ++minute)
    points.push_back({.at_s = 60.0 * minute, .value = 100.0 + 2.0 * minute});
  const auto slope = GrowthOf(points);
  ASSERT_TRUE(slope);
  EXPECT_NEAR(*slope, 2.0 / 60, 1e-9);
}

TEST(GrowthOf, SaysNothingOfNoiseStepsAndShortRuns) {
  std::vector<Point> noise;
  std::vector<Point> flat;
  for (int minute = 0; minute < 30; ++minute) {
    noise.push_back({.at_s = 60.0 * minute, .value = minute % 2 == 0 ? 1.0 : 5.0});
    flat.push_back({.at_s = 60.0 * minute, .value = 7});
  }
  EXPECT_FALSE(GrowthOf(noise));
  EXPECT_FALSE(GrowthOf(flat));
  EXPECT_FALSE(GrowthOf({}));
  EXPECT_FALSE(GrowthOf({{0, 1}, {60, 2}, {120, 3}, {180, 4}, {240, 5}}));
}

class AssembleTest : public history::HistoryWorld {
 protected:
  evidence::Execution Failed() {
    TestJob job{.id = "e1"};
    job.status = evidence::ExecutionStatus::kFailed;
    job.outcome = evidence::Outcome::kFailure;
    job.minutes = 60;
    job.files = {{.path = "job.sh", .role = "script", .data = "#!/bin/sh\npython train.py\n"}};
    evidence::Execution execution = ExecutionOf(job);
    execution.labels["x"] = "y";
    Put(job, execution);
    auto stored = records_->Get("org", "e1");
    EXPECT_TRUE(stored);
    return *stored;
  }

  void PutLog(const std::string& id, const std::string& text) {
    auto blob = blobs_->Put(text);
    ASSERT_TRUE(blob);
    store::EvidenceChange change = Change({.id = id});
    change.log_tail = store::LogTailRow{.stream = "stderr",
                                        .data_blob = *blob,
                                        .offset = 10,
                                        .total_bytes = 10 + text.size(),
                                        .first_error_blob = {},
                                        .first_error_offset = 0,
                                        .redactions = 0};
    Apply({.id = id}, {change});
  }

  // One value a minute; NaN leaves a gap.
  void PutSeries(const evidence::Execution& of, const std::string& metric,
                 const std::vector<double>& values) {
    std::vector<base::WallTime> times;
    for (std::size_t minute = 0; minute < values.size(); ++minute)
      times.push_back(*of.started_at + std::chrono::minutes(minute));
    store::SeriesAppend append{.key = {.compute_id = of.compute_id,
                                       .scope = of.execution_id,
                                       .metric = metric,
                                       .source = "cgroup",
                                       .node = "n1",
                                       .gpu_index = {},
                                       .gpu_uuid = {}},
                               .unit = "",
                               .attribution = "",
                               .times = times,
                               .values = values};
    ASSERT_TRUE(series_->Append({.compute_id = of.compute_id, .stream_id = metric, .sequence = 1},
                                std::span(&append, 1)));
  }

  base::Result<diagnose::Case> Gather(const evidence::Execution& execution) {
    return Assemble(
        {.records = *records_, .blobs = *blobs_, .series = *series_, .history = *history_},
        {.organisation_id = "org", .execution = execution});
  }
};

TEST_F(AssembleTest, TakesLogsSourcesAndLimits) {
  const evidence::Execution execution = Failed();
  PutLog("e1", "Traceback\n");
  const auto of = Gather(execution);
  ASSERT_TRUE(of) << of.error().message;
  ASSERT_EQ(of->logs.size(), 1U);
  EXPECT_EQ(of->logs[0].data, "Traceback\n");
  EXPECT_EQ(of->logs[0].offset, 10U);
  ASSERT_EQ(of->sources.size(), 1U);
  EXPECT_EQ(of->sources[0].path, "job.sh");
  EXPECT_EQ(of->snapshot.runtime_s, 3600);
  EXPECT_EQ(of->snapshot.walltime_s, 3600);
  EXPECT_EQ(of->snapshot.host_ram_requested_bytes, 16 * kGiB);
  EXPECT_EQ(of->snapshot.host_ram_observed_peak_bytes, 4 * kGiB);
  EXPECT_EQ(of->series_count, 0U);
  EXPECT_FALSE(of->snapshot.idle_tail_s);
  EXPECT_TRUE(of->similar.empty());
}

TEST_F(AssembleTest, WorksWithNothingButTheRecord) {
  evidence::Execution execution;
  execution.execution_id = "e9";
  execution.compute_id = "c1";
  execution.status = evidence::ExecutionStatus::kFailed;
  const auto of = Gather(execution);
  ASSERT_TRUE(of) << of.error().message;
  EXPECT_TRUE(of->logs.empty());
  EXPECT_TRUE(of->sources.empty());
  EXPECT_FALSE(of->snapshot.runtime_s);
}

TEST_F(AssembleTest, SeesHowLongItStoodStill) {
  const evidence::Execution execution = Failed();
  std::vector<double> cpu(60, 0.0);
  for (std::size_t minute = 0; minute < 20; ++minute) cpu[minute] = 3.5;
  PutSeries(execution, "cpu", cpu);
  const auto of = Gather(execution);
  ASSERT_TRUE(of);
  ASSERT_TRUE(of->snapshot.idle_tail_s);
  EXPECT_NEAR(*of->snapshot.idle_tail_s, 40 * 60, 61);
}

TEST_F(AssembleTest, DoesNotTakeMissingSamplesForIdleness) {
  const evidence::Execution execution = Failed();
  PutSeries(execution, "cpu", std::vector<double>(20, 3.5));
  const auto of = Gather(execution);
  ASSERT_TRUE(of);
  EXPECT_FALSE(of->snapshot.idle_tail_s);
}

TEST_F(AssembleTest, SeesMemoryThatGrows) {
  const evidence::Execution execution = Failed();
  std::vector<double> memory;
  for (int minute = 0; minute < 60; ++minute) memory.push_back(kGiB + 0.1 * kGiB * minute);
  PutSeries(execution, "memory", memory);
  const auto of = Gather(execution);
  ASSERT_TRUE(of);
  ASSERT_TRUE(of->snapshot.memory_growth_bytes_per_hour);
  EXPECT_NEAR(*of->snapshot.memory_growth_bytes_per_hour / kGiB, 6.0, 0.1);
}

TEST_F(AssembleTest, FindsRunsOfTheSameSourceButNotItself) {
  const evidence::Execution execution = Failed();
  for (const char* id : {"e2", "e3"}) {
    TestJob job{.id = id};
    job.files = {{.path = "job.sh", .role = "script", .data = "#!/bin/sh\npython train.py\n"}};
    Put(job);
  }
  CatchUp();
  const auto of = Gather(execution);
  ASSERT_TRUE(of);
  EXPECT_EQ(of->similar_basis, predict::Basis::kExactBundle);
  std::vector<std::string> ids;
  for (const diagnose::SimilarRun& similar : of->similar) ids.push_back(similar.run.execution_id);
  EXPECT_THAT(ids, ElementsAre("e2", "e3"));
}

}  // namespace
}  // namespace expanse::intelligence::diagnose_case
