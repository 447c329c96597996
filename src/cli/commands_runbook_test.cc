#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cli_testing.h"

namespace expanse::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kTestData = std::string(EXPANSE_SOURCE_DIR) + "/testdata";

class RunbookCommands : public testing::Test {
 protected:
  RunbookCommands() {
    AddRunbook("host_out_of_memory", "memory", "user", "Out of memory", "embedded");
    AddRunbook("licence_server_down", "network_auth", "infrastructure",
               "Licence \x1b[31mserver\n not reachable", "licence\x1b[2J.yaml");
    *platform_.runbook.mutable_summary() = platform_.runbooks.runbooks(1);
    platform_.runbook.set_yaml("- id: licence_server_down\n  title: \x1b[2Jx");
  }
  void AddRunbook(const std::string& id, const std::string& family, const std::string& owner,
                  const std::string& title, const std::string& origin) {
    intelligence::v1::RunbookSummary* runbook = platform_.runbooks.add_runbooks();
    runbook->set_id(id);
    runbook->set_family(family);
    runbook->set_kind("cause");
    runbook->set_owner(owner);
    runbook->set_title(title);
    runbook->set_origin(origin);
  }
  std::string Write(const std::string& name, std::string_view text) {
    std::string path = harness_.home.path() + "/" + name;
    EXPECT_TRUE(base::WriteFileAtomically(path, text, 0644));
    return path;
  }
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), "runbook");
    return harness_.Run(words);
  }

  FakePlatform platform_;
  CliHarness harness_;
  FakeTerminal& terminal_ = harness_.terminal;
};

