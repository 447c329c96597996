#include "intelligence/diagnose/runbook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include "intelligence/diagnose/runbook_set.h"

namespace expanse::intelligence::diagnose {
namespace {

using testing::HasSubstr;

constexpr std::string_view kOne = R"(
- id: disk_full
  family: storage
  kind: cause
  owner: either
  title: Disk full
  signatures:
    - 'No space left'
    - {re: 'ENOSPC', strength: decisive}
  when:
    - {fact: exit_code, is: ["28"], strength: weak}
  what: the disk was full.
  must_match: ['write: No space left on device', 'ENOSPC']
  must_not_match: ['space left: 10 GB']
)";

std::string MessageOf(const base::Result<std::vector<Runbook>>& read) {
  return read ? "" : read.error().message;
}

TEST(ParseRunbooks, ReadsFields) {
  const auto read = ParseRunbooks(kOne, "site.yaml");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1U);
  const Runbook& runbook = read->front();
  EXPECT_EQ(runbook.id, "disk_full");
  EXPECT_EQ(runbook.owner, Owner::kEither);
  ASSERT_EQ(runbook.signatures.size(), 2U);
  EXPECT_EQ(runbook.signatures[0].strength, Strength::kStrong);
  EXPECT_EQ(runbook.signatures[1].strength, Strength::kDecisive);
  ASSERT_EQ(runbook.when.size(), 1U);
  EXPECT_EQ(runbook.when[0].fact, "exit_code");
}

TEST(ParseRunbooks, KeepsWhereAndHowEachWasWritten) {
  const std::string first = "-\n  id: a\n  title: t\n  what: w\n  when: [{fact: signal, is: 9}]\n";
  const std::string second = "- {id: b, title: t, what: w, when: [{fact: signal, is: 7}]}\n";
  const auto read =
      ParseRunbooks("\xEF\xBB\xBF# mine\r\n" + first + "\n# next\n" + second + "\n", "s.yaml");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].text, first);
  EXPECT_EQ((*read)[0].line, 3U);
  EXPECT_EQ((*read)[1].text, second);
  EXPECT_EQ((*read)[1].line, 9U);
  const std::string list = "[{id: b, title: t, what: w,\n when: [{fact: signal, is: 7}]}]";
  const auto bracketed = ParseRunbooks(list, "s.yaml");
  ASSERT_TRUE(bracketed) << bracketed.error().message;
  EXPECT_EQ(bracketed->front().text, list);
  for (const Runbook& runbook : RunbookSet::Embedded()) {
    EXPECT_TRUE(runbook.embedded);
    EXPECT_TRUE(runbook.text.starts_with("- id: " + runbook.id + "\n")) << runbook.text;
    EXPECT_EQ(ParseRunbooks(runbook.text, "again").value().size(), 1U) << runbook.id;
  }
}

