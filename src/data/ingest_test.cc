#include "data/ingest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "base/crypto.h"
#include "data/data_testing.h"
#include "data/memory_stores_testing.h"
#include "evidence/wire.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::data {
namespace {

using base::Code;
using std::chrono::seconds;

// Blobs, series and records behind wrappers that can fail, over every backend.
class IngestTest : public testing::TestWithParam<Backend> {
 protected:
  void Make(const DataOptions& options = {}) {
    ingest_ = std::make_unique<Ingest>(options, records_, series_, blobs_, clock_, metrics_);
  }
  base::Result<v1::IngestResponse> Send(const std::vector<evidence::Record>& records,
                                        const net::CallContext& context = ComputeCall()) {
    return ingest_->Apply(context, RequestOf(records));
  }
  void SetUp() override { Make(); }

  std::vector<double> Values(std::string_view identity, std::string_view metric = "cpu") {
    const auto results = stores_.series->Query({.compute_id = "compute-a",
                                                .scope = identity.empty() ? "" : IdOf(identity),
                                                .metric = std::string(metric),
                                                .source = "",
                                                .gpu_index = std::nullopt,
                                                .from = {},
                                                .to = now_ + seconds(1000)});
    std::vector<double> values;
    for (const auto& result : *results) {
      for (const auto& bucket : result.buckets) values.push_back(bucket.last);
    }
    return values;
  }
  std::size_t Executions(std::string_view organisation = "org-1") {
    return stores_.records->List({.organisation_id = std::string(organisation)}, std::nullopt, 1000)
        ->executions.size();
  }

  base::FakeClock clock_;
  const base::WallTime now_ = clock_.Now();
  base::MetricRegistry metrics_;
  TestStores stores_ = MakeStores(GetParam(), clock_);
  FailurePlan record_failures_;
  FailurePlan series_failures_;
  FailurePlan blob_failures_;
  FailingEvidenceStore records_{*stores_.records, record_failures_};
  FailingSeriesStore series_{*stores_.series, series_failures_};
  FailingBlobStore blobs_{*stores_.blobs, blob_failures_};
  std::unique_ptr<Ingest> ingest_;
};

// Looks behind the interface, at what only the stores in memory tell.
class IngestMemoryTest : public IngestTest {};

TEST_P(IngestTest, StoresEveryKindOfRecord) {
  const auto response =
      Send({RunRecord(1, now_, "r1"), SampleRecord(2, now_, "r1", 0.5),
            SampleRecord(3, now_, "", 7, "load"), TailRecord(4, now_, "r1", "hello\n"),
            BundleRecord(5, now_, "r1", "#!/bin/sh\n")});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->watermark(), 5U);
  EXPECT_EQ(response->rejected_size(), 0);
  const auto execution = stores_.records->Get("org-1", IdOf("r1"));
  ASSERT_TRUE(execution);
  EXPECT_EQ(execution->compute_id, "compute-a");
  EXPECT_EQ(execution->execution_id, IdOf("r1"));
  EXPECT_EQ(execution->source_type, evidence::SourceType::kHost);
  EXPECT_EQ(execution->updated_at, now_);
  EXPECT_EQ(Values("r1"), std::vector<double>{0.5});
  EXPECT_EQ(Values("", "load"), std::vector<double>{7});
  const auto tails = stores_.records->LogTails(IdOf("r1"));
  ASSERT_EQ(tails->size(), 1U);
  EXPECT_EQ(*stores_.blobs->Get(tails->front().data_blob), "hello\n");
  EXPECT_EQ(tails->front().first_error_blob, "");
  const auto bundle = stores_.records->Bundle(IdOf("r1"));
  ASSERT_TRUE(bundle->has_value());
  EXPECT_EQ(*stores_.blobs->Get((*bundle)->files[0].blob), "#!/bin/sh\n");
  EXPECT_EQ((*bundle)->skipped[0].reason, "not text");
}

