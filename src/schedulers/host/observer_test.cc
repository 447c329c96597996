#include "schedulers/host/observer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/crypto.h"
#include "schedulers/host/child.h"

namespace expanse::schedulers::host {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;
using testing::HasSubstr;

class FakeSink : public EvidenceSink {
 public:
  base::Status Emit(evidence::Payload payload, base::WallTime) override {
    if (full || (refuse_next > 0 && refuse_next-- > 0))
      return base::Fail(base::Code::kResourceExhausted, "outbox.full", "full");
    std::this_thread::sleep_for(takes);
    payloads.push_back(std::move(payload));
    return {};
  }
  std::vector<evidence::Execution> Executions() const {
    std::vector<evidence::Execution> executions;
    for (const auto& payload : payloads) {
      if (auto* seen = std::get_if<evidence::ExecutionObservation>(&payload))
        executions.push_back(seen->execution);
    }
    return executions;
  }
  bool full = false;
  int refuse_next = 0;
  std::chrono::milliseconds takes{};
  std::vector<evidence::Payload> payloads;
};

bool SetImmutable(const std::string& path, bool immutable) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  int flags = 0;
  if (!fd.valid() || ::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags = immutable ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
  return ::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags) == 0;
}

class HostObserverTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::mkdir(spool_.c_str(), 0700), 0);
    ASSERT_TRUE(base::MakeDirectories(proc_, 0755));
  }

  HostObserverOptions Options() {
    return {.spool_directories = {spool_},
            .state_directory = base::JoinPath(dir_.path(), "state"),
            .proc = proc_,
            .user_name = [](uid_t uid) { return "user" + std::to_string(uid); }};
  }
  HostObserver Made() {
    HostObserver observer(Options());
    EXPECT_TRUE(observer.Start());
    return observer;
  }
  void Observe(HostObserver& observer) {
    clock_.Advance(std::chrono::seconds(10));
    observer.Observe({clock_.Now(), clock_.Mono()}, sink_);
  }

  // A process in the fake /proc.
  void Live(pid_t pid, std::uint64_t ticks, uid_t uid) {
    const std::string directory = fmt::format("{}/{}", proc_, pid);
    ASSERT_TRUE(base::MakeDirectories(directory, 0755));
    ASSERT_TRUE(base::WriteFileAtomically(
        directory + "/stat",
        fmt::format("{} (a ) b) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 {} 0 0\n", pid, ticks),
        0644));
    ASSERT_TRUE(base::WriteFileAtomically(
        directory + "/status", fmt::format("Name:\tx\nUid:\t{}\t{}\t{}\t{}\n", uid, uid, uid, uid),
        0644));
  }
  void Die(pid_t pid) { ASSERT_TRUE(base::RemoveTree(fmt::format("{}/{}", proc_, pid))); }

  void Spool(SpoolKind kind, ExecutionStatus status = ExecutionStatus::kRunning,
             const std::string& user = "") {
    evidence::Execution execution;
    execution.native_id = "run-x";
    execution.user = user;
    execution.status = status;
    execution.started_at = clock_.Now();
    SpoolEvent event{.kind = kind,
                     .run_id = run_id_,
                     .root = {100, 5000},
                     .runner = {99, 4999},
                     .cgroups = {"/sys/fs/cgroup/other"}};
    if (kind == SpoolKind::kTail) {
      event.records.push_back(
          {.sequence = 1,
           .observed_at = clock_.Now(),
           .payload = evidence::LogTail{
               .key = {evidence::SourceType::kHost, "x"}, .stream = "stdout", .data = "x"}});
    } else {
      event.records.push_back({.sequence = 1,
                               .observed_at = clock_.Now(),
                               .payload = evidence::ExecutionObservation{
                                   {evidence::SourceType::kHost, "x"}, execution}});
    }
    ASSERT_TRUE(SpoolWriter(spool_, "").Write(event, /*durable=*/false));
  }
  std::size_t Spooled() { return base::ListDirectory(spool_).value().size(); }
  std::string Identity() const { return fmt::format("{}.{}", run_id_, ::geteuid()); }

  base::FakeClock clock_{std::chrono::floor<std::chrono::seconds>(base::SystemClock().Now())};
  base::TempDir dir_ = base::TempDir::Create("observer").value();
  std::string spool_ = base::JoinPath(dir_.path(), "spool");
  std::string proc_ = base::JoinPath(dir_.path(), "root/proc");
  std::string run_id_ = base::NewUuid(clock_.Now());
  FakeSink sink_;
};

