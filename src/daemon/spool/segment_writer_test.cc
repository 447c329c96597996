// The sampler's end: when segments are closed, what a death or a failing disk leaves, what a spool
// that is full, missing or dead does to a tick.
#include "daemon/spool/segment_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "daemon/daemon_testing.h"
#include "daemon/spool/segment_evidence.h"
#include "daemon/spool/spool_testing.h"

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class SegmentWriterTest : public testing::Test {
 protected:
  SegmentWriterTest() : temp_(std::move(*base::TempDir::Create())) {
    EXPECT_TRUE(base::MakeDirectories(Spool()));
  }
  std::string Spool() const { return temp_.path() + "/spool"; }
  std::string Queue() const { return temp_.path() + "/queue"; }
  SegmentWriterOptions Options() const {
    return {.queue_directory = Queue(),
            .spool = Spool(),
            .host = "node1",
            .version = "1.2.3",
            .own_thread = false};
  }
  std::unique_ptr<SegmentWriter> Create(const SegmentWriterOptions& options) {
    auto writer = SegmentWriter::Create(options, files_, clock_);
    EXPECT_TRUE(writer) << writer.error().message;
    return writer ? std::move(*writer) : nullptr;
  }
  std::unique_ptr<SegmentWriter> Create() { return Create(Options()); }
  collect::Tick Now() { return {.wall = clock_.Now(), .mono = clock_.Mono()}; }
  void StepAfter(SegmentWriter& writer, base::Duration pause) {
    clock_.Advance(pause);
    writer.Step(Now());
  }
  std::vector<std::string> Files(const std::string& directory) const {
    const auto names = base::ListDirectory(directory);
    return names ? *names : std::vector<std::string>();
  }
  std::vector<std::string> Shipped() const { return Files(Spool() + "/node1"); }
  std::vector<Segment> Segments() const {
    std::vector<Segment> segments;
    for (const std::string& name : Shipped()) {
      auto segment = DecodeSegment(*base::ReadFile(Spool() + "/node1/" + name, 64U << 20));
      EXPECT_TRUE(segment) << name << ": " << segment.error().message;
      if (segment) segments.push_back(std::move(*segment));
    }
    return segments;
  }
  std::string ReasonOf(SegmentWriter& writer) { return writer.health(Now()).reason; }

  base::TempDir temp_;
  base::FakeClock clock_;
  FaultyFileIo files_;
};

TEST_F(SegmentWriterTest, AnEventGoesAfterASecondWithAllThatCameMeanwhile) {
  auto writer = Create();
  ASSERT_TRUE(writer->EmitSamples(SamplesOfJob("7", 3, clock_.Now()), clock_.Now()));
  ASSERT_TRUE(writer->Emit(EventOfJob("7"), clock_.Now()));
  StepAfter(*writer, 500ms);
  EXPECT_TRUE(Shipped().empty());
  ASSERT_TRUE(writer->Emit(EventOfJob("8"), clock_.Now()));
  StepAfter(*writer, 500ms);
  ASSERT_EQ(Shipped().size(), 1U);
  EXPECT_THAT(Shipped()[0], testing::EndsWith("-0000000000000001.e.seg"));
  const Segment segment = Segments()[0];
  EXPECT_EQ(segment.header.host, "node1");
  EXPECT_EQ(segment.header.sequence, 1U);
  EXPECT_EQ(segment.handed_over.wall, clock_.Now());
  EXPECT_EQ(segment.events.size(), 2U);
  EXPECT_EQ(segment.samples.size(), 1U);
  EXPECT_TRUE(Files(Queue()) == std::vector<std::string>{"lock"}) << "the node keeps no copy";
}

TEST_F(SegmentWriterTest, SamplesAloneGoEveryTenSeconds) {
  auto writer = Create();
  for (int second = 1; second <= 40; ++second) {
    ASSERT_TRUE(writer->EmitSamples(SamplesOfJob("7", 1, clock_.Now()), clock_.Now()));
    StepAfter(*writer, 1s);
  }
  EXPECT_EQ(Shipped().size(), 4U);
  for (const std::string& name : Shipped()) EXPECT_THAT(name, testing::EndsWith(".s.seg"));
}

