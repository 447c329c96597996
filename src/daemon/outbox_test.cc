#include "daemon/outbox.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <thread>

#include "base/crypto.h"
#include "base/text.h"
#include "daemon/daemon_testing.h"

namespace expanse::daemon {
namespace {

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() : temp_(std::move(*base::TempDir::Create())) {}

  OutboxOptions Options(std::uint64_t segment_bytes = 1U << 20,
                        StreamClass stream_class = StreamClass::kLifecycle) {
    return {.stream_class = stream_class,
            .directory = temp_.path() + "/box",
            .segment_bytes = segment_bytes};
  }
  std::unique_ptr<Outbox> Open(const OutboxOptions& options) {
    auto outbox = Outbox::Open(options, files_, clock_);
    EXPECT_TRUE(outbox) << outbox.error().message;
    return outbox ? std::move(*outbox) : nullptr;
  }
  std::unique_ptr<Outbox> Open() { return Open(Options()); }
  static void Put(Outbox& outbox, const std::string& payload) {
    auto ticket = outbox.Append(payload);
    ASSERT_TRUE(ticket) << ticket.error().message;
    ASSERT_TRUE(outbox.Sync(*ticket));
  }
  // Payloads of all that is left, acknowledged on the way.
  static std::vector<std::string> Take(Outbox& outbox, std::size_t records = 1000) {
    std::vector<std::string> all;
    while (true) {
      auto batch = outbox.ReadBatch(1U << 20, records);
      EXPECT_TRUE(batch) << batch.error().message;
      if (!batch || batch->empty()) return all;
      for (const Frame& frame : batch->frames) all.push_back(frame.payload);
      EXPECT_TRUE(outbox.Acknowledge(*batch, batch->frames.back().sequence));
    }
  }
  std::vector<std::string> Segments(const char* below = "") {
    std::vector<std::string> found;
    const auto names = base::ListDirectory(temp_.path() + "/box" + below);
    if (!names) return found;
    for (const std::string& name : *names) {
      if (name.ends_with(".seg")) found.push_back(temp_.path() + "/box" + below + "/" + name);
    }
    return found;
  }
  static void Edit(const std::string& path, const std::function<void(std::string*)>& change) {
    std::string bytes = *base::ReadFile(path);
    change(&bytes);
    ASSERT_TRUE(base::WriteFileAtomically(path, bytes, 0600));
  }

  base::TempDir temp_;
  base::FakeClock clock_;
  FaultyFileIo files_;
};

TEST_F(OutboxTest, GivesBackWhatWasPutInOrder) {
  auto outbox = Open();
  for (int i = 0; i < 5; ++i) Put(*outbox, fmt::format("record {}", i));
  auto batch = outbox->ReadBatch(1U << 20, 3);
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->frames.size(), 3U);
  EXPECT_EQ(batch->frames[0].sequence, 1U);
  EXPECT_EQ(batch->frames[2].payload, "record 2");
  EXPECT_EQ(batch->stream_id, outbox->stream_id());
  EXPECT_TRUE(base::IsUuid(batch->stream_id));
  EXPECT_EQ(Take(*outbox).size(), 5U) << "reading alone takes nothing away";
  EXPECT_TRUE(Take(*outbox).empty());
}

TEST_F(OutboxTest, BatchesKeepBothLimitsAndLetOneLargeRecordThrough) {
  auto outbox = Open();
  Put(*outbox, std::string(5000, 'a'));
  for (int i = 0; i < 4; ++i) Put(*outbox, std::string(900, 'b'));
  auto batch = outbox->ReadBatch(2000, 100);
  ASSERT_EQ(batch->frames.size(), 1U);
  ASSERT_TRUE(outbox->Acknowledge(*batch, batch->frames.back().sequence));
  batch = outbox->ReadBatch(2000, 100);
  EXPECT_EQ(batch->frames.size(), 2U);
}

TEST_F(OutboxTest, LifecycleRecordsAreOnlyReadOnceDurable) {
  auto outbox = Open();
  auto ticket = outbox->Append("not yet");
  ASSERT_TRUE(ticket);
  EXPECT_TRUE(outbox->ReadBatch(1000, 10)->empty());
  ASSERT_TRUE(outbox->Sync(*ticket));
  EXPECT_EQ(outbox->ReadBatch(1000, 10)->frames.size(), 1U);
}

