// The controller's end against samplers' real segments: in which order things come out, what waits
// and for how long.
#include "daemon/spool/spool_drain_testing.h"

namespace expanse::daemon::spool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(SpoolDrainTest, GivesRecordsTheirIdentitiesAndDeletesTheSegment) {
  auto sampler = Sampler();
  const base::WallTime at = clock_.Now();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), at));
  ASSERT_TRUE(sampler->EmitSamples(SamplesOfJob("8", 3, at), at));
  evidence::SampleBatch own = SamplesOfJob("8", 2, at);
  own.key.reset();
  ASSERT_TRUE(sampler->EmitSamples(std::move(own), at));
  Ship(*sampler);
  ASSERT_EQ(Segments().size(), 1U);
  Step();
  EXPECT_THAT(Executions(), ElementsAre("lab/7@1"));
  const auto samples = Samples();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].samples().key().identity(), "lab/8@1");
  EXPECT_EQ(samples[0].samples().columns(0).node(), "node1") << "from the directory's name";
  EXPECT_FALSE(samples[1].samples().has_key());
  EXPECT_EQ(samples[0].samples().times(0), base::ToMicros(at));
  EXPECT_THAT(resolver_.lifecycles, ElementsAre("job:7 on node1"));
  EXPECT_THAT(resolver_.heard, ElementsAre("node1"));
  Step();
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(Row().status, evidence::HealthStatus::kOk) << Row().message;
}

TEST_F(SpoolDrainTest, KeepsTheOrderOfEachHostOverABacklog) {
  std::vector<std::unique_ptr<SegmentWriter>> samplers;
  for (const char* host : {"node1", "node2", "node3"}) samplers.push_back(Sampler(host));
  for (int round = 0; round < 30; ++round) {
    for (auto& sampler : samplers) {
      evidence::Payload event = EventOfJob("7");
      std::get<evidence::ExecutionObservation>(event).execution.name = fmt::format("{}", round);
      ASSERT_TRUE(sampler->Emit(std::move(event), clock_.Now()));
      clock_.Advance(1s);
      sampler->Step(Now());
    }
  }
  for (int i = 0; i < 4; ++i) Step();
  std::map<std::string, int> counts;
  int last = -1;
  for (const auto& record : TakeRecords(outboxes_->lifecycle())) {
    const std::string& name = record.execution().execution().name();
    ++counts[name];
    EXPECT_GE(std::stoi(name), last) << "hosts take turns";
    last = std::stoi(name);
  }
  EXPECT_EQ(counts.size(), 30U);
  for (const auto& [name, count] : counts) EXPECT_EQ(count, 3) << name;
  EXPECT_EQ(Figure("missing"), 0);
}

TEST_F(SpoolDrainTest, ABacklogBeyondOneListingComesInOrderToo) {
  SpoolDrainOptions options = Options();
  options.worker.listed_per_host = 4;
  options.worker.ready_bytes = 3000;
  drain_ = std::make_unique<SpoolDrain>(options, resolver_, *outboxes_, files_, clock_);
  auto sampler = Sampler();
  for (int i = 0; i < 50; ++i) {
    evidence::Payload event = EventOfJob("7");
    std::get<evidence::ExecutionObservation>(event).execution.name = fmt::format("{:02}", i);
    ASSERT_TRUE(sampler->Emit(std::move(event), clock_.Now()));
    Ship(*sampler);
  }
  for (int i = 0; i < 60; ++i) Step();
  std::vector<std::string> names;
  for (const auto& record : TakeRecords(outboxes_->lifecycle()))
    names.push_back(record.execution().execution().name());
  EXPECT_EQ(names.size(), 50U);
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_TRUE(Segments().empty());
}

TEST_F(SpoolDrainTest, AnUnknownJobHoldsBackItselfAlone) {
  resolver_.known_since.erase("7");
  auto sampler = Sampler();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
    ASSERT_TRUE(sampler->Emit(EventOfJob("8"), clock_.Now()));
    Ship(*sampler);
  }
  Step();
  EXPECT_THAT(Executions(), ElementsAre("lab/8@1", "lab/8@1", "lab/8@1"));
  Step(30s);
  EXPECT_TRUE(Executions().empty());
  EXPECT_EQ(Segments().size(), 3U) << "they wait";
  EXPECT_EQ(Figure("waiting"), 3);
  resolver_.known_since["7"] = {};
  Step();
  Step();
  EXPECT_THAT(Executions(), ElementsAre("lab/7@1", "lab/7@1", "lab/7@1"));
  Step();
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(Figure("waiting"), 0);
  EXPECT_EQ(resolver_.lifecycles.size(), 6U) << "once per record";
}

