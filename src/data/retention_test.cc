#include "data/retention.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "data/data_testing.h"
#include "data/ingest.h"
#include "data/memory_stores_testing.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::data {
namespace {

using evidence::Execution;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class RetentionTest : public testing::TestWithParam<Backend> {
 protected:
  void Put(std::vector<evidence::Record> records) {
    for (evidence::Record& record : records) record.sequence = ++sequence_;
    const auto response = ingest_.Apply(ComputeCall(), RequestOf(records));
    ASSERT_TRUE(response) << response.error().message;
    ASSERT_EQ(response->rejected_size(), 0) << response->rejected(0).message();
  }
  void PutEnded(std::string_view identity, base::WallTime ended) {
    Put({RunRecord(0, ended - seconds(10), identity,
                   [&](Execution* e) {
                     e->status = evidence::ExecutionStatus::kSucceeded;
                     e->ended_at = ended;
                   }),
         SampleRecord(0, ended - seconds(5), identity, 1),
         TailRecord(0, ended, identity, "tail of " + std::string(identity))});
  }
  bool Has(std::string_view identity) {
    return stores_.records->Get("org-1", IdOf(identity)).has_value();
  }
  std::size_t Points(std::string_view identity) {
    const auto infos = stores_.series->List("compute-a", IdOf(identity), "");
    return infos->empty() ? 0 : infos->front().point_count;
  }
  Retention Make(DataOptions options) {
    return Retention(options, *stores_.records, *stores_.series, *stores_.blobs, clock_, metrics_);
  }

  base::FakeClock clock_;
  const base::WallTime now_ = clock_.Now();
  base::MetricRegistry metrics_;
  TestStores stores_ = MakeStores(GetParam(), clock_);
  Ingest ingest_{{.records_per_second = 0},
                 *stores_.records,
                 *stores_.series,
                 *stores_.blobs,
                 clock_,
                 metrics_};
  std::uint64_t sequence_ = 0;
};

TEST_P(RetentionTest, RemovesEachKindPastItsOwnTime) {
  PutEnded("old", now_ - hours(30));
  PutEnded("young", now_ - hours(1));
  Put({RunRecord(0, now_ - hours(100), "running")});
  Make({.keep_executions = hours(24), .keep_samples = hours(48)}).RunOnce({});
  EXPECT_FALSE(Has("old"));
  EXPECT_TRUE(Has("young"));
  EXPECT_TRUE(Has("running")) << "what has not ended is kept";
  EXPECT_EQ(Points("old"), 1U) << "samples have a time of their own";
  Make({.keep_executions = hours(24), .keep_samples = hours(24)}).RunOnce({});
  EXPECT_EQ(Points("old"), 0U);
  EXPECT_EQ(Points("young"), 1U);
}

TEST_P(RetentionTest, SweepsBlobsOnlyWhenLooseAndOld) {
  PutEnded("old", now_ - hours(30));
  PutEnded("young", now_ - hours(1));
  const std::string old_blob = stores_.records->LogTails(IdOf("old"))->front().data_blob;
  const std::string young_blob = stores_.records->LogTails(IdOf("young"))->front().data_blob;
  Retention retention = Make({.keep_executions = hours(24), .keep_loose_blobs = hours(2)});
  retention.RunOnce({});
  EXPECT_TRUE(stores_.blobs->Get(old_blob)) << "loose, but put a moment ago";
  clock_.Advance(hours(3));
  retention.RunOnce({});
  EXPECT_FALSE(stores_.blobs->Get(old_blob));
  EXPECT_TRUE(stores_.blobs->Get(young_blob));
}

TEST_P(RetentionTest, KeepsForEverWhenToldTo) {
  PutEnded("old", now_ - hours(24 * 365 * 20));
  Make({.keep_executions = {}, .keep_samples = {}}).RunOnce({});
  EXPECT_TRUE(Has("old"));
  EXPECT_EQ(Points("old"), 1U);
}

// Fails in one of its duties.
class BrokenEvidenceStore final : public store::EvidenceStore {
 public:
  explicit BrokenEvidenceStore(store::EvidenceStore& to) : to_(to) {}
  base::Result<std::uint64_t> Watermark(std::string_view c, std::string_view s) override {
    return to_.Watermark(c, s);
  }
  base::Result<std::uint64_t> Apply(std::string_view o, std::string_view c, std::string_view s,
                                    std::span<const store::EvidenceChange> changes) override {
    return to_.Apply(o, c, s, changes);
  }
  base::Result<store::ExecutionPage> List(const store::ExecutionFilter& f,
                                          const std::optional<store::ExecutionCursor>& a,
                                          std::size_t l) override {
    return to_.List(f, a, l);
  }
  base::Result<evidence::Execution> Get(std::string_view o, std::string_view e) override {
    return to_.Get(o, e);
  }
  base::Result<std::vector<store::LogTailRow>> LogTails(std::string_view e) override {
    return to_.LogTails(e);
  }
  base::Result<std::optional<store::BundleRow>> Bundle(std::string_view e) override {
    return to_.Bundle(e);
  }
  base::Result<store::ChangePage> Changed(const store::FeedPlace& after,
                                          std::size_t limit) override {
    return to_.Changed(after, limit);
  }
  base::Status PutHealth(std::string_view o, std::string_view c, const evidence::HealthReport& r,
                         base::WallTime n) override {
    return to_.PutHealth(o, c, r, n);
  }
  base::Result<std::vector<store::NodeHealth>> Health(std::string_view o,
                                                      std::string_view c) override {
    return to_.Health(o, c);
  }
  base::Status PutClusterState(std::string_view o, std::string_view c,
                               const evidence::ClusterState& s, base::WallTime n) override {
    return to_.PutClusterState(o, c, s, n);
  }
  base::Result<std::optional<store::ReportedClusterState>> ClusterState(
      std::string_view o, std::string_view c) override {
    return to_.ClusterState(o, c);
  }
  base::Result<std::size_t> DropExecutionsBefore(base::WallTime, std::size_t) override {
    return Broken();
  }
  base::Result<bool> BlobReferenced(std::string_view) override { return Broken(); }

