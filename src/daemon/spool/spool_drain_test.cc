// The controller's end against samplers' real segments: who is believed, in which order things come
// out, what waits, and that nothing is lost or comes twice.
#include "daemon/spool/spool_drain.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "base/text.h"
#include "daemon/daemon_testing.h"
#include "daemon/spool/segment_writer.h"
#include "daemon/spool/spool_testing.h"
#include "evidence/wire.h"
#include "expanse/data/v1/evidence.pb.h"

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// Knows the jobs it is told of; job 7 is execution "lab/7@1".
class FakeResolver final : public schedulers::KeyResolver {
 public:
  std::optional<evidence::ExecutionKey> Resolve(const evidence::ExecutionKey& local,
                                                base::WallTime at, std::string_view) override {
    if (clock != nullptr) clock->Advance(kResolves);
    const std::string id = local.identity.substr(local.identity.find(':') + 1);
    const auto known = known_since.find(id);
    if (known == known_since.end() || at < known->second) return std::nullopt;
    return evidence::ExecutionKey{.source_type = evidence::SourceType::kSlurm,
                                  .identity = "lab/" + id + "@1"};
  }
  bool IsNodeOf(std::string_view node, std::string_view host) const override {
    const auto found = nodes.find(std::string(node));
    return found == nodes.end() ? node == host : found->second == host;
  }
  bool OnLifecycle(const evidence::ExecutionObservation& seen, std::string_view host,
                   base::WallTime) override {
    lifecycles.push_back(fmt::format("{} on {}", seen.key.identity, host));
    return takes_lifecycles;
  }
  bool FlushReports(schedulers::EvidenceSink& sink, base::WallTime at) override {
    return flushes && sink.Emit(EventOfJob("flushed"), at).has_value();
  }
  void OnSampler(std::string_view host, base::WallTime, bool) override {
    heard.insert(std::string(host));
  }
  std::vector<std::string> BusyHosts() const override { return busy; }

  std::map<std::string, base::WallTime> known_since;
  std::map<std::string, std::string> nodes;
  std::vector<std::string> lifecycles;
  bool takes_lifecycles = false;
  bool flushes = true;
  static constexpr auto kResolves = 5ms;
  base::FakeClock* clock = nullptr;  // not null: each Resolve takes that long
  std::set<std::string> heard;
  std::vector<std::string> busy;
};