// The table learns of a job as from a moment between two of its events: the first one still waits,
// and the second one waits for it.
TEST_F(SpoolDrainTest, LaterEventsOfAJobWaitForItsEarlierOnes) {
  resolver_.known_since["7"] = clock_.Now() + 15s;
  auto sampler = Sampler();
  for (const char* name : {"first", "second"}) {
    evidence::Payload event = EventOfJob("7");
    std::get<evidence::ExecutionObservation>(event).execution.name = name;
    ASSERT_TRUE(sampler->Emit(std::move(event), clock_.Now() + 10s));
    Ship(*sampler);
  }
  Step();
  EXPECT_TRUE(Executions().empty());
  resolver_.known_since["7"] = {};
  for (int i = 0; i < 3; ++i) Step();
  std::vector<std::string> names;
  for (const auto& record : TakeRecords(outboxes_->lifecycle()))
    names.push_back(record.execution().execution().name());
  EXPECT_THAT(names, ElementsAre("first", "second"));
}

TEST_F(SpoolDrainTest, AJobThatStaysUnknownIsGivenUpAfterTenMinutes) {
  resolver_.known_since.erase("7");
  auto sampler = Sampler();
  for (int i = 0; i < 70; ++i) {
    ASSERT_TRUE(sampler->EmitSamples(SamplesOfJob("7", 1, clock_.Now()), clock_.Now()));
    ASSERT_TRUE(sampler->EmitSamples(SamplesOfJob("8", 1, clock_.Now()), clock_.Now()));
    Ship(*sampler);
    Step(0s);
    if (i == 30) {
      EXPECT_EQ(Row("spool/node1").reason, "spool.unknown_job");
    }
  }
  Step();
  Step();
  EXPECT_EQ(Samples().size(), 70U) << "those of job 8";
  EXPECT_EQ(Figure("records_unknown"), 70);
  EXPECT_TRUE(Segments().empty());
  ASSERT_EQ(Quarantined().size(), 1U) << "one is enough to look at";
  EXPECT_THAT(Quarantined()[0], testing::StartsWith("node1.unknown_job."));
  EXPECT_EQ(Row().reason, "spool.quarantined");
}

TEST_F(SpoolDrainTest, WhatTheObserverTakesGoesNowhereElse) {
  resolver_.takes_lifecycles = true;
  resolver_.known_since.erase("7");
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  Step();
  Step();
  EXPECT_THAT(Executions(), ElementsAre("job:flushed")) << "what the observer made of it";
  EXPECT_TRUE(Segments().empty()) << "it does not wait either";
  EXPECT_EQ(resolver_.lifecycles.size(), 1U);
}

TEST_F(SpoolDrainTest, WhatTheObserverTookIsSafeBeforeItsSegmentGoes) {
  resolver_.takes_lifecycles = true;
  resolver_.flushes = false;
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  for (int i = 0; i < 5; ++i) Step();
  EXPECT_EQ(Segments().size(), 1U);
  resolver_.flushes = true;
  Step();
  Step();
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(resolver_.lifecycles.size(), 1U);
}

// The scheduler's list of nodes comes later than the first reports: those are the observer's all
// the same, and not evidence.
TEST_F(SpoolDrainTest, AReportThatWaitedForItsNodeGoesToTheObserver) {
  resolver_.takes_lifecycles = true;
  evidence::Payload event = EventOfJob("7");
  std::get<evidence::ExecutionObservation>(event).execution.nodes = {"n1"};
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(std::move(event), clock_.Now()));
  Ship(*sampler);
  Step();
  EXPECT_TRUE(resolver_.lifecycles.empty());
  resolver_.nodes["n1"] = "node1";
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_THAT(resolver_.lifecycles, ElementsAre("job:7 on node1"));
  EXPECT_THAT(Executions(), ElementsAre("job:flushed"));
  EXPECT_TRUE(Segments().empty());
}

