// The hooks are run here as Slurm runs them: by /bin/sh, as root or not, with an environment of a
// few variables and no PATH.
#include "schedulers/slurm/node/hook_script.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/time.h"
#include "schedulers/slurm/node/hook_directory.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

std::string Golden(const std::string& name) {
  return base::JoinPath(EXPANSE_SOURCE_DIR, "node/testdata/" + name);
}

TEST(HookScript, IsWhatTheGoldenFilesShow) {
  const HookScriptOptions options{.prefix = "/srv/expanse", .version = "1.2.3", .owner = "slurm"};
  for (const std::string name : {"prolog", "epilog", "task-prolog"}) {
    const auto script = MakeHookScript(*ParseHookScriptKind(name), options);
    ASSERT_TRUE(script) << script.error().message;
    const std::string path = Golden(name + ".sh");
    if (std::getenv("EXPANSE_UPDATE_GOLDEN") != nullptr) {
      ASSERT_TRUE(base::WriteFileAtomically(path, *script, 0644));
    }
    EXPECT_EQ(*script, base::ReadFile(path).value_or("")) << path;
  }
}

TEST(HookScript, RefusesOptionsThatAScriptCouldNotHold) {
  const HookScriptOptions good{.prefix = "/srv/expanse", .version = "1.2.3", .owner = "slurm"};
  const auto refuses = [](HookScriptOptions options) {
    const auto script = MakeHookScript(HookScriptKind::kProlog, options);
    return !script && script.error().reason == "hook.option";
  };
  EXPECT_FALSE(refuses(good));
  for (const char* prefix : {"", "srv", "/srv/it's", "/srv/a\nb", "/srv/$(id)", "/srv/\"x"}) {
    HookScriptOptions options = good;
    options.prefix = prefix;
    EXPECT_TRUE(refuses(options)) << prefix;
    options = good;
    options.run_directory = prefix;
    EXPECT_TRUE(refuses(options)) << prefix;
  }
  for (const char* word : {"a b", "a/b", "-x", "x'", "x\n"}) {
    HookScriptOptions options = good;
    options.owner = word;
    EXPECT_TRUE(refuses(options)) << word;
    options = good;
    options.version = word;
    EXPECT_TRUE(refuses(options)) << word;
  }
  EXPECT_FALSE(ParseHookScriptKind("prologue"));
}

// A process that calls itself as the daemon does.
class NamedProcess {
 public:
  explicit NamedProcess(const char* name) : pid_(::fork()) {
    if (pid_ == 0) {
      ::prctl(PR_SET_NAME, name);
      ::pause();
      ::_exit(0);
    }
    // fork returns before the child has its name.
    base::SystemClock clock;
    const std::string comm = "/proc/" + std::to_string(pid_) + "/comm";
    while (base::Trim(base::ReadFile(comm).value_or(name)) != name) {
      (void)clock.WaitFor(std::stop_token(), 1ms);
    }
  }
  ~NamedProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

struct Shell {
  const char* name;
  std::vector<std::string> argv;
};

// Runs hooks in a prefix whose expanse-daemon is a script that tells how it was started.
class HookScriptRun : public testing::TestWithParam<Shell> {
 protected:
  void SetUp() override {
    if (!base::Exists(GetParam().argv[0])) GTEST_SKIP() << GetParam().argv[0] << " is not there";
    ASSERT_TRUE(base::MakeDirectories(base::JoinPath(options_.prefix, "bin"), 0755));
    // Fields 5 and 6 of /proc/PID/stat are process group and session (proc(5)).
    Daemon(
        "read -r pid comm state parent group session rest </proc/$$/stat\n"
        "echo \"$*|${SLURM_JOB_ID-none}|$session|$PWD\" >>\"${0%/bin/*}/started\"\n");
  }
  void Daemon(const std::string& script) {
    ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(options_.prefix, "bin/expanse-daemon"),
                                          "#!/bin/sh\n" + script, 0755));
  }
  base::ProcessOutcome Run(HookScriptKind kind, std::vector<std::string> environment,
                           std::vector<std::string> argv = {}) {
    const std::string path = base::JoinPath(temp_.path(), "hook");
    EXPECT_TRUE(base::WriteFileAtomically(path, *MakeHookScript(kind, options_), 0755));
    argv.insert(argv.end(), GetParam().argv.begin(), GetParam().argv.end());
    argv.push_back(path);
    auto outcome = base::RunProcess(
        {.argv = std::move(argv), .environment = std::move(environment), .deadline = 20s});
    EXPECT_TRUE(outcome);
    return outcome ? *outcome : base::ProcessOutcome{};
  }
  // Expects what every Prolog and Epilog promises.
  void RunQuietly(HookScriptKind kind, std::vector<std::string> environment,
                  std::vector<std::string> argv = {}) {
    const auto outcome = Run(kind, std::move(environment), std::move(argv));
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_FALSE(outcome.timed_out);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "");
  }
  void Prolog(std::vector<std::string> argv = {}) {
    RunQuietly(HookScriptKind::kProlog, {"SLURM_JOB_ID=5"}, std::move(argv));
  }
  std::string Hooks() const { return base::JoinPath(options_.run_directory, "hooks"); }
  std::vector<HookDirectory::Entry> Events() const {
    auto entries = HookDirectory(Hooks(), "").Look(clock_.Now());
    EXPECT_TRUE(entries) << entries.error().message;
    return entries ? *entries : std::vector<HookDirectory::Entry>();
  }
  // What the fake daemons noted; they run behind the hooks' backs.
  std::string Started(std::ptrdiff_t lines) const {
    std::string text;
    for (int i = 0; i < 500 && std::ranges::count(text, '\n') < lines; ++i) {
      (void)clock_.WaitFor(std::stop_token(), 10ms);
      text = base::ReadFile(base::JoinPath(options_.prefix, "started")).value_or("");
    }
    return text;
  }
  void Mark(const std::string& marker) {
    ASSERT_TRUE(base::MakeDirectories(Hooks(), 0700));
    ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(Hooks(), "sampler"), marker, 0644));
  }

  mutable base::SystemClock clock_;
  base::TempDir temp_ = *base::TempDir::Create("hook");
  HookScriptOptions options_{.prefix = base::JoinPath(temp_.path(), "the prefix"),
                             .run_directory = base::JoinPath(temp_.path(), "run/expanse"),
                             .version = "1.2.3"};
};