 private:
  static std::unexpected<base::Error> Broken() {
    return base::Fail(base::Code::kUnavailable, "store.busy", "busy");
  }
  store::EvidenceStore& to_;
};

TEST_P(RetentionTest, SweepsNoBlobWhenItCannotTellAndGoesOnWithTheOtherKinds) {
  PutEnded("old", now_ - hours(30));
  const std::string blob = stores_.records->LogTails(IdOf("old"))->front().data_blob;
  BrokenEvidenceStore broken(*stores_.records);
  clock_.Advance(hours(5));
  Retention retention(
      {.keep_executions = hours(24), .keep_samples = hours(24), .keep_loose_blobs = hours(2)},
      broken, *stores_.series, *stores_.blobs, clock_, metrics_);
  retention.RunOnce({});
  EXPECT_TRUE(Has("old"));
  EXPECT_TRUE(stores_.blobs->Get(blob));
  EXPECT_EQ(Points("old"), 0U);
}

TEST_P(RetentionTest, RunsInTheBackgroundUntilStopped) {
  PutEnded("old", now_ - hours(30));
  Retention retention = Make({.keep_executions = hours(24), .retention_interval = hours(1)});
  retention.Start();
  retention.Start();
  const auto wait_until_gone = [&](std::string_view identity) {
    // The thread may not wait on the clock yet when it is advanced, so that is done until it shows.
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (Has(identity) && std::chrono::steady_clock::now() < deadline) {
      clock_.Advance(minutes(1));
      std::this_thread::yield();
    }
    return !Has(identity);
  };
  EXPECT_TRUE(wait_until_gone("old"));
  PutEnded("next", clock_.Now() - hours(30));
  EXPECT_TRUE(wait_until_gone("next"));
  retention.Stop();
  retention.Stop();
  PutEnded("after", clock_.Now() - hours(30));
  clock_.Advance(hours(10));
  EXPECT_TRUE(Has("after"));
}

INSTANTIATE_TEST_SUITE_P(Backends, RetentionTest, testing::ValuesIn(AllBackends()),
                         [](const auto& test) { return BackendName(test.param); });

}  // namespace
}  // namespace expanse::data