TEST_F(RunbookCommands, ListIsTheServers) {
  harness_.SignIn(platform_);
  ASSERT_EQ(Run({"list"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "runbook-list.txt", terminal_.out);
  EXPECT_EQ(terminal_.err, "");
  terminal_.width = 70;
  ASSERT_EQ(Run({"list"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "runbook-list-terminal.txt", terminal_.out);
  ASSERT_EQ(Run({"list", "--json"}), 0) << terminal_.err;
  EXPECT_THAT(terminal_.out, HasSubstr("\"origin\": \"embedded\""));
}

TEST_F(RunbookCommands, ListSaysWhatIsWrongWithTheSites) {
  harness_.SignIn(platform_);
  platform_.runbooks.set_site_error("a.yaml:3: unknown key '\x1b[2J'");
  ASSERT_EQ(Run({"list"}), 0);
  EXPECT_EQ(terminal_.err,
            "expanse: warning: the site's runbooks are as they were before: a.yaml:3: unknown key "
            "'\\x1b[2J'\n");
}

TEST_F(RunbookCommands, WithoutAServerThoseOfTheProgramAreShown) {
  ASSERT_EQ(Run({"list"}), 0);
  EXPECT_THAT(terminal_.out, HasSubstr("\nhost_out_of_memory "));
  EXPECT_THAT(terminal_.err, HasSubstr("nobody is signed in; shown are the runbooks of this"));
  ASSERT_EQ(Run({"show", "host_out_of_memory"}), 0);
  EXPECT_TRUE(terminal_.out.starts_with("- id: host_out_of_memory\n")) << terminal_.out;
  EXPECT_EQ(Run({"show", "host_out_of_memroy"}), 3);
  EXPECT_THAT(terminal_.err, HasSubstr("Try: expanse runbook show host_out_of_memory\n"));
  EXPECT_EQ(Run({"show", "nothing\x1b[2J"}), 3);
  EXPECT_THAT(terminal_.err, HasSubstr("Try: expanse runbook list\n"));
  EXPECT_THAT(terminal_.err, Not(HasSubstr("\x1b")));

  harness_.SignIn(platform_);
  for (const base::Code code : {base::Code::kUnavailable, base::Code::kUnimplemented}) {
    platform_.FailWith("ListRunbooks", {.code = code, .reason = "x", .message = "away"});
    ASSERT_EQ(Run({"list"}), 0);
    EXPECT_THAT(terminal_.out, HasSubstr("\napplication_error "));
    EXPECT_THAT(terminal_.err, HasSubstr("away; shown are the runbooks of this program"));
  }
  platform_.FailWith("ListRunbooks", {.code = base::Code::kPermissionDenied,
                                      .reason = "access.permission",
                                      .message = "not yours"});
  EXPECT_EQ(Run({"list"}), 4) << "a refusal is an answer";
  ASSERT_EQ(Run({"list", "--local"}), 0);
  EXPECT_EQ(terminal_.err, "");
}

TEST_F(RunbookCommands, ShowIsTheTextAsItWasWritten) {
  harness_.SignIn(platform_);
  ASSERT_EQ(Run({"show", "licence_server_down"}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out, "- id: licence_server_down\n  title: \x1b[2Jx\n") << "bytes in a pipe";
  EXPECT_EQ(terminal_.err, "This is the site's own, of licence\\x1b[2J.yaml.\n");
  terminal_.width = 80;
  ASSERT_EQ(Run({"show", "licence_server_down"}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out, "- id: licence_server_down\n  title: \\x1b[2Jx\n");
  EXPECT_EQ(Run({"show", "other"}), 3);
  EXPECT_EQ(Run({"show"}), 2);
}

constexpr std::string_view kGood = R"(- id: licence_server_down
  title: Licence server not reachable
  signatures: ['LM-\d+: .*server down']
  what: 'the program got no licence.'
  must_match: ['LM-17: licence server down']
)";

TEST_F(RunbookCommands, TestTakesFilesAndDirectoriesAndNeedsNoServer) {
  const std::string good = Write("good.yaml", kGood);
  ASSERT_EQ(Run({"test", good}), 0) << terminal_.out << terminal_.err;
  EXPECT_EQ(terminal_.out, good + ": 1 runbook, 1 sample, ok\n");
  EXPECT_EQ(terminal_.err, "");
  ASSERT_EQ(Run({"test", good, good}), 0) << "the same file twice is one";
  std::string text(kGood);
  text.replace(text.find("['LM-17"), 7, "['LM");
  const std::string bad = Write("bad.yaml", text);
  Write(".hidden.yaml", "[");
  Write("notes.txt", "[");
  ASSERT_TRUE(base::MakeDirectories(harness_.home.path() + "/folder.yaml"));
  EXPECT_EQ(Run({"test", harness_.home.path()}), 1);
  EXPECT_THAT(terminal_.out, HasSubstr(bad + ":5: licence_server_down: no signature matches "));
  EXPECT_THAT(terminal_.out, HasSubstr(good + ": 1 runbook, 1 sample, ok\n"));
  EXPECT_THAT(terminal_.out, Not(HasSubstr("notes.txt")));
}

TEST_F(RunbookCommands, TestTriesCasesAndLogs) {
  const std::string good = Write("good.yaml", kGood);
  const std::string log = Write("job.err", "LM-3: server down\n");
  const std::string cases =
      Write("cases.json", R"([{"id": "a", "log": "hello", "true_class": "licence_server_down"}])");
  EXPECT_EQ(Run({"test", good, "--log", log}), 0) << terminal_.err;
  EXPECT_THAT(terminal_.out, HasSubstr(log + ": licence_server_down ("));
  EXPECT_EQ(Run({"test", good, "--case", cases, "--log", log}), 1);
  EXPECT_THAT(terminal_.out, HasSubstr(", expected licence_server_down\n"));
  EXPECT_EQ(Run({"test", "--log", log}), 0) << "with the program's own";
  EXPECT_THAT(terminal_.out, Not(HasSubstr("licence_server_down")));
  const std::string bad = Write("bad.yaml",
                                "- id: x\n  title: t\n  what: w\n"
                                "  signatures: ['(']\n  must_match: [a]\n");
  EXPECT_EQ(Run({"test", bad, "--log", log}), 1);
  EXPECT_THAT(terminal_.err, HasSubstr("are not tried"));
}

TEST_F(RunbookCommands, TestSaysWhatCannotBeRead) {
  EXPECT_EQ(Run({"test"}), 2);
  EXPECT_EQ(Run({"test", harness_.home.path() + "/none.yaml"}), 3);
  EXPECT_EQ(Run({"test", harness_.home.path()}), 3);
  EXPECT_THAT(terminal_.err, HasSubstr("there is no *.yaml in "));
  const std::string good = Write("good.yaml", kGood);
  EXPECT_EQ(Run({"test", good, "--log", good + ".none"}), 3);
  EXPECT_EQ(terminal_.out, good + ": 1 runbook, 1 sample, ok\n");
}

}  // namespace
}  // namespace expanse::cli