class SpoolDrainTest : public testing::Test {
 protected:
  SpoolDrainTest() : temp_(std::move(*base::TempDir::Create())) {
    EXPECT_TRUE(base::MakeDirectories(Spool()));
    EXPECT_TRUE(base::MakeDirectories(temp_.path() + "/state"));
    for (int id = 1; id <= 20; ++id) resolver_.known_since[fmt::format("{}", id)] = {};
    Restart();
  }
  std::string Spool() const { return temp_.path() + "/spool"; }
  std::string Quarantine() const { return Spool() + "/.quarantine"; }
  SpoolDrainOptions Options() const {
    return {.state_dir = temp_.path() + "/state",
            .worker = {.reader = {.spool = Spool(), .owners = {}, .quarantine_files = 4},
                       .listings_per_change = 1'000'000},
            .own_thread = false};
  }
  void Restart() {
    drain_.reset();
    // What was taken from it stays taken.
    if (outboxes_) (void)outboxes_->Flush();
    outboxes_.reset();
    auto outboxes =
        Outboxes::Open({.directory = temp_.path() + "/state/outbox"}, outbox_files_, clock_);
    ASSERT_TRUE(outboxes) << outboxes.error().message;
    outboxes_ = std::move(*outboxes);
    drain_ = std::make_unique<SpoolDrain>(Options(), resolver_, *outboxes_, files_, clock_);
  }
  std::unique_ptr<SegmentWriter> Sampler(const std::string& host, base::Clock& clock) {
    auto writer = SegmentWriter::Create({.queue_directory = temp_.path() + "/queue-" + host,
                                         .spool = Spool(),
                                         .host = host,
                                         .version = "1.2.3",
                                         .own_thread = false},
                                        writer_files_, clock);
    EXPECT_TRUE(writer) << writer.error().message;
    return writer ? std::move(*writer) : nullptr;
  }
  std::unique_ptr<SegmentWriter> Sampler(const std::string& host = "node1") {
    return Sampler(host, clock_);
  }
  collect::Tick Now() { return {.wall = clock_.Now(), .mono = clock_.Mono()}; }
  // Everything the sampler has becomes a segment in the spool.
  void Ship(SegmentWriter& writer) {
    clock_.Advance(10s);
    writer.Step(Now());
  }
  void Step(base::Duration pause = 1s) {
    clock_.Advance(pause);
    drain_->Step(Now());
  }
  // The drain looks each second meanwhile; then the sampler, whose host has a clock of its own,
  // hands over its segment.
  void TenSecondsOf(SegmentWriter& sampler, base::FakeClock& its_clock) {
    for (int second = 0; second < 10; ++second) {
      its_clock.Advance(1s);
      Step();
    }
    sampler.Step({.wall = its_clock.Now(), .mono = its_clock.Mono()});
  }
  std::vector<std::string> Segments(const std::string& host = "node1") const {
    const auto names = base::ListDirectory(Spool() + "/" + host);
    return names ? *names : std::vector<std::string>();
  }
  std::vector<std::string> Quarantined() const {
    const auto names = base::ListDirectory(Quarantine());
    return names ? *names : std::vector<std::string>();
  }
  std::string OnlySegment(const std::string& host = "node1") const {
    EXPECT_EQ(Segments(host).size(), 1U);
    return Spool() + "/" + host + "/" + Segments(host).at(0);
  }
  // A sampler whose clock is 90 s ahead, and a controller that dies at its operation `die_at`. What
  // the sampler took is written to `promised`. Does not return.
  [[noreturn]] void Live(std::uint64_t die_at, int first_event) {
    base::FakeClock its_clock(clock_.Now() + 90s);
    FaultyFileIo files;
    files.DieAt(die_at, FaultyFileIo::Death::kKill);
    auto outboxes = Outboxes::Open({.directory = temp_.path() + "/state/outbox"}, files, clock_);
    if (!outboxes) ::_exit(3);
    SpoolDrain drain(Options(), resolver_, **outboxes, files, clock_);
    auto sampler = Sampler("node1", its_clock);
    const base::UniqueFd promised(
        ::open((temp_.path() + "/promised").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    for (int i = first_event; i < first_event + 9; ++i) {
      evidence::Payload event = EventOfJob("7");
      std::get<evidence::ExecutionObservation>(event).execution.name = fmt::format("{}", i);
      evidence::SampleBatch batch = SamplesOfJob("7", 1, its_clock.Now());
      batch.columns[0].values[0] = i;
      std::vector<evidence::Payload> both;
      both.push_back(std::move(event));
      both.emplace_back(std::move(batch));
      if (!sampler->EmitAll(std::move(both), its_clock.Now()).status) ::_exit(4);
      (void)base::WriteFd(promised.get(), fmt::format("{} ", i));
      its_clock.Advance(2s);
      sampler->Step({.wall = its_clock.Now(), .mono = its_clock.Mono()});
      for (int second = 0; second < 2; ++second) {
        clock_.Advance(1s);
        drain.Step(Now());
      }
    }
    (void)drain.Stop(0ms);
    (void)(*outboxes)->Flush();
    ::_exit(0);
  }
  // What the outboxes hold and was not taken from them yet.
  std::vector<data::v1::EvidenceRecord> TakeRecords(Outbox& outbox) {
    std::vector<data::v1::EvidenceRecord> records;
    while (true) {
      const auto batch = outbox.ReadBatch(64U << 20, 1'000'000);
      EXPECT_TRUE(batch);
      if (!batch || batch->empty()) return records;
      for (const Frame& frame : batch->frames) {
        EXPECT_TRUE(records.emplace_back().ParseFromString(frame.payload));
      }
      EXPECT_TRUE(outbox.Acknowledge(*batch, batch->frames.back().sequence));
    }
  }
  std::vector<std::string> Executions() {
    std::vector<std::string> identities;
    for (const auto& record : TakeRecords(outboxes_->lifecycle()))
      identities.push_back(record.execution().key().identity());
    return identities;
  }
  std::vector<data::v1::EvidenceRecord> Samples() { return TakeRecords(outboxes_->samples()); }
  evidence::HealthRow Row(const std::string& collector = "spool") {
    for (const evidence::HealthRow& row : drain_->health(clock_.Now())) {
      if (row.collector == collector) return row;
    }
    return {};
  }
  double Figure(const std::string& name) { return Row().figures.at(name); }

  base::TempDir temp_;
  base::FakeClock clock_;
  FaultyFileIo files_;         // the drain's
  FaultyFileIo outbox_files_;  // the outboxes'
  FaultyFileIo writer_files_;  // the samplers'
  FakeResolver resolver_;
  std::unique_ptr<Outboxes> outboxes_;
  std::unique_ptr<SpoolDrain> drain_;
};

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

// --- who is believed

class BadSegment {
 public:
  std::string reason;  // "": it is no segment and is left alone
  std::function<void(const std::string& path)> spoil;
};

void Rewrite(const std::string& path, const std::function<void(std::string*)>& change) {
  std::string bytes = *base::ReadFile(path);
  change(&bytes);
  ASSERT_TRUE(base::WriteFileAtomically(path, bytes, 0600));
}

// A segment as a sampler of `host` writes it, with these records.
std::string SegmentBytes(const std::string& path, const std::string& host,
                         const std::vector<std::string>& events) {
  const SegmentName name = *ParseSegmentName(std::string_view(path).substr(path.rfind('/') + 1));
  SegmentEncoder encoder;
  std::string bytes = SegmentEncoder::Begin(
      {.stream_id = name.stream_id, .sequence = name.sequence, .begun = {}, .host = host},
      &encoder);
  encoder.AppendBlock(BlockKind::kEvents, events, &bytes);
  encoder.AppendTrailer({}, &bytes);
  return bytes;
}

std::string EncodedEvent(const std::string& identity) {
  evidence::Payload event = EventOfJob("1");
  std::get<evidence::ExecutionObservation>(event).key.identity = identity;
  return evidence::Encode({.sequence = 1,
                           .observed_at = base::FromMicros(1'800'000'000'000'000),
                           .payload = std::move(event)});
}

TEST_F(SpoolDrainTest, WhatIsTornForgedOrNoFileGoesToQuarantineAndHarmsNobody) {
  const std::string secret = temp_.path() + "/secret";
  ASSERT_TRUE(base::WriteFileAtomically(secret, "not for the spool", 0600));
  auto replace = [](const std::string& bytes) {
    return [bytes](const std::string& path) {
      ASSERT_TRUE(base::WriteFileAtomically(path, bytes, 0600));
    };
  };
  const std::vector<BadSegment> cases = {
      {"torn", [](const std::string& p) { Rewrite(p, [](auto* b) { b->resize(b->size() - 1); }); }},
      {"torn", replace("")},
      {"corrupt", replace("something else entirely, and long enough to hold a header ......")},
      {"corrupt", [](const std::string& p) { Rewrite(p, [](auto* b) { (*b)[100] ^= 1; }); }},
      {"version", [](const std::string& p) { Rewrite(p, [](auto* b) { (*b)[8] = 9; }); }},
      {"forged",
       [&](const std::string& p) {
         replace(SegmentBytes(p, "node2", {EncodedEvent("job:7")}))(p);
       }},
      {"forged",
       [&](const std::string& p) {
         replace(SegmentBytes(p, "node1", {EncodedEvent("lab/7@1")}))(p);
       }},
      {"forged",
       [&](const std::string& p) {
         replace(SegmentBytes(p, "node1", {EncodedEvent("job:07")}))(p);
       }},
      {"malformed",
       [&](const std::string& p) { replace(SegmentBytes(p, "node1", {"no record"}))(p); }},
      {"forged",
       [&](const std::string& p) {
         ASSERT_EQ(::unlink(p.c_str()), 0);
         ASSERT_EQ(::symlink(secret.c_str(), p.c_str()), 0);
       }},
      {"forged",
       [&](const std::string& p) {
         ASSERT_EQ(::unlink(p.c_str()), 0);
         ASSERT_EQ(::mkfifo(p.c_str(), 0600), 0);
       }},
      {"forged",
       [&](const std::string& p) { ASSERT_EQ(::link(p.c_str(), (p + ".other").c_str()), 0); }},
      {"forged", [](const std::string& p) { ASSERT_EQ(::chmod(p.c_str(), 0666), 0); }},
      {"too_large",
       [](const std::string& p) {
         ASSERT_EQ(::truncate(p.c_str(), std::int64_t(kMaxSegmentFile) + 1), 0);
       }},
      {"forged",
       [](const std::string& p) {  // under another's name
         ASSERT_EQ(::rename(p.c_str(), (p.substr(0, p.size() - 7) + "9.e.seg").c_str()), 0);
       }},
      {"forged",
       [](const std::string& p) {  // events that claim to be samples alone
         ASSERT_EQ(::rename(p.c_str(), (p.substr(0, p.size() - 5) + "s.seg").c_str()), 0);
       }},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(base::RemoveTree(Spool()));
    ASSERT_TRUE(base::MakeDirectories(Spool()));
    Restart();
    auto bad = Sampler("node1");
    auto good = Sampler("node2");
    ASSERT_TRUE(bad->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*bad);
    cases[i].spoil(OnlySegment());
    ASSERT_TRUE(bad->Emit(EventOfJob("8"), clock_.Now()));
    ASSERT_TRUE(good->Emit(EventOfJob("9"), clock_.Now()));
    Ship(*bad);
    Ship(*good);
    for (int look = 0; look < 5; ++look) Step();
    EXPECT_THAT(Executions(), testing::UnorderedElementsAre("lab/8@1", "lab/9@1"));
    ASSERT_EQ(Quarantined().size(), 1U);
    EXPECT_THAT(Quarantined()[0], testing::StartsWith("node1." + cases[i].reason + "."));
    EXPECT_EQ(Figure("quarantined_" + cases[i].reason), 1);
    EXPECT_EQ(Row().reason, "spool.quarantined");
    EXPECT_THAT(Row().message, HasSubstr("node1"));
    EXPECT_EQ(*base::ReadFile(secret), "not for the spool");
  }
}

TEST_F(SpoolDrainTest, OtherNamesAreLeftAloneAndADirectoryIsNotLookedAtForEver) {
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  const std::string segment = OnlySegment();
  ASSERT_EQ(::unlink(segment.c_str()), 0);
  ASSERT_TRUE(base::MakeDirectories(segment + "/inside"));
  for (const char* name : {"a\nb", ".x.tmp", "readme", "..seg"})
    ASSERT_TRUE(base::WriteFileAtomically(Spool() + "/node1/" + name, "x", 0600));
  ASSERT_TRUE(base::MakeDirectories(Spool() + "/bad name"));
  ASSERT_TRUE(base::WriteFileAtomically(Spool() + "/file", "x", 0600));
  ASSERT_EQ(::symlink("/etc", (Spool() + "/link").c_str()), 0);
  for (int i = 0; i < 4; ++i) Step();
  EXPECT_EQ(Figure("strange"), 3);
  EXPECT_EQ(Segments().size(), 4U);
  EXPECT_EQ(Quarantined().size(), 1U) << "moved as it is, nothing in it read";
}

TEST_F(SpoolDrainTest, QuarantineIsBounded) {
  auto sampler = Sampler();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*sampler);
  }
  for (const std::string& name : Segments())
    ASSERT_TRUE(base::WriteFileAtomically(Spool() + "/node1/" + name, std::string(100, 'x'), 0600));
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_EQ(Quarantined().size(), 4U);
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(Figure("quarantined_corrupt"), 10);
  // Also over restarts.
  Restart();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  ASSERT_TRUE(base::WriteFileAtomically(OnlySegment(), std::string(100, 'x'), 0600));
  Step();
  EXPECT_EQ(Quarantined().size(), 4U);
}

TEST_F(SpoolDrainTest, DirectoriesThatOthersMayWriteToAreNotRead) {
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  ASSERT_EQ(::chmod((Spool() + "/node1").c_str(), 0777), 0);
  Step();
  EXPECT_TRUE(Executions().empty());
  EXPECT_EQ(Row().reason, "spool.untrusted");
  ASSERT_EQ(::chmod((Spool() + "/node1").c_str(), 0700), 0);
  Step();
  EXPECT_EQ(Executions().size(), 1U);
  ASSERT_EQ(::chmod(Spool().c_str(), 0777), 0);
  Restart();
  Step();
  EXPECT_EQ(Row().reason, "spool.untrusted");
  ASSERT_EQ(::chmod(Spool().c_str(), 01777), 0);
  Step();
  EXPECT_EQ(Row().reason, "") << "sticky: nobody can replace another's directory";
}

TEST_F(SpoolDrainTest, ForeignOwnersAreNotBelievedUnlessNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  auto sampler = Sampler();
  auto ship = [&] {
    ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*sampler);
  };
  ship();
  ASSERT_EQ(::chown(OnlySegment().c_str(), 65534, 65534), 0);
  Step();
  ASSERT_EQ(Quarantined().size(), 1U) << "another's file in root's directory";
  ASSERT_EQ(::chown((Spool() + "/node1").c_str(), 65534, 65534), 0);
  ship();
  Step();
  EXPECT_TRUE(Executions().empty());
  EXPECT_EQ(Figure("untrusted"), 1);
  // Root on a node is nobody behind root_squash.
  SpoolDrainOptions options = Options();
  options.worker.reader.owners = {65534};
  drain_ = std::make_unique<SpoolDrain>(options, resolver_, *outboxes_, files_, clock_);
  Step();
  EXPECT_EQ(Executions().size(), 1U);
}

TEST_F(SpoolDrainTest, AMissingSpoolIsHealthAndIsFoundAgain) {
  ASSERT_TRUE(base::RemoveTree(Spool()));
  Step();
  EXPECT_EQ(Row().reason, "spool.missing");
  ASSERT_TRUE(base::MakeDirectories(Spool()));
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  Step();
  EXPECT_EQ(Row().reason, "");
  EXPECT_EQ(Executions().size(), 1U);
  // Another file system is mounted over it.
  ASSERT_EQ(::rename(Spool().c_str(), (Spool() + "-before").c_str()), 0);
  ASSERT_TRUE(base::MakeDirectories(Spool()));
  ASSERT_TRUE(sampler->Emit(EventOfJob("8"), clock_.Now()));
  Ship(*sampler);
  Step();
  EXPECT_EQ(Executions().size(), 1U);
}

// --- clocks

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
