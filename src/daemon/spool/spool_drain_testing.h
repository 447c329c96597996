// A controller's drain on a spool directory, outboxes and a clock of its own, with samplers that
// write real segments into it.
#pragma once

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
#include "daemon/spool/spool_drain.h"
#include "daemon/spool/spool_testing.h"
#include "evidence/wire.h"
#include "expanse/data/v1/evidence.pb.h"

namespace expanse::daemon::spool {

using namespace std::chrono_literals;

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

}  // namespace expanse::daemon::spool
