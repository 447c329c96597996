#include "intelligence/diagnose/case_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace expanse::intelligence::diagnose {
namespace {

using testing::HasSubstr;

LabelledCase One(std::string_view json) {
  const auto read = ParseCases(json, "a.json");
  EXPECT_TRUE(read) << read.error().message;
  EXPECT_EQ(read ? read->size() : 0, 1U);
  return read && !read->empty() ? read->front() : LabelledCase{};
}

std::string ErrorOf(std::string_view json) {
  const auto read = ParseCases(json, "a.json");
  return read ? "" : read.error().reason + " " + read.error().message;
}

TEST(ParseCases, ReadsWhatACaseSays) {
  const LabelledCase read = One(R"({
    "id": "a-1", "scheduler": "slurm", "state": "OUT_OF_MEMORY", "exit_code": "0:9",
    "true_class": "host_out_of_memory", "accept": ["oom_kill_of_child"], "log": "Killed\n",
    "streams": {"stderr": "oops\n"}, "labels": {"slurm.cancelled_by": "0"}, "oom_kills": 2,
    "snapshot": {"memory_peak_bytes": 99, "memory_limit_bytes": 100},
    "steps": [{"id": "batch", "exit_code": 0, "signal": 9, "state": "OUT_OF_MEMORY"}],
    "events": [{"source": "kernel", "node": "n1", "text": "oom-kill"}]})");
  EXPECT_EQ(read.id, "a-1");
  EXPECT_EQ(read.true_class, "host_out_of_memory");
  EXPECT_EQ(read.accept, std::vector<std::string>{"oom_kill_of_child"});
  const Case& what = read.what;
  EXPECT_EQ(what.execution.source_type, evidence::SourceType::kSlurm);
  EXPECT_EQ(what.execution.status, evidence::ExecutionStatus::kFailed);
  EXPECT_EQ(what.execution.exit_code, 0);
  EXPECT_EQ(what.execution.signal, 9);
  EXPECT_EQ(what.execution.used.oom_kills, 2U);
  EXPECT_EQ(what.execution.labels.at("slurm.cancelled_by"), "0");
  ASSERT_EQ(what.logs.size(), 2U);
  EXPECT_EQ(what.logs[0].stream, "combined");
  EXPECT_EQ(what.logs[1].data, "oops\n");
  EXPECT_EQ(what.snapshot.host_ram_requested_bytes, 100.0);
  ASSERT_EQ(what.execution.steps.size(), 1U);
  EXPECT_EQ(what.execution.steps[0].signal, 9);
  ASSERT_EQ(what.events.size(), 1U);
  EXPECT_EQ(what.events[0].node, "n1");
}

TEST(ParseCases, ReadsListsAndCasesWithoutAClass) {
  const auto read = ParseCases(R"([{"id": "a"}, {"id": "b", "state": "COMPLETED"}])", "a.json");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].true_class, "");
  EXPECT_EQ((*read)[1].what.execution.status, evidence::ExecutionStatus::kSucceeded);
}

TEST(ParseCases, ALogMayBeLines) {
  const auto read = ParseCases(R"({"id": "a", "log": ["one", "two"]})", "a.json");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->at(0).what.logs.size(), 1U);
  EXPECT_EQ(read->at(0).what.logs[0].data, "one\ntwo\n");
}

TEST(ParseCases, SaysWhatIsNoCase) {
  EXPECT_THAT(ErrorOf("{"), HasSubstr("case.syntax a.json: this is not JSON"));
  EXPECT_THAT(ErrorOf("7"), HasSubstr("a.json: a case is a mapping"));
  EXPECT_THAT(ErrorOf("[{}, 7]"), HasSubstr("a.json: a case is a mapping"));
  EXPECT_THAT(ErrorOf(R"({"streams": {"stderr": 7}})"), HasSubstr("'streams' is not a mapping"));
  EXPECT_THAT(ErrorOf(R"({"labels": []})"), HasSubstr("'labels' is not a mapping"));
  EXPECT_THAT(ErrorOf(R"({"steps": [7]})"), HasSubstr("'steps' is not a list"));
  EXPECT_THAT(ErrorOf(R"({"events": "x"})"), HasSubstr("'events' is not a list"));
  EXPECT_THAT(ErrorOf(R"({"snapshot": 7})"), HasSubstr("'snapshot' is not a mapping"));
}

TEST(ParseCases, NumbersThatDoNotFitAreUnknown) {
  const LabelledCase read = One(R"({"exit_code": -2147483648, "oom_kills": -1, "signal": "SIGTERM",
    "restart_count": 1e300, "steps": [{"exit_code": 99999999999}]})");
  EXPECT_FALSE(read.what.execution.exit_code);
  EXPECT_EQ(read.what.execution.signal, 15);
  EXPECT_EQ(read.what.execution.used.oom_kills, 0U);
  EXPECT_EQ(read.what.execution.restart_count, 0U);
  EXPECT_FALSE(read.what.execution.steps.at(0).exit_code);
}

TEST(ReadCases, WantsAClassOfEach) {
  const auto folder = base::TempDir::Create("cases");
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/a.json";
  ASSERT_TRUE(base::WriteFileAtomically(path, R"([{"id": "a", "true_class": "none"}])", 0644));
  auto read = ReadCases(folder->path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), 1U);
  ASSERT_TRUE(base::WriteFileAtomically(path, R"([{"id": "a"}])", 0644));
  read = ReadCases(folder->path());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("a.json: a case needs true_class"));
  EXPECT_FALSE(ReadCases(folder->path() + "/none"));
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
