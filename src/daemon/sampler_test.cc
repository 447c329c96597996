#include "daemon/sampler.h"

#include <gtest/gtest.h>

#include <cmath>

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

// Adds one point per workload (and one for the compute), counting its calls.
class FakeCollector final : public collect::Collector {
 public:
  FakeCollector(std::string name, std::string metric)
      : Collector(std::move(name)), metric_(std::move(metric)) {}
  evidence::HealthRow health() const override {
    return {.collector = std::string(name()), .status = status};
  }

  int collects = 0;
  bool compute_too = true;
  evidence::HealthStatus status = evidence::HealthStatus::kOk;
  bool startable = true;
  bool stopped = false;
  double value = 1;

 private:
  bool StartImpl() override { return startable; }
  void CollectImpl(const collect::Tick&, const std::vector<collect::TrackedWorkload>& workloads,
                   collect::SampleSink& sink) override {
    ++collects;
    const evidence::SeriesColumn series{
        .metric = metric_, .source = std::string(name()), .node = "n1", .unit = "cores"};
    for (const auto& workload : workloads) sink.Add(&workload, series, value);
    if (compute_too) sink.Add(nullptr, series, value * 10);
  }
  void StopImpl() override { stopped = true; }
  std::string metric_;
};

class SamplerTest : public testing::Test {
 protected:
  SamplerTest() {
    auto host = std::make_unique<FakeCollector>("host", "cpu");
    auto cgroup = std::make_unique<FakeCollector>("cgroup", "memory");
    host_ = host.get();
    cgroup_ = cgroup.get();
    cgroup_->compute_too = false;
    std::vector<SamplerSource> sources;
    sources.push_back({.collector = std::move(host)});
    sources.push_back({.collector = std::move(cgroup), .in_young_rounds = true});
    SamplerOptions options;
    options.node = "n1";
    options.max_scopes = 4;
    sampler_ = std::make_unique<Sampler>(
        options, std::move(sources),
        [this](evidence::SampleBatch batch, base::WallTime) -> base::Status {
          if (refuse_) return base::Fail(base::Code::kResourceExhausted, "outbox.full", "full");
          batches_.push_back(std::move(batch));
          return {};
        },
        clock_);
    sampler_->Start();
  }
  void Seconds(int count) {
    for (int i = 0; i < count; ++i) {
      sampler_->Step({clock_.Now(), clock_.Mono()}, running_);
      clock_.Advance(1s);
    }
  }
  void Begin(const std::string& id) {
    running_.push_back({.key = {evidence::SourceType::kHost, id}, .started = clock_.Now()});
  }
  // Points of a metric over all batches of one scope.
  std::vector<double> Points(const std::string& identity, const std::string& metric) const {
    std::vector<double> points;
    for (const auto& batch : batches_) {
      if ((batch.key ? batch.key->identity : "") != identity) continue;
      for (const auto& column : batch.columns) {
        EXPECT_EQ(column.values.size(), batch.times.size());
        if (column.metric != metric) continue;
        for (double v : column.values) {
          if (!std::isnan(v)) points.push_back(v);
        }
      }
    }
    return points;
  }

  base::FakeClock clock_;
  FakeCollector* host_ = nullptr;
  FakeCollector* cgroup_ = nullptr;
  std::vector<collect::TrackedWorkload> running_;
  std::vector<evidence::SampleBatch> batches_;
  bool refuse_ = false;
  std::unique_ptr<Sampler> sampler_;
};

TEST_F(SamplerTest, SamplesTheComputeEveryInterval) {
  Seconds(60);
  EXPECT_EQ(host_->collects, 6);
  EXPECT_EQ(cgroup_->collects, 6);
  sampler_->Stop();
  EXPECT_EQ(Points("", "cpu"), std::vector<double>(6, 10));
  EXPECT_TRUE(host_->stopped);
}

TEST_F(SamplerTest, KeepsTheNodesOfOneExecutionApart) {
  Begin("job");
  Begin("job");
  running_[0].node = "node1";
  running_[1].node = "node2";
  Seconds(1);
  sampler_->Stop();
  std::vector<std::string> nodes;
  for (const auto& batch : batches_) {
    if (!batch.key) continue;
    EXPECT_EQ(batch.key->identity, "job");
    for (const auto& column : batch.columns) {
      if (column.metric == "memory") nodes.push_back(column.node);
    }
  }
  EXPECT_EQ(nodes, (std::vector<std::string>{"node1", "node2"}));
}

