// Runs real commands through a real `expanse run` and compares with what they do alone.
#include "schedulers/host/run.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/crypto.h"
#include "schedulers/host/child.h"
#include "schedulers/host/recorder.h"
#include "schedulers/host/run_cgroup.h"
#include "schedulers/host/run_record.h"
#include "schedulers/host/run_testing.h"

namespace expanse::schedulers::host {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;
using testing::HasSubstr;

TEST_F(RunTest, GivesTheExitCodeOn) {
  for (int code : {0, 1, 3, 127, 255}) {
    EXPECT_EQ(Run({kChild, "exit", std::to_string(code)}).code, code);
  }
}

TEST_F(RunTest, RecordsASubSecondRunWhole) {
  EXPECT_EQ(Run({"sh", "-c", "echo hello; echo oops >&2; exit 3"}, {"--comment", "why not"}).code,
            3);
  const evidence::Execution run = Recorded();
  EXPECT_EQ(run.status, ExecutionStatus::kFailed);
  EXPECT_EQ(run.outcome, Outcome::kFailure);
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.name, "sh");
  EXPECT_EQ(run.comment, "why not");
  EXPECT_EQ(run.command, (Words{"sh", "-c", "echo hello; echo oops >&2; exit 3"}));
  ASSERT_TRUE(run.started_at && run.ended_at);
  EXPECT_GE(*run.ended_at, *run.started_at);
  EXPECT_LT(*run.ended_at - *run.started_at, std::chrono::seconds(5));
  EXPECT_TRUE(run.native_id.starts_with("run-"));
  EXPECT_EQ(run.nodes.size(), 1U);
  EXPECT_EQ(Tail("stdout"), "hello\n");
  EXPECT_EQ(Tail("stderr"), "oops\n");
  EXPECT_EQ(Recorded(SpoolKind::kStart).status, ExecutionStatus::kRunning);
  EXPECT_EQ(Recorded(SpoolKind::kStart).native_id, run.native_id);
}

TEST_F(RunTest, TurnsSignalsInto128PlusN) {
  EXPECT_EQ(Run({kChild, "kill", "9"}).code, 137);
  const evidence::Execution run = Recorded();
  EXPECT_EQ(run.signal, 9);
  EXPECT_FALSE(run.exit_code);
  EXPECT_EQ(run.outcome, Outcome::kFailure);
}

TEST_F(RunTest, SaysNotFoundAndNotExecutableAsAShell) {
  const Ran missing = Run({"no-such-command-here"});
  EXPECT_EQ(missing.code, 127);
  EXPECT_THAT(missing.err, HasSubstr("command not found"));
  EXPECT_EQ(Recorded().exit_code, 127);
  const std::string file = base::JoinPath(dir_.path(), "plain");
  ASSERT_TRUE(base::WriteFileAtomically(file, "x", 0644));
  EXPECT_EQ(Run({file}).code, 126);
  // A script without #! is a shell script to every shell.
  const std::string script = base::JoinPath(dir_.path(), "script");
  ASSERT_TRUE(base::WriteFileAtomically(script, "exit 9\n", 0755));
  EXPECT_EQ(Run({script}).code, 9);
}

TEST_F(RunTest, RelaysFiftyMegabytesByteExact) {
  const Words alone = {kChild, "spew", "52428800"};
  Started plain = Start(alone);
  Started relayed = Start(Argv({kChild, "spew", "52428800"}));
  std::string expected = ReadUntil(plain.out.get());
  std::string got = ReadUntil(relayed.out.get());
  WaitFor(plain.pid);
  EXPECT_EQ(WaitFor(relayed.pid), 0);
  EXPECT_EQ(got.size(), 52'428'800U);
  EXPECT_TRUE(got == expected);
}

TEST_F(RunTest, KeepsTheOrderOfOutputAndErrorOnOnePipe) {
  const Ran alone_like = Run({kChild, "both"}, {}, [] { ::dup2(1, 2); });
  std::string expected;
  for (int i = 0; i < 200; ++i) expected += std::to_string(i) + "\n";
  EXPECT_EQ(alone_like.out, expected);
  EXPECT_EQ(Tail("combined"), expected);
}

TEST_F(RunTest, GivesInputOn) {
  int input[2];
  ASSERT_EQ(::pipe2(input, O_CLOEXEC), 0);
  Started started = Start(Argv({kChild, "cat"}), [&] { ::dup2(input[0], 0); });
  ::close(input[0]);
  ASSERT_EQ(::write(input[1], "a\0b\n", 4), 4);
  ::close(input[1]);
  EXPECT_EQ(ReadUntil(started.out.get()), std::string("a\0b\n", 4));
  EXPECT_EQ(WaitFor(started.pid), 0);
}

