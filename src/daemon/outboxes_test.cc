// Many records at once: one wait for the disk, and a truthful count of what is durable when the
// disk fails on the way.
#include "daemon/outboxes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "daemon/daemon_testing.h"
#include "expanse/data/v1/evidence.pb.h"

namespace expanse::daemon {
namespace {

class OutboxesTest : public testing::Test {
 protected:
  OutboxesTest() : temp_(std::move(*base::TempDir::Create())) { Reopen(); }

  void Reopen(std::uint64_t max_bytes = 1U << 30) {
    outboxes_.reset();
    auto opened = Outboxes::Open({.directory = temp_.path() + "/outbox", .max_bytes = max_bytes},
                                 files_, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    outboxes_ = std::move(*opened);
  }
  static std::vector<evidence::Payload> Executions(int from, int to) {
    std::vector<evidence::Payload> payloads;
    for (int i = from; i < to; ++i) payloads.push_back(ExecutionNamed(fmt::format("run-{}", i)));
    return payloads;
  }
  // Names of executions, and "samples" for a batch of them, that a reader may see.
  std::vector<std::string> Readable(Outbox& outbox) {
    std::vector<std::string> names;
    while (true) {
      const auto batch = outbox.ReadBatch(64U << 20, 1'000'000);
      EXPECT_TRUE(batch);
      if (!batch || batch->empty()) return names;
      for (const Frame& frame : batch->frames) {
        data::v1::EvidenceRecord record;
        EXPECT_TRUE(record.ParseFromString(frame.payload));
        names.push_back(record.has_samples() ? "samples" : record.execution().execution().name());
      }
      EXPECT_TRUE(outbox.Acknowledge(*batch, batch->frames.back().sequence));
    }
  }

  base::TempDir temp_;
  base::FakeClock clock_;
  FaultyFileIo files_;
  std::unique_ptr<Outboxes> outboxes_;
};

TEST_F(OutboxesTest, EmitAllWaitsForTheDiskOnceAndKeepsTheOrder) {
  ASSERT_TRUE(outboxes_->Emit(ExecutionNamed("first"), clock_.Now()));
  const std::uint64_t before = files_.operations();
  const auto done = outboxes_->EmitAll(Executions(0, 1000), clock_.Now());
  EXPECT_TRUE(done.status);
  EXPECT_EQ(done.taken, 1000U);
  EXPECT_EQ(files_.operations() - before, 1001U) << "a write each, one fdatasync";
  const auto names = Readable(outboxes_->lifecycle());
  ASSERT_EQ(names.size(), 1001U);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(names[std::size_t(i) + 1], fmt::format("run-{}", i));
}

TEST_F(OutboxesTest, EmitAllOfNothingIsDone) {
  const auto done = outboxes_->EmitAll({}, clock_.Now());
  EXPECT_TRUE(done.status);
  EXPECT_EQ(done.taken, 0U);
}

TEST_F(OutboxesTest, EmitAllTakesBothStreams) {
  std::vector<evidence::Payload> payloads = Executions(0, 2);
  payloads.insert(payloads.begin() + 1, SamplesOf("a", 3, clock_.Now()));
  payloads.emplace_back(SamplesOf("b", 3, clock_.Now()));
  const auto done = outboxes_->EmitAll(std::move(payloads), clock_.Now());
  EXPECT_TRUE(done.status);
  EXPECT_EQ(done.taken, 4U);
  EXPECT_EQ(Readable(outboxes_->lifecycle()), (std::vector<std::string>{"run-0", "run-1"}));
  EXPECT_EQ(Readable(outboxes_->samples()).size(), 2U);
}

TEST_F(OutboxesTest, EmitAllStopsAtAFullDiskAndSaysHowFarItCame) {
  ASSERT_TRUE(outboxes_->Emit(ExecutionNamed("first"), clock_.Now()));
  files_.OnlyKind("write");
  files_.FailAt(files_.operations() + 8, /*count=*/1000, ENOSPC);
  const auto done = outboxes_->EmitAll(Executions(0, 20), clock_.Now());
  ASSERT_FALSE(done.status);
  EXPECT_EQ(done.status.error().reason, "os.ENOSPC");
  EXPECT_EQ(done.taken, 7U);
  files_.FailAt(0, 0, 0);
  EXPECT_EQ(Readable(outboxes_->lifecycle()).size(), 8U) << "what was taken is durable";
  // The rest is offered again.
  const auto rest = outboxes_->EmitAll(Executions(7, 20), clock_.Now());
  EXPECT_TRUE(rest.status);
  EXPECT_EQ(rest.taken, 13U);
}

TEST_F(OutboxesTest, EmitAllTakesNothingWhenTheDiskRefusesToSync) {
  ASSERT_TRUE(outboxes_->Emit(ExecutionNamed("first"), clock_.Now()));
  files_.OnlyKind("sync");
  files_.FailAt(files_.operations() + 1, /*count=*/100, EIO);
  const auto done = outboxes_->EmitAll(Executions(0, 5), clock_.Now());
  EXPECT_FALSE(done.status);
  EXPECT_EQ(done.taken, 0U);
  files_.FailAt(0, 0, 0);
  EXPECT_EQ(outboxes_->EmitAll(Executions(0, 5), clock_.Now()).taken, 5U);
  EXPECT_EQ(Readable(outboxes_->lifecycle()).size(), 6U);
}

// Segments fill up on the way; the one whose fdatasync fails as it is closed takes its own records
// with it, however well later ones fare.
TEST_F(OutboxesTest, EmitAllCountsOnlyWhatStandsBeforeASegmentThatFailed) {
  Reopen(/*max_bytes=*/1U << 20);  // segments of 64 KiB
  std::vector<evidence::Payload> payloads;
  for (int i = 0; i < 40; ++i) {
    evidence::ExecutionObservation seen =
        std::get<evidence::ExecutionObservation>(ExecutionNamed(fmt::format("run-{}", i)));
    seen.execution.comment.assign(4000, 'c');
    payloads.emplace_back(std::move(seen));
  }
  ASSERT_TRUE(outboxes_->Emit(ExecutionNamed("first"), clock_.Now()));
  // Some 15 records fill the first segment; the next operation but those writes closes it.
  files_.OnlyKind("sync");
  files_.FailAt(files_.operations() + 14, /*count=*/5, EIO);
  const auto done = outboxes_->EmitAll(payloads, clock_.Now());
  files_.FailAt(0, 0, 0);
  ASSERT_FALSE(done.status);
  EXPECT_EQ(done.taken, 0U);
  std::vector<evidence::Payload> rest(payloads.begin() + std::ptrdiff_t(done.taken),
                                      payloads.end());
  EXPECT_TRUE(outboxes_->EmitAll(std::move(rest), clock_.Now()).status);
  const auto names = Readable(outboxes_->lifecycle());
  for (int i = 0; i < 40; ++i) {
    EXPECT_NE(std::find(names.begin(), names.end(), fmt::format("run-{}", i)), names.end()) << i;
  }
}

}  // namespace
}  // namespace expanse::daemon
