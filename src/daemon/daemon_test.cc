#include "daemon/daemon.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <future>
#include <map>

#include "daemon/daemon_settings.h"
#include "daemon/daemon_testing.h"
#include "daemon/health_file.h"
#include "daemon/privileges.h"
#include "daemon/spool/segment_writer.h"
#include "daemon/spool/spool_testing.h"
#include "daemon/spool_directory.h"
#include "schedulers/key_resolver.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

class FakeObserver final : public schedulers::Observer {
 public:
  std::string_view name() const override { return "fake"; }
  base::Status Start() override { return start; }
  void Observe(const collect::Tick& tick, schedulers::EvidenceSink& sink) override {
    ++looks;
    std::erase_if(waiting, [&](const std::string& name) {
      return sink.Emit(ExecutionNamed(name), tick.wall).has_value();
    });
  }
  const std::vector<collect::TrackedWorkload>& running() const override { return running_; }
  std::vector<evidence::HealthRow> health() const override {
    return {{.collector = "fake", .status = evidence::HealthStatus::kOk}};
  }
  std::optional<schedulers::ClusterState> TakeClusterState() override {
    return std::exchange(cluster, std::nullopt);
  }
  void Stop() override { stopped = true; }

  base::Status start;
  int looks = 0;
  bool stopped = false;
  std::vector<std::string> waiting;
  std::optional<schedulers::ClusterState> cluster;

 private:
  std::vector<collect::TrackedWorkload> running_;
};

class DaemonTest : public testing::Test {
 protected:
  DaemonTest() : temp_(std::move(*base::TempDir::Create())), planes_(clock_) {}

  base::Result<std::unique_ptr<Daemon>> Create(base::Clock& clock,
                                               std::unique_ptr<FakeObserver> observer = nullptr) {
    DaemonOptions options{.state_dir = temp_.path() + "/state", .version = "0.0.1", .node = "n1"};
    options.capture.observe_interval = 5ms;
    options.uploader.idle = 5ms;
    DaemonParts parts{.clock = clock, .files = files_, .planes = planes_};
    parts.identity.compute_id = "c1";
    parts.reload_identity = [] {
      return base::Result<net::ComputeIdentity>(net::ComputeIdentity{.compute_id = "c1"});
    };
    parts.fixed_rows = {PrivilegesRow(0, 1000, clock.Now())};
    if (observer != nullptr) parts.observers.push_back(std::move(observer));
    return Daemon::Create(std::move(options), std::move(parts));
  }

  base::TempDir temp_;
  base::SystemClock clock_;
  FaultyFileIo files_;
  FakePlanes planes_;
};