TEST(ParseRunbooks, SaysWhereAndWhatIsWrong) {
  EXPECT_THAT(MessageOf(ParseRunbooks("- id: a\n  colour: red\n", "s.yaml")),
              HasSubstr("s.yaml:2: unknown key 'colour'"));
  EXPECT_THAT(MessageOf(ParseRunbooks("- id: A b\n  title: t\n  what: w\n", "s.yaml")),
              HasSubstr("an id is"));
  EXPECT_THAT(MessageOf(ParseRunbooks("- [", "s.yaml")), HasSubstr("s.yaml:"));
  EXPECT_THAT(MessageOf(ParseRunbooks("- id: a\n  title: t\n  what: w\n", "s.yaml")),
              HasSubstr("can match nothing"));
  EXPECT_THAT(MessageOf(ParseRunbooks("- id: a\n  when: [{fact: colour, is: red}]\n", "s.yaml")),
              HasSubstr("there is no fact 'colour'"));
  EXPECT_THAT(MessageOf(ParseRunbooks(std::string(100'000, '['), "s.yaml")),
              HasSubstr("too deeply"));
}

TEST(RunbookSet, ChecksSamplesPatternsAndNames) {
  const auto made = [](std::string_view from, std::string_view to) {
    std::string yaml(kOne);
    yaml.replace(yaml.find(from), from.size(), to);
    auto read = ParseRunbooks(yaml, "site.yaml");
    if (!read) return read.error().message;
    auto set = RunbookSet::Create(std::move(*read), {});
    return set ? std::string() : set.error().reason + " " + set.error().message;
  };
  EXPECT_EQ(made("No space left", "No space left"), "");
  EXPECT_THAT(made("'No space left'", "'No space ('"), HasSubstr("runbook.pattern"));
  EXPECT_THAT(made("'ENOSPC']", "'EIO']"), HasSubstr("runbook.sample"));
  EXPECT_THAT(made("space left: 10 GB", "No space left: 0"), HasSubstr("runbook.sample"));
  EXPECT_THAT(made("  what:", "  explains: [nothing_like_it]\n  what:"),
              HasSubstr("runbook.unknown_class"));
  EXPECT_THAT(made("  what:", "  explains: [disk_full]\n  what:"), HasSubstr("runbook.cycle"));
}

TEST(RunbookSet, NamesEverySampleThatFailsWithItsLine) {
  std::string yaml(kOne);
  yaml.replace(yaml.find("'ENOSPC']"), 9, "'EIO', 'quota']");
  yaml.replace(yaml.find("space left: 10 GB"), 17, "No space left: 0");
  auto read = ParseRunbooks(yaml, "site.yaml");
  ASSERT_TRUE(read);
  auto set = RunbookSet::CreateUnchecked(*read, {{.pattern = "^EIO$", .why = "noise"}});
  ASSERT_TRUE(set) << set.error().message;
  const std::vector<SampleFailure> failures = (*set)->FailingSamples();
  ASSERT_EQ(failures.size(), 3U);
  EXPECT_EQ(failures[0].line, 13U);
  EXPECT_THAT(failures[0].message, HasSubstr("a decoy matches"));
  EXPECT_EQ(failures[1].line, 13U);
  EXPECT_EQ(failures[1].message, "no signature matches 'quota'");
  EXPECT_EQ(failures[2].line, 14U);
  EXPECT_EQ(failures[2].message, "a signature matches 'No space left: 0'");
  const auto checked = RunbookSet::Create(*std::move(read), {});
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("site.yaml:13: disk_full: no signature matches"));
}

TEST(RunbookSet, NamesTheLineOfAPatternThatIsNone) {
  std::string yaml(kOne);
  yaml.replace(yaml.find("re: 'ENOSPC'"), 12, "re: 'ENOSPC('");
  auto read = ParseRunbooks(yaml, "site.yaml");
  ASSERT_TRUE(read);
  const auto set = RunbookSet::Create(*std::move(read), {});
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr("site.yaml:9: disk_full: 'ENOSPC('"));
}

TEST(RunbookSet, EmbeddedRunbooksAreSound) {
  const auto set = RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
  ASSERT_TRUE(set) << set.error().message;
  for (const Runbook& runbook : (*set)->runbooks()) {
    EXPECT_FALSE(runbook.family.empty()) << runbook.id;
    EXPECT_FALSE(runbook.advice.empty() && runbook.collect.empty()) << runbook.id;
    EXPECT_TRUE(runbook.signatures.empty() || !runbook.must_not_match.empty()) << runbook.id;
    // The automaton of all signatures grows by a copy for each count.
    for (const Signature& signature : runbook.signatures)
      EXPECT_FALSE(re2::RE2::PartialMatch(signature.pattern, "\\{\\d*,?\\d\\d+\\}"))
          << signature.pattern;
  }
}

TEST(RunbookSet, DecoysAreNoMatch) {
  const auto set = RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
  ASSERT_TRUE(set);
  EXPECT_TRUE(
      (*set)
          ->Match("WARNING: There was an error: unable to find any relevant network interfaces")
          .empty());
}

TEST(RunbookSet, TroubleThatWasDealtWithIsWeak) {
  const auto set = RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
  ASSERT_TRUE(set);
  const auto strength = [&](std::string_view line) {
    const auto hits = (*set)->Match(line);
    const auto of = std::find_if(hits.begin(), hits.end(), [&](const SignatureHit& hit) {
      return (*set)->runbooks()[hit.runbook].id == "import_error";
    });
    return of == hits.end() ? std::nullopt : std::optional(of->strength);
  };
  EXPECT_EQ(strength("ModuleNotFoundError: No module named 'apex'"), Strength::kStrong);
  EXPECT_EQ(strength("No module named 'apex' (optional, falling back to eager)"), Strength::kWeak);
}

TEST(ParseDecoys, ReadsAndRefuses) {
  const auto read = ParseDecoys("- {re: a, why: b}\n- {re: c, why: d, weakens: true}\n", "d.yaml");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->at(0).weakens);
  EXPECT_TRUE(read->at(1).weakens);
  EXPECT_FALSE(ParseDecoys("- {re: a}\n", "d.yaml"));
  EXPECT_FALSE(ParseDecoys("- {re: a, why: b, weakens: perhaps}\n", "d.yaml"));
}

TEST(RunbookSet, AnotherFileReplacesOnlyWhenAsked) {
  auto first = ParseRunbooks(kOne, "a.yaml");
  auto second = ParseRunbooks(kOne, "b.yaml");
  ASSERT_TRUE(first && second);
  std::vector<Runbook> both = {first->front(), second->front()};
  EXPECT_FALSE(RunbookSet::Create(both, {}));
  const auto set = RunbookSet::Create(both, {}, /*replace=*/true);
  ASSERT_TRUE(set);
  EXPECT_EQ((*set)->runbooks().size(), 1U);
  EXPECT_EQ((*set)->runbooks()[0].file, "b.yaml");
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