TEST_F(RunTest, LeavesDescriptorsMaskAndDispositionsAsTheyWere) {
  const auto prepare = [] {
    ::close(0);
    ::dup2(1, 9);
    ::signal(SIGHUP, SIG_IGN);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
  };
  Started alone = Start({kChild, "describe"}, prepare);
  const std::string expected = ReadUntil(alone.out.get());
  WaitFor(alone.pid);
  EXPECT_EQ(Run({kChild, "describe"}, {}, prepare).out, expected);
  EXPECT_THAT(expected, testing::Not(HasSubstr("fd 0 ")));
  EXPECT_THAT(expected, HasSubstr("ignored HUP"));
}

// What starts us may not want to hear of its children (a supervisor, some container inits).
TEST_F(RunTest, EndsWhereSigchldIsIgnored) {
  const auto prepare = [] { ::signal(SIGCHLD, SIG_IGN); };
  EXPECT_EQ(Run({kChild, "exit", "3"}, {}, prepare).code, 3);
  EXPECT_THAT(Run({kChild, "describe"}, {}, prepare).out, HasSubstr("ignored CHLD"));
}

TEST_F(RunTest, KeepsClosedOutputClosed) {
  const auto prepare = [] { ::close(1); };
  EXPECT_EQ(Run({kChild, "spew", "10"}, {}, prepare).code, 78);  // EBADF
}

TEST_F(RunTest, LetsTheCommandDieOfSigpipe) {
  Started started = Start(Argv({kChild, "spew", "1000000000"}));
  ReadUntil(started.out.get(), "", milliseconds(20));
  started.out.Reset();
  const int status = WaitFor(started.pid);
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGPIPE);
}

TEST_F(RunTest, SlowsTheCommandWithItsReader) {
  Started started = Start(Argv({kChild, "spew", "8000000"}));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(::kill(started.pid, 0), 0);  // it waits: two pipes and our buffer hold far less
  EXPECT_EQ(ReadUntil(started.out.get()).size(), 8'000'000U);
  EXPECT_EQ(WaitFor(started.pid), 0);
}

// A pipe that somebody else made (sudo, su) cannot be opened again to write to it without blocking.
TEST_F(RunTest, HearsSignalsWhileTheReaderOfAForeignPipeSleeps) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  Started started = Start(Argv({kChild, "spew", "8000000"}), [] { (void)!::setuid(12345); });
  std::this_thread::sleep_for(milliseconds(300));
  ASSERT_EQ(::kill(started.pid, SIGTERM), 0);
  EXPECT_EQ(WEXITSTATUS(WaitFor(started.pid)), 128 + SIGTERM);
}

TEST_F(RunTest, WritesToFilesDirectlyAndReadsTheirEnd) {
  const std::string path = base::JoinPath(dir_.path(), "log");
  ASSERT_TRUE(base::WriteFileAtomically(path, "older\n", 0644));
  const Ran ran = Run({"sh", "-c", "echo one; echo two >&2"}, {}, [&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND);
    ::dup2(fd, 1);
    ::dup2(fd, 2);
    ::close(fd);
  });
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(base::ReadFile(path).value(), "older\none\ntwo\n");
  EXPECT_EQ(Tail("combined"), "one\ntwo\n");
  EXPECT_EQ(Recorded().stdout_path, path);
}

TEST_F(RunTest, ReturnsWhileABackgroundChildHoldsTheOutput) {
  Started started = Start(Argv({kChild, "background", "1"}));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(WEXITSTATUS(WaitFor(started.pid)), 5);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(900));
  EXPECT_EQ(ReadUntil(started.out.get()), "early\nlate\n");  // as alone, late output arrives too
}

TEST_F(RunTest, PassesSignalsOnOnce) {
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    Started started = Start(Argv({kChild, "signals", "1"}));
    ReadUntil(started.out.get(), "ready");
    ASSERT_EQ(::kill(started.pid, signal), 0);
    EXPECT_THAT(ReadUntil(started.out.get()),
                HasSubstr("got " + std::string(::sigabbrev_np(signal))));
    EXPECT_EQ(WaitFor(started.pid), 0);
  }
}

TEST_F(RunTest, CallsARunCancelledThatASignalEnded) {
  Started started = Start(Argv({"sleep", "60"}));
  std::this_thread::sleep_for(milliseconds(150));
  ::kill(started.pid, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(WaitFor(started.pid)), 143);
  EXPECT_EQ(Recorded().status, ExecutionStatus::kCancelled);
  EXPECT_EQ(Recorded().outcome, Outcome::kCancelled);
}

