#include "daemon/cluster_reporter.h"

#include <gtest/gtest.h>

#include "daemon/daemon_testing.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

class ClusterReporterTest : public testing::Test {
 protected:
  evidence::ClusterState Taken(const std::string& cluster) {
    return {.cluster = cluster, .observed_at = clock_.Now()};
  }
  std::vector<std::string> Sent() {
    std::vector<std::string> sent;
    for (const auto& request : planes_.cluster_states()) sent.push_back(request.state().cluster());
    return sent;
  }

  base::FakeClock clock_;
  FakePlanes planes_{clock_};
  Session session_{planes_, {.compute_id = "c1"}, clock_, [] {
                     return base::Result<net::ComputeIdentity>(net::ComputeIdentity{});
                   }};
  ClusterReporter reporter_{session_, clock_, 1s};
};

TEST_F(ClusterReporterTest, SendsOnlyTheNewestAndEachOnce) {
  reporter_.Report();
  EXPECT_EQ(reporter_.health(clock_.Now()), std::nullopt) << "a machine without a scheduler";
  reporter_.Post(Taken("first"));
  reporter_.Post(Taken("second"));
  reporter_.Report();
  clock_.Advance(1h);
  reporter_.Report();
  EXPECT_EQ(Sent(), (std::vector<std::string>{"second"}));
  const auto row = reporter_.health(clock_.Now());
  EXPECT_EQ(row->status, evidence::HealthStatus::kOk);
  EXPECT_EQ(row->figures.at("age_s"), 3600);
}

TEST_F(ClusterReporterTest, KeepsThePaceThatThePlaneAsksFor) {
  planes_.set_cluster_interval(60s);
  reporter_.Post(Taken("first"));
  reporter_.Report();
  reporter_.Post(Taken("second"));
  clock_.Advance(30s);
  reporter_.Report();
  EXPECT_EQ(Sent().size(), 1U);
  clock_.Advance(30s);
  reporter_.Report();
  EXPECT_EQ(Sent().size(), 2U);
}

TEST_F(ClusterReporterTest, TriesAgainButNeverInPlaceOfANewerOne) {
  planes_.set_down(true);
  reporter_.Post(Taken("first"));
  reporter_.Report();
  EXPECT_EQ(reporter_.health(clock_.Now())->status, evidence::HealthStatus::kDegraded);
  EXPECT_EQ(reporter_.health(clock_.Now())->reason, "client.unreachable");
  planes_.set_down(false);
  reporter_.Report();
  EXPECT_EQ(Sent(), (std::vector<std::string>{"first"}));
  EXPECT_EQ(reporter_.health(clock_.Now())->status, evidence::HealthStatus::kOk);
  clock_.Advance(1h);
  planes_.set_down(true);
  reporter_.Post(Taken("lost"));
  reporter_.Report();
  reporter_.Post(Taken("newest"));
  planes_.set_down(false);
  reporter_.Report();
  EXPECT_EQ(Sent(), (std::vector<std::string>{"first", "newest"}));
}

TEST_F(ClusterReporterTest, DropsWhatIsRefusedForWhatItIs) {
  planes_.set_cluster_fault([] {
    return base::Status(base::Fail(base::Code::kInvalidArgument, "evidence.time", "in 1970"));
  });
  reporter_.Post(Taken("refused"));
  reporter_.Report();
  planes_.set_cluster_fault(nullptr);
  reporter_.Report();
  EXPECT_EQ(Sent().size(), 0U);
}

TEST_F(ClusterReporterTest, LeavesAPlaneAloneThatDoesNotKnowTheMethod) {
  int asked = 0;
  planes_.set_cluster_fault([&] {
    ++asked;
    return base::Status(base::Fail(base::Code::kUnimplemented, "", "no such method"));
  });
  reporter_.Post(Taken("state"));
  for (int i = 0; i < 10; ++i) {
    reporter_.Report();
    clock_.Advance(30s);
  }
  EXPECT_EQ(asked, 1);
  planes_.set_cluster_fault(nullptr);
  clock_.Advance(10min);
  reporter_.Report();
  EXPECT_EQ(Sent().size(), 1U);
}

}  // namespace
}  // namespace expanse::daemon