TEST_F(SegmentWriterTest, ALargeSegmentIsClosedAtOnce) {
  SegmentWriterOptions options = Options();
  options.segment_bytes = 20'000;
  auto writer = Create(options);
  std::vector<evidence::Payload> events;
  for (int i = 0; i < 300; ++i) {
    auto event = EventOfJob("7");
    std::get<evidence::ExecutionObservation>(event).execution.comment.assign(1000, 'c');
    events.push_back(std::move(event));
  }
  const auto done = writer->EmitAll(std::move(events), clock_.Now());
  EXPECT_TRUE(done.status);
  EXPECT_EQ(done.taken, 300U);
  writer->Step(Now());
  EXPECT_GE(Shipped().size(), 10U);
  std::size_t all = 0;
  for (const Segment& segment : Segments()) all += segment.events.size();
  EXPECT_TRUE(writer->Stop(0ms));
  all = 0;
  for (const Segment& segment : Segments()) all += segment.events.size();
  EXPECT_EQ(all, 300U);
}

TEST_F(SegmentWriterTest, WhatItSaysOfItselfTravelsAlongAndShowsThatItLives) {
  auto writer = Create();
  writer->SetStatus({{.collector = "cgroup",
                      .status = evidence::HealthStatus::kDegraded,
                      .reason = "no_jobs",
                      .message = "",
                      .checked_at = clock_.Now(),
                      .figures = {}}});
  StepAfter(*writer, 30s);
  EXPECT_TRUE(Shipped().empty());
  StepAfter(*writer, 31s);
  ASSERT_EQ(Shipped().size(), 1U) << "without any record: a sign of life";
  auto evidence = TakeEvidence(Segments()[0], "node1");
  ASSERT_TRUE(evidence) << evidence.error().message;
  EXPECT_TRUE(evidence->records.empty());
  ASSERT_TRUE(evidence->status);
  EXPECT_EQ(evidence->status->daemon_version, "1.2.3");
  ASSERT_EQ(evidence->status->rows.size(), 2U);
  EXPECT_EQ(evidence->status->rows[0].reason, "no_jobs");
  EXPECT_EQ(evidence->status->rows[1].collector, "spool_writer");
}

TEST_F(SegmentWriterTest, ARestartBeginsAStreamOfItsOwnThatSortsBehind) {
  for (int life = 0; life < 3; ++life) {
    auto writer = Create();
    ASSERT_TRUE(writer->Emit(EventOfJob("7"), clock_.Now()));
    clock_.Advance(1s);
  }
  const auto segments = Segments();
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_LT(segments[0].header.begun.wall, segments[1].header.begun.wall);
  EXPECT_LT(segments[1].header.begun.wall, segments[2].header.begun.wall);
}

TEST_F(SegmentWriterTest, ASecondSamplerIsRefused) {
  auto writer = Create();
  auto second = SegmentWriter::Create(Options(), files_, clock_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "spool.locked");
  writer.reset();
  EXPECT_TRUE(Create());
}

TEST_F(SegmentWriterTest, AQueueThatOthersMayWriteToIsRefused) {
  ASSERT_TRUE(base::MakeDirectories(Queue(), 0700));
  ASSERT_EQ(::chmod(Queue().c_str(), 0777), 0);
  auto writer = SegmentWriter::Create(Options(), files_, clock_);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().reason, "spool.queue_untrusted");
  SegmentWriterOptions options = Options();
  options.host = "../node2";
  writer = SegmentWriter::Create(options, files_, clock_);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().reason, "spool.host_name");
}

TEST_F(SegmentWriterTest, AMissingSpoolIsNeverMadeAndCostsNothingOnceItIsBack) {
  ASSERT_TRUE(base::RemoveTree(Spool()));
  auto writer = Create();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer->Emit(EventOfJob("7"), clock_.Now()));
    StepAfter(*writer, 2s);
  }
  EXPECT_FALSE(base::Exists(Spool()));
  EXPECT_EQ(ReasonOf(*writer), "spool.missing");
  ASSERT_TRUE(base::MakeDirectories(Spool()));
  writer->Step(Now());
  EXPECT_EQ(Shipped().size(), 3U);
  EXPECT_EQ(ReasonOf(*writer), "");
}