TEST_F(HostObserverTest, TakesEventsInAndFollowsTheRun) {
  HostObserver observer = Made();
  Live(100, 5000, ::geteuid());
  Spool(SpoolKind::kStart, ExecutionStatus::kRunning, "root, says the file");
  Observe(observer);
  ASSERT_EQ(sink_.payloads.size(), 1U);
  const auto& seen = std::get<evidence::ExecutionObservation>(sink_.payloads[0]);
  EXPECT_EQ(seen.key.identity, Identity());
  EXPECT_EQ(seen.key.source_type, evidence::SourceType::kHost);
  EXPECT_EQ(seen.execution.user, "user" + std::to_string(::geteuid()));
  EXPECT_EQ(Spooled(), 0U);
  ASSERT_EQ(observer.running().size(), 1U);
  const auto& running = observer.running()[0];
  EXPECT_EQ(running.key, seen.key);
  EXPECT_EQ(running.roots.at(0).pid, 100);
  EXPECT_EQ(running.roots.at(0).start_ticks, 5000U);
  EXPECT_TRUE(running.cgroups.empty());  // the process is not in the one it named

  Spool(SpoolKind::kTail);
  Die(100);
  Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
  Observe(observer);
  EXPECT_TRUE(std::holds_alternative<evidence::LogTail>(sink_.payloads.at(1)));
  EXPECT_EQ(sink_.Executions().back().status, ExecutionStatus::kSucceeded);
  EXPECT_TRUE(observer.running().empty());
  for (int i = 0; i < 100; ++i) Observe(observer);
  EXPECT_EQ(sink_.payloads.size(), 3U);
}

TEST_F(HostObserverTest, OffersAgainWhatTheSinkRefuses) {
  HostObserver observer = Made();
  Live(100, 5000, ::geteuid());
  Spool(SpoolKind::kStart);
  sink_.full = true;
  Observe(observer);
  EXPECT_EQ(Spooled(), 1U);
  EXPECT_EQ(observer.health()[0].reason, "outbox_refuses");
  Observe(observer);
  EXPECT_EQ(Spooled(), 1U);
  sink_.full = false;
  Observe(observer);
  EXPECT_EQ(Spooled(), 0U);
  EXPECT_EQ(sink_.payloads.size(), 1U);
  EXPECT_EQ(observer.health()[0].status, evidence::HealthStatus::kOk);
}

TEST_F(HostObserverTest, LetsNoEndOvertakeItsStart) {
  HostObserver observer = Made();
  Spool(SpoolKind::kStart);
  Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
  sink_.refuse_next = 1;
  Observe(observer);
  EXPECT_TRUE(sink_.payloads.empty());
  for (int i = 0; i < 10; ++i) Observe(observer);
  ASSERT_EQ(sink_.Executions().size(), 2U);
  EXPECT_EQ(sink_.Executions()[0].status, ExecutionStatus::kRunning);
  EXPECT_EQ(sink_.Executions()[1].status, ExecutionStatus::kSucceeded);
}