TEST_P(IngestTest, AppliesABatchOnceHoweverOftenItComes) {
  const std::vector<evidence::Record> batch = {
      RunRecord(1, now_, "r1", [](evidence::Execution* e) { e->name = "first"; }),
      RunRecord(2, now_, "r1", [](evidence::Execution* e) { e->name = "second"; }),
      SampleRecord(3, now_, "r1", 1)};
  for (int i = 0; i < 3; ++i) {
    const auto response = Send(batch);
    ASSERT_TRUE(response);
    EXPECT_EQ(response->watermark(), 3U);
  }
  // An old record sent again alone does not bring the old name back.
  EXPECT_EQ(Send({batch[0]})->watermark(), 3U);
  EXPECT_EQ(stores_.records->Get("org-1", IdOf("r1"))->name, "second");
  EXPECT_EQ(Values("r1"), std::vector<double>{1});
}

TEST_P(IngestTest, TakesTheNewPartOfAnOverlappingBatch) {
  ASSERT_TRUE(Send({SampleRecord(1, now_, "r1", 1), SampleRecord(2, now_ + seconds(1), "r1", 2)}));
  const auto response = Send(
      {SampleRecord(2, now_ + seconds(1), "r1", 99), SampleRecord(3, now_ + seconds(2), "r1", 3)});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->watermark(), 3U);
  EXPECT_EQ(Values("r1"), (std::vector<double>{1, 2, 3}))
      << "record 2 was applied before, whatever it says now";
}

TEST_P(IngestTest, TakesRecordsInAnyOrderWithinABatch) {
  const auto response =
      Send({RunRecord(3, now_, "r1", [](evidence::Execution* e) { e->name = "last"; }),
            RunRecord(1, now_, "r1", [](evidence::Execution* e) { e->name = "first"; }),
            SampleRecord(2, now_, "r1", 4)});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->watermark(), 3U);
  EXPECT_EQ(stores_.records->Get("org-1", IdOf("r1"))->name, "last");
}

TEST_P(IngestTest, TakesGaps) {
  EXPECT_EQ(Send({RunRecord(5, now_, "r1"), RunRecord(9, now_, "r2")})->watermark(), 9U);
  EXPECT_EQ(Send({RunRecord(7, now_, "r3")})->watermark(), 9U);
  EXPECT_EQ(Executions(), 2U) << "what comes below the watermark is a duplicate";
}

TEST_P(IngestTest, TakesTheFirstOfTwoRecordsWithOneNumber) {
  ASSERT_TRUE(Send({RunRecord(1, now_, "r1"), RunRecord(1, now_, "r2")}));
  EXPECT_TRUE(stores_.records->Get("org-1", IdOf("r1")));
  EXPECT_FALSE(stores_.records->Get("org-1", IdOf("r2")));
}

TEST_P(IngestTest, AnswersAnEmptyBatchWithTheWatermark) {
  EXPECT_EQ(Send({})->watermark(), 0U);
  ASSERT_TRUE(Send({RunRecord(4, now_, "r1")}));
  EXPECT_EQ(Send({})->watermark(), 4U);
}

TEST_P(IngestTest, KeepsStreamsApart) {
  ASSERT_TRUE(Send({RunRecord(9, now_, "r1")}));
  const auto response =
      ingest_->Apply(ComputeCall(), RequestOf({RunRecord(1, now_, "r2")}, kOtherStream));
  EXPECT_EQ(response->watermark(), 1U);
  EXPECT_EQ(
      ingest_->Apply(ComputeCall("compute-b"), RequestOf({RunRecord(1, now_, "r1")}))->watermark(),
      1U)
      << "the same stream id of another compute is another stream";
  EXPECT_EQ(Executions(), 3U);
}

TEST_P(IngestTest, WritesOnlyTheCallersOwnEvidence) {
  v1::IngestRequest request = RequestOf({RunRecord(1, now_, "r1")});
  v1::Execution* claimed = request.mutable_records(0)->mutable_execution()->mutable_execution();
  claimed->set_compute_id("compute-b");
  claimed->set_execution_id(IdOf("r1", "compute-b"));
  claimed->set_source_type(common::v1::SOURCE_TYPE_SLURM);
  ASSERT_TRUE(ingest_->Apply(ComputeCall("compute-a", "org-1"), request));
  const auto stored = stores_.records->Get("org-1", IdOf("r1", "compute-a"));
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->compute_id, "compute-a");
  EXPECT_EQ(stored->source_type, evidence::SourceType::kHost);
  EXPECT_FALSE(stores_.records->Get("org-1", IdOf("r1", "compute-b")));
}

