#include "intelligence/run_retention.h"

#include <gtest/gtest.h>

#include "store/runs/memory_run_store_testing.h"

namespace expanse::intelligence {
namespace {

using std::chrono::hours;

class RunRetentionTest : public testing::Test {
 protected:
  void Add(const std::string& id, base::Duration age, const std::string& user = "u") {
    const base::WallTime at =
        clock_.Now() - std::chrono::duration_cast<std::chrono::microseconds>(age);
    ASSERT_TRUE(runs_.Add({.run_id = id,
                           .organisation_id = "o",
                           .user_id = user,
                           .status = store::RunStatus::kSucceeded,
                           .created_at = at,
                           .finished_at = at},
                          {}));
  }
  std::size_t Left() { return runs_.List({.scope = {"o", {}}}, std::nullopt, 1000)->runs.size(); }

  base::FakeClock clock_;
  base::MetricRegistry metrics_;
  store::MemoryRunStore runs_;
};

TEST_F(RunRetentionTest, DropsByAgeAndByNumber) {
  Add("old", hours(49));
  for (int i = 0; i < 5; ++i) Add("a" + std::to_string(i), hours(i));
  Add("b", hours(1), "v");
  const IntelligenceOptions options{.keep_runs = hours(48), .runs_per_user = 3};
  RunRetention retention(options, runs_, clock_, metrics_);
  retention.RunOnce({});
  EXPECT_EQ(Left(), 4U);
  EXPECT_FALSE(runs_.Get({"o", {}}, "old"));
  EXPECT_FALSE(runs_.Get({"o", {}}, "a3"));
  EXPECT_TRUE(runs_.Get({"o", {}}, "a2"));
  EXPECT_TRUE(runs_.Get({"o", {}}, "b"));
  EXPECT_NE(metrics_.Render().find(R"(expanse_retention_removed_total{kind="runs"} 3)"),
            std::string::npos);
}

TEST_F(RunRetentionTest, ZeroKeepsAll) {
  Add("old", hours(24 * 9999));
  const IntelligenceOptions options{.keep_runs = {}, .runs_per_user = 0};
  RunRetention(options, runs_, clock_, metrics_).RunOnce({});
  EXPECT_EQ(Left(), 1U);
}

TEST_F(RunRetentionTest, StopsInTheMiddle) {
  for (int i = 0; i < 450; ++i) Add("r" + std::to_string(i), hours(100));
  const IntelligenceOptions options{.keep_runs = hours(48)};
  RunRetention retention(options, runs_, clock_, metrics_);
  std::stop_source stop;
  stop.request_stop();
  retention.RunOnce(stop.get_token());
  EXPECT_EQ(Left(), 450U);
}

}  // namespace
}  // namespace expanse::intelligence
