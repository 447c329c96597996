#include "collect/sources/source_bundle.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/files.h"

namespace expanse::collect {
namespace {

class SourceBundleTest : public testing::Test {
 protected:
  void Write(const std::string& name, std::string_view data) {
    ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(dir_.path(), name), data, 0644));
  }
  SourceRequest Command(std::vector<std::string> command) {
    return {.command = std::move(command),
            .program = "",
            .working_directory = dir_.path(),
            .extra = {},
            .limits = {}};
  }
  std::string Path(const std::string& name) const { return base::JoinPath(dir_.path(), name); }
  base::TempDir dir_ = base::TempDir::Create("sources").value();
};

std::vector<std::string> Roles(const evidence::SourceBundle& bundle) {
  std::vector<std::string> roles;
  for (const auto& file : bundle.files) {
    roles.push_back(file.role + ":" + file.path.substr(file.path.rfind('/') + 1));
  }
  return roles;
}
using Words = std::vector<std::string>;

TEST_F(SourceBundleTest, TakesTheScriptItsArgumentsAndItsImports) {
  Write("train.py", "import os\nimport model\nfrom helpers.io import load\n");
  Write("model.py", "x = 1\n");
  Write("cfg.yaml", "lr: 0.1\n");
  Write("other.yaml", "lr: 0.2\n");
  const auto bundle =
      CollectSources(Command({"python3", "-u", "train.py", "cfg.yaml", "--base=other.yaml", "3"}));
  EXPECT_EQ(Roles(bundle), (Words{"script:train.py", "import:model.py", "argument:cfg.yaml",
                                  "argument:other.yaml"}));
  EXPECT_TRUE(bundle.skipped.empty());
  EXPECT_EQ(bundle.files[2].data, "lr: 0.1\n");
}

TEST_F(SourceBundleTest, TakesAProgramThatIsAScript) {
  Write("go.sh", "#!/bin/sh\n. ./lib.sh\npython3 step.py\n");
  Write("lib.sh", "A=1\n");
  Write("step.py", "pass\n");
  EXPECT_EQ(Roles(CollectSources(Command({"./go.sh"}))),
            (Words{"script:go.sh", "import:lib.sh", "import:step.py"}));
}

TEST_F(SourceBundleTest, SaysNothingOfACompiledProgram) {
  Write("a.out", std::string("\x7f"
                             "ELF\0\0",
                             6));
  EXPECT_TRUE(CollectSources(Command({"./a.out", "1"})).skipped.empty());
}

TEST_F(SourceBundleTest, LooksThroughEnvAndTimeout) {
  Write("a.py", "pass\n");
  EXPECT_EQ(Roles(CollectSources(Command({"timeout", "9", "env", "python3.11", "a.py"}))),
            (Words{"script:a.py"}));
}

TEST_F(SourceBundleTest, LeavesModulesAndInlinePrograms) {
  Write("json", "not the module\n");
  EXPECT_TRUE(CollectSources(Command({"python3", "-m", "json", "tool"})).files.empty());
  EXPECT_TRUE(CollectSources(Command({"sh", "-c", "exit 3"})).files.empty());
}

TEST_F(SourceBundleTest, HashesBeforeItRedacts) {
  const std::string text = "password=hunter2\n";
  Write("job.sh", text);
  const auto bundle = CollectSources(Command({"bash", "job.sh"}));
  ASSERT_EQ(bundle.files.size(), 1U);
  EXPECT_EQ(bundle.files[0].data, "password=[redacted]\n");
  EXPECT_EQ(bundle.files[0].content_hash, base::Sha256Hex(text));
  EXPECT_EQ(bundle.files[0].redactions, 1U);
}

TEST_F(SourceBundleTest, SkipsWhatItMustNotTakeWithTheReason) {
  Write("a.out", std::string("\x7f"
                             "ELF\0\0",
                             6));
  Write("late.bin", std::string(600, 'a') + std::string(1, '\0'));
  Write("big.txt", std::string(300U << 10, 'x'));
  Write(".env", "A=b\n");
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  auto request = Command({"cat", "a.out", "late.bin", "big.txt", ".env", "pipe", "absent"});
  request.extra = {"nowhere.txt", "pipe2"};
  ASSERT_EQ(::mkfifo(Path("pipe2").c_str(), 0600), 0);
  const auto bundle = CollectSources(request);
  EXPECT_TRUE(bundle.files.empty());
  Words reasons;
  for (const auto& skip : bundle.skipped)
    reasons.push_back(skip.path.substr(skip.path.rfind('/') + 1) + ":" + skip.reason);
  EXPECT_EQ(reasons, (Words{"a.out:binary", "late.bin:binary", "big.txt:too_large",
                            ".env:secret_name", "nowhere.txt:not_found", "pipe2:not_regular"}));
}