TEST_P(IngestTest, LetsInOnlyComputes) {
  net::CallContext plane = ComputeCall();
  plane.caller.kind = net::CallerKind::kPlane;
  net::CallContext nobody;
  for (const auto& context :
       {UserCall(), plane, nobody, ComputeCall("", "org-1"), ComputeCall("compute-a", "")}) {
    const auto response = Send({RunRecord(1, now_, "r1")}, context);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::kPermissionDenied);
    EXPECT_FALSE(ingest_->ReportHealth(context, {}));
    EXPECT_FALSE(ingest_->ReportClusterState(context, {}));
  }
}

TEST_P(IngestTest, AcknowledgesMalformedRecordsWithTheirReason) {
  v1::IngestRequest request =
      RequestOf({RunRecord(1, now_, "r1"), SampleRecord(2, now_, "r1", 1), RunRecord(3, now_, "r3"),
                 RunRecord(4, now_ + std::chrono::hours(48), "r4"), RunRecord(5, now_, "r5")});
  request.mutable_records(1)->mutable_samples()->mutable_columns(0)->add_values(2);
  request.mutable_records(2)->clear_payload();
  const auto response = ingest_->Apply(ComputeCall(), request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->watermark(), 5U);
  ASSERT_EQ(response->rejected_size(), 3);
  EXPECT_EQ(response->rejected(0).sequence(), 2U);
  EXPECT_EQ(response->rejected(0).reason(), "evidence.malformed");
  EXPECT_EQ(response->rejected(1).sequence(), 3U);
  EXPECT_EQ(response->rejected(2).sequence(), 4U);
  EXPECT_EQ(response->rejected(2).reason(), "evidence.time");
  EXPECT_EQ(Executions(), 2U);
  EXPECT_EQ(ingest_->Apply(ComputeCall(), request)->rejected_size(), 0) << "they were acknowledged";
}

TEST_P(IngestTest, MovesTheWatermarkPastABatchOfNothingButBadRecords) {
  v1::IngestRequest request = RequestOf({RunRecord(1, now_, "r1"), RunRecord(2, now_, "r2")});
  for (auto& record : *request.mutable_records()) record.clear_payload();
  const auto response = ingest_->Apply(ComputeCall(), request);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->watermark(), 2U);
  EXPECT_EQ(response->rejected_size(), 2);
}

TEST_P(IngestTest, RejectsWhatBelongsToAnotherComputeAndGoesOn) {
  evidence::Execution theirs;
  theirs.native_id = "theirs";
  const store::EvidenceChange known{.sequence = 1,
                                    .execution_id = IdOf("r2"),
                                    .source_type = evidence::SourceType::kHost,
                                    .execution = theirs};
  ASSERT_TRUE(stores_.records->Apply("org-2", "compute-z", "stream", {&known, 1}));
  const std::vector<evidence::Record> batch = {RunRecord(1, now_, "r1"), RunRecord(2, now_, "r2"),
                                               RunRecord(3, now_, "r3")};
  const auto response = Send(batch);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->watermark(), 3U);
  ASSERT_EQ(response->rejected_size(), 1);
  EXPECT_EQ(response->rejected(0).sequence(), 2U);
  EXPECT_EQ(response->rejected(0).reason(), "execution.foreign");
  EXPECT_EQ(Executions(), 2U);
  EXPECT_EQ(stores_.records->Get("org-2", IdOf("r2"))->native_id, "theirs");
}

TEST_P(IngestTest, RefusesSequencesThatAreNone) {
  v1::IngestRequest request =
      RequestOf({RunRecord(1, now_, "r1"), RunRecord(1, now_, "r2"), RunRecord(1, now_, "r3")});
  request.mutable_records(1)->set_sequence(0);
  request.mutable_records(2)->set_sequence(~0ULL);
  const auto response = ingest_->Apply(ComputeCall(), request);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->watermark(), 1U);
  EXPECT_EQ(response->rejected_size(), 2);
}

