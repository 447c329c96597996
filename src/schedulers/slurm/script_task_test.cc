#include "schedulers/slurm/script_task.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/files.h"
#include "schedulers/slurm/commands/fake_runner_testing.h"

namespace expanse::schedulers::slurm {
namespace {

class Script : public testing::Test {
 protected:
  Script() {
    runner.On(Program::kScontrol, [](const auto&) {
      return FakeRunner::Answer{.out = "#!/bin/sh\nasked\n", .status = {}};
    });
    task.job_id = 57;
    task.submitted_s = 99;
    task.script_id = 54;  // of the array
    task.state_save_location = directory->path();
  }
  void Keep(const std::string& text) {
    const std::string job = directory->path() + "/hash.4/job.54";
    ASSERT_TRUE(base::MakeDirectories(job));
    ASSERT_TRUE(base::WriteFileAtomically(job + "/script", text, 0600));
  }
  ScriptDone Run() {
    RunScriptTask(task, runner, mailbox, {});
    return std::get<ScriptDone>(*mailbox.Take());
  }

  base::Result<base::TempDir> directory = base::TempDir::Create();
  FakeRunner runner;
  Mailbox mailbox{1U << 20};
  ScriptTask task;
};

TEST_F(Script, ComesFromSlurmctldsDirectoryForNothing) {
  Keep(std::string("#!/bin/sh\nkept\n\0", 16));
  const ScriptDone done = Run();
  EXPECT_TRUE(done.status);
  EXPECT_EQ(done.script, "#!/bin/sh\nkept\n");
  EXPECT_EQ(done.job_id, 57U);
  EXPECT_EQ(done.submitted_s, 99);
  EXPECT_TRUE(runner.commands.empty());
}

TEST_F(Script, WhereThereIsNoneNobodyIsAsked) {
  task.may_ask = true;
  const ScriptDone done = Run();
  EXPECT_EQ(done.status.error().reason, "slurm.no_script");
  EXPECT_TRUE(runner.commands.empty());
}

TEST_F(Script, ScontrolIsAskedWhereTheDirectoryCannotBeRead) {
  task.state_save_location.clear();
  EXPECT_EQ(Run().status.error().reason, "slurm.state_unreadable");
  task.may_ask = true;
  const ScriptDone done = Run();
  EXPECT_EQ(done.script, "#!/bin/sh\nasked\n");
  EXPECT_TRUE(done.cost);
  EXPECT_EQ(runner.commands.at(0).arguments,
            (std::vector<std::string>{"write", "batch_script", "54", "-"}));
}

TEST_F(Script, NoLinkIsFollowed) {
  Keep("x");
  const std::string path = directory->path() + "/hash.4/job.54/script";
  ASSERT_TRUE(base::RemoveFile(path));
  ASSERT_EQ(::symlink("/etc/passwd", path.c_str()), 0);
  EXPECT_FALSE(ReadKeptScript(directory->path(), 54));
  ASSERT_TRUE(base::RemoveFile(path));
  ASSERT_TRUE(base::MakeDirectories(path));
  EXPECT_FALSE(ReadKeptScript(directory->path(), 54));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