TEST_F(OutboxTest, PartOfABatchCanBeAcknowledged) {
  auto outbox = Open();
  for (int i = 0; i < 4; ++i) Put(*outbox, fmt::format("{}", i));
  auto batch = outbox->ReadBatch(1000, 10);
  ASSERT_TRUE(outbox->Acknowledge(*batch, 2));
  EXPECT_EQ(Take(*outbox), (std::vector<std::string>{"2", "3"}));
}

TEST_F(OutboxTest, DeliveredSegmentsAreDeletedAndStayDeleted) {
  auto outbox = Open(Options(/*segment_bytes=*/200));
  for (int i = 0; i < 10; ++i) Put(*outbox, std::string(100, 'x'));
  EXPECT_GT(Segments().size(), 3U);
  EXPECT_EQ(Take(*outbox).size(), 10U);
  EXPECT_EQ(Segments().size(), 1U) << "the one that is written to";
  ASSERT_TRUE(outbox->Flush());
  outbox.reset();
  EXPECT_TRUE(Take(*Open()).empty());
}

TEST_F(OutboxTest, RestartDeliversTheRestUnderTheSameStream) {
  std::string stream;
  {
    auto outbox = Open();
    stream = outbox->stream_id();
    for (int i = 0; i < 3; ++i) Put(*outbox, fmt::format("{}", i));
    auto batch = outbox->ReadBatch(1000, 1);
    ASSERT_TRUE(outbox->Acknowledge(*batch, 1));
    ASSERT_TRUE(outbox->Flush());
  }
  auto outbox = Open();
  EXPECT_EQ(outbox->stream_id(), stream);
  EXPECT_EQ(Take(*outbox), (std::vector<std::string>{"1", "2"}));
}

TEST_F(OutboxTest, SequencesAreNotReusedWhenEverythingWasDropped) {
  std::uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    auto outbox = Open(Options(1U << 20, StreamClass::kSamples));
    ASSERT_TRUE(outbox->Append("sample"));
    auto batch = outbox->ReadBatch(1000, 10);
    ASSERT_EQ(batch->frames.size(), 1U);
    EXPECT_GT(batch->frames[0].sequence, last);
    last = batch->frames[0].sequence;
    ASSERT_TRUE(*outbox->DropOldest());
    EXPECT_EQ(outbox->figures().dropped, std::uint64_t(round) + 1);
    EXPECT_FALSE(*outbox->DropOldest());
    ASSERT_TRUE(outbox->Flush());
  }
}

TEST_F(OutboxTest, DropsTheOldestSegmentAndCountsOnlyUndelivered) {
  auto outbox = Open(Options(/*segment_bytes=*/250, StreamClass::kSamples));
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(outbox->Append(fmt::format("{:080}", i)));
  auto batch = outbox->ReadBatch(1U << 20, 1);
  ASSERT_TRUE(outbox->Acknowledge(*batch, 1));
  ASSERT_TRUE(*outbox->DropOldest());
  const std::uint64_t dropped = outbox->figures().dropped;
  EXPECT_GE(dropped, 1U);
  EXPECT_EQ(Take(*outbox).size(), 8 - dropped);
}

TEST_F(OutboxTest, TornTailIsCutOff) {
  {
    auto outbox = Open();
    Put(*outbox, "whole");
    Put(*outbox, "torn later");
  }
  for (std::size_t cut = 1; cut < 34; cut += 3) {
    Edit(Segments().back(), [&](std::string* bytes) {
      bytes->resize(kSegmentHeaderSize + kFrameHeaderSize + 5 + 34 - cut);
    });
    auto outbox = Open();
    EXPECT_EQ(outbox->figures().damaged, 0U);
    auto batch = outbox->ReadBatch(1000, 10);
    ASSERT_EQ(batch->frames.size(), 1U) << cut;
    EXPECT_EQ(batch->frames[0].payload, "whole");
    EXPECT_EQ(base::ReadFile(Segments().back())->size(), kSegmentHeaderSize + kFrameHeaderSize + 5);
  }
}

TEST_F(OutboxTest, DamageInTheMiddleIsSteppedOverCountedAndKept) {
  // Every byte of the middle frame in turn.
  const std::size_t start = kSegmentHeaderSize + kFrameHeaderSize + 5;
  for (std::size_t at = start; at < start + kFrameHeaderSize + 6; ++at) {
    ASSERT_TRUE(base::RemoveTree(temp_.path() + "/box"));
    {
      auto outbox = Open();
      for (const char* payload : {"first", "middle", "third"}) Put(*outbox, payload);
    }
    Edit(Segments().back(), [&](std::string* bytes) { (*bytes)[at] = char((*bytes)[at] ^ 0x40); });
    auto outbox = Open();
    EXPECT_EQ(Take(*outbox), (std::vector<std::string>{"first", "third"})) << at;
    EXPECT_EQ(outbox->figures().damaged, 1U) << at;
    EXPECT_EQ(Segments("/quarantine").size(), 1U);
    EXPECT_TRUE(Segments().empty());
  }
}