TEST_P(IngestTest, RefusesRequestsOutOfBounds) {
  EXPECT_EQ(ingest_->Apply(ComputeCall(), RequestOf({}, "not a uuid")).error().reason,
            "ingest.stream");
  EXPECT_EQ(ingest_->Apply(ComputeCall(), RequestOf({}, "")).error().reason, "ingest.stream");
  Make({.max_batch_records = 2});
  EXPECT_TRUE(Send({RunRecord(1, now_, "r1"), RunRecord(2, now_, "r2")}));
  const auto many =
      Send({RunRecord(3, now_, "r1"), RunRecord(4, now_, "r2"), RunRecord(5, now_, "r3")});
  EXPECT_EQ(many.error().reason, "ingest.batch");
  EXPECT_EQ(many.error().code, Code::kInvalidArgument);
  Make({.max_batch_bytes = 100});
  EXPECT_EQ(Send({TailRecord(3, now_, "r1", std::string(200, 'x'))}).error().reason,
            "ingest.batch");
}

TEST_P(IngestTest, HoldsEachComputeToItsRates) {
  DataOptions options;
  options.records_per_second = 1;
  options.samples_per_second = 2;
  Make(options);
  std::vector<evidence::Record> batch;
  for (std::uint64_t i = 1; i <= 10; ++i)
    batch.push_back(RunRecord(i, now_, "r" + std::to_string(i)));
  ASSERT_TRUE(Send(batch));
  const auto refused = Send({RunRecord(11, now_, "r11")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_EQ(refused.error().reason, "ingest.record_rate");
  EXPECT_EQ(*stores_.records->Watermark("compute-a", kStream), 10U);
  EXPECT_TRUE(Send(batch)) << "duplicates cost nothing, so a lost answer can be fetched again";
  EXPECT_TRUE(Send({RunRecord(11, now_, "r11")}, ComputeCall("compute-b")));
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Send({RunRecord(11, now_, "r11")}));
  clock_.Advance(seconds(60));
  evidence::Record many = SampleRecord(12, now_, "r1", 1);
  auto& samples = std::get<evidence::SampleBatch>(many.payload);
  samples.times.resize(20, now_);
  samples.columns[0].values.resize(20, 1);
  ASSERT_TRUE(Send({many}));
  EXPECT_EQ(Send({SampleRecord(13, now_, "r1", 1)}).error().reason, "ingest.sample_rate");
}

TEST_P(IngestTest, ChargesNothingForABatchThatTheStoreDidNotTake) {
  DataOptions options;
  options.records_per_second = 1;
  Make(options);
  std::vector<evidence::Record> batch;
  for (std::uint64_t i = 1; i <= 10; ++i)
    batch.push_back(RunRecord(i, now_, "r" + std::to_string(i)));
  record_failures_.next = {FailWhen::kBefore, FailWhen::kBefore};
  EXPECT_EQ(Send(batch).error().reason, "ingest.store");
  EXPECT_EQ(Send(batch).error().reason, "ingest.store");
  EXPECT_TRUE(Send(batch));
}

// A batch that goes through all three stores, with two blob writes.
std::vector<evidence::Record> BatchThroughAllStores(base::WallTime now) {
  return {RunRecord(1, now, "r1", [](evidence::Execution* e) { e->name = "one"; }),
          SampleRecord(2, now, "r1", 1), TailRecord(3, now, "r1", "out"),
          BundleRecord(4, now, "r1", "src"), SampleRecord(5, now + seconds(1), "r1", 2)};
}

TEST_P(IngestTest, SurvivesAFailureAtEveryStep) {
  // Every write of the batch fails in turn, before and after its effect; then the daemon sends
  // again, with one more record as an outbox that has grown would.
  for (const FailWhen when : {FailWhen::kBefore, FailWhen::kAfter}) {
    for (int step = 0; step < 4; ++step) {
      SCOPED_TRACE(testing::Message()
                   << "step " << step << (when == FailWhen::kBefore ? " before" : " after"));
      stores_.records.reset();  // before their directory goes
      stores_.series.reset();
      stores_.blobs.reset();
      stores_ = MakeStores(GetParam(), clock_);
      FailingEvidenceStore records{*stores_.records, record_failures_};
      FailingSeriesStore series{*stores_.series, series_failures_};
      FailingBlobStore blobs{*stores_.blobs, blob_failures_};
      Ingest ingest({}, records, series, blobs, clock_, metrics_);
      if (step < 2) blob_failures_.next.assign(static_cast<std::size_t>(step), std::nullopt);
      FailurePlan* plans[] = {&blob_failures_, &blob_failures_, &series_failures_,
                              &record_failures_};
      plans[step]->next.push_back(when);
      std::vector<evidence::Record> batch = BatchThroughAllStores(now_);
      const auto failed = ingest.Apply(ComputeCall(), RequestOf(batch));
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().code, Code::kUnavailable);
      EXPECT_EQ(failed.error().reason, "ingest.store");
      const bool applied = step == 3 && when == FailWhen::kAfter;
      EXPECT_EQ(*stores_.records->Watermark("compute-a", kStream), applied ? 5U : 0U);

      batch.push_back(SampleRecord(6, now_ + seconds(2), "r1", 3));
      const auto repaired = ingest.Apply(ComputeCall(), RequestOf(batch));
      ASSERT_TRUE(repaired) << repaired.error().message;
      EXPECT_EQ(repaired->watermark(), 6U);
      EXPECT_EQ(Values("r1"), (std::vector<double>{1, 2, 3}));
      const auto infos = stores_.series->List("compute-a", IdOf("r1"), "");
      ASSERT_EQ(infos->size(), 1U);
      EXPECT_EQ(infos->front().point_count, 3U);
      EXPECT_EQ(stores_.records->Get("org-1", IdOf("r1"))->name, "one");
      EXPECT_EQ(*stores_.blobs->Get(stores_.records->LogTails(IdOf("r1"))->front().data_blob),
                "out");
      EXPECT_EQ(*stores_.blobs->Get((*stores_.records->Bundle(IdOf("r1")))->files[0].blob), "src");
    }
  }
}