TEST_F(SourceBundleTest, KnowsSecretFilesByTheirDirectoryAndBehindLinks) {
  ASSERT_EQ(::mkdir(Path(".kube").c_str(), 0700), 0);
  Write(".kube/config", "x\n");
  Write(".env", "A=b\n");
  ASSERT_EQ(::symlink(".env", Path("settings").c_str()), 0);
  const auto bundle = CollectSources(Command({"cat", "--kubeconfig=.kube/config", "settings"}));
  EXPECT_TRUE(bundle.files.empty());
  ASSERT_EQ(bundle.skipped.size(), 2U);
  for (const auto& skip : bundle.skipped) EXPECT_EQ(skip.reason, "secret_name") << skip.path;
}

TEST_F(SourceBundleTest, StaysWithinItsBudget) {
  Words command = {"cat"};
  for (int i = 0; i < 8; ++i) {
    Write("f" + std::to_string(i), std::string(1000, static_cast<char>('a' + i)));
    command.push_back("f" + std::to_string(i));
  }
  auto request = Command(command);
  request.limits = {.files = 4, .file_bytes = 2000, .total_bytes = 3500};
  const auto bundle = CollectSources(request);
  EXPECT_EQ(bundle.files.size(), 3U);
  ASSERT_EQ(bundle.skipped.size(), 4U);  // as many as files at most
  EXPECT_EQ(bundle.skipped[0].reason, "budget");
}

TEST_F(SourceBundleTest, TakesAFileOnceUnderAllItsNames) {
  Write("a.sh", "true\n");
  ASSERT_EQ(::symlink("a.sh", Path("b.sh").c_str()), 0);
  EXPECT_EQ(CollectSources(Command({"bash", "a.sh", "b.sh", "./a.sh"})).files.size(), 1U);
}

TEST_F(SourceBundleTest, TakesABatchScriptAsTheSchedulerHasIt) {
  Write("job.sh", "#!/bin/sh\nedited since\n");
  Write("train.py", "import model\n");
  Write("model.py", "x = 1\n");
  Write("a.yaml", "lr: 0.1\n");
  Write("arg.txt", "of the command line\n");
  Write("solver", std::string("\x7f"
                              "ELF\0",
                              5));
  auto request = Command({Path("job.sh"), "arg.txt"});
  request.script =
      "#!/bin/sh\n#SBATCH -o job.sh\nsrun ./solver\npython train.py --config a.yaml\n./job.sh\n";
  request.script_path = Path("job.sh");
  const auto bundle = CollectSources(request);
  EXPECT_EQ(Roles(bundle), (Words{"script:job.sh", "import:train.py", "import:model.py",
                                  "argument:a.yaml", "argument:arg.txt"}));
  EXPECT_EQ(bundle.files[0].data, *request.script);
  EXPECT_TRUE(bundle.skipped.empty());
}

TEST_F(SourceBundleTest, NamesABatchScriptWithoutAFileAndBoundsIt) {
  auto request = Command({});
  request.script = "#!/bin/sh\nexport TOKEN=hunter2hunter2x9\n";
  const auto wrapped = CollectSources(request);
  ASSERT_EQ(wrapped.files.size(), 1U);
  EXPECT_EQ(wrapped.files[0].path, "batch_script");
  EXPECT_EQ(wrapped.files[0].data, "#!/bin/sh\nexport TOKEN=[redacted]\n");
  request.script = std::string(request.limits.file_bytes + 1, 'x');
  ASSERT_EQ(CollectSources(request).skipped.size(), 1U);
  EXPECT_EQ(CollectSources(request).skipped[0].reason, "too_large");
  request.script = std::string("a\0b", 3);
  EXPECT_EQ(CollectSources(request).skipped[0].reason, "binary");
}

TEST_F(SourceBundleTest, OpensAsItIsTold) {
  Write("a.sh", "mine\n");
  Write("b.sh", "not mine\n");
  auto request = Command({"bash", "a.sh", "b.sh"});
  request.open = [](const std::string& path) -> base::Result<base::UniqueFd> {
    if (!path.ends_with("b.sh")) return OpenRegularFile(path);
    return base::Fail(base::Code::kPermissionDenied, "files.no_permission", "no");
  };
  const auto bundle = CollectSources(request);
  EXPECT_EQ(Roles(bundle), (Words{"script:a.sh"}));
  ASSERT_EQ(bundle.skipped.size(), 1U);
  EXPECT_EQ(bundle.skipped[0].reason, "no_permission");
}

TEST(FindReferences, ReadsShellAndPython) {
  EXPECT_EQ(
      FindReferences(
          "source env.sh\n# source no.sh\nexec ./bin/go \"$X\"\nbash 'x y.sh'\nimport a.b, c as d\n"
          "python $SCRIPT\npython -m mod\n"),
      (Words{"env.sh", "./bin/go", "x", "a/b.py", "c.py"}));
}

}  // namespace
}  // namespace expanse::collect