TEST_F(RunTest, EndsTheWholeTreeAtTheWalltime) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Run({"sh", "-c", "sleep 60; true"}, {"--walltime", "200ms", "--grace", "300ms"}).code,
            143);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(Recorded().outcome, Outcome::kTimeout);
  EXPECT_EQ(Recorded().status, ExecutionStatus::kFailed);
}

TEST_F(RunTest, KillsWhatIgnoresTheWalltime) {
  EXPECT_EQ(Run({"sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"},
                {"--walltime", "150ms", "--grace", "200ms"})
                .code,
            137);
  EXPECT_EQ(Recorded().outcome, Outcome::kTimeout);
}

TEST_F(RunTest, SeesTimeoutTime) {
  EXPECT_EQ(Run({"timeout", "0.1", "sleep", "9"}).code, 124);
  EXPECT_EQ(Recorded().outcome, Outcome::kTimeout);
}

TEST_F(RunTest, RedactsWhatItRecordsButNotWhatItRuns) {
  const Ran ran = Run({"echo", "password=hunter2"});
  EXPECT_EQ(ran.out, "password=hunter2\n");
  EXPECT_EQ(Tail("stdout"), "password=[redacted]\n");
  EXPECT_EQ(Recorded().command, (Words{"echo", "password=[redacted]"}));
}

TEST_F(RunTest, KeepsArgumentsThatAreNotUtf8) {
  EXPECT_EQ(Run({kChild, "print", "a\xff\x01 b", "", "c"}).out, "a\xff\x01 b||c|");
  EXPECT_EQ(Recorded().command, (Words{kChild, "print", "a\xff\x01 b", "", "c"}));
}

TEST_F(RunTest, TakesItsSourcesAndLeavesThemWhenAsked) {
  const std::string script = base::JoinPath(dir_.path(), "job.sh");
  ASSERT_TRUE(base::WriteFileAtomically(script, "echo hi\n", 0644));
  Run({"sh", script});
  const auto events = Events(spool_);
  ASSERT_EQ(events.size(), 3U);
  const auto& bundle = std::get<evidence::SourceBundle>(events[1].records.at(0).payload);
  ASSERT_EQ(bundle.files.size(), 1U);
  EXPECT_EQ(bundle.files[0].path, script);
  EXPECT_EQ(Recorded().bundle_hash, evidence::BundleHash(bundle));
}

TEST_F(RunTest, RecordsNoContentWhenTheCommentSaysOff) {
  EXPECT_EQ(Run({"sh", "-c", "echo hi"}, {"--comment", "expanse=off"}).out, "hi\n");
  EXPECT_EQ(Tail("stdout"), "(none)");
}

TEST_F(RunTest, RunsWithoutASpoolAndBringsTheRecordLater) {
  ASSERT_EQ(::rmdir(spool_.c_str()), 0);
  const Ran ran = Run({"sh", "-c", "echo fine; exit 4"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_EQ(ran.out, "fine\n");
  EXPECT_EQ(ran.err, "");  // not a terminal: nothing is mixed into it
  const std::string fallback = base::JoinPath(dir_.path(), ".expanse/spool/host");
  EXPECT_EQ(Events(fallback).size(), 2U);
  ASSERT_EQ(::mkdir(spool_.c_str(), 0700), 0);
  Run({"true"});
  EXPECT_EQ(Events(spool_).size(), 4U);
  EXPECT_TRUE(Events(fallback).empty());
}

TEST_F(RunTest, RunsWithNowhereToRecordAtAll) {
  ASSERT_EQ(::rmdir(spool_.c_str()), 0);
  const Ran ran =
      Run({"sh", "-c", "echo fine; exit 4"}, {}, [] { ::setenv("HOME", "/proc/none", 1); });
  EXPECT_EQ(ran.code, 4);
  EXPECT_EQ(ran.out, "fine\n");
}

TEST_F(RunTest, RunsWithAFullSpool) {
  // No file may grow: for this process the disk is full (EFBIG where it would be ENOSPC).
  const Ran ran = Run({"sh", "-c", "echo fine; exit 4"}, {}, [] {
    ::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
  });
  EXPECT_EQ(ran.code, 4);
  EXPECT_EQ(ran.out, "fine\n");
  EXPECT_TRUE(base::ListDirectory(spool_).value().empty());  // nothing torn is left either
}

TEST_F(RunTest, StartEventNamesTheProcess) {
  Started started = Start(Argv({"sleep", "5"}));
  SpoolEvent start;
  for (int i = 0; i < 200 && start.root.pid == 0; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
    for (const SpoolEvent& event : Events(spool_)) start = event;
  }
  ASSERT_NE(start.root.pid, 0);
  EXPECT_EQ(start.runner.pid, started.pid);
  EXPECT_TRUE(IsAlive(start.root));
  ::kill(started.pid, SIGTERM);
  WaitFor(started.pid);
  EXPECT_FALSE(IsAlive(start.root));
  for (const std::string& cgroup : start.cgroups) EXPECT_FALSE(base::Exists(cgroup)) << cgroup;
}

TEST_F(RunTest, MeasuresCpuTime) {
  const Ran ran = Run({kChild, "burn", "1.0"});
  const double own = base::ParseDouble(base::Trim(ran.out)).value();
  EXPECT_NEAR(Recorded().used.cpu_s.value(), own, own * 0.03);
}

class CgroupRunTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    auto cgroup = RunCgroup::Create(base::NewUuid(base::SystemClock().Now()), base::MiB(64));
    if (!cgroup) GTEST_SKIP() << "no cgroup can be made here: " << cgroup.error().message;
  }
};

