// Wrong clocks, dying controllers, dead file servers: nothing is lost and nothing comes twice; and
// what of that health tells.
#include "daemon/spool/spool_drain_testing.h"

namespace expanse::daemon::spool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The sampler's host has a clock of its own.
TEST_F(SpoolDrainTest, AClockThatIsNinetySecondsOffIsCorrected) {
  for (const auto ahead : {90s, -90s}) {
    SCOPED_TRACE(ahead.count());
    const std::string host = ahead > 0s ? "fast" : "slow";
    Step();
    base::FakeClock its_clock(clock_.Now() + ahead);
    auto sampler = Sampler(host, its_clock);
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(sampler->EmitSamples(SamplesOfJob("7", 1, its_clock.Now()), its_clock.Now()));
      TenSecondsOf(*sampler, its_clock);
    }
    Step();
    const auto samples = Samples();
    ASSERT_EQ(samples.size(), 10U);
    const auto truth = base::ToMicros(clock_.Now() - 11s);  // of the last one
    EXPECT_NEAR(double(samples[9].samples().times(0)), double(truth), 1.5e6);
    EXPECT_NEAR(double(samples[0].samples().times(0)), double(truth) - 90e6 + ahead.count() * 1e6,
                1e6)
        << "as it came, before it was sure";
    const auto row = Row("spool/" + host);
    EXPECT_EQ(row.reason, "spool.clock_skew");
    EXPECT_NEAR(row.figures.at("skew_s"), double(ahead.count()), 1.5);
    EXPECT_NEAR(row.figures.at("correction_s"), double(ahead.count()), 1.5);
    EXPECT_THAT(row.message, HasSubstr(ahead > 0s ? "ahead" : "behind"));
    // A restart goes on with it.
    ASSERT_TRUE(drain_->Stop(0ms));
    Restart();
    ASSERT_TRUE(sampler->EmitSamples(SamplesOfJob("7", 1, its_clock.Now()), its_clock.Now()));
    TenSecondsOf(*sampler, its_clock);
    Step();
    const auto after = Samples();
    ASSERT_EQ(after.size(), 1U);
    EXPECT_NEAR(double(after[0].samples().times(0)), double(base::ToMicros(clock_.Now() - 11s)),
                1.5e6);
  }
}

TEST_F(SpoolDrainTest, TimesFarInTheFutureAreNotSentOn) {
  base::FakeClock its_clock(clock_.Now() + 48h);
  auto sampler = Sampler("node1", its_clock);
  ASSERT_TRUE(sampler->EmitSamples(SamplesOfJob("7", 1, its_clock.Now()), its_clock.Now()));
  its_clock.Advance(10s);
  sampler->Step({.wall = its_clock.Now(), .mono = its_clock.Mono()});
  Step();
  Step();
  EXPECT_TRUE(Samples().empty());
  ASSERT_EQ(Quarantined().size(), 1U);
  EXPECT_THAT(Quarantined()[0], testing::StartsWith("node1.clock."));
}

// --- failures

TEST_F(SpoolDrainTest, NothingIsDeletedBeforeTheOutboxHasIt) {
  auto sampler = Sampler();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(sampler->Emit(EventOfJob(fmt::format("{}", i + 1)), clock_.Now()));
    Ship(*sampler);
  }
  outbox_files_.OnlyKind("sync");
  outbox_files_.FailAt(1, 1U << 20, EIO);
  Step();
  Step();
  EXPECT_EQ(Segments().size(), 3U);
  EXPECT_TRUE(Executions().empty());
  EXPECT_EQ(Row().status, evidence::HealthStatus::kDegraded);
  outbox_files_.FailAt(0, 0, 0);
  Step();
  Step();
  EXPECT_THAT(Executions(), ElementsAre("lab/1@1", "lab/2@1", "lab/3@1"));
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(Row().status, evidence::HealthStatus::kOk) << Row().message;
}

TEST_F(SpoolDrainTest, SegmentsThatCannotBeDeletedAreTakenOnce) {
  auto sampler = Sampler();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(sampler->Emit(EventOfJob(fmt::format("{}", i + 1)), clock_.Now()));
    Ship(*sampler);
  }
  files_.OnlyKind("remove");
  files_.FailAt(files_.operations() + 1, 5, EROFS);
  Step();
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_EQ(Executions().size(), 3U);
  EXPECT_EQ(Segments().size(), 3U);
  EXPECT_EQ(Row().reason, "spool.undeletable");
  Restart();
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_TRUE(Executions().empty()) << "a restart does not take them again";
  EXPECT_EQ(Figure("repeated"), 3);
  EXPECT_TRUE(Segments().empty()) << "it can delete them now";
}