TEST_F(SamplerTest, SamplesAYoungWorkloadEverySecondAndNothingElseSo) {
  Begin("old");
  running_[0].started -= 2h;
  Seconds(20);
  Begin("young");
  Seconds(90);
  sampler_->Stop();
  EXPECT_EQ(host_->collects, 11);
  // 60 seconds at 1 s, then every 10 s.
  EXPECT_NEAR(double(Points("young", "memory").size()), 63, 1);
  EXPECT_EQ(Points("old", "memory").size(), 11U);
  EXPECT_EQ(Points("", "cpu").size(), 11U);
}

TEST_F(SamplerTest, TimesWithinABatchAscendAcrossClockJumps) {
  Begin("w");
  Seconds(15);
  clock_.JumpWall(-1h);
  Seconds(15);
  clock_.JumpWall(30h);
  Seconds(15);
  sampler_->Stop();
  std::size_t points = 0;
  for (const auto& batch : batches_) {
    for (std::size_t i = 1; i < batch.times.size(); ++i) {
      EXPECT_GT(batch.times[i], batch.times[i - 1]);
      EXPECT_LE(batch.times[i] - batch.times[i - 1], 10s) << "no batch spans a jump";
    }
    if (batch.key) points += batch.times.size();
  }
  EXPECT_GE(points, 17U);
}

TEST_F(SamplerTest, MissedRoundsAfterASuspendAreNotMadeUpFor) {
  Seconds(11);
  clock_.Advance(1h);
  Seconds(10);
  EXPECT_EQ(host_->collects, 3);
}

TEST_F(SamplerTest, EmitsWhatIsLeftOfAWorkloadThatEnded) {
  Begin("short");
  Seconds(3);
  EXPECT_TRUE(Points("short", "memory").empty());
  running_.clear();
  Seconds(1);
  EXPECT_EQ(Points("short", "memory").size(), 3U);
}

TEST_F(SamplerTest, GapsAreNan) {
  Begin("w");
  Seconds(2);
  Seconds(1);
  sampler_->Flush();
  const auto& batch = *std::find_if(batches_.begin(), batches_.end(),
                                    [](const auto& b) { return b.key.has_value(); });
  ASSERT_EQ(batch.columns.size(), 2U);
  EXPECT_EQ(batch.columns[0].metric, "cpu");
  EXPECT_TRUE(std::isnan(batch.columns[0].values[1])) << "the host source has no young rounds";
  EXPECT_FALSE(std::isnan(batch.columns[1].values[1]));
}

TEST_F(SamplerTest, TooManyScopesAreCountedNotKept) {
  for (int i = 0; i < 10; ++i) Begin(std::to_string(i));
  Seconds(1);
  const auto rows = sampler_->health(clock_.Now());
  EXPECT_GT(rows.back().figures.at("points_dropped"), 0);
  sampler_->Flush();
  EXPECT_LE(batches_.size(), 4U);
}

TEST_F(SamplerTest, RefusedBatchesShowInHealth) {
  refuse_ = true;
  Seconds(11);
  auto row = sampler_->health(clock_.Now()).back();
  EXPECT_EQ(row.status, evidence::HealthStatus::kDegraded);
  EXPECT_EQ(row.reason, "batches_lost");
  refuse_ = false;
  Seconds(21);
  EXPECT_EQ(sampler_->health(clock_.Now()).back().status, evidence::HealthStatus::kOk);
}

TEST_F(SamplerTest, MeasuresItsOwnCost) {
  Seconds(21);
  sampler_->Stop();
  const auto cpu = Points("", "host-daemon-cpu");
  ASSERT_EQ(cpu.size(), 2U) << "the first round has nothing to compare with";
  for (double cores : cpu) EXPECT_GE(cores, 0);
  for (double rss : Points("", "host-daemon-memory")) EXPECT_GT(rss, 1e6);
  const auto row = sampler_->health(clock_.Now()).back();
  EXPECT_EQ(row.collector, "sampler");
  EXPECT_GT(row.figures.at("rss_bytes"), 1e6);
  EXPECT_EQ(row.figures.at("rounds"), 3);
}

}  // namespace
}  // namespace expanse::daemon