TEST_F(SegmentWriterTest, AFullQueueDropsSamplesBeforeEvents) {
  ASSERT_TRUE(base::RemoveTree(Spool()));
  SegmentWriterOptions options = Options();
  options.queue_max_bytes = 100'000;
  auto writer = Create(options);
  std::size_t events = 0;
  for (int i = 0; i < 400; ++i) {
    if (i % 20 == 0) {
      ASSERT_TRUE(writer->Emit(EventOfJob(fmt::format("{}", i + 1)), clock_.Now())) << i;
      ++events;
    } else {
      ASSERT_TRUE(writer->EmitSamples(NoiseOfJob("7", 100, clock_.Now()), clock_.Now())) << i;
    }
    StepAfter(*writer, 10s);
  }
  const auto row = writer->health(Now());
  EXPECT_GT(row.figures.at("dropped_segments"), 100);
  EXPECT_EQ(row.figures.at("dropped_event_segments"), 0);
  EXPECT_LE(row.figures.at("waiting_bytes"), 100'000);
  ASSERT_TRUE(base::MakeDirectories(Spool()));
  writer->Step(Now());
  std::size_t arrived = 0;
  for (const Segment& segment : Segments()) arrived += segment.events.size();
  EXPECT_EQ(arrived, events);
  EXPECT_EQ(ReasonOf(*writer), "spool.dropped");
  StepAfter(*writer, 2h);
  EXPECT_EQ(ReasonOf(*writer), "") << "not for ever";
}

TEST_F(SegmentWriterTest, TheHostsShareOfTheSpoolIsBounded) {
  SegmentWriterOptions options = Options();
  options.spool_max_bytes = 60'000;
  auto writer = Create(options);
  for (int i = 0; i < 60; ++i) {
    if (i % 10 == 0) {
      ASSERT_TRUE(writer->Emit(EventOfJob("8"), clock_.Now()));
    }
    ASSERT_TRUE(writer->EmitSamples(NoiseOfJob("7", 200, clock_.Now()), clock_.Now()));
    StepAfter(*writer, 10s);
  }
  std::uint64_t bytes = 0;
  std::size_t events = 0;
  for (const std::string& name : Shipped()) {
    bytes += base::ReadFile(Spool() + "/node1/" + name)->size();
    events += name.ends_with(".e.seg") ? 1 : 0;
  }
  EXPECT_LE(bytes, 60'000U);
  EXPECT_EQ(events, 6U) << "samples go first";
  EXPECT_GT(writer->health(Now()).figures.at("dropped_segments"), 10);
}

TEST_F(SegmentWriterTest, AFullFileSystemTakesWhatThereIsRoomFor) {
  auto writer = Create();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer->EmitSamples(SamplesOfJob("7", 100, clock_.Now()), clock_.Now()));
    StepAfter(*writer, 10s);
  }
  ASSERT_EQ(Shipped().size(), 3U);
  ASSERT_TRUE(writer->Emit(EventOfJob("7"), clock_.Now()));
  clock_.Advance(1s);
  // The first write to the spool fails once: the oldest samples make room.
  files_.OnlyKind("write");
  const std::uint64_t now = files_.operations();
  files_.FailAt(now + 1, /*count=*/5, ENOSPC);
  writer->Step(Now());
  const auto names = Shipped();
  EXPECT_TRUE(names.empty() || !names.front().ends_with("01.s.seg"));
  files_.FailAt(0, 0, 0);
  StepAfter(*writer, 1s);
  EXPECT_EQ(Segments().back().events.size(), 1U);
}

TEST_F(SegmentWriterTest, AFailingDiskOfTheNodeRefusesAndRecovers) {
  auto writer = Create();
  ASSERT_TRUE(writer->Emit(EventOfJob("7"), clock_.Now()));
  files_.FailAt(files_.operations() + 1, /*count=*/1, EIO);
  auto refused = writer->Emit(EventOfJob("8"), clock_.Now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "os.EIO");
  EXPECT_EQ(ReasonOf(*writer), "spool.queue_failed");
  ASSERT_TRUE(writer->Emit(EventOfJob("9"), clock_.Now()));
  EXPECT_EQ(ReasonOf(*writer), "");
  StepAfter(*writer, 1s);
  ASSERT_EQ(Segments().size(), 1U);
  EXPECT_EQ(Segments()[0].events.size(), 2U) << "half a block was written over";
}

