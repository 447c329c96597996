#include "schedulers/slurm/commands/runner.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

// A directory with programs of Slurm's names, made of shell.
class Programs {
 public:
  Programs() : directory_(*base::TempDir::Create()) {
    for (const char* name : {"squeue", "sacct", "scontrol"}) Write(name, "exit 0");
  }
  void Write(const std::string& name, const std::string& script) {
    const std::string path = base::JoinPath(directory_.path(), name);
    ASSERT_TRUE(base::WriteFileAtomically(path, "#!/bin/sh\n" + script + "\n", 0755));
  }
  SystemCommandRunner Runner(std::string slurm_conf = {}) {
    auto runner = SystemCommandRunner::Create({.bin_directory = directory_.path(),
                                               .search_path = {},
                                               .slurm_conf = std::move(slurm_conf)});
    EXPECT_TRUE(runner);
    return *std::move(runner);
  }
  const std::string& path() const { return directory_.path(); }

 private:
  base::TempDir directory_;
};

TEST(SlurmRunner, PinsTheEnvironment) {
  Programs programs;
  programs.Write("squeue", "/usr/bin/env | /usr/bin/sort; printf '%s|' \"$@\"");
  ::setenv("SQUEUE_FORMAT", "%i", 1);
  ::setenv("SLURM_TIME_FORMAT", "relative", 1);
  auto runner = programs.Runner("/etc/other/slurm.conf");
  const auto outcome = runner.Run({.arguments = {"-o", "a b"}}, {});
  ::unsetenv("SQUEUE_FORMAT");
  ::unsetenv("SLURM_TIME_FORMAT");
  ASSERT_TRUE(outcome.status);
  for (const char* line : {"TZ=UTC\n", "LC_ALL=C\n", "SLURM_TIME_FORMAT=%s\n",
                           "SLURM_CONF=/etc/other/slurm.conf\n", "-o|a b|"}) {
    EXPECT_TRUE(outcome.out.contains(line)) << outcome.out;
  }
  EXPECT_FALSE(outcome.out.contains("SQUEUE_FORMAT")) << outcome.out;
}

TEST(SlurmRunner, StreamsAndMeasures) {
  Programs programs;
  programs.Write("sacct", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo row; echo row");
  std::string taken;
  auto runner = programs.Runner();
  const auto outcome = runner.Run({.program = Program::kSacct,
                                   .arguments = {},
                                   .on_output =
                                       [&](std::string_view piece) {
                                         taken += piece;
                                         return true;
                                       }},
                                  {});
  ASSERT_TRUE(outcome.status);
  EXPECT_EQ(taken, "row\nrow\n");
  EXPECT_EQ(outcome.out, "");
  EXPECT_GT(outcome.cost.cpu, 0us);
  EXPECT_GE(outcome.cost.wall, outcome.cost.served());
}

TEST(SlurmRunner, NoMoreWantedIsNoFailure) {
  Programs programs;
  programs.Write("squeue", "while :; do echo row; done");
  auto runner = programs.Runner();
  const auto outcome =
      runner.Run({.arguments = {}, .on_output = [](std::string_view) { return false; }}, {});
  EXPECT_TRUE(outcome.status);
}

TEST(SlurmRunner, EndsAtTheDeadlineAndOnStop) {
  Programs programs;
  programs.Write("squeue", "echo half a row; exec sleep 60");
  auto runner = programs.Runner();
  const auto late = runner.Run({.arguments = {}, .deadline = 50ms}, {});
  EXPECT_EQ(late.status.error().reason, "slurm.timeout");
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(runner.Run({.arguments = {}}, stop.get_token()).status.error().reason, "slurm.stopped");
}

TEST(SlurmRunner, TooMuchOutputIsAFailure) {
  Programs programs;
  programs.Write("scontrol", "head -c 5000 /dev/zero");
  auto runner = programs.Runner();
  const auto outcome =
      runner.Run({.program = Program::kScontrol, .arguments = {}, .max_output = 1000}, {});
  EXPECT_EQ(outcome.status.error().reason, "slurm.output_too_large");
}

TEST(SlurmRunner, MissingProgramsAreNamed) {
  auto directory = *base::TempDir::Create();
  const auto missing = SystemCommandRunner::Create(
      {.bin_directory = directory.path(), .search_path = {}, .slurm_conf = {}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason, "slurm.not_found");
  EXPECT_TRUE(missing.error().message.contains("slurm.bin_dir"));

  Programs programs;  // without accounting there may be no sacct
  ASSERT_TRUE(base::RemoveFile(programs.path() + "/sacct"));
  auto runner = programs.Runner();
  EXPECT_EQ(runner.Run({.program = Program::kSacct, .arguments = {}}, {}).status.error().reason,
            "slurm.not_found");
}

struct Said {
  Program program;
  int exit_code;
  std::string_view errors;
  std::string_view reason;
};

TEST(SlurmRunner, UnderstandsWhatTheProgramsSay) {
  const Said cases[] = {
      {Program::kSqueue, 0, "", ""},
      {Program::kSqueue, 0, "squeue: warning: something harmless\n", ""},
      {Program::kSqueue, 1,
       "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
       "slurm.unreachable"},
      {Program::kSqueue, 1, "slurm_load_jobs error: Invalid job id specified\n",
       "slurm.job_not_found"},
      {Program::kSqueue, 1, "slurm_load_jobs error: Socket timed out on send/recv operation\n",
       "slurm.unreachable"},
      {Program::kSacct, 1,
       "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection "
       "to host:db1:6819: Connection refused\n",
       "slurm.unreachable"},
      // Nothing on standard output and exit code 0: still no answer.
      {Program::kSacct, 0, "sacct: error: Problem talking to the database: Connection refused\n",
       "slurm.unreachable"},
      {Program::kSacct, 1, "Slurm accounting storage is disabled\n", "slurm.no_accounting"},
      {Program::kScontrol, 1, "scontrol: fatal: Could not establish a configuration source\n",
       "slurm.no_configuration"},
      {Program::kScontrol, 1, "slurm_load_node error: Access/permission denied\n",
       "slurm.permission"},
      {Program::kScontrol, 3, "\n  \n", "slurm.command_failed"},
  };
  for (const Said& said : cases) {
    base::ProcessOutcome outcome;
    outcome.exit_code = said.exit_code;
    outcome.err = said.errors;
    const auto failure = FailureOf(said.program, outcome);
    EXPECT_EQ(failure ? failure->reason : "", said.reason) << said.errors;
  }
}

TEST(SlurmRunner, SaysWhatTheProgramSaidAndNoMore) {
  base::ProcessOutcome outcome;
  outcome.exit_code = 1;
  outcome.err = "\nsqueue: error: \x1b[31mbad\n" + std::string(5000, 'x');
  const auto failure = FailureOf(Program::kSqueue, outcome);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "squeue: squeue: error: \\x1b[31mbad");
}

}  // namespace
}  // namespace expanse::schedulers::slurm