TEST_P(HookScriptRun, IsValidForThisShell) {
  for (const std::string name : {"prolog", "epilog", "task-prolog"}) {
    std::vector<std::string> argv = GetParam().argv;
    argv.insert(argv.end(), {"-n", Golden(name + ".sh")});
    const auto outcome = base::RunProcess({.argv = argv});
    EXPECT_EQ(outcome->exit_code, 0) << outcome->err;
    EXPECT_EQ(outcome->err, "");
  }
}

TEST_P(HookScriptRun, WritesWhatSlurmSaysByteForByte) {
  const std::string odd = "q'\"\\|$HOME`id`\n%s\t* \xff\xfe=";
  RunQuietly(
      HookScriptKind::kProlog,
      {"SLURM_JOB_ID=8193", "SLURM_JOB_UID=2001", "SLURM_JOB_USER=mara",
       "SLURM_JOB_PARTITION=" + odd, "SLURMD_NODENAME=reed07", "SLURM_JOB_NODELIST=reed[05-08]",
       "SLURM_JOB_GPUS=GPU-1a,GPU-2b", "SLURM_RESTART_COUNT=3", "IRRELEVANT=x"});
  RunQuietly(HookScriptKind::kEpilog,
             {"SLURM_JOB_ID=8193", "SLURMD_NODENAME=reed07", "SLURM_JOB_EXIT_CODE2=2:0"});
  const auto events = Events();
  ASSERT_EQ(events.size(), 2U);
  const HookEvent& prolog = events[0].event;
  EXPECT_EQ(events[0].name, "prolog.1.reed07");
  EXPECT_EQ(prolog.kind, HookKind::kProlog);
  EXPECT_EQ(prolog.job_id, 8193U);
  EXPECT_EQ(prolog.uid, 2001U);
  EXPECT_EQ(prolog.user, "mara");
  EXPECT_EQ(prolog.partition, odd);
  EXPECT_EQ(prolog.node, "reed07");
  EXPECT_EQ(prolog.node_list, "reed[05-08]");
  EXPECT_EQ(prolog.restart_count, 3U);
  EXPECT_EQ(GrantedGpuUuids(prolog), (std::vector<std::string>{"GPU-1a", "GPU-2b"}));
  EXPECT_EQ(events[1].event.kind, HookKind::kEpilog);
  EXPECT_EQ(events[1].event.exit_code, 2);
  EXPECT_LT(std::chrono::abs(prolog.at - clock_.Now()), 60s);
}

TEST_P(HookScriptRun, StartsASamplerInASessionOfItsOwnAndWithoutTheJobsEnvironment) {
  Prolog();
  const std::string started = Started(1);
  const auto fields = base::Split(base::Trim(started), '|');
  ASSERT_EQ(fields.size(), 4U) << started;
  EXPECT_EQ(fields[0],
            "sampler --prefix " + options_.prefix + " --run-dir " + options_.run_directory);
  EXPECT_EQ(fields[1], "none");
  const auto session = base::ParseInt<pid_t>(fields[2]);
  ASSERT_TRUE(session);
  EXPECT_NE(*session, ::getsid(0));
  EXPECT_EQ(fields[3], "/");
}

