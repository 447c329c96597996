#include "cli/runbook_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"

namespace expanse::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kSite = R"(- id: licence_server_down
  kind: cause
  owner: infrastructure
  title: Licence server not reachable
  signatures:
    - {re: 'LM-\d+: .*server down', strength: decisive}
  explains: [application_error]
  what: 'the program got no licence.'
  must_match: ['LM-17: licence server down']
  must_not_match: ['licence checked out']
)";

NamedText Site(std::string_view path, std::string_view from = "", std::string_view to = "") {
  std::string text(kSite);
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return {.path = std::string(path), .text = std::move(text)};
}

TEST(CheckRunbooks, GoodOnesAreCounted) {
  const RunbookCheck check = CheckRunbooks({Site("a.yaml")});
  EXPECT_EQ(check.found.text, "a.yaml: 1 runbook, 2 samples, ok\n");
  EXPECT_EQ(check.found.problems, 0U);
  ASSERT_NE(check.set, nullptr);
  EXPECT_NE(check.set->Find("licence_server_down"), nullptr);
  EXPECT_NE(check.set->Find("application_error"), nullptr) << "over the program's own";
}

TEST(CheckRunbooks, EveryFailingSampleHasItsLine) {
  NamedText bad = Site("d/a.yaml", "'LM-17: licence server down'", "'LM', 'LM-17: server up'");
  bad.text.replace(bad.text.find("licence checked out"), 19, "LM-1: server down");
  const RunbookCheck check = CheckRunbooks({bad});
  EXPECT_EQ(check.found.text,
            "d/a.yaml:9: licence_server_down: no signature matches 'LM'\n"
            "d/a.yaml:9: licence_server_down: no signature matches 'LM-17: server up'\n"
            "d/a.yaml:10: licence_server_down: a signature matches 'LM-1: server down'\n"
            "d/a.yaml: 1 runbook, 3 samples, 3 problems\n");
  EXPECT_EQ(check.found.problems, 3U);
  EXPECT_NE(check.set, nullptr) << "cases can still be tried";
}

TEST(CheckRunbooks, EveryFileIsRead) {
  const RunbookCheck check = CheckRunbooks({Site("a.yaml", "kind: cause", "kind: colour"),
                                            {.path = "b.yaml", .text = "- ["},
                                            Site("c.yaml", "explains: [application_error]", "")});
  EXPECT_THAT(check.found.text, HasSubstr("a.yaml:2: kind is cause, symptom or outcome"));
  EXPECT_THAT(check.found.text, HasSubstr("\nb.yaml:"));
  EXPECT_THAT(check.found.text, HasSubstr("\nc.yaml: 1 runbook, 2 samples, ok\n"));
  EXPECT_EQ(check.found.problems, 2U);
}

TEST(CheckRunbooks, PatternsAndNamesThatAreNoneMakeThemUnusable) {
  const RunbookCheck pattern = CheckRunbooks({Site("a.yaml", ".*server", "(server")});
  EXPECT_THAT(pattern.found.text, HasSubstr("a.yaml:6: licence_server_down: "));
  EXPECT_EQ(pattern.set, nullptr);
  const RunbookCheck name = CheckRunbooks({Site("a.yaml", "application_error", "no_such_class")});
  EXPECT_THAT(name.found.text, HasSubstr("a.yaml:1: licence_server_down: explains"));
  EXPECT_EQ(name.set, nullptr);
  NamedText twice = Site("a.yaml");
  twice.text += kSite;
  const RunbookCheck duplicate = CheckRunbooks({twice});
  EXPECT_THAT(duplicate.found.text, HasSubstr("a.yaml:11: licence_server_down: is defined"));
  EXPECT_EQ(duplicate.found.problems, 1U);
}

TEST(CheckRunbooks, WhatALaterFileReplacesIsSaidAndStillChecked) {
  const RunbookCheck check =
      CheckRunbooks({Site("a.yaml", "'LM-17: licence server down'", "'LM'"), Site("b.yaml"),
                     Site("c.yaml", "licence_server_down", "out_of_disk_x")});
  EXPECT_EQ(check.found.text,
            "b.yaml:1: note: licence_server_down replaces a.yaml's runbook of this class\n"
            "a.yaml:9: licence_server_down: no signature matches 'LM'\n"
            "a.yaml: 1 runbook, 2 samples, 1 problem\n"
            "b.yaml: 1 runbook, 2 samples, ok\n"
            "c.yaml: 1 runbook, 2 samples, ok\n");
  const RunbookCheck own =
      CheckRunbooks({Site("a.yaml", "id: licence_server_down", "id: port_in_use")});
  EXPECT_THAT(own.found.text,
              HasSubstr("a.yaml:1: note: port_in_use replaces the program's runbook of this"));
  EXPECT_EQ(own.found.problems, 0U);
}

