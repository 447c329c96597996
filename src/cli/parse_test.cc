#include "cli/parse.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/app.h"
#include "cli/help.h"

namespace expanse::cli {
namespace {

ParseResult ParseWords(const std::vector<std::string>& words,
                       const base::Settings::Environment& environment = {}) {
  return Parse(RootCommand(), words, environment);
}

std::string MessageOf(const std::vector<std::string>& words) {
  const auto parsed = ParseWords(words);
  return parsed ? "parsed" : parsed.error().error.message;
}

std::string HintOf(const std::vector<std::string>& words) {
  const auto parsed = ParseWords(words);
  return parsed ? "parsed" : parsed.error().hint;
}

TEST(Parse, TakesValuesAsNextWordOrBehindEquals) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"executions", "--limit", "7", "--json"},
        {"executions", "--json", "--limit=7"}}) {
    const auto parsed = ParseWords(words);
    ASSERT_TRUE(parsed) << parsed.error().error.message;
    EXPECT_EQ(PathName(parsed->path), "expanse executions");
    EXPECT_EQ(parsed->arguments.Int("limit", 25), 7);
    EXPECT_TRUE(parsed->arguments.Flag("json"));
    EXPECT_FALSE(parsed->arguments.Flag("mine"));
  }
}

TEST(Parse, TakesSchedulerSpellingsOfAmountsAndTimes) {
  const auto run = ParseWords({"run", "--walltime", "1-02:00:00", "--memory=16G", "true"});
  ASSERT_TRUE(run) << run.error().error.message;
  EXPECT_EQ(run->arguments.Duration("walltime"), std::chrono::hours(26));
  EXPECT_EQ(run->arguments.Bytes("memory"), base::GiB(16));
  const auto metrics = ParseWords({"metrics", "x", "cpu", "--from", "2026-11-30T09:00:00+01:00"});
  ASSERT_TRUE(metrics) << metrics.error().error.message;
  EXPECT_EQ(base::FormatRfc3339(metrics->arguments.Time("from")), "2026-11-30T08:00:00Z");
}

TEST(Parse, LeavesTheCommandOfRunAlone) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "--name", "n", "--", "make", "--help", "-j8", "--", "x"},
        {"run", "--name", "n", "make", "--help", "-j8", "--", "x"}}) {
    const auto parsed = ParseWords(words);
    ASSERT_TRUE(parsed) << parsed.error().error.message;
    EXPECT_FALSE(parsed->help);
    EXPECT_EQ(parsed->arguments.positionals(),
              (std::vector<std::string>{"make", "--help", "-j8", "--", "x"}));
  }
}

TEST(Parse, RunsACommandThatIsNamedLikeAnOption) {
  const auto parsed = ParseWords({"run", "--", "--odd-program"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->arguments.positionals(), std::vector<std::string>{"--odd-program"});
}

TEST(Parse, SuggestsTheNearestCommandAndOption) {
  EXPECT_EQ(MessageOf({"executoins"}),
            "expanse: no command 'executoins', did you mean 'executions'?");
  EXPECT_EQ(HintOf({"executoins"}), "expanse executions");
  EXPECT_EQ(MessageOf({"compute", "lst"}),
            "expanse compute: no command 'lst', did you mean 'list'?");
  EXPECT_EQ(MessageOf({"executions", "--stauts", "failed"}),
            "expanse executions: no option '--stauts', did you mean '--status'?");
  EXPECT_EQ(HintOf({"executions", "--stauts", "failed"}), "expanse executions --status");
  EXPECT_EQ(MessageOf({"executions", "--completely-else"}),
            "expanse executions: no option '--completely-else'");
  EXPECT_EQ(HintOf({"executions", "--completely-else"}), "expanse executions --help");
  EXPECT_EQ(HintOf({"executions", "--status", "fialed"}), "--status failed");
}

TEST(Parse, NeverShowsASecretThatIsWrong) {
  const auto parsed = ParseWords({"login", "--api-key="});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().error.message, "expanse login: --api-key: must not be empty");
  EXPECT_EQ(MessageOf({"login", "--api-key", "exp_user_a", "--api-key", "exp_user_b"}),
            "expanse login: --api-key is given twice");
}

TEST(Parse, EscapesWhatItRepeats) {
  EXPECT_EQ(MessageOf({"\x1b[31mred\xff"}), "expanse: no command '\\x1b[31mred\\xff'");
}

TEST(Parse, NeedsRequiredPositionalsAndRefusesMore) {
  EXPECT_EQ(MessageOf({"compute", "show"}), "expanse compute show: COMPUTE is missing");
  EXPECT_EQ(MessageOf({"compute", "show", "a", "b"}),
            "expanse compute show: unexpected argument 'b'");
  EXPECT_EQ(MessageOf({"status", "a"}), "expanse status: unexpected argument 'a'");
  EXPECT_EQ(MessageOf({"run"}), "expanse run: COMMAND is missing");
}