TEST_F(CgroupRunTest, MeasuresMemory) {
  EXPECT_EQ(Run({kChild, "allocate", "300", "0.2"}).code, 0);
  const evidence::Usage used = Recorded().used;
  EXPECT_NEAR(static_cast<double>(used.memory_peak_bytes.value()), 300.0 * (1 << 20),
              9.0 * (1 << 20));
  EXPECT_EQ(used.memory_peak_basis, "cgroup_peak");
  EXPECT_EQ(used.oom_kills, 0U);
}

TEST_F(CgroupRunTest, LeavesTheCgroupsOfOthersThatHaveNotReadThemYet) {
  const base::WallTime later = base::SystemClock().Now() + std::chrono::hours(1);
  auto ended = RunCgroup::Create(base::NewUuid(later), std::nullopt).value();
  auto begins = RunCgroup::Create(base::NewUuid(later), std::nullopt).value();
  RemoveLeftoverCgroups(begins.directories(), later);
  for (const std::string& directory : ended.directories()) EXPECT_TRUE(base::Exists(directory));
  const std::string left = ended.directories().front() + "-left";
  ASSERT_EQ(::mkdir(left.c_str(), 0755), 0);
  RemoveLeftoverCgroups(begins.directories(), later);
  EXPECT_FALSE(base::Exists(left));
}

TEST_F(CgroupRunTest, CallsItOutOfMemoryWhenTheLimitKills) {
  EXPECT_EQ(Run({kChild, "allocate", "200"}, {"--memory", "50MiB"}).code, 137);
  const evidence::Execution run = Recorded();
  EXPECT_EQ(run.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(run.status, ExecutionStatus::kFailed);
  EXPECT_EQ(run.requested.memory_bytes, 50U << 20);
  EXPECT_GE(run.used.oom_kills.value(), 1U);
}

TEST_F(CgroupRunTest, NotesAnOomKillThatTheCommandSurvived) {
  EXPECT_EQ(Run({kChild, "kill-child-by-memory", "200"}, {"--memory", "50MiB"}).code, 0);
  const evidence::Execution run = Recorded();
  EXPECT_EQ(run.status, ExecutionStatus::kSucceeded);
  EXPECT_EQ(run.used.oom_kills, 1U);
  EXPECT_THAT(run.capture_notes, testing::Contains(HasSubstr("killed for memory")));
}

TEST_F(RunTest, RefusesAMemoryLimitThatItCannotKeep) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become a user without cgroups";
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  const Ran ran =
      Run({"sh", "-c", "echo ran"}, {"--memory", "50MiB"}, [] { (void)!::setuid(12345); });
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("cgroup.memory_limit"));
}

TEST_F(RunTest, SharesADropBoxWithUsersWhoMayNotMakeCgroups) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(spool_.c_str(), 01733), 0);
  const Ran ran = Run({kChild, "burn", "0.3"}, {}, [] { (void)!::setuid(12345); });
  EXPECT_EQ(ran.code, 0);
  auto reader = SpoolReader::Open(spool_).value();
  std::vector<std::string> strange;
  const Words names = reader.List(strange).value();
  ASSERT_EQ(names.size(), 2U);
  for (const std::string& name : names) {
    EXPECT_EQ(reader.Read(name, base::SystemClock().Now()).value().owner, 12345U);
  }
  const evidence::Execution run = Recorded();
  EXPECT_THAT(run.capture_notes, testing::Contains(HasSubstr("no cgroup of its own")));
  EXPECT_EQ(run.used.memory_peak_basis, "rusage");
  const double own = base::ParseDouble(base::Trim(ran.out)).value();
  EXPECT_NEAR(run.used.cpu_s.value(), own, 0.02);
  EXPECT_FALSE(run.used.oom_kills);
}