TEST_P(HookScriptRun, StartsNothingWhileASamplerOfItsVersionIsAlive) {
  const NamedProcess alive("expanse-daemon");
  Mark(std::to_string(alive.pid()) + " 1.2.3 sampler\n");
  Prolog();
  EXPECT_EQ(Events().size(), 1U);
  Mark(std::to_string(alive.pid()) + " 1.2.2 controller\n");
  Prolog();
  // What was started may still be there: this is about the marker.
  const auto start = [&] {
    Prolog();
    ASSERT_TRUE(base::RemoveFile(base::JoinPath(options_.run_directory, "starting")));
  };
  // Of another version, of another program, or none: each of them starts one.
  Mark(std::to_string(alive.pid()) + " 1.2.2 sampler\n");
  start();
  const NamedProcess other("expanse-else");
  Mark(std::to_string(other.pid()) + " 1.2.3 sampler\n");
  start();
  Mark("99999999 1.2.3 sampler\n");
  start();
  Mark("../self 1.2.3 sampler\n");
  start();
  Mark("");
  start();
  EXPECT_EQ(std::ranges::count(Started(5), '\n'), 5);
}

TEST_P(HookScriptRun, StartsNothingWhenToldSo) {
  options_.start_sampler = false;
  Prolog();
  EXPECT_EQ(Events().size(), 1U);
  EXPECT_EQ((*MakeHookScript(HookScriptKind::kProlog, options_)).find("setsid"), std::string::npos);
}

TEST_P(HookScriptRun, TakesAStoppedSamplerForAliveAndDoesNotWait) {
  const NamedProcess alive("expanse-daemon");
  ::kill(alive.pid(), SIGSTOP);
  Mark(std::to_string(alive.pid()) + " 1.2.3 sampler\n");
  Prolog();
  EXPECT_EQ(Events().size(), 1U);
}

// The prefix is on a shared file system that hangs: whatever looks at it never comes back.
TEST_P(HookScriptRun, DoesNotWaitForASamplerThatHangs) {
  Daemon("echo x >>\"${0%/bin/*}/started\"; exec sleep 30\n");
  const base::MonoTime before = clock_.Mono();
  Prolog();
  EXPECT_LT(clock_.Mono() - before, 10s);
  EXPECT_EQ(Started(1), "x\n");
  // Nor does each further job leave one more process there.
  for (int i = 0; i < 3; ++i) Prolog();
  (void)clock_.WaitFor(std::stop_token(), 200ms);
  EXPECT_EQ(Started(1), "x\n");
  // One of another version is no reason to start none.
  options_.version = "1.2.4";
  Prolog();
  EXPECT_EQ(Started(2), "x\nx\n");
}

TEST_P(HookScriptRun, APidOfAStartThatWasUsedAgainKeepsNoSamplerAway) {
  const NamedProcess other("expanse-daemon");
  ASSERT_TRUE(base::MakeDirectories(Hooks(), 0700));
  const std::string note = base::JoinPath(options_.run_directory, "starting");
  for (const std::string& began : {std::string("1"), std::string()}) {
    ASSERT_TRUE(base::WriteFileAtomically(
        note, std::to_string(other.pid()) + ' ' + began + " 1.2.3\n", 0644));
    Prolog();
  }
  EXPECT_EQ(std::ranges::count(Started(2), '\n'), 2);
}

TEST_P(HookScriptRun, SucceedsWhateverIsWrong) {
  const auto with = [&](const std::string& prefix, const std::string& run) {
    options_.prefix = prefix;
    options_.run_directory = run;
    Prolog();
    RunQuietly(HookScriptKind::kEpilog, {});
    RunQuietly(HookScriptKind::kProlog, {"SLURM_JOB_ID=1;id"});
    RunQuietly(HookScriptKind::kProlog, {"SLURM_JOB_ID=010"});
    RunQuietly(HookScriptKind::kTaskProlog, {"SLURM_JOB_ID=5"});
  };
  with("/nonexistent/prefix", base::JoinPath(temp_.path(), "run2"));  // no binary
  with(options_.prefix, "/proc/expanse");                             // cannot be made
  with(options_.prefix, "/dev/null/expanse");
  options_.owner = "no-such-user";
  with(options_.prefix, base::JoinPath(temp_.path(), "run3"));
}