TEST_F(OutboxTest, ContentCannotPassForAFrame) {
  std::string forged = "text ";
  AppendFrame(FrameSeed("00000000-0000-7000-8000-000000000000"), 99, "forged", &forged);
  forged += " more text";
  {
    auto outbox = Open();
    Put(*outbox, forged);
    Put(*outbox, "next");
  }
  Edit(Segments().back(), [](std::string* bytes) { (*bytes)[kSegmentHeaderSize + 4] ^= 1; });
  EXPECT_EQ(Take(*Open()), std::vector<std::string>{"next"});
}

TEST_F(OutboxTest, RefusesANewerVersionAndTouchesNothing) {
  {
    auto outbox = Open();
    Put(*outbox, "from the future");
  }
  const std::string before = *base::ReadFile(Segments().back());
  for (const std::string& path : {Segments().back(), temp_.path() + "/box/state"}) {
    const std::string good = *base::ReadFile(path);
    Edit(path, [](std::string* bytes) { (*bytes)[8] = 2; });
    auto opened = Outbox::Open(Options(), files_, clock_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().reason, "outbox.version");
    Edit(path, [&](std::string* bytes) { *bytes = good; });
  }
  EXPECT_EQ(*base::ReadFile(Segments().back()), before);
  EXPECT_EQ(Take(*Open()).size(), 1U);
}

TEST_F(OutboxTest, LostStateBeginsANewStreamAndKeepsOldRecordsUnderTheirs) {
  std::string old_stream;
  {
    auto outbox = Open();
    old_stream = outbox->stream_id();
    Put(*outbox, "old");
  }
  Edit(temp_.path() + "/box/state", [](std::string* bytes) { bytes->back() ^= 1; });
  auto outbox = Open();
  EXPECT_NE(outbox->stream_id(), old_stream);
  Put(*outbox, "new");
  auto batch = outbox->ReadBatch(1000, 10);
  ASSERT_EQ(batch->frames.size(), 1U);
  EXPECT_EQ(batch->stream_id, old_stream);
  ASSERT_TRUE(outbox->Acknowledge(*batch, batch->frames.back().sequence));
  batch = outbox->ReadBatch(1000, 10);
  ASSERT_EQ(batch->frames.size(), 1U);
  EXPECT_EQ(batch->stream_id, outbox->stream_id());
  EXPECT_EQ(batch->frames[0].payload, "new");
}

TEST_F(OutboxTest, StrangeAndUnfinishedFilesDoNoHarm) {
  {
    auto outbox = Open();
    Put(*outbox, "good");
  }
  const std::string box = temp_.path() + "/box/";
  ASSERT_TRUE(base::WriteFileAtomically(box + "state.tmp", "half", 0600));
  ASSERT_TRUE(base::WriteFileAtomically(box + "notes.txt", "mine", 0600));
  ASSERT_TRUE(base::WriteFileAtomically(box + "0000000000000000.seg", std::string(500, 'z'), 0600));
  ASSERT_TRUE(base::WriteFileAtomically(box + "0000000000000009.seg", "XPNS", 0600));
  auto outbox = Open();
  EXPECT_EQ(Take(*outbox), std::vector<std::string>{"good"});
  EXPECT_FALSE(base::Exists(box + "state.tmp"));
  EXPECT_FALSE(base::Exists(box + "0000000000000009.seg"));
  EXPECT_TRUE(base::Exists(box + "notes.txt"));
  EXPECT_EQ(Segments("/quarantine").size(), 1U);
  Put(*outbox, "after");
  EXPECT_EQ(Take(*outbox), std::vector<std::string>{"after"});
}

TEST_F(OutboxTest, FailedWritesLeaveNothingAndGoOnAfterwards) {
  auto outbox = Open();
  Put(*outbox, "before");
  for (int error : {ENOSPC, EIO, EDQUOT}) {
    files_.FailAt(files_.operations() + 1, 1, error);
    auto failed = outbox->Append("lost");
    ASSERT_FALSE(failed);
    EXPECT_FALSE(outbox->figures().last_failure.empty());
    Put(*outbox, "after");
    EXPECT_TRUE(outbox->figures().last_failure.empty());
  }
  EXPECT_EQ(outbox->figures().write_failures, 3U);
  // Even the repair may fail.
  files_.FailAt(files_.operations() + 1, 2, ENOSPC);
  EXPECT_FALSE(outbox->Append("lost"));
  Put(*outbox, "in a new segment");
  EXPECT_EQ(Take(*outbox),
            (std::vector<std::string>{"before", "after", "after", "after", "in a new segment"}));
}