TEST_F(SpoolDrainTest, WhatAHostMayLetWaitIsBounded) {
  SpoolDrainOptions options = Options();
  options.waits_per_host = 10;
  drain_ = std::make_unique<SpoolDrain>(options, resolver_, *outboxes_, files_, clock_);
  auto sampler = Sampler();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(sampler->Emit(EventOfJob(fmt::format("{}", 1000 + i)), clock_.Now()));
    if (i % 2 == 0) continue;
    Ship(*sampler);
    Step(0s);
  }
  Step();
  EXPECT_EQ(Figure("waiting"), 5) << "two jobs in each";
  EXPECT_EQ(Figure("records_unknown"), 20);
  EXPECT_EQ(Segments().size(), 5U);
  EXPECT_FALSE(Quarantined().empty());
  for (int id = 1000; id < 1030; ++id) resolver_.known_since[fmt::format("{}", id)] = {};
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_EQ(Executions().size(), 10U);
  EXPECT_EQ(Figure("waiting"), 0);
  // There is room again.
  ASSERT_TRUE(sampler->Emit(EventOfJob("2000"), clock_.Now()));
  Ship(*sampler);
  Step();
  EXPECT_EQ(Segments().size(), 1U);
}

// Files of which every write takes long.
class SlowFileIo final : public FileIo {
 public:
  explicit SlowFileIo(base::FakeClock& clock) : clock_(clock) {}
  base::Result<base::UniqueFd> Create(const std::string& path) override {
    return real_.Create(path);
  }
  base::Status Write(int fd, std::string_view data, std::int64_t offset) override {
    clock_.Advance(3ms);
    return real_.Write(fd, data, offset);
  }
  base::Status Sync(int fd) override {
    clock_.Advance(20ms);
    return real_.Sync(fd);
  }
  base::Status Truncate(const std::string& path, std::int64_t size) override {
    return real_.Truncate(path, size);
  }
  base::Status Rename(const std::string& from, const std::string& to) override {
    return real_.Rename(from, to);
  }
  base::Status Remove(const std::string& path) override { return real_.Remove(path); }
  base::Status SyncDirectory(const std::string& path) override { return real_.SyncDirectory(path); }

 private:
  base::FakeClock& clock_;
  SystemFileIo real_;
};

// Samples wait for this thread: a backlog on a slow machine must not hold it up.
TEST_F(SpoolDrainTest, NoStepTakesMuchLongerThanItsBudget) {
  SlowFileIo slow(clock_);
  auto outboxes = Outboxes::Open({.directory = temp_.path() + "/state/slow"}, slow, clock_);
  ASSERT_TRUE(outboxes);
  SpoolDrain drain(Options(), resolver_, **outboxes, files_, clock_);
  auto sampler = Sampler();
  for (int segment = 0; segment < 60; ++segment) {
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*sampler);
  }
  resolver_.clock = &clock_;
  base::Duration longest{};
  int steps = 0;
  for (; !Segments().empty() && steps < 1000; ++steps) {
    const base::MonoTime began = clock_.Mono();
    drain.Step(Now());
    longest = std::max(longest, clock_.Mono() - began);
    clock_.Advance(250ms);
  }
  EXPECT_EQ(TakeRecords((*outboxes)->lifecycle()).size(), 2400U);
  // Beyond the budget: one segment (40 look-ups, 200 ms) and one slice of records.
  EXPECT_LT(longest, 600ms);
  EXPECT_GT(steps, 30);
}

TEST_F(SpoolDrainTest, ANodeOfAnotherHostIsNotBelieved) {
  resolver_.nodes = {{"n1", "node1"}, {"n9", "node9"}};
  auto sampler = Sampler();
  for (const char* node : {"n1", "n9", "unheard-of"}) {
    evidence::SampleBatch batch = SamplesOfJob("7", 1, clock_.Now());
    batch.columns[0].node = node;
    ASSERT_TRUE(sampler->EmitSamples(std::move(batch), clock_.Now()));
  }
  Ship(*sampler);
  Step();
  auto samples = Samples();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].samples().columns(0).node(), "n1");
  // The scheduler's list of nodes comes in late.
  resolver_.nodes["unheard-of"] = "node1";
  Step();
  Step();
  samples = Samples();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].samples().columns(0).node(), "unheard-of");
  Step(11min);
  Step();
  Step();
  EXPECT_TRUE(Samples().empty());
  ASSERT_EQ(Quarantined().size(), 1U);
  EXPECT_THAT(Quarantined()[0], testing::StartsWith("node1.forged_node."));
}

}  // namespace
}  // namespace expanse::daemon::spool