TEST_F(HostObserverTest, TakesAnEventOnceThoughItCannotBeRemoved) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a file immutable";
  HostObserver observer = Made();
  Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
  const std::string path = base::JoinPath(spool_, SpoolFileName(run_id_, SpoolKind::kEnd));
  if (!SetImmutable(path, true)) GTEST_SKIP() << "this file system has no immutable files";
  for (int i = 0; i < 5; ++i) Observe(observer);
  EXPECT_EQ(sink_.payloads.size(), 1U);
  EXPECT_EQ(observer.health()[0].reason, "cannot_remove");
  ASSERT_TRUE(SetImmutable(path, false));
  ASSERT_TRUE(base::RemoveFile(path));
  Observe(observer);
  EXPECT_EQ(observer.health()[0].status, evidence::HealthStatus::kOk);
  EXPECT_EQ(sink_.payloads.size(), 1U);
}

TEST_F(HostObserverTest, TakesAStartOnceThoughItsStateCannotBeKept) {
  HostObserver observer = Made();
  ASSERT_TRUE(base::RemoveTree(base::JoinPath(dir_.path(), "state/runs")));
  Live(100, 5000, ::geteuid());
  Spool(SpoolKind::kStart);
  for (int i = 0; i < 5; ++i) Observe(observer);
  EXPECT_EQ(sink_.payloads.size(), 1U);
  EXPECT_EQ(observer.running().size(), 1U);
}