TEST_F(OutboxTest, FailedSyncIsNeverReportedAsDurable) {
  auto outbox = Open();
  Put(*outbox, "before");
  auto lost = outbox->Append("lost");
  ASSERT_TRUE(lost);
  files_.FailAt(files_.operations() + 1, 1, EIO);
  EXPECT_FALSE(outbox->Sync(*lost));
  EXPECT_FALSE(outbox->Sync(*lost)) << "the next fdatasync would succeed and prove nothing";
  Put(*outbox, "after");
  EXPECT_FALSE(outbox->Sync(*lost));
  EXPECT_EQ(Take(*outbox), (std::vector<std::string>{"before", "after"}));
}

TEST_F(OutboxTest, ConcurrentAppendersShareSyncsAndLoseNothing) {
  auto outbox = Open(Options(/*segment_bytes=*/4096));
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        auto ticket = outbox->Append(fmt::format("{}-{}", t, i));
        EXPECT_TRUE(ticket && outbox->Sync(*ticket));
      }
    });
  }
  std::map<std::string, int> seen;
  while (seen.size() < kThreads * kEach) {
    auto batch = outbox->ReadBatch(10'000, 50);
    ASSERT_TRUE(batch);
    if (batch->empty()) {
      std::this_thread::yield();
      continue;
    }
    for (const Frame& frame : batch->frames) ++seen[frame.payload];
    ASSERT_TRUE(outbox->Acknowledge(*batch, batch->frames.back().sequence));
  }
  for (const auto& [payload, count] : seen) EXPECT_EQ(count, 1) << payload;
}

TEST_F(OutboxTest, SegmentDeletedByHandIsNotWaitedFor) {
  auto outbox = Open(Options(/*segment_bytes=*/100));
  for (int i = 0; i < 4; ++i) Put(*outbox, fmt::format("{:080}", i));
  ASSERT_TRUE(base::RemoveFile(Segments()[1]));
  EXPECT_EQ(Take(*outbox).size(), 3U);
}

TEST_F(OutboxTest, WritesToAFreshFileWhenItsOwnWasDeletedByHand) {
  auto outbox = Open();
  Put(*outbox, "first");
  EXPECT_EQ(Take(*outbox).size(), 1U);
  ASSERT_TRUE(base::RemoveFile(Segments().back()));
  Put(*outbox, "into an unlinked file");
  EXPECT_TRUE(Take(*outbox).empty());
  Put(*outbox, "fresh");
  EXPECT_EQ(Take(*outbox), std::vector<std::string>{"fresh"});
}

TEST_F(OutboxTest, SetAsideKeepsTheRecordForPeople) {
  auto outbox = Open();
  Put(*outbox, "poison");
  auto batch = outbox->ReadBatch(1000, 10);
  ASSERT_TRUE(outbox->SetAside(*batch, "refused"));
  const auto kept = base::ListDirectory(temp_.path() + "/box/refused");
  ASSERT_EQ(kept->size(), 1U);
  EXPECT_EQ(*base::ReadFile(temp_.path() + "/box/refused/" + kept->front()), "poison");
  EXPECT_EQ(outbox->figures().refused, 1U);
}