TEST_P(HookScriptRun, SucceedsWhenNoFurtherProcessCanBeMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run the hook as another user";
  ASSERT_EQ(::chmod(temp_.path().c_str(), 0755), 0);
  ASSERT_TRUE(base::MakeDirectories(base::JoinPath(options_.run_directory, "agent"), 0755));
  ASSERT_TRUE(base::MakeDirectories(Hooks(), 0700));
  ASSERT_EQ(::chown(Hooks().c_str(), 65534, 65534), 0);
  // Root is exempt from the limit, its user is not.
  const std::vector<std::string> limited = {"/usr/bin/setpriv", "--reuid=65534",    "--regid=65534",
                                            "--clear-groups",   "/usr/bin/prlimit", "--nproc=0:0"};
  const NamedProcess alive("expanse-daemon");
  const std::string marker = base::JoinPath(Hooks(), "sampler");
  ASSERT_TRUE(
      base::WriteFileAtomically(marker, std::to_string(alive.pid()) + " 1.2.3 sampler\n", 0644));
  Prolog(limited);
  EXPECT_EQ(Events().size(), 1U) << "the event needs none";
  // bash goes on trying to fork for 15 seconds. That is its bound; tests have no time for it.
  if (std::string_view(GetParam().name) == "dash") {
    ASSERT_TRUE(base::RemoveFile(marker));
    Prolog(limited);
    EXPECT_FALSE(base::Exists(base::JoinPath(options_.prefix, "started")));
  }
}

TEST_P(HookScriptRun, SucceedsWhenTheEventDirectoryIsFull) {
  // /dev/full for each name that it could use would need as many; a limit on the size of files is
  // as good as a full file system.
  Prolog({"/usr/bin/prlimit", "--fsize=0:0"});
  const auto entries = HookDirectory(Hooks(), "").Look(clock_.Now() + 60s);
  EXPECT_EQ(entries->size(), 0U);
}

TEST_P(HookScriptRun, KeepsABoundedNumberOfEventsTheOldestOfThem) {
  const auto run = [&](const char* job, const char* user) {
    RunQuietly(HookScriptKind::kProlog,
               {std::string("SLURM_JOB_ID=") + job, std::string("SLURM_JOB_USER=") + user,
                "SLURMD_NODENAME=../../reed"});
  };
  run("7", "first");
  run("8199", "second");  // 8192 later
  const auto events = Events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].name, "prolog.7.other");
  EXPECT_EQ(events[0].event.user, "first");
  EXPECT_EQ(events[0].event.node, "../../reed");
}

// The directory may belong to another user than the hook's, who must not lead it anywhere.
TEST_P(HookScriptRun, FollowsNoLinkOutOfTheDirectory) {
  ASSERT_TRUE(base::MakeDirectories(Hooks(), 0700));
  const std::string victim = base::JoinPath(temp_.path(), "victim");
  ASSERT_TRUE(base::WriteFileAtomically(victim, "precious", 0600));
  ASSERT_EQ(::symlink(victim.c_str(), base::JoinPath(Hooks(), "prolog.5.").c_str()), 0);
  Prolog();
  EXPECT_EQ(*base::ReadFile(victim), "precious");
  const std::string fresh = base::JoinPath(temp_.path(), "fresh");
  ASSERT_EQ(::unlink(base::JoinPath(Hooks(), "prolog.5.").c_str()), 0);
  ASSERT_EQ(::symlink(fresh.c_str(), base::JoinPath(Hooks(), "prolog.5.").c_str()), 0);
  Prolog();
  EXPECT_FALSE(base::Exists(fresh));
}

TEST_P(HookScriptRun, LetsTheAgentInOnlyWhereItIsReadyAndWanted) {
  const std::string agent = base::JoinPath(options_.run_directory, "agent");
  const auto output = [&](std::vector<std::string> environment) {
    const auto outcome = Run(HookScriptKind::kTaskProlog, std::move(environment));
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  };
  const std::string wiring =
      "export CUDA_INJECTION64_PATH=" + options_.prefix + "/lib/libexpanse-capture.so\n";
  EXPECT_EQ(output({}), "");
  ASSERT_TRUE(base::MakeDirectories(agent, 0755));
  ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(agent, "ready"), "", 0644));
  EXPECT_EQ(output({}), wiring);
  EXPECT_EQ(output({"CUDA_INJECTION64_PATH=/opt/theirs.so"}), "");
  EXPECT_EQ(output({"EXPANSE_PROFILING_AGENT_ENABLE=0"}), "");
  EXPECT_EQ(output({"EXPANSE_PROFILING_AGENT_ENABLE=1"}), wiring);
  ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(agent, "disabled"), "", 0644));
  EXPECT_EQ(output({}), "");
}

INSTANTIATE_TEST_SUITE_P(Shells, HookScriptRun,
                         testing::Values(Shell{"dash", {"/bin/dash"}}, Shell{"bash", {"/bin/bash"}},
                                         Shell{"bash_posix", {"/bin/bash", "--posix"}}),
                         [](const auto& shell) { return std::string(shell.param.name); });

}  // namespace
}  // namespace expanse::schedulers::slurm