TEST_F(HostObserverTest, HoldsLittleOfWhatUsersWrite) {
  HostObserver observer = Made();
  Live(100, 5000, ::geteuid());
  evidence::Execution execution;
  execution.started_at = clock_.Now();
  execution.command = {std::string(100'000, 'x')};
  SpoolEvent event{.kind = SpoolKind::kStart, .run_id = run_id_, .root = {100, 5000}};
  event.records.push_back(
      {.sequence = 1,
       .observed_at = clock_.Now(),
       .payload = evidence::ExecutionObservation{{evidence::SourceType::kHost, "x"}, execution}});
  ASSERT_TRUE(SpoolWriter(spool_, "").Write(event, /*durable=*/false));
  Observe(observer);
  EXPECT_EQ(sink_.Executions().at(0).command, execution.command);
  ASSERT_EQ(observer.running().size(), 1U);
  EXPECT_EQ(observer.running()[0].started, clock_.Now() - std::chrono::seconds(10));
  const std::string state = base::JoinPath(dir_.path(), "state/runs/" + Identity());
  EXPECT_LT(base::ReadFile(state).value().size(), 1'000U);
}

TEST_F(HostObserverTest, TakesItsRunsUpAgainAfterARestart) {
  Live(100, 5000, ::geteuid());
  {
    HostObserver observer = Made();
    Spool(SpoolKind::kStart);
    Observe(observer);
  }
  HostObserver observer = Made();
  ASSERT_EQ(observer.running().size(), 1U);
  EXPECT_EQ(observer.running()[0].key.identity, Identity());
  Spool(SpoolKind::kEnd, ExecutionStatus::kFailed);
  Observe(observer);
  EXPECT_TRUE(observer.running().empty());
  HostObserver third = Made();
  EXPECT_TRUE(third.running().empty());
}

TEST_F(HostObserverTest, TakesRunsThatBeganAndEndedWhileItWasAway) {
  Spool(SpoolKind::kStart);
  Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
  HostObserver observer = Made();
  Observe(observer);
  ASSERT_EQ(sink_.Executions().size(), 2U);
  EXPECT_EQ(sink_.Executions()[1].status, ExecutionStatus::kSucceeded);
  for (int i = 0; i < 100; ++i) Observe(observer);
  EXPECT_EQ(sink_.payloads.size(), 2U);
}

TEST_F(HostObserverTest, FinishesARunWhoseRunnerWasKilled) {
  HostObserver observer = Made();
  Live(99, 4999, ::geteuid());
  Live(100, 5000, ::geteuid());
  Spool(SpoolKind::kStart);
  Observe(observer);
  Die(99);
  Observe(observer);
  EXPECT_EQ(observer.running().size(), 1U);  // the command lives on
  Live(100, 6000, ::geteuid());              // now it is another process
  Observe(observer);
  EXPECT_TRUE(observer.running().empty());
  EXPECT_EQ(sink_.payloads.size(), 1U);  // its runner may still be writing
  Observe(observer);
  const auto executions = sink_.Executions();
  ASSERT_EQ(executions.size(), 2U);
  EXPECT_EQ(executions[1].status, ExecutionStatus::kUnknown);
  EXPECT_EQ(executions[1].outcome, Outcome::kUnknown);
  EXPECT_EQ(executions[1].native_reason, "ended, exit code not seen");
  EXPECT_TRUE(executions[1].ended_at);
  EXPECT_FALSE(executions[1].exit_code);
}

TEST_F(HostObserverTest, WaitsLongerWhileTheRunnerLives) {
  HostObserver observer = Made();
  Live(99, 4999, ::geteuid());
  Live(100, 5000, ::geteuid());
  Spool(SpoolKind::kStart);
  Observe(observer);
  Die(100);
  for (int i = 0; i < 20; ++i) Observe(observer);
  EXPECT_EQ(sink_.payloads.size(), 1U);
  for (int i = 0; i < 60; ++i) Observe(observer);
  EXPECT_EQ(sink_.payloads.size(), 2U);
}

TEST_F(HostObserverTest, FollowsNoProcessOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  ASSERT_EQ(::chmod(spool_.c_str(), 01733), 0);
  Live(100, 5000, 4321);
  Spool(SpoolKind::kStart);
  ASSERT_EQ(::chown(base::JoinPath(spool_, SpoolFileName(run_id_, SpoolKind::kStart)).c_str(), 1234,
                    1234),
            0);
  HostObserver observer = Made();
  Observe(observer);
  EXPECT_EQ(sink_.Executions().at(0).user, "user1234");
  EXPECT_TRUE(observer.running().empty());
}

TEST_F(HostObserverTest, KeepsUsersWithTheSameRunIdApart) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  ASSERT_EQ(::chmod(spool_.c_str(), 01733), 0);
  HostObserver observer = Made();
  const std::string path = base::JoinPath(spool_, SpoolFileName(run_id_, SpoolKind::kEnd));
  for (uid_t uid : {1234U, 4321U}) {
    Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
    ASSERT_EQ(::chown(path.c_str(), uid, uid), 0);
    Observe(observer);
  }
  ASSERT_EQ(sink_.payloads.size(), 2U);
  EXPECT_NE(std::get<evidence::ExecutionObservation>(sink_.payloads[0]).key.identity,
            std::get<evidence::ExecutionObservation>(sink_.payloads[1]).key.identity);
}

TEST_F(HostObserverTest, PutsBadFilesAway) {
  HostObserver observer = Made();
  const std::string torn = SpoolFileName(run_id_, SpoolKind::kEnd);
  ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(spool_, torn), "EXSP torn", 0600));
  ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(spool_, "what is this"), "x", 0600));
  const std::string link = SpoolFileName(run_id_, SpoolKind::kStart);
  ASSERT_EQ(::symlink("/etc/passwd", base::JoinPath(spool_, link).c_str()), 0);
  Observe(observer);
  EXPECT_EQ(Spooled(), 0U);
  EXPECT_TRUE(sink_.payloads.empty());
  EXPECT_EQ(base::ListDirectory(base::JoinPath(dir_.path(), "state/quarantine")).value().size(),
            3U);
  EXPECT_EQ(observer.health()[0].figures.at("quarantined"), 3);
}

