#include "daemon/uploader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <thread>

#include "daemon/daemon_testing.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

net::ComputeIdentity Identity() {
  return {.compute_id = "c1",
          .compute_name = "",
          .organisation_id = "",
          .type = "host",
          .credential = "first",
          .control_plane_url = "http://control.test",
          .data_plane_url = "http://data.test"};
}

class UploaderTest : public testing::Test {
 protected:
  UploaderTest()
      : temp_(std::move(*base::TempDir::Create())),
        planes_(clock_),
        session_(planes_, Identity(), clock_, [this] { return reloaded_; }) {
    Reopen();
  }

  void Reopen(std::uint64_t max_bytes = 1U << 30) {
    uploader_.reset();
    outboxes_.reset();
    auto opened = Outboxes::Open({.directory = temp_.path() + "/outbox", .max_bytes = max_bytes},
                                 files_, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    outboxes_ = std::move(*opened);
    uploader_ = std::make_unique<Uploader>(*outboxes_, session_, clock_, UploaderOptions{});
  }
  void Emit(const std::string& name) {
    ASSERT_TRUE(outboxes_->Emit(ExecutionNamed(name), clock_.Now()));
  }
  // Steps with the waits it asks for, until nothing has been waiting for a while or `limit` passes.
  void RunFor(base::Duration limit) {
    const base::MonoTime end = clock_.Mono() + limit;
    while (clock_.Mono() < end) {
      const auto wait = uploader_->Step();
      ASSERT_GE(wait, 0ms);
      clock_.Advance(wait);
    }
  }
  static std::vector<std::string> Names(int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(fmt::format("run-{}", i));
    return names;
  }

  base::TempDir temp_;
  base::FakeClock clock_;
  FaultyFileIo files_;
  FakePlanes planes_;
  base::Result<net::ComputeIdentity> reloaded_ = Identity();
  Session session_;
  std::unique_ptr<Outboxes> outboxes_;
  std::unique_ptr<Uploader> uploader_;
};

TEST_F(UploaderTest, DeliversLifecycleBeforeSamples) {
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(outboxes_->EmitSamples(SamplesOf("", 5, clock_.Now()), clock_.Now()));
  Emit("run");
  RunFor(2s);
  const auto applied = planes_.applied();
  ASSERT_EQ(applied.size(), 4U);
  EXPECT_TRUE(applied[0].record.has_execution());
  EXPECT_TRUE(applied[1].record.has_samples());
  EXPECT_NE(applied[0].stream_id, applied[1].stream_id);
  EXPECT_EQ(applied[3].record.sequence(), 3U);
  EXPECT_EQ(uploader_->health(clock_.Now()).status, evidence::HealthStatus::kOk);
}

TEST_F(UploaderTest, DeliversAnHoursBacklogOnceTheServerIsBack) {
  planes_.set_down(true);
  const auto names = Names(500);
  for (const std::string& name : names) {
    Emit(name);
    ASSERT_TRUE(outboxes_->EmitSamples(SamplesOf(name, 10, clock_.Now()), clock_.Now()));
    RunFor(7200ms);
  }
  const auto health = uploader_->health(clock_.Now());
  EXPECT_EQ(health.status, evidence::HealthStatus::kDegraded);
  EXPECT_EQ(health.reason, "client.unreachable");
  EXPECT_GE(health.figures.at("seconds_since_success"), 3600);
  planes_.set_down(false);
  RunFor(60s);
  EXPECT_EQ(planes_.applied_names(), names);
  EXPECT_EQ(planes_.applied().size(), 1000U);
  EXPECT_EQ(planes_.batches().size(), 2U) << "a backlog goes out in large pieces";
}

TEST_F(UploaderTest, LostAnswersAreNotAppliedTwice) {
  int answers = 0;
  planes_.set_ingest_fault(FakePlanes::When::kAfter, [&](const auto&) -> base::Status {
    if (++answers % 3 != 0)
      return base::Fail(base::Code::kDeadlineExceeded, "client.timeout", "no answer");
    return {};
  });
  const auto names = Names(40);
  for (const std::string& name : names) {
    Emit(name);
    RunFor(1500ms);
  }
  RunFor(300s);
  EXPECT_EQ(planes_.applied_names(), names);
}

TEST_F(UploaderTest, RestartsInBetweenLoseAndRepeatNothing) {
  const auto names = Names(30);
  for (std::size_t i = 0; i < names.size(); ++i) {
    Emit(names[i]);
    if (i % 4 == 0) (void)uploader_->Step();
    if (i % 5 == 0) Reopen();  // acknowledgements that were not flushed are forgotten
  }
  RunFor(5s);
  EXPECT_EQ(planes_.applied_names(), names);
}

TEST_F(UploaderTest, BatchesAreBounded) {
  uploader_ = std::make_unique<Uploader>(
      *outboxes_, session_, clock_, UploaderOptions{.batch_bytes = 20'000, .batch_records = 7});
  for (int i = 0; i < 20; ++i) Emit(fmt::format("{}", i));
  for (int i = 0; i < 20; ++i) Emit(std::string(4000, 'n') + fmt::format("{}", i));
  RunFor(3s);
  EXPECT_EQ(planes_.applied_names().size(), 40U);
  for (const auto& [records, bytes] : planes_.batches()) {
    EXPECT_LE(records, 7U);
    EXPECT_LE(bytes, 21'000U);
  }
}

TEST_F(UploaderTest, BacksOffWhenTheServerIsBusyAndGoesOn) {
  int refusals = 0;
  planes_.set_ingest_fault(FakePlanes::When::kBefore, [&](const auto&) -> base::Status {
    ++refusals;
    return base::Fail(base::Code::kResourceExhausted, "data.busy", "too many requests");
  });
  Emit("run");
  RunFor(10min);
  EXPECT_GT(refusals, 15);
  EXPECT_LT(refusals, 60) << "waits grow to 15-30 s";
  planes_.set_ingest_fault(FakePlanes::When::kBefore, nullptr);
  RunFor(31s);
  EXPECT_EQ(planes_.applied_names().size(), 1U);
  // The next trouble starts from short waits again.
  planes_.set_down(true);
  Emit("next");
  EXPECT_LE(uploader_->Step(), 200ms);
}

TEST_F(UploaderTest, RejectedRecordsAreCountedAndNotSentAgain) {
  planes_.set_reject([](const data::v1::EvidenceRecord& record) {
    return record.execution().execution().name() == "bad" ? "evidence.time" : "";
  });
  for (const char* name : {"a", "bad", "b"}) Emit(name);
  RunFor(5s);
  EXPECT_EQ(planes_.applied_names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(planes_.batches().size(), 1U);
  EXPECT_EQ(uploader_->health(clock_.Now()).figures.at("rejected"), 1);
  EXPECT_EQ(outboxes_->lifecycle().figures().refused, 1U);
}

TEST_F(UploaderTest, OnePoisonedRecordDoesNotHoldUpTheRest) {
  planes_.set_ingest_fault(
      FakePlanes::When::kBefore, [](const data::v1::IngestRequest& request) -> base::Status {
        for (const auto& record : request.records()) {
          if (record.execution().execution().name() == "run-13") {
            return base::Fail(base::Code::kInvalidArgument, "connect.malformed", "cannot be read");
          }
        }
        return {};
      });
  auto names = Names(40);
  for (const std::string& name : names) Emit(name);
  RunFor(10min);
  std::erase(names, "run-13");
  EXPECT_EQ(planes_.applied_names(), names);
  EXPECT_EQ(outboxes_->lifecycle().figures().refused, 1U);
  EXPECT_EQ(base::ListDirectory(temp_.path() + "/outbox/lifecycle/refused")->size(), 1U);
}

TEST_F(UploaderTest, RenewsItsTokenInTimeAndWhenRefused) {
  Emit("a");
  RunFor(2s);
  EXPECT_EQ(planes_.mints(), 1);
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(100s);
    Emit(fmt::format("later-{}", i));
    RunFor(2s);
  }
  EXPECT_EQ(planes_.mints(), 3) << "tokens live 10 minutes and are renewed after 8";
  planes_.RevokeTokens();
  Emit("b");
  RunFor(2s);
  EXPECT_EQ(planes_.mints(), 4);
  EXPECT_EQ(planes_.applied_names().size(), 12U);
}

TEST_F(UploaderTest, RevokedComputeStopsAskingAndKeepsItsEvidence) {
  Emit("before");
  RunFor(2s);
  planes_.RevokeTokens();
  planes_.set_mint_fault([]() -> base::Status {
    return base::Fail(base::Code::kUnauthenticated, "compute.revoked", "revoked");
  });
  const int mints = planes_.mints();
  Emit("after");
  RunFor(1h);
  EXPECT_LE(planes_.mints() - mints, 13) << "one question in five minutes";
  const auto health = uploader_->health(clock_.Now());
  EXPECT_EQ(health.status, evidence::HealthStatus::kFailed);
  EXPECT_EQ(health.reason, "revoked");
  EXPECT_TRUE(session_.revoked());
  EXPECT_GT(outboxes_->lifecycle().figures().bytes, 0U);

  // The install token was re-issued: the new credential is picked up from the file.
  planes_.set_mint_fault(nullptr);
  RunFor(6min);
  EXPECT_EQ(planes_.applied_names(), (std::vector<std::string>{"before", "after"}));
  EXPECT_FALSE(session_.revoked());
}

TEST_F(UploaderTest, NewCredentialIsUsedAtOnce) {
  planes_.set_mint_fault([]() -> base::Status {
    return base::Fail(base::Code::kUnauthenticated, "compute.credential", "replaced");
  });
  reloaded_->credential = "second";
  Emit("run");
  (void)uploader_->Step();
  planes_.set_mint_fault(nullptr);
  RunFor(40s);
  EXPECT_EQ(planes_.applied_names().size(), 1U);
}

TEST_F(UploaderTest, ClockJumpsChangeNothing) {
  planes_.set_down(true);
  Emit("a");
  (void)uploader_->Step();
  for (auto jump : {std::chrono::microseconds(-26h), std::chrono::microseconds(60h)}) {
    clock_.JumpWall(jump);
    EXPECT_LE(uploader_->Step(), 30s);
    Emit("b");
  }
  planes_.set_down(false);
  RunFor(60s);
  EXPECT_EQ(planes_.applied_names().size(), 3U);
  // A token that a jump makes look expired, or good for days, is renewed by the monotonic clock.
  clock_.JumpWall(std::chrono::microseconds(-500h));
  RunFor(20min);
  Emit("c");
  RunFor(5s);
  EXPECT_EQ(planes_.applied_names().size(), 4U);
}

TEST_F(UploaderTest, RestoredStateDirectoryGetsANewStream) {
  planes_.SetWatermark(outboxes_->lifecycle().stream_id(), 100'000);
  const std::string spent = outboxes_->lifecycle().stream_id();
  Emit("swallowed: its number was used before");
  RunFor(2s);
  EXPECT_NE(outboxes_->lifecycle().stream_id(), spent);
  Emit("arrives");
  RunFor(2s);
  EXPECT_EQ(planes_.applied_names(), std::vector<std::string>{"arrives"});
}

TEST_F(UploaderTest, DiskFullDropsSamplesBeforeItRefusesLifecycle) {
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(outboxes_->EmitSamples(SamplesOf("", 50, clock_.Now()), clock_.Now()));
  // The first write fails for want of space, the one after the samples are gone does not.
  files_.OnlyKind("write");
  files_.FailAt(files_.operations() + 1, 3, ENOSPC);
  EXPECT_TRUE(outboxes_->Emit(ExecutionNamed("a"), clock_.Now()));
  EXPECT_EQ(outboxes_->samples().figures().dropped, 4U);
  EXPECT_EQ(outboxes_->health(clock_.Now()).reason, "samples_dropped");
  // Nothing left to drop: Emit fails, nothing crashes, and it works again later.
  files_.FailAt(files_.operations() + 1, 1000, ENOSPC);
  EXPECT_FALSE(outboxes_->Emit(ExecutionNamed("b"), clock_.Now()));
  EXPECT_FALSE(outboxes_->EmitSamples(SamplesOf("", 5, clock_.Now()), clock_.Now()));
  EXPECT_EQ(outboxes_->health(clock_.Now()).reason, "write_failed");
  (void)uploader_->Step();
  files_.FailAt(0, 0, 0);
  EXPECT_TRUE(outboxes_->Emit(ExecutionNamed("b"), clock_.Now()));
  RunFor(5s);
  EXPECT_EQ(planes_.applied_names(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(UploaderTest, CapHoldsSamplesDropOldestFirstAndLifecycleIsKept) {
  Reopen(/*max_bytes=*/2U << 20);
  planes_.set_down(true);
  for (int i = 0; i < 20; ++i) Emit(fmt::format("run-{}", i));
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(outboxes_->EmitSamples(SamplesOf(fmt::format("{:05}", i), 500, clock_.Now()),
                                       clock_.Now()));
    const auto bytes =
        outboxes_->lifecycle().figures().bytes + outboxes_->samples().figures().bytes;
    ASSERT_LE(bytes, 2U << 20);
  }
  const std::uint64_t dropped = outboxes_->samples().figures().dropped;
  EXPECT_GT(dropped, 50U);
  planes_.set_down(false);
  RunFor(60s);
  EXPECT_EQ(planes_.applied_names().size(), 20U);
  const auto applied = planes_.applied();
  ASSERT_EQ(applied.size(), 420 - dropped);
  EXPECT_EQ(applied[20].record.samples().key().identity(), fmt::format("{:05}", dropped))
      << "the newest are kept";
}

TEST_F(UploaderTest, LifecycleBeyondTheCapIsRefusedNotDropped) {
  Reopen(/*max_bytes=*/1U << 20);
  planes_.set_down(true);
  ASSERT_TRUE(outboxes_->EmitSamples(SamplesOf("", 500, clock_.Now()), clock_.Now()));
  int taken = 0;
  base::Status last;
  while ((last = outboxes_->Emit(ExecutionNamed(fmt::format("{}{}", taken, std::string(3000, 'x'))),
                                 clock_.Now()))) {
    ++taken;
    ASSERT_LT(taken, 1000);
  }
  EXPECT_EQ(last.error().reason, "outbox.full");
  EXPECT_EQ(outboxes_->samples().figures().dropped, 1U);
  planes_.set_down(false);
  RunFor(60s);
  EXPECT_EQ(planes_.applied_names().size(), std::size_t(taken));
  EXPECT_TRUE(outboxes_->Emit(ExecutionNamed("room again"), clock_.Now()));
}

TEST_F(UploaderTest, DrainStopsAtTheFirstFailureAndAtItsDeadline) {
  Emit("a");
  planes_.set_down(true);
  uploader_->Drain(10s);
  planes_.set_down(false);
  uploader_->Drain(0ms);
  EXPECT_TRUE(planes_.applied_names().empty());
  uploader_->Drain(10s);
  EXPECT_EQ(planes_.applied_names().size(), 1U);
}

}  // namespace
}  // namespace expanse::daemon