TEST_F(DaemonTest, DrainDeliversWhatTheLastLookFound) {
  auto observer = std::make_unique<FakeObserver>();
  FakeObserver* watched = observer.get();
  watched->waiting = {"a", "b", "c"};
  auto daemon = Create(clock_, std::move(observer));
  ASSERT_TRUE(daemon) << daemon.error().message;
  (*daemon)->Start();
  EXPECT_TRUE((*daemon)->Drain(10s));
  EXPECT_EQ(planes_.applied_names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(watched->stopped);
  EXPECT_FALSE(base::Exists(temp_.path() + "/state/health.json"))
      << "a daemon that ended is not healthy";
}

// Knows every job that samplers tell of.
class FakeScheduler final : public schedulers::Observer, public schedulers::KeyResolver {
 public:
  std::string_view name() const override { return "fake"; }
  base::Status Start() override { return {}; }
  void Observe(const collect::Tick&, schedulers::EvidenceSink&) override {}
  const std::vector<collect::TrackedWorkload>& running() const override { return running_; }
  std::vector<evidence::HealthRow> health() const override { return {}; }
  void Stop() override {}
  KeyResolver* key_resolver() override { return this; }
  std::optional<evidence::ExecutionKey> Resolve(const evidence::ExecutionKey& local, base::WallTime,
                                                std::string_view) override {
    return evidence::ExecutionKey{.source_type = evidence::SourceType::kSlurm,
                                  .identity = "lab/" + local.identity};
  }

 private:
  std::vector<collect::TrackedWorkload> running_;
};

TEST_F(DaemonTest, WhatSamplersLeaveInTheSpoolReachesThePlane) {
  const std::string prefix = temp_.path() + "/shared";
  ASSERT_TRUE(base::MakeDirectories(prefix));
  const auto settings = base::Settings::Load(DaemonSettings(), "", {}, {{"prefix", prefix}});
  ASSERT_TRUE(settings) << settings.error().message;
  DaemonOptions options = OptionsFrom(*settings, "1.2.3", {}, /*is_root=*/true);
  options.state_dir = temp_.path() + "/state";
  options.capture.observe_interval = 5ms;
  options.uploader.idle = 5ms;
  options.spool.worker.look_interval = 5ms;
  options.spool.worker.listings_per_change = 1'000'000;
  DaemonParts parts{.clock = clock_, .files = files_, .planes = planes_};
  parts.observers.push_back(std::make_unique<FakeScheduler>());
  parts.identity.compute_id = "c1";
  auto daemon = Daemon::Create(std::move(options), std::move(parts));
  ASSERT_TRUE(daemon) << daemon.error().message;
  (*daemon)->Start();
  for (int i = 0; i < 1000 && !base::Exists(prefix + "/spool"); ++i) ::usleep(10'000);
  {
    auto sampler = spool::SegmentWriter::Create({.queue_directory = temp_.path() + "/queue",
                                                 .spool = prefix + "/spool",
                                                 .host = "node1",
                                                 .version = "1.2.3",
                                                 .own_thread = false},
                                                files_, clock_);
    ASSERT_TRUE(sampler) << sampler.error().message;
    ASSERT_TRUE((*sampler)->Emit(spool::EventOfJob("7"), clock_.Now()));
    EXPECT_TRUE((*sampler)->Stop(0ms));
  }
  // It is deleted once the outbox has it.
  for (int i = 0; i < 1000 && !base::ListDirectory(prefix + "/spool/node1")->empty(); ++i)
    ::usleep(10'000);
  EXPECT_TRUE((*daemon)->Drain(10s));
  std::vector<std::string> executions;
  for (const auto& applied : planes_.applied()) {
    if (applied.record.has_execution())
      executions.push_back(applied.record.execution().key().identity());
  }
  EXPECT_EQ(executions, std::vector<std::string>{"lab/job:7"});
  EXPECT_TRUE(base::ListDirectory(prefix + "/spool/node1")->empty());
}

TEST_F(DaemonTest, DrainKeepsItsDeadlineWhenThePlaneHangs) {
  std::promise<void> entered;
  std::promise<void> release;
  std::atomic<bool> first{true};
  planes_.set_ingest_fault(FakePlanes::When::kBefore, [&](const auto&) -> base::Status {
    if (first.exchange(false)) {
      entered.set_value();
      release.get_future().wait();
    }
    return {};
  });
  auto observer = std::make_unique<FakeObserver>();
  observer->waiting = {"a"};
  auto daemon = Create(clock_, std::move(observer));
  (*daemon)->Start();
  ASSERT_EQ(entered.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_FALSE((*daemon)->Drain(50ms));
  release.set_value();
  daemon->reset();
  // What was cut short is sent after the next start, and only once.
  daemon = Create(clock_);
  (*daemon)->Start();
  EXPECT_TRUE((*daemon)->Drain(10s));
  EXPECT_EQ(planes_.applied_names(), std::vector<std::string>{"a"});
}

TEST_F(DaemonTest, OnlyOneDaemonHasAStateDirectory) {
  auto first = Create(clock_);
  ASSERT_TRUE(first);
  auto second = Create(clock_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "daemon.locked");
  first->reset();
  EXPECT_TRUE(Create(clock_));
}

TEST_F(DaemonTest, ObserverThatCannotStartIsAFailedRowAndTriedAgain) {
  base::FakeClock clock;
  auto outboxes = Outboxes::Open({.directory = temp_.path() + "/outbox"}, files_, clock);
  HealthBoard board;
  auto owned = std::make_unique<FakeObserver>();
  FakeObserver* observer = owned.get();
  observer->start =
      base::Fail(base::Code::kPermissionDenied, "spool.no_permission", "cannot read the spool");
  std::vector<std::unique_ptr<schedulers::Observer>> observers;
  observers.push_back(std::move(owned));
  Capture capture({}, std::move(observers), {}, **outboxes, board, clock);
  capture.Start();
  capture.Step();
  auto rows = board.Rows(clock.Mono(), clock.Now(), 1min);
  EXPECT_EQ(rows.back().status, evidence::HealthStatus::kFailed);
  EXPECT_EQ(rows.back().reason, "spool.no_permission");
  EXPECT_EQ(observer->looks, 0);
  observer->start = {};
  clock.Advance(61s);
  capture.Step();
  EXPECT_EQ(observer->looks, 1);
  EXPECT_EQ(board.Rows(clock.Mono(), clock.Now(), 1min).back().status, evidence::HealthStatus::kOk);
  clock.Advance(3min);
  EXPECT_EQ(board.Rows(clock.Mono(), clock.Now(), 1min).back().reason, "stalled");
}

TEST_F(DaemonTest, SnapshotsOfTheClusterGoFromObserverToPlane) {
  base::FakeClock clock;
  FakePlanes planes(clock);
  Session session(planes, {.compute_id = "c1"}, clock,
                  [] { return base::Result<net::ComputeIdentity>(net::ComputeIdentity{}); });
  ClusterReporter reporter(session, clock, 1s);
  HealthBoard board;
  auto outboxes = Outboxes::Open({.directory = temp_.path() + "/o"}, files_, clock);
  ASSERT_TRUE(outboxes);
  auto owned = std::make_unique<FakeObserver>();
  owned->cluster = evidence::ClusterState{.cluster = "lab", .observed_at = clock.Now()};
  std::vector<std::unique_ptr<schedulers::Observer>> observers;
  observers.push_back(std::move(owned));
  Capture capture({}, std::move(observers), {}, **outboxes, board, clock, &reporter);
  capture.Start();
  capture.Step();
  Heartbeats heartbeats(
      session, clock, {.daemon_version = "0.0.1", .node = "n1", .health_path = ""},
      [] { return std::vector<evidence::HealthRow>(); }, [&] { reporter.Report(); });
  (void)heartbeats.Beat();
  ASSERT_EQ(planes.cluster_states().size(), 1U);
  EXPECT_EQ(planes.cluster_states()[0].state().cluster(), "lab");
}

TEST_F(DaemonTest, HeartbeatReportsToBothPlanesAndToTheFile) {
  base::FakeClock clock;
  FakePlanes planes(clock);
  Session session(planes, {.compute_id = "c1"}, clock,
                  [] { return base::Result<net::ComputeIdentity>(net::ComputeIdentity{}); });
  const std::string path = temp_.path() + "/health.json";
  Heartbeats heartbeats(session, clock,
                        {.daemon_version = "0.0.1", .node = "n1", .health_path = path},
                        [&] { return std::vector{PrivilegesRow(0, 1000, clock.Now())}; });
  EXPECT_EQ(heartbeats.Beat(), 15s) << "the shorter of what the planes ask for";
  EXPECT_EQ(planes.heartbeats(), 1);
  ASSERT_EQ(planes.reports().size(), 1U);
  EXPECT_EQ(planes.reports()[0].node(), "n1");
  EXPECT_EQ(planes.reports()[0].rows(0).collector(), "privileges");
  auto snapshot = ParseHealth(*base::ReadFile(path));
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->control_error, "");
  EXPECT_EQ(snapshot->rows.at(0).figures.at("uid"), 1000);
  planes.set_down(true);
  EXPECT_EQ(heartbeats.Beat(), 15s);
  snapshot = ParseHealth(*base::ReadFile(path));
  EXPECT_EQ(snapshot->control_error, "connection refused");
  EXPECT_EQ(snapshot->data_error, "connection refused");
  EXPECT_EQ(snapshot->rows.at(0).reason, "limited_view");
}

HealthSnapshot Fresh(base::MonoTime mono) {
  return {.boot_id = "boot-1",
          .mono = mono,
          .written_at = base::WallTime(1'800'000'000s),
          .pid = 1,
          .daemon_version = "0.0.1",
          .node = "n1",
          .compute_id = "c1"};
}

TEST(HealthFile, JudgesByAgeBootStallsAndRevocation) {
  const base::MonoTime at(1h);
  struct Case {
    const char* name;
    HealthSnapshot snapshot;
    std::string boot;
    base::Duration age;
    bool healthy;
    const char* says;
  };
  auto with = [&](evidence::HealthRow row) {
    HealthSnapshot snapshot = Fresh(at);
    snapshot.rows.push_back(std::move(row));
    return snapshot;
  };
  using evidence::HealthStatus;
  HealthSnapshot away = Fresh(at);
  away.control_error = "connection refused";
  const std::vector<Case> cases = {
      {"fresh", Fresh(at), "boot-1", 0s, true, "healthy"},
      {"at the limit", Fresh(at), "boot-1", 90s, true, "healthy"},
      {"too old", Fresh(at), "boot-1", 91s, false, "91 s ago (limit 1m30s)"},
      {"another boot", Fresh(at), "boot-2", 0s, false, "has not run since"},
      {"plane away", away, "boot-1", 0s, true, "control plane not reached"},
      {"degraded",
       with({.collector = "cgroup", .status = HealthStatus::kDegraded, .reason = "no_permission"}),
       "boot-1", 0s, true, "cgroup no_permission"},
      {"disabled",
       with({.collector = "gpu", .status = HealthStatus::kDisabled, .reason = "not_found"}),
       "boot-1", 0s, true, "healthy"},
      {"failed source",
       with({.collector = "gpu", .status = HealthStatus::kFailed, .reason = "driver"}), "boot-1",
       0s, true, "gpu driver"},
      {"stalled",
       with({.collector = "capture", .status = HealthStatus::kFailed, .reason = "stalled"}),
       "boot-1", 0s, false, "capture stalled"},
      {"revoked",
       with({.collector = "uploader", .status = HealthStatus::kFailed, .reason = "revoked"}),
       "boot-1", 0s, false, "uploader revoked"},
  };
  for (const Case& c : cases) {
    // As read back from the file.
    const auto read = ParseHealth(FormatHealth(c.snapshot));
    ASSERT_TRUE(read) << c.name << ": " << read.error().message;
    const HealthVerdict verdict = JudgeHealth(*read, c.boot, at + c.age, 90s);
    EXPECT_EQ(verdict.healthy, c.healthy) << c.name;
    EXPECT_NE(verdict.line.find(c.says), std::string::npos) << c.name << ": " << verdict.line;
    EXPECT_EQ(verdict.line.find('\n'), std::string::npos);
  }
}

TEST(HealthFile, MissingAndDamagedFilesAreUnhealthy) {
  base::SystemClock clock;
  const auto temp = base::TempDir::Create();
  const std::string path = temp->path() + "/health.json";
  EXPECT_FALSE(CheckHealthFile(path, clock, 90s).healthy);
  for (const char* text :
       {"", "{", "[]", "{\"version\":2}", "{\"version\":1}", "{\"version\":1,\"written_at\":7}"}) {
    ASSERT_TRUE(base::WriteFileAtomically(path, text, 0644));
    EXPECT_FALSE(CheckHealthFile(path, clock, 90s).healthy) << text;
  }
  HealthSnapshot snapshot = Fresh(clock.Mono());
  snapshot.boot_id = BootId();
  ASSERT_TRUE(base::WriteFileAtomically(path, FormatHealth(snapshot), 0644));
  EXPECT_TRUE(CheckHealthFile(path, clock, 90s).healthy);
}

TEST(DaemonSettings, DefaultsAreValidAndFollowTheUser) {
  auto settings = base::Settings::Load(DaemonSettings(), "", {}, {});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(StateDirectory(*settings, {{"HOME", "/home/u"}}, /*is_root=*/false),
            "/home/u/.expanse/state");
  const DaemonOptions options = OptionsFrom(*settings, "1.2.3", {}, /*is_root=*/true);
  EXPECT_EQ(options.state_dir, "/var/lib/expanse");
  EXPECT_FALSE(options.node.empty());
  EXPECT_EQ(options.outbox_max_bytes, 1U << 30);
  EXPECT_EQ(options.capture.sampler.interval, 10s);
  EXPECT_EQ(options.capture.sampler.young_for, 1min);
  EXPECT_NE(OptionsFrom(*settings, "", {}, true).uploader.seed, options.uploader.seed);

  settings = base::Settings::Load(DaemonSettings(), "",
                                  {{"EXPANSE_SAMPLE_INTERVAL", "1m"}, {"EXPANSE_NODE", "a"}},
                                  {{"node", "b"}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(OptionsFrom(*settings, "", {}, true).capture.sampler.interval, 1min);
  EXPECT_EQ(OptionsFrom(*settings, "", {}, true).node, "b");
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"sample.interval", "0s"},
                                          {"outbox.max_bytes", "1K"},
                                          {"upload.batch_records", "many"}}) {
    EXPECT_FALSE(base::Settings::Load(DaemonSettings(), "", {}, {{name, value}})) << name;
  }
}

TEST(DaemonSettings, DocumentationIsCurrent) {
  const std::string path = EXPANSE_SOURCE_DIR "/../../docs/daemon.md";
  const std::string text = base::ReadFile(path).value_or("");
  const std::string marker = "<!-- settings -->\n";
  const auto at = text.find(marker);
  ASSERT_NE(at, std::string::npos);
  const std::string wanted = text.substr(0, at) + marker + base::SettingsMarkdown(DaemonSettings());
  if (std::getenv("EXPANSE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(base::WriteFileAtomically(path, wanted, 0644));
  }
  EXPECT_EQ(base::ReadFile(path).value_or(""), wanted)
      << "run this program with EXPANSE_UPDATE_GOLDEN=1";
}

TEST(SpoolDirectory, IsADropBoxOfRootAndPrivateOtherwise) {
  const auto temp = base::TempDir::Create();
  const auto mode_of = [](const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0U;
  };
  const mode_t before = ::umask(0077);
  EXPECT_TRUE(MakeSpoolDirectory(temp->path() + "/shared/spool/host", /*is_root=*/true));
  EXPECT_TRUE(MakeSpoolDirectory(temp->path() + "/own/spool", /*is_root=*/false));
  ::umask(before);
  EXPECT_EQ(mode_of(temp->path() + "/shared/spool"), 0755U);
  EXPECT_EQ(mode_of(temp->path() + "/shared/spool/host"), 01733U);
  EXPECT_EQ(mode_of(temp->path() + "/own/spool"), 0700U);
  // What is there stays as somebody made it.
  ASSERT_EQ(::chmod((temp->path() + "/own/spool").c_str(), 0750), 0);
  EXPECT_TRUE(MakeSpoolDirectory(temp->path() + "/own/spool", /*is_root=*/true));
  EXPECT_EQ(mode_of(temp->path() + "/own/spool"), 0750U);
  ASSERT_TRUE(base::WriteFileAtomically(temp->path() + "/file", "", 0600));
  EXPECT_FALSE(MakeSpoolDirectory(temp->path() + "/file/spool", /*is_root=*/false));
}

TEST(Privileges, NamesWhatIsOutOfSight) {
  EXPECT_EQ(ParseEffectiveCapabilities("Name:\tx\nCapEff:\t0000000000080004\nCapBnd:\t0\n"),
            0x80004U);
  EXPECT_EQ(ParseEffectiveCapabilities("CapEff:\t\n"), std::nullopt);
  EXPECT_EQ(ParseEffectiveCapabilities("CapEff:\t00zz\n"), std::nullopt);
  EXPECT_EQ(ParseEffectiveCapabilities(""), std::nullopt);
  EXPECT_EQ(PrivilegesRow(0x80004, 0, {}).status, evidence::HealthStatus::kOk);
  const auto row = PrivilegesRow(0x80000, 1000, {});
  EXPECT_EQ(row.status, evidence::HealthStatus::kDegraded);
  EXPECT_NE(row.message.find("CAP_DAC_READ_SEARCH"), std::string::npos);
  EXPECT_EQ(row.message.find("CAP_SYS_PTRACE"), std::string::npos);
}

}  // namespace
}  // namespace expanse::daemon