TEST_F(HostObserverTest, SaysWhenTheSpoolIsMissingOrUntrusted) {
  ASSERT_EQ(::rmdir(spool_.c_str()), 0);
  HostObserver observer = Made();
  Observe(observer);
  EXPECT_EQ(observer.health()[0].reason, "no_spool");
  ASSERT_EQ(::mkdir(spool_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(spool_.c_str(), 0777), 0);
  Observe(observer);
  EXPECT_EQ(observer.health()[0].reason, "spool_untrusted");
  ASSERT_EQ(::chmod(spool_.c_str(), 0700), 0);
  Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
  Observe(observer);
  EXPECT_EQ(observer.health()[0].status, evidence::HealthStatus::kOk);
  EXPECT_EQ(sink_.payloads.size(), 1U);
}

TEST_F(HostObserverTest, TakesABoundedNumberAtATime) {
  HostObserverOptions options = Options();
  options.max_files = 2;
  HostObserver observer(options);
  ASSERT_TRUE(observer.Start());
  for (int i = 0; i < 5; ++i) {
    run_id_ = base::NewUuid(clock_.Now());
    Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
  }
  Observe(observer);
  EXPECT_EQ(sink_.payloads.size(), 2U);
  Observe(observer);
  Observe(observer);
  EXPECT_EQ(sink_.payloads.size(), 5U);
}

TEST_F(HostObserverTest, InventsNoEndWhileOneMayWaitInABacklog) {
  HostObserverOptions options = Options();
  options.max_files = 1;
  HostObserver observer(options);
  ASSERT_TRUE(observer.Start());
  Live(100, 5000, ::geteuid());
  Spool(SpoolKind::kStart);
  Observe(observer);
  const std::string run = std::exchange(run_id_, "00000000-0000-7000-8000-000000000000");
  for (char digit : std::string_view("12345")) {
    run_id_.back() = digit;
    Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
  }
  run_id_ = run;
  Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
  Die(100);
  for (int i = 0; i < 10; ++i) Observe(observer);
  EXPECT_EQ(sink_.payloads.size(), 7U);
  for (const auto& seen : sink_.Executions()) EXPECT_NE(seen.status, ExecutionStatus::kUnknown);
}

TEST_F(HostObserverTest, LeavesABacklogOnASlowDiskForLater) {
  HostObserverOptions options = Options();
  options.max_look = std::chrono::milliseconds(20);
  HostObserver observer(options);
  ASSERT_TRUE(observer.Start());
  for (int i = 0; i < 30; ++i) {
    run_id_ = base::NewUuid(clock_.Now());
    Spool(SpoolKind::kEnd, ExecutionStatus::kSucceeded);
  }
  sink_.takes = std::chrono::milliseconds(5);
  Observe(observer);
  EXPECT_GE(sink_.payloads.size(), 1U);
  EXPECT_LE(sink_.payloads.size(), 5U);
  sink_.takes = {};
  options.max_look = std::chrono::seconds(10);
  HostObserver later(options);
  ASSERT_TRUE(later.Start());
  Observe(later);
  EXPECT_EQ(sink_.payloads.size(), 30U);
}

// The real thing: a harness that is killed, its command, and the kernel's /proc.
TEST_F(HostObserverTest, SurvivesKillNineOfExpanseRun) {
  proc_ = "/proc";
  HostObserver observer = Made();
  int gate[2];  // the command lives until we close our end
  ASSERT_EQ(::pipe2(gate, O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(gate[0], 0);
    ::execl(EXPANSE_RUN_HARNESS, EXPANSE_RUN_HARNESS, "--spool", spool_.c_str(), "--no-capture",
            "--", EXPANSE_RUN_CHILD, "cat", static_cast<char*>(nullptr));
    ::_exit(97);
  }
  ::close(gate[0]);
  for (int i = 0; i < 500 && observer.running().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Observe(observer);
  }
  ASSERT_EQ(observer.running().size(), 1U);
  const collect::TrackedWorkload running = observer.running()[0];
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  Observe(observer);
  ASSERT_EQ(observer.running().size(), 1U);
  EXPECT_EQ(observer.running()[0].roots[0].pid, running.roots[0].pid);
  ::close(gate[1]);
  for (int i = 0; i < 500 && !observer.running().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Observe(observer);
  }
  Observe(observer);
  EXPECT_EQ(sink_.Executions().back().status, ExecutionStatus::kUnknown);
  for (const std::string& cgroup : running.cgroups) EXPECT_FALSE(base::Exists(cgroup)) << cgroup;
  EXPECT_EQ(sink_.Executions().back().used.cpu_s.has_value(), !running.cgroups.empty());
}

}  // namespace
}  // namespace expanse::schedulers::host
