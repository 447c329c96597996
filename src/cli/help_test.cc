// Golden files of everything that is made from the declarations: help of every command,
// completions, manual pages, docs/cli.md.
#include "cli/help.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/subprocess.h"
#include "base/text.h"
#include "cli/cli_testing.h"
#include "cli/completions.h"
#include "cli/man.h"
#include "cli/parse.h"

namespace expanse::cli {
namespace {

const std::string kTestData = std::string(EXPANSE_SOURCE_DIR) + "/testdata";

void CollectHelp(std::vector<const CommandSpec*> path, std::string* all) {
  *all += "$ " + PathName(path) + " --help\n" + HelpText(path) + "\n";
  for (const CommandSpec* child : path.back()->children) {
    path.push_back(child);
    CollectHelp(path, all);
    path.pop_back();
  }
}

TEST(Help, OfEveryCommandIsAsRecorded) {
  std::string all;
  CollectHelp({&RootCommand()}, &all);
  for (std::string_view line : base::Split(all, '\n')) {
    // Examples are commands and are not wrapped.
    if (!line.starts_with("  expanse") && !line.starts_with("$ ")) {
      EXPECT_LE(base::DisplayWidth(line), 96U) << line;
    }
  }
  ExpectGolden(kTestData, "help.txt", all);
}

TEST(Help, IsPrintedByEverySpelling) {
  CliHarness harness;
  ASSERT_EQ(harness.Run({"compute", "register", "--help"}), 0);
  const std::string help = harness.terminal.out;
  EXPECT_EQ(harness.terminal.err, "");
  EXPECT_TRUE(help.starts_with("Usage: expanse compute register [OPTIONS]\n")) << help;
  ASSERT_EQ(harness.Run({"help", "compute", "register"}), 0);
  EXPECT_EQ(harness.terminal.out, help);
  ASSERT_EQ(harness.Run({"compute", "register", "--type", "host", "-h"}), 0);
  EXPECT_EQ(harness.terminal.out, help);
  EXPECT_EQ(harness.Run({"help", "nonsense"}), 2);
}

TEST(Reference, IsCurrent) {
  ExpectGolden(std::string(EXPANSE_SOURCE_DIR) + "/../../docs", "cli.md",
               ReferenceMarkdown(RootCommand()));
}

TEST(Completions, AreAsRecorded) {
  ExpectGolden(kTestData, "completions.bash", CompletionScript(Shell::kBash, RootCommand()));
  ExpectGolden(kTestData, "completions.zsh", CompletionScript(Shell::kZsh, RootCommand()));
  ExpectGolden(kTestData, "completions.fish", CompletionScript(Shell::kFish, RootCommand()));
}

// What bash offers at the end of `words` with our script.
std::string Complete(const std::string& words) {
  const auto bash = base::FindProgram("bash", "/usr/bin:/bin");
  if (!bash) return "no bash";
  const std::string script = CompletionScript(Shell::kBash, RootCommand()) + "COMP_WORDS=(" +
                             words +
                             ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_expanse\n"
                             "echo \"${COMPREPLY[*]}\"\n";
  const auto outcome = base::RunProcess({.argv = {*bash, "--noprofile", "--norc"},
                                         .environment = {"PATH=/usr/bin:/bin"},
                                         .input = script});
  if (!outcome) return outcome.error().message;
  return outcome->err + std::string(base::Trim(outcome->out));
}

TEST(Completions, WorkInBash) {
  if (!base::FindProgram("bash", "/usr/bin:/bin")) GTEST_SKIP() << "no bash here";
  EXPECT_EQ(Complete("expanse exec"), "executions");
  EXPECT_EQ(Complete("expanse compute re"), "register revoke reissue");
  EXPECT_EQ(Complete("expanse executions --st"), "--status");
  EXPECT_EQ(Complete("expanse executions --status ''"),
            "queued running succeeded failed cancelled unknown");
  EXPECT_EQ(Complete("expanse executions --status failed --outcome out"), "out_of_memory");
  EXPECT_EQ(Complete("expanse executions --user ''"), "");
  EXPECT_NE(Complete("expanse run -- bas").find("bash"), std::string::npos);
}

TEST(ManPages, AreAsRecorded) {
  std::string all;
  for (const ManPage& page : ManPages(RootCommand(), "0.0.0")) {
    EXPECT_TRUE(page.text.starts_with(".TH ")) << page.file_name;
    all += "=== " + page.file_name + "\n" + page.text;
  }
  ExpectGolden(kTestData, "man.txt", all);
}

TEST(ManPages, AreWrittenToADirectory) {
  CliHarness harness;
  const std::string directory = harness.home.path() + "/man1";
  ASSERT_EQ(harness.Run({"man", "--directory", directory}), 0) << harness.terminal.err;
  const auto names = base::ListDirectory(directory);
  ASSERT_TRUE(names);
  EXPECT_EQ(names->size(), ManPages(RootCommand(), "0").size());
  EXPECT_TRUE(base::Exists(directory + "/expanse-compute-register.1"));
}

}  // namespace
}  // namespace expanse::cli
