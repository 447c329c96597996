#include "intelligence/diagnose/root_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "intelligence/diagnose/diagnose.h"

namespace expanse::intelligence::diagnose {
namespace {

using evidence::ExecutionStatus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kWorld = R"(
- id: disk
  kind: cause
  owner: either
  title: Disk full
  signatures: ['No space']
  when: [{fact: exit_code, is: ['28'], strength: weak}]
  unless: [{fact: signal, is: ['9']}]
  explains: [ended]
  request: walltime
  what: 'it was full[[ at {path}]].'
  why: '[[the output says "{quote}".]]'
  not_this: Not memory.
  unknown: ['[[Since {idle}.]]', Who filled it.]
  collect: ['df']
  advice: 'free[[ {path}]]'
  retry: 'yes'
  verify: df
  must_match: ['No space']
- {id: ended, kind: outcome, title: Ended, what: it ended., when: [{fact: exit_code, at_least: 1}]}
- {id: other, kind: cause, title: Other, what: other., signatures: ['odd'], must_match: [odd]}
)";

const RunbookSet& Set() {
  static const auto set = *RunbookSet::Create(*ParseRunbooks(kWorld, "world.yaml"), {});
  return *set;
}

Case Failed(std::string log) {
  Case of;
  of.execution.execution_id = "e1";
  of.execution.source_type = evidence::SourceType::kSlurm;
  of.execution.status = ExecutionStatus::kFailed;
  of.execution.exit_code = 28;
  if (!log.empty()) of.logs.push_back({.stream = "stderr", .data = std::move(log)});
  return of;
}

TEST(RootCause, PutsTheSentencesTogether) {
  const Diagnosis said = Diagnose(Failed("cp: /tmp/x: No space\n"), Set());
  EXPECT_EQ(said.root_cause,
            "What happened: it was full at /tmp/x. Why: the output says \"cp: /tmp/x: No space\". "
            "Not memory. Who filled it.");
  EXPECT_EQ(said.advice, "free /tmp/x");
  EXPECT_EQ(said.title, "Disk full");
  EXPECT_EQ(said.owner, "either");
  EXPECT_EQ(said.retry, "yes");
  EXPECT_THAT(said.explained, ElementsAre("ended"));
  EXPECT_THAT(said.collect, ElementsAre("df"));
  EXPECT_EQ(said.fields.at("failure_class"), FieldStatus::kError);
}

TEST(RootCause, SaysWhatTheRecordShowsWhereTheOutputSaysNothing) {
  const Diagnosis said = Diagnose(Failed(""), Set());
  EXPECT_EQ(said.failure_class, "ended");
  EXPECT_EQ(said.root_cause,
            "What happened: it ended. Why: the record of the run shows exit code 28.");
}

TEST(RootCause, CitesEvidenceTheLineThatAsksAndSimilarRuns) {
  Case of = Failed("No space\n");
  of.sources.push_back({.path = "a.sh",
                        .role = "script",
                        .data = "#!/bin/sh\n#SBATCH --time=10\n#SBATCH --mem=1G\n./a\n"});
  SimilarRun& similar = of.similar.emplace_back();
  similar.run.execution_id = "e0";
  similar.run.ending = predict::Ending::kSuccess;
  const Diagnosis said = Diagnose(of, Set());
  ASSERT_EQ(said.evidence.size(), 4U);
  EXPECT_EQ(said.evidence[0].quote, "No space");
  EXPECT_EQ(said.evidence[0].execution_id, "e1");
  EXPECT_EQ(said.evidence[1].quote, "exit code 28");
  EXPECT_EQ(said.evidence[2].quote, "#SBATCH --time=10");
  EXPECT_EQ(said.evidence[2].where, "a.sh line 2");
  EXPECT_EQ(said.evidence[3].execution_id, "e0");
}

TEST(RootCause, NamesAlternativesWithWhatSpeaksForAndAgainst) {
  Case of = Failed("No space\nodd\n");
  of.execution.signal = 9;
  const Diagnosis said = Diagnose(of, Set());
  ASSERT_EQ(said.alternatives.size(), 1U);
  const bool disk_first = said.failure_class == "disk";
  const Alternative& second = said.alternatives[0];
  EXPECT_EQ(second.failure_class, disk_first ? "other" : "disk");
  EXPECT_FALSE(second.supporting.empty());
  EXPECT_EQ(second.against.empty(), disk_first);
}

TEST(RootCause, OfARunThatDidNotFail) {
  Case of = Failed("");
  of.execution.status = ExecutionStatus::kQueued;
  of.execution.native_reason = "Priority";
  EXPECT_THAT(Diagnose(of, Set()).root_cause, HasSubstr("Priority"));
  of.execution.status = ExecutionStatus::kSucceeded;
  EXPECT_THAT(Diagnose(of, Set()).root_cause, HasSubstr("succeeded"));
}

TEST(RootCause, UnknownSaysWhatIsMissing) {
  Case of = Failed("nothing that anybody knows\n");
  of.execution.exit_code.reset();
  of.execution.native_state = "FAILED";
  const Diagnosis said = Diagnose(of, Set());
  EXPECT_EQ(said.failure_class, "unknown");
  EXPECT_EQ(said.root_cause,
            "What happened: the execution ended in state FAILED. Why: the evidence does not tell.");
  EXPECT_THAT(said.collect, Not(testing::Contains(HasSubstr("none was captured"))));
  EXPECT_THAT(said.collect, testing::Contains(HasSubstr("metrics")));
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