// Whatever operation fails, once or for a while: nothing that was taken is lost or doubled.
TEST_F(SegmentWriterTest, FailuresAnywhereLoseNothingThatWasTaken) {
  for (std::uint64_t at = 1; at < 40; ++at) {
    ASSERT_TRUE(base::RemoveTree(Spool()));
    ASSERT_TRUE(base::RemoveTree(Queue()));
    ASSERT_TRUE(base::MakeDirectories(Spool()));
    auto writer = Create();
    files_.FailAt(files_.operations() + at, /*count=*/1 + at % 3, EIO);
    std::size_t taken = 0;
    for (int i = 0; i < 6; ++i) {
      if (writer->Emit(EventOfJob("7"), clock_.Now())) ++taken;
      StepAfter(*writer, 1s);
    }
    files_.FailAt(0, 0, 0);
    StepAfter(*writer, 1s);
    writer.reset();
    std::size_t arrived = 0;
    for (const Segment& segment : Segments()) arrived += segment.events.size();
    ASSERT_EQ(arrived, taken) << at;
  }
}

// A sampler is killed at every one of its file operations; the next one ships what it had taken.
TEST_F(SegmentWriterTest, ADeathAnywhereLosesNothingThatWasTaken) {
  bool finished = false;
  for (std::uint64_t at = 1; !finished; ++at) {
    ASSERT_LT(at, 300U);
    ASSERT_TRUE(base::RemoveTree(Spool()));
    ASSERT_TRUE(base::RemoveTree(Queue()));
    ASSERT_TRUE(base::MakeDirectories(Spool()));
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      FaultyFileIo files;
      files.DieAt(at, FaultyFileIo::Death::kKill);
      auto writer = SegmentWriter::Create(Options(), files, clock_);
      if (!writer) ::_exit(3);
      for (int i = 0; i < 6; ++i) {
        const std::string id = fmt::format("{}", i + 1);
        if ((*writer)->Emit(EventOfJob(id), clock_.Now())) (void)!::write(pipe[1], &i, sizeof i);
        clock_.Advance(700ms);
        (*writer)->Step({.wall = clock_.Now(), .mono = clock_.Mono()});
      }
      ::_exit(0);
    }
    ::close(pipe[1]);
    std::set<std::string> promised;
    int number = 0;
    while (::read(pipe[0], &number, sizeof number) == sizeof number)
      promised.insert(fmt::format("job:{}", number + 1));
    ::close(pipe[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7)) << at;
    finished = WEXITSTATUS(status) == 0;
    clock_.Advance(1min);
    auto next = Create();
    next->Step(Now());
    std::multiset<std::string> arrived;
    for (const Segment& segment : Segments()) {
      auto evidence = TakeEvidence(segment, "node1");
      ASSERT_TRUE(evidence);
      for (const auto& record : evidence->records) arrived.insert(KeyOf(record.payload)->identity);
    }
    for (const std::string& id : promised) EXPECT_EQ(arrived.count(id), 1U) << at << " " << id;
    EXPECT_EQ(Files(Queue()), std::vector<std::string>{"lock"}) << at;
    for (const std::string& name : Shipped()) EXPECT_TRUE(ParseSegmentName(name)) << name;
  }
}

TEST_F(SegmentWriterTest, ADeadFileServerIsHealthAndNoHang) {
  // Outlives the writer, as main()'s does: the shipper is inside a call when that ends.
  static auto* hanging = new HangingFileIo(Spool());
  static base::FakeClock* clock = new base::FakeClock();
  SegmentWriterOptions options = Options();
  options.own_thread = true;
  auto writer = SegmentWriter::Create(options, *hanging, *clock);
  ASSERT_TRUE(writer);
  auto step = [&](base::Duration pause) {
    clock->Advance(pause);
    (*writer)->Step({.wall = clock->Now(), .mono = clock->Mono()});
  };
  ASSERT_TRUE((*writer)->Emit(EventOfJob("7"), clock->Now()));
  step(1s);
  ASSERT_TRUE(hanging->WaitUntilInside());
  step(40s);
  ASSERT_TRUE((*writer)->Emit(EventOfJob("8"), clock->Now()));
  step(1s);
  const auto row = (*writer)->health({.wall = clock->Now(), .mono = clock->Mono()});
  EXPECT_EQ(row.reason, "spool.hung");
  EXPECT_THAT(row.message, HasSubstr(Spool()));
  EXPECT_FALSE((*writer)->Stop(1ms));
  writer->reset();
  // The server is back: the thread that was left behind goes on, and ends.
  hanging->LetGo();
  for (int i = 0; i < 500 && Shipped().size() < 2; ++i) ::usleep(10'000);
  EXPECT_EQ(Segments().size(), 2U);
}

}  // namespace
}  // namespace expanse::daemon::spool