TEST_P(IngestMemoryTest, AppendsNoPointTwiceAfterACrashBetweenSeriesAndRecords) {
  const auto& memory = static_cast<MemorySeriesStore&>(*stores_.series);
  record_failures_.next = {FailWhen::kBefore};
  ASSERT_FALSE(Send({SampleRecord(1, now_, "r1", 1), SampleRecord(2, now_ + seconds(1), "r1", 2)}));
  ASSERT_TRUE(Send({SampleRecord(1, now_, "r1", 1), SampleRecord(2, now_ + seconds(1), "r1", 2),
                    SampleRecord(3, now_ + seconds(2), "r1", 3)}));
  EXPECT_EQ(memory.appended(), 3U);
}

TEST_P(IngestTest, NamesNoInsidesOfAStoreInItsErrors) {
  record_failures_.error = {Code::kInternal, "store.busy",
                            "SQLITE_BUSY in /var/lib/expanse/records.db: INSERT INTO"};
  record_failures_.next = {FailWhen::kBefore};
  const auto failed = Send({RunRecord(1, now_, "r1")});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message.find("/var"), std::string::npos);
  EXPECT_EQ(failed.error().message.find("INSERT"), std::string::npos);
}

// Random traffic over two streams with failures, duplicates, overlaps and reordering: what is
// stored in the end is what one clean pass would have stored.
TEST_P(IngestTest, EndsAsOneCleanPassWouldHave) {
  std::mt19937 random(20261130);
  const auto pick = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  Make({.records_per_second = 0, .samples_per_second = 0});
  std::vector<evidence::Record> all;
  std::vector<double> expected;
  for (std::uint64_t i = 1; i <= 60; ++i) {
    const base::WallTime at = now_ + seconds(static_cast<int>(i));
    if (pick(2) == 0) {
      all.push_back(SampleRecord(i, at, "r1", static_cast<double>(i)));
      expected.push_back(static_cast<double>(i));
    } else if (pick(2) == 0) {
      all.push_back(RunRecord(
          i, at, "r1", [i](evidence::Execution* e) { e->comment = "c" + std::to_string(i); }));
    } else {
      all.push_back(TailRecord(i, at, "r1", "tail " + std::to_string(i)));
    }
  }
  std::uint64_t acknowledged = 0;
  while (acknowledged < all.size()) {
    // The daemon sends from a little below its last acknowledgement, as much as it likes.
    const std::size_t from = acknowledged - std::min<std::size_t>(acknowledged, pick(5));
    const std::size_t to = std::min(all.size(), from + 1 + pick(12));
    std::vector<evidence::Record> batch(all.begin() + static_cast<std::ptrdiff_t>(from),
                                        all.begin() + static_cast<std::ptrdiff_t>(to));
    std::shuffle(batch.begin(), batch.end(), random);
    for (FailurePlan* plan : {&blob_failures_, &series_failures_, &record_failures_}) {
      plan->next.clear();
      if (pick(4) == 0) plan->next = {pick(2) == 0 ? FailWhen::kBefore : FailWhen::kAfter};
    }
    const auto response = Send(batch);
    if (!response) continue;
    EXPECT_GE(response->watermark(), acknowledged);
    acknowledged = response->watermark();
  }
  EXPECT_EQ(Values("r1"), expected);
  std::string comment;
  std::string tail;
  for (const evidence::Record& record : all) {
    if (const auto* run = std::get_if<evidence::ExecutionObservation>(&record.payload))
      comment = run->execution.comment;
    if (const auto* log = std::get_if<evidence::LogTail>(&record.payload)) tail = log->data;
  }
  EXPECT_EQ(stores_.records->Get("org-1", IdOf("r1"))->comment, comment);
  EXPECT_EQ(*stores_.blobs->Get(stores_.records->LogTails(IdOf("r1"))->front().data_blob), tail);
}