TEST_F(SpoolDrainTest, ASegmentThatIsShippedAgainIsKnown) {
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  const std::string path = OnlySegment();
  const std::string bytes = *base::ReadFile(path);
  Step();
  Step();
  ASSERT_TRUE(Segments().empty());
  ASSERT_TRUE(base::WriteFileAtomically(path, bytes, 0600));
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_EQ(Executions().size(), 1U);
  EXPECT_TRUE(Segments().empty());
}

TEST_F(SpoolDrainTest, ADamagedStateFileIsSetAside) {
  const std::string path = temp_.path() + "/state/spool.state";
  ASSERT_TRUE(base::WriteFileAtomically(path, "nonsense", 0600));
  Restart();
  EXPECT_TRUE(base::Exists(path + ".damaged"));
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  Step();
  EXPECT_EQ(Executions().size(), 1U);
}

// Without its correction on disk no segment goes on: after a crash it would come again with other
// times.
TEST_F(SpoolDrainTest, ACorrectionIsOnDiskBeforeItIsUsed) {
  base::FakeClock its_clock(clock_.Now() + 90s);
  auto sampler = Sampler("node1", its_clock);
  Step();
  files_.OnlyKind("create");
  for (int i = 0; i < 6; ++i) {
    if (i == 4) files_.FailAt(files_.operations() + 1, 1U << 20, ENOSPC);
    ASSERT_TRUE(sampler->EmitSamples(SamplesOfJob("7", 1, its_clock.Now()), its_clock.Now()));
    TenSecondsOf(*sampler, its_clock);
  }
  Step();
  EXPECT_EQ(Samples().size(), 4U);
  EXPECT_EQ(Row().reason, "os.ENOSPC");
  files_.FailAt(0, 0, 0);
  Step();
  EXPECT_EQ(Samples().size(), 2U);
}

TEST_F(SpoolDrainTest, ADeadFileServerIsHealthAndHoldsUpNoStep) {
  // They outlive the drain, as main()'s do: its thread is inside a call when it ends.
  static auto* hanging = new HangingFileIo("/proc/self/fd/");
  static auto* clock = new base::FakeClock(clock_.Now());
  SpoolDrainOptions options = Options();
  options.own_thread = true;
  options.worker.look_interval = 1ms;
  auto drain = std::make_unique<SpoolDrain>(options, resolver_, *outboxes_, *hanging, *clock);
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  auto step = [&](base::Duration pause) {
    clock->Advance(pause);
    drain->Step({.wall = clock->Now(), .mono = clock->Mono()});
  };
  std::vector<std::string> executions;
  for (int i = 0; i < 3000 && executions.empty(); ++i) {
    step(1ms);
    executions = Executions();
    ::usleep(1000);
  }
  EXPECT_EQ(executions.size(), 1U);
  ASSERT_TRUE(hanging->WaitUntilInside()) << "as it deletes the segment";
  step(40s);
  const auto rows = drain->health(clock->Now());
  EXPECT_EQ(rows[0].reason, "spool.hung");
  EXPECT_THAT(rows[0].message, HasSubstr(Spool()));
  EXPECT_FALSE(drain->Stop(1ms));
  drain.reset();
  hanging->LetGo();
  for (int i = 0; i < 3000 && !Segments().empty(); ++i) ::usleep(1000);
  EXPECT_TRUE(Segments().empty()) << "the thread that was left behind went on, and ended";
}