TEST(UsageOf, CountsNoCacheThatWasGoneAtTheEnd) {
  RunEnd end{.cgroup = collect::CgroupUsage{}, .need_peak_bytes = 100 << 20};
  end.cgroup->memory_peak_bytes = 5'000ULL << 20;
  end.cgroup->memory_file_bytes = 0;
  end.cache_peak_bytes = 4'900ULL << 20;
  EXPECT_EQ(UsageOf(end).memory_peak_bytes, 100U << 20);
  EXPECT_EQ(UsageOf(end).memory_peak_basis, "sampled");
  end.cache_peak_bytes = 1 << 20;
  EXPECT_EQ(UsageOf(end).memory_peak_basis, "cgroup_peak");
}

TEST(Recorder, TakesTheEndThoughTheDiskHangs) {
  Recorder recorder(SpoolWriter("/proc/nowhere", ""));
  std::mutex disk;
  std::atomic<bool> end = false;
  disk.lock();
  recorder.Post([&](SpoolWriter&) { const std::scoped_lock hang(disk); });
  for (int i = 0; i < 40; ++i) recorder.Post([](SpoolWriter&) {});
  recorder.Post([&](SpoolWriter&) { end = true; });
  disk.unlock();
  EXPECT_TRUE(recorder.Finish(milliseconds(10'000)));
  EXPECT_TRUE(end);
}

TEST(Child, SaysWhenItsCgroupCouldNotBeJoined) {
  base::UniqueFd refuses(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  LaunchSpec spec{.argv = {"true"}, .join_fds = {refuses.get()}};
  auto child = Child::Launch(spec);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->join_error(), EBADF);
  EXPECT_EQ(child->exec_error(), 0);
  ::waitpid(child->pid(), nullptr, 0);

  spec.argv = {"no-such-command"};
  child = Child::Launch(spec);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->join_error(), EBADF);
  EXPECT_EQ(child->exec_error(), ENOENT);
  ::waitpid(child->pid(), nullptr, 0);
}

TEST(Child, ExecutesNothingOutsideACgroupThatItMustJoin) {
  base::TempDir dir = base::TempDir::Create("child").value();
  const std::string ran = base::JoinPath(dir.path(), "ran");
  base::UniqueFd refuses(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  LaunchSpec spec{.argv = {"touch", ran}, .join_fds = {refuses.get()}, .must_join = true};
  EXPECT_FALSE(Child::Launch(spec));
  EXPECT_FALSE(base::Exists(ran));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // nothing is left of it
}

TEST(RunCgroup, StaysWithTheLimitsOfWhoStartedIt) {
  base::TempDir dir = base::TempDir::Create("cgroup").value();
  const auto put = [&](const char* name, const char* text) {
    ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(dir.path(), name), text, 0644));
  };
  EXPECT_FALSE(HasLimits(dir.path()));
  put("memory.max", "max\n");
  put("cpu.max", "max 100000\n");
  put("cpuset.cpus", "\n");
  put("pids.max", "4915\n");
  EXPECT_FALSE(HasLimits(dir.path()));
  put("cpu.max", "150000 100000\n");
  EXPECT_TRUE(HasLimits(dir.path()));
  put("cpu.max", "max 100000\n");
  put("memory.max", "1073741824\n");
  EXPECT_TRUE(HasLimits(dir.path()));
  put("memory.max", "max\n");
  put("cpuset.cpus", "0-3\n");
  EXPECT_TRUE(HasLimits(dir.path()));
}

TEST(RunCgroup, IsMadeWhereControllersAreHandedDown) {
  EXPECT_EQ(V2Parents("/sys/fs/cgroup", "/user.slice/user-5.slice/session-1.scope", /*root=*/false),
            (Words{"/sys/fs/cgroup/user.slice/user-5.slice"}));
  EXPECT_EQ(V2Parents("/sys/fs/cgroup", "/job", /*root=*/true),
            (Words{"/sys/fs/cgroup", "/sys/fs/cgroup/expanse"}));
  EXPECT_EQ(V2Parents("/sys/fs/cgroup", "/", /*root=*/true), (Words{"/sys/fs/cgroup/expanse"}));
}

}  // namespace
}  // namespace expanse::schedulers::host
