#include "schedulers/slurm/files/assignment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/crypto.h"

namespace expanse::schedulers::slurm {
namespace {

Assignment Full() {
  return {.job_id = 41982,
          .uid = 1001,
          .logs = true,
          .sources = true,
          .ended = false,
          .stdout_path = "/home/ada/o ut=%j\n\xff",
          .stderr_path = "/home/ada/err",
          .working_directory = "/home/ada",
          .command = "/home/ada/job.sh 12 'x'",
          .script_sha256 = base::Sha256Hex("#!/bin/sh\n"),
          .started = base::WallTime(std::chrono::seconds(1'800'000'000))};
}

std::string Sealed(const std::string& body, int count) {
  return body + fmt::format("end {} {:08x}\n", count, base::Crc32c(body));
}

std::string ReasonOf(std::string_view bytes) {
  const auto parsed = ParseAssignments(bytes, "cn07");
  return parsed ? "taken" : parsed.error().reason;
}

TEST(Assignment, ComesBackAsItWas) {
  const Assignment bare{.job_id = 7, .uid = 2, .logs = false, .sources = false, .ended = true};
  const std::vector<Assignment> all = {Full(), bare};
  const auto parsed = ParseAssignments(EncodeAssignments("cn07", all), "cn07");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, all);
  EXPECT_TRUE(ParseAssignments(EncodeAssignments("a b", {}), "a b")->empty());
}

TEST(Assignment, LooksAsDocumented) {
  const std::string text = EncodeAssignments(
      "cn07", {{.job_id = 5, .uid = 9, .stdout_path = "/a b", .started = base::WallTime{}}});
  EXPECT_TRUE(
      text.starts_with("expanse-assign 1\nhost cn07\n"
                       "job 5 uid=9 flags=logs,sources started=0 stdout=/a%20b\nend 1 "))
      << text;
}

TEST(Assignment, RefusesWhatIsTorn) {
  const std::string whole = EncodeAssignments("cn07", {Full()});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(ReasonOf(whole.substr(0, size)), "assign.torn") << size;
  for (std::size_t at = 17; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] ^= 1;
    EXPECT_NE(ReasonOf(flipped), "taken") << at;
  }
}

TEST(Assignment, RefusesWhatIsNotForIt) {
  EXPECT_EQ(ReasonOf(EncodeAssignments("cn08", {Full()})), "assign.host");
  EXPECT_EQ(ReasonOf("expanse-assign 2\n"), "assign.version");
  const std::string head = "expanse-assign 1\nhost cn07\n";
  for (const char* line :
       {"job 0 uid=1", "job 1 uid=0", "job 1", "job 1 uid", "job x uid=1", "jab 1 uid=1", "",
        "job 1 uid=-1", "job 1 uid=1 started=x", "job 1 uid=1 started=99999999999999",
        "job 1 uid=1 stdout=%0", "job 1 uid=1 stdout=%00", "job 1 uid=1 stdout=%zz",
        "job 4294967296 uid=1"}) {
    EXPECT_EQ(ReasonOf(Sealed(head + line + "\n", 1)), "assign.malformed") << line;
  }
  EXPECT_EQ(ReasonOf(Sealed(head + "job 1 uid=1 later=%zz\n", 1)), "taken");
  EXPECT_EQ(ReasonOf(Sealed(head + "job 1 uid=1\n", 2)), "assign.torn");
}

TEST(Assignment, IsBounded) {
  const std::vector<Assignment> many(kMaxAssignments + 5, {.job_id = 1, .uid = 1});
  EXPECT_EQ(ParseAssignments(EncodeAssignments("h", many), "h")->size(), kMaxAssignments);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