// The controller is killed at every one of its file operations, and once more after that. Whatever
// comes again is the same again: each execution arrives, and no point has two times.
TEST_F(SpoolDrainTest, ADeathAnywhereLosesNothingAndMovesNoPoint) {
  drain_.reset();
  outboxes_.reset();
  bool finished = false;
  for (std::uint64_t at = 1; !finished; at += at < 60 ? 1 : 7) {
    SCOPED_TRACE(at);
    ASSERT_LT(at, 3000U);
    ASSERT_TRUE(base::RemoveTree(temp_.path()));
    ASSERT_TRUE(base::MakeDirectories(temp_.path() + "/state"));
    ASSERT_TRUE(base::MakeDirectories(Spool()));
    for (int life = 0; life < 2; ++life) {
      const pid_t child = ::fork();
      if (child == 0) {
        base::ConfigureLog(base::LogLevel::kOff, base::LogFormat::kText);
        Live(life == 0 ? at : at / 3 + 1, /*first_event=*/life * 100 + 1);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7))
          << status;
      if (life == 0) finished = WEXITSTATUS(status) == 0;
      clock_.Advance(5min);
    }
    Restart();
    for (int i = 0; i < 4; ++i) Step();
    EXPECT_TRUE(Segments().empty());
    EXPECT_TRUE(Quarantined().empty());
    std::set<std::string> names;
    for (const auto& record : TakeRecords(outboxes_->lifecycle()))
      names.insert(record.execution().execution().name());
    const std::string promised = base::ReadFile(temp_.path() + "/promised").value_or("");
    for (const std::string_view name : base::SplitSpaces(promised))
      EXPECT_TRUE(names.contains(std::string(name))) << name << " is lost";
    // Each batch has one point, whose value is the number of its event.
    std::map<double, std::set<std::int64_t>> times;
    for (const auto& record : Samples())
      times[record.samples().columns(0).values(0)].insert(record.samples().times(0));
    EXPECT_EQ(times.size(), names.size());
    for (const auto& [number, seen] : times)
      EXPECT_EQ(seen.size(), 1U) << "point " << number << " has more than one time";
    drain_.reset();
    outboxes_.reset();
  }
}

// --- health

TEST_F(SpoolDrainTest, SilentHostsWithJobsAndSamplersInTroubleAreShown) {
  auto sampler = Sampler();
  auto other = Sampler("node2");
  for (auto* writer : {sampler.get(), other.get()}) {
    writer->SetStatus({{.collector = "gpu",
                        .status = evidence::HealthStatus::kFailed,
                        .reason = "no_permission",
                        .message = "",
                        .checked_at = clock_.Now(),
                        .figures = {}},
                       {.collector = "cgroup",
                        .status = evidence::HealthStatus::kOk,
                        .reason = "",
                        .message = "",
                        .checked_at = clock_.Now(),
                        .figures = {}}});
    ASSERT_TRUE(writer->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*writer);
  }
  Step();
  EXPECT_EQ(Row("node1/gpu").reason, "no_permission");
  EXPECT_EQ(Row("node1/cgroup").collector, "") << "what is well is not repeated";
  resolver_.busy = {"node1", "node3"};
  Step(100s);
  EXPECT_EQ(Row("spool/node1").collector, "");
  Step(30s);
  EXPECT_EQ(Row("spool/node1").reason, "spool.silent");
  EXPECT_EQ(Row("spool/node2").collector, "") << "no jobs there";
  EXPECT_EQ(Row("spool/node3").collector, "") << "never had a sampler";
  EXPECT_EQ(Figure("degraded_hosts"), 1);
}

TEST_F(SpoolDrainTest, RowsOfHostsAreBounded) {
  SpoolDrainOptions options = Options();
  options.degraded_hosts_shown = 3;
  options.sampler_rows_shown = 2;
  drain_ = std::make_unique<SpoolDrain>(options, resolver_, *outboxes_, files_, clock_);
  for (int i = 0; i < 8; ++i) {
    const std::string host = fmt::format("node{}", i);
    auto sampler = Sampler(host);
    sampler->SetStatus({{.collector = "gpu",
                         .status = evidence::HealthStatus::kFailed,
                         .reason = "gone",
                         .message = "",
                         .checked_at = clock_.Now(),
                         .figures = {}}});
    ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*sampler);
    resolver_.busy.push_back(host);
  }
  Step();
  Step(10min);
  EXPECT_EQ(drain_->health(clock_.Now()).size(), 1U + 3 + 2);
  EXPECT_EQ(Figure("degraded_hosts"), 8);
}

TEST_F(SpoolDrainTest, DroppedSegmentsShowAsMissing) {
  auto sampler = Sampler();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*sampler);
  }
  ASSERT_EQ(::unlink((Spool() + "/node1/" + Segments()[2]).c_str()), 0);
  Step();
  EXPECT_EQ(Executions().size(), 4U);
  EXPECT_EQ(Figure("missing"), 1);
}

}  // namespace
}  // namespace expanse::daemon::spool