TEST_P(IngestTest, AppliesConcurrentBatchesOfOneStreamOneAtATime) {
  Make({.records_per_second = 0, .samples_per_second = 0});
  constexpr std::uint64_t kRecords = 50;
  std::atomic<int> in_progress{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 1; i <= kRecords;) {
        const auto response = Send(
            {SampleRecord(i, now_ + seconds(static_cast<int>(i)), "r1", static_cast<double>(i))});
        if (response) {
          i = response->watermark() + 1;
        } else {
          EXPECT_EQ(response.error().reason, "ingest.in_progress");
          ++in_progress;
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Values("r1").size(), kRecords);
  EXPECT_EQ(*stores_.records->Watermark("compute-a", kStream), kRecords);
}

TEST_P(IngestTest, MergesColumnsOfManyRecordsInTimeOrder) {
  evidence::Record unordered = SampleRecord(1, now_, "r1", 1);
  auto& batch = std::get<evidence::SampleBatch>(unordered.payload);
  batch.times = {now_ + seconds(3), now_, now_ + seconds(1)};
  batch.columns[0].values = {4, 1, std::nan("")};
  ASSERT_TRUE(Send({unordered, SampleRecord(2, now_ + seconds(1), "r1", 2),
                    SampleRecord(3, now_ + seconds(3), "r1", 5)}));
  EXPECT_EQ(Values("r1"), (std::vector<double>{1, 2, 5})) << "of equal times the last counts";
}

TEST(IngestSeriesBound, TakesKnownSeriesAndRejectsNewOnesBeyondTheBound) {
  base::FakeClock clock;
  base::MetricRegistry metrics;
  MemoryEvidenceStore records(clock);
  MemorySeriesStore series(/*max_series_per_scope=*/2);
  MemoryBlobStore blobs(clock);
  Ingest ingest({}, records, series, blobs, clock, metrics);
  const base::WallTime now = clock.Now();
  ASSERT_TRUE(ingest.Apply(ComputeCall(), RequestOf({SampleRecord(1, now, "r1", 1, "a"),
                                                     SampleRecord(2, now, "r1", 1, "b")})));
  evidence::Record mixed = SampleRecord(4, now + seconds(1), "r1", 2, "a");
  auto& columns = std::get<evidence::SampleBatch>(mixed.payload).columns;
  columns.push_back(columns[0]);
  columns[1].metric = "c";
  const auto response = ingest.Apply(
      ComputeCall(),
      RequestOf({SampleRecord(3, now, "r1", 1, "d"), mixed,
                 SampleRecord(5, now + seconds(2), "r1", 3, "b"), RunRecord(6, now, "r1")}));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->watermark(), 6U);
  ASSERT_EQ(response->rejected_size(), 2);
  EXPECT_EQ(response->rejected(0).sequence(), 3U);
  EXPECT_EQ(response->rejected(0).reason(), "series.too_many");
  EXPECT_EQ(response->rejected(1).sequence(), 4U);
  const auto infos = series.List("compute-a", IdOf("r1"), "");
  ASSERT_EQ(infos->size(), 2U);
  EXPECT_EQ((*infos)[0].point_count, 2U) << "a: record 1 and the known part of record 4";
  EXPECT_EQ((*infos)[1].point_count, 2U) << "b: records 2 and 5";
}