TEST_F(OutboxTest, SetAsideKeepsABoundedNumber) {
  auto outbox = Open();
  for (int i = 0; i < 70; ++i) Put(*outbox, fmt::format("poison {}", i));
  auto batch = outbox->ReadBatch(100'000, 100);
  ASSERT_EQ(batch->frames.size(), 70U);
  ASSERT_TRUE(outbox->SetAside(*batch, "refused"));
  ASSERT_TRUE(outbox->SetAside(*batch, "refused"));
  EXPECT_EQ(base::ListDirectory(temp_.path() + "/box/refused")->size(), 64U);
  EXPECT_EQ(outbox->figures().refused, 140U);
}

// A child appends, reads and acknowledges and tells over a pipe what it was promised:
// 's' a record that is durable, 'd' a sequence and payload that was delivered.
struct Promise {
  char kind;
  std::uint64_t sequence;
  int payload;
};

void Work(const OutboxOptions& options, std::uint64_t die_at, FaultyFileIo::Death how, int pipe,
          int first) {
  base::FakeClock clock;
  FaultyFileIo files;
  files.DieAt(die_at, how);
  auto tell = [&](const Promise& promise) { (void)!::write(pipe, &promise, sizeof promise); };
  auto outbox = Outbox::Open(options, files, clock);
  if (!outbox) ::_exit(3);
  for (int i = 0; i < 8; ++i) {
    auto ticket = (*outbox)->Append(fmt::format("{} {:060}", first + i, 0));
    if (ticket && (*outbox)->Sync(*ticket)) tell({'s', 0, first + i});
    if (i % 3 != 2) continue;
    auto batch = (*outbox)->ReadBatch(1U << 20, 2);
    if (!batch || batch->empty()) continue;
    for (const Frame& frame : batch->frames) {
      tell({'d', frame.sequence,
            *base::ParseInt<int>(frame.payload.substr(0, frame.payload.find(' ')))});
    }
    (void)(*outbox)->Acknowledge(*batch, batch->frames.back().sequence);
    (void)(*outbox)->Flush();
  }
  ::_exit(0);
}

// A child may die at every single file operation, twice in a row; whatever it was promised must
// hold.
void CrashEverywhere(const std::string& directory, FaultyFileIo::Death how) {
  bool finished = false;
  for (std::uint64_t at = 1; !finished; ++at) {
    ASSERT_LT(at, 500U);
    const OutboxOptions options{.directory = fmt::format("{}/{}", directory, at),
                                .segment_bytes = 250};
    std::map<std::pair<std::string, std::uint64_t>, int>
        delivered;  // (stream, sequence) -> payload
    std::map<int, int> durable;
    std::set<int> seen;
    for (int life = 0; life < 2; ++life) {
      int pipe[2];
      ASSERT_EQ(::pipe(pipe), 0);
      const pid_t child = ::fork();
      if (child == 0) Work(options, life == 0 ? at : at / 2 + 1, how, pipe[1], life * 100);
      ::close(pipe[1]);
      Promise promise{};
      while (::read(pipe[0], &promise, sizeof promise) == sizeof promise) {
        if (promise.kind == 's') ++durable[promise.payload];
        if (promise.kind == 'd') {
          const auto [it, fresh] =
              delivered.emplace(std::pair{"", promise.sequence}, promise.payload);
          ASSERT_EQ(it->second, promise.payload)
              << "sequence " << promise.sequence << " was used twice";
          seen.insert(promise.payload);
        }
      }
      ::close(pipe[0]);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7))
          << at << " " << status;
      if (life == 0) finished = WEXITSTATUS(status) == 0;
    }
    base::FakeClock clock;
    FaultyFileIo files;
    auto outbox = Outbox::Open(options, files, clock);
    ASSERT_TRUE(outbox) << at << ": " << outbox.error().message;
    EXPECT_EQ((*outbox)->figures().damaged, 0U) << at;
    std::uint64_t last = 0;
    while (true) {
      auto batch = (*outbox)->ReadBatch(1U << 20, 1000);
      ASSERT_TRUE(batch);
      if (batch->empty()) break;
      for (const Frame& frame : batch->frames) {
        const int payload = *base::ParseInt<int>(frame.payload.substr(0, frame.payload.find(' ')));
        ASSERT_GT(frame.sequence, last) << at;
        last = frame.sequence;
        const auto known = delivered.find({"", frame.sequence});
        if (known != delivered.end()) {
          ASSERT_EQ(known->second, payload) << at;
        }
        seen.insert(payload);
      }
      ASSERT_TRUE((*outbox)->Acknowledge(*batch, last));
    }
    for (const auto& [payload, count] : durable) {
      EXPECT_TRUE(seen.contains(payload))
          << "killed at operation " << at << ": record " << payload << " is lost";
    }
    ASSERT_TRUE((*outbox)->Append("after"));
    ASSERT_TRUE((*outbox)->Flush());
    auto batch = (*outbox)->ReadBatch(1U << 20, 10);
    ASSERT_EQ(batch->frames.size(), 1U);
    EXPECT_GT(batch->frames[0].sequence, last);
    EXPECT_FALSE(delivered.contains({"", batch->frames[0].sequence})) << at;
  }
}

TEST_F(OutboxTest, SurvivesAKillAtEveryWrite) {
  CrashEverywhere(temp_.path(), FaultyFileIo::Death::kKill);
}
TEST_F(OutboxTest, SurvivesAPowerCutAtEveryWrite) {
  CrashEverywhere(temp_.path(), FaultyFileIo::Death::kPowerCut);
}

}  // namespace
}  // namespace expanse::daemon