TEST(Parse, ReadsTheEnvironmentBehindTheFlag) {
  const base::Settings::Environment environment = {{"EXPANSE_API_URL", "https://environment.test"}};
  const auto from_environment = ParseWords({"login"}, environment);
  ASSERT_TRUE(from_environment);
  EXPECT_EQ(from_environment->arguments.Text("control-plane"), "https://environment.test");
  const auto from_flag = ParseWords({"login", "--control-plane", "https://flag.test"}, environment);
  ASSERT_TRUE(from_flag);
  EXPECT_EQ(from_flag->arguments.Text("control-plane"), "https://flag.test");
  const auto wrong = ParseWords({"login"}, {{"EXPANSE_API_URL", "ftp://x"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(
      wrong.error().error.message,
      "expanse login: EXPANSE_API_URL 'ftp://x': not a URL such as https://expanse.example.org");
  // Help works whatever the environment holds.
  EXPECT_TRUE(ParseWords({"login", "--help"}, {{"EXPANSE_API_URL", "ftp://x"}}));
}

TEST(Parse, FlagsTakeTrueAndFalse) {
  EXPECT_FALSE(ParseWords({"executions", "--json=false"})->arguments.Flag("json"));
  EXPECT_TRUE(ParseWords({"executions", "--json=false", "--json"})->arguments.Flag("json"));
  EXPECT_EQ(MessageOf({"executions", "--json=maybe"}),
            "expanse executions: --json 'maybe': must be true or false");
}

TEST(Parse, HelpComesBeforeMistakes) {
  EXPECT_TRUE(ParseWords({"compute", "show", "-h"})->help);
  EXPECT_TRUE(ParseWords({})->help);
  EXPECT_TRUE(ParseWords({"compute"})->help);
  EXPECT_TRUE(ParseWords({"--version"})->version);
}

// A value of every kind that must not pass, on every option of every command.
void CheckBadValues(std::vector<const CommandSpec*> path, std::vector<std::string> words) {
  const CommandSpec& command = *path.back();
  for (const OptionSpec& option : command.options) {
    const std::string flag = "--" + std::string(option.name);
    std::vector<std::string> bad = {""};
    switch (option.kind) {
      case ValueKind::kFlag:
        bad = {"maybe"};
        break;
      case ValueKind::kInt:
        bad = {"", "x", "1.5", "99999999999999999999", "-1", "0x10"};
        break;
      case ValueKind::kDuration:
        bad = {"", "soon", "-5s", "10parsecs"};
        break;
      case ValueKind::kBytes:
        bad = {"", "lots", "-1G", "16Q"};
        break;
      case ValueKind::kTime:
        bad = {"", "yesterday", "2026-13-01T00:00:00Z"};
        break;
      case ValueKind::kUrl:
        bad = {"", "expanse.example.org", "ftp://x", "https://", "http://a b", "https:///x"};
        break;
      case ValueKind::kChoice:
        bad = {"", "sideways"};
        break;
      case ValueKind::kText:
      case ValueKind::kPath:
        break;
    }
    for (const std::string& value : bad) {
      std::vector<std::string> line = words;
      line.push_back(flag + "=" + value);
      const auto parsed = ParseWords(line);
      ASSERT_FALSE(parsed) << PathName(path) << " " << line.back();
      EXPECT_EQ(parsed.error().error.code, base::Code::kInvalidArgument);
      EXPECT_NE(parsed.error().error.message.find(flag), std::string::npos)
          << parsed.error().error.message;
      EXPECT_FALSE(parsed.error().hint.empty());
    }
    if (option.kind == ValueKind::kFlag) continue;
    std::vector<std::string> line = words;
    line.push_back(flag);
    ASSERT_FALSE(ParseWords(line)) << PathName(path) << " " << flag << " without a value";
  }
  for (const CommandSpec* child : command.children) {
    auto deeper = path;
    deeper.push_back(child);
    auto longer = words;
    longer.emplace_back(child->name);
    CheckBadValues(deeper, longer);
  }
}

TEST(Parse, RefusesBadValuesOfEveryOption) { CheckBadValues({&RootCommand()}, {}); }

void CheckDeclaration(const CommandSpec& command) {
  SCOPED_TRACE(command.name);
  EXPECT_FALSE(command.summary.empty());
  EXPECT_FALSE(command.summary.ends_with('.'));
  EXPECT_FALSE(command.description.empty());
  EXPECT_TRUE(command.run == nullptr || !command.examples.empty());
  for (const OptionSpec& option : command.options) {
    SCOPED_TRACE(option.name);
    EXPECT_FALSE(option.help.empty());
    EXPECT_EQ(option.value_name.empty(), option.kind == ValueKind::kFlag);
    EXPECT_EQ(option.choices.empty(), option.kind != ValueKind::kChoice);
    EXPECT_EQ(std::count_if(command.options.begin(), command.options.end(),
                            [&](const OptionSpec& other) { return other.name == option.name; }),
              1);
  }
  for (std::size_t i = 0; i + 1 < command.positionals.size(); ++i)
    EXPECT_FALSE(command.positionals[i].repeated);
  for (const CommandSpec* child : command.children) CheckDeclaration(*child);
}

TEST(Parse, EveryCommandIsDeclaredInFull) { CheckDeclaration(RootCommand()); }

}  // namespace
}  // namespace expanse::cli