TEST_P(IngestTest, KeepsTheLatestHealthOfEachNode) {
  evidence::HealthReport report{.daemon_version = "0.1.0",
                                .node = "n1",
                                .started_at = now_,
                                .rows = {{.collector = "host",
                                          .status = evidence::HealthStatus::kOk,
                                          .reason = "",
                                          .message = "",
                                          .checked_at = now_}}};
  v1::ReportHealthRequest request;
  evidence::ToProto(report, &request);
  const auto response = ingest_->ReportHealth(ComputeCall(), request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->interval().seconds(), 30);
  request.set_daemon_version("0.2.0");
  ASSERT_TRUE(ingest_->ReportHealth(ComputeCall(), request));
  const auto nodes = stores_.records->Health("org-1", "compute-a");
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ(nodes->front().report.daemon_version, "0.2.0");
  EXPECT_EQ(nodes->front().reported_at, now_);
  request.mutable_rows(0)->clear_checked_at();
  EXPECT_FALSE(ingest_->ReportHealth(ComputeCall(), request));
}

TEST_P(IngestTest, KeepsTheLatestClusterStateWithinItsBounds) {
  v1::ReportClusterStateRequest request;
  evidence::ToProto({.cluster = "first", .observed_at = now_}, request.mutable_state());
  ASSERT_TRUE(ingest_->ReportClusterState(ComputeCall(), request));
  request.mutable_state()->set_cluster("second");
  ASSERT_TRUE(ingest_->ReportClusterState(ComputeCall(), request));
  const auto stored = stores_.records->ClusterState("org-1", "compute-a");
  ASSERT_TRUE(stored && *stored);
  EXPECT_EQ((*stored)->state.cluster, "second");
  EXPECT_EQ((*stored)->reported_at, now_);
  request.mutable_state()->clear_observed_at();
  EXPECT_EQ(ingest_->ReportClusterState(ComputeCall(), request).error().reason, "evidence.time");
  request.mutable_state()->mutable_observed_at()->set_seconds(1'800'000'000);
  for (int i = 0; i < 2000; ++i) request.mutable_state()->add_pending();
  EXPECT_EQ(ingest_->ReportClusterState(ComputeCall(), request).error().reason,
            "evidence.too_large");
}

TEST_P(IngestTest, CountsALargeClusterStateForManyRecords) {
  v1::ReportClusterStateRequest request;
  evidence::ToProto({.cluster = "c", .observed_at = now_}, request.mutable_state());
  for (int i = 0; i < 20'000; ++i) {
    auto* node = request.mutable_state()->add_nodes();
    node->set_name("node" + std::to_string(i));
    node->set_reason(std::string(200, 'r'));
  }
  int taken = 0;
  while (taken < 1000 && ingest_->ReportClusterState(ComputeCall(), request)) ++taken;
  EXPECT_GE(taken, 5);
  EXPECT_LT(taken, 100) << "a burst of 20,000 records, each of these counts for over 500";
  EXPECT_EQ(ingest_->ReportClusterState(ComputeCall(), request).error().reason,
            "ingest.record_rate");
}

INSTANTIATE_TEST_SUITE_P(Backends, IngestMemoryTest, testing::Values(Backend::kMemory),
                         [](const auto& test) { return BackendName(test.param); });
INSTANTIATE_TEST_SUITE_P(Backends, IngestTest, testing::ValuesIn(AllBackends()),
                         [](const auto& test) { return BackendName(test.param); });

}  // namespace
}  // namespace expanse::data