TEST(CheckRunbooks, NothingThatIsPrintedMovesTheCursor) {
  const RunbookCheck check = CheckRunbooks(
      {Site("a\x1b[2J.yaml", "'LM-17: licence server down'", "\"\\e]0;x\\a\\u202E\"")});
  EXPECT_EQ(check.found.problems, 1U);
  EXPECT_THAT(check.found.text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(check.found.text, Not(HasSubstr("\a")));
  EXPECT_THAT(check.found.text, Not(HasSubstr("\u202E")));
  EXPECT_EQ(std::count(check.found.text.begin(), check.found.text.end(), '\n'), 2);
}

// The lines of a document from `first` on that are indented by `indent`, without it.
std::string BlockOf(const std::string& document, std::string_view first, std::size_t indent) {
  const auto text = base::ReadFile(std::string(EXPANSE_SOURCE_DIR) + "/../../docs/" + document);
  EXPECT_TRUE(text) << document;
  if (!text) return {};
  const std::string blank(indent, ' ');
  std::string block;
  for (const std::string_view line : base::Split(*text, '\n')) {
    const bool inside = line.starts_with(blank) && !line.starts_with("```");
    if (!block.empty() && !inside) break;
    if (!block.empty() || line.starts_with(blank + std::string(first)))
      block += std::string(line.substr(indent)) + '\n';
  }
  return block;
}

TEST(CheckRunbooks, ExamplesOfTheDocumentsAreSound) {
  const NamedText format{.path = "format",
                         .text = BlockOf("formats/runbook.md", "- id: licence_server_down", 0)};
  EXPECT_EQ(CheckRunbooks({format}).found.text, "format: 1 runbook, 2 samples, ok\n");
  const NamedText guide{.path = "guide",
                        .text = BlockOf("diagnose.md", "- id: licence_server_down", 7)};
  const RunbookCheck check = CheckRunbooks({guide});
  EXPECT_EQ(check.found.text, "guide: 1 runbook, 2 samples, ok\n");
  ASSERT_NE(check.set, nullptr);
  const NamedText cases{.path = "cases.json", .text = BlockOf("diagnose.md", "[{\"id\":", 7)};
  EXPECT_EQ(CheckCases(cases, *check.set).text,
            "cases.json: 41982: licence_server_down (high), as expected\n"
            "  combined line 2: LM-17: licence server down\n"
            "cases.json: 41990: none, as expected\n");
}

TEST(CheckCases, ComparesWithTheClassThatIsNamed) {
  const RunbookCheck check = CheckRunbooks({Site("a.yaml")});
  ASSERT_NE(check.set, nullptr);
  const Findings found = CheckCases({.path = "c.json", .text = R"([
      {"id": "one", "log": "LM-17: licence server down\n", "true_class": "licence_server_down"},
      {"id": "two\u001b[2J", "log": "LM-17: licence server down\n", "true_class": "port_in_use"},
      {"id": "three", "state": "COMPLETED", "log": "done\n", "true_class": "none"},
      {"log": "quite unknown\n"}])"},
                                    *check.set);
  EXPECT_EQ(found.problems, 1U);
  EXPECT_THAT(found.text, HasSubstr("c.json: one: licence_server_down (high), as expected\n"
                                    "  combined line 1: LM-17: licence server down\n"));
  EXPECT_THAT(found.text, HasSubstr("c.json: two\\x1b[2J: licence_server_down (high), expected "
                                    "port_in_use\n"));
  EXPECT_THAT(found.text, HasSubstr("c.json: three: none, as expected\n"));
  EXPECT_THAT(found.text, HasSubstr("c.json: case: unknown (low)\n"));
  EXPECT_EQ(CheckCases({.path = "c.json", .text = "{"}, *check.set).problems, 1U);
}

TEST(ExplainLog, NamesTheClassAndTheLines) {
  const RunbookCheck check = CheckRunbooks({Site("a.yaml")});
  ASSERT_NE(check.set, nullptr);
  const Findings found =
      ExplainLog({.path = "job.err", .text = "start\nLM-17: server down \x1b]0;x\a\n"}, *check.set);
  EXPECT_THAT(found.text, HasSubstr("job.err: licence_server_down (high)\n"
                                    "  output line 2: LM-17: server down \\x1b]0;x\\x07\n"));
  EXPECT_EQ(found.problems, 0U);
}

}  // namespace
}  // namespace expanse::cli
