#include "schedulers/slurm/job.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

base::WallTime At(std::int64_t seconds) { return base::WallTime(std::chrono::seconds(seconds)); }

TEST(SlurmJobKey, IsClusterIdAndSubmitTime) {
  const Job job{.cluster = "alder",
                .job_id = 41982,
                .submitted = At(1'790'000'000),
                .execution = {.source_type = evidence::SourceType::kSlurm}};
  const auto key = KeyOf(job);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->source_type, evidence::SourceType::kSlurm);
  EXPECT_EQ(key->identity, "alder/41982@1790000000");
}

TEST(SlurmJobKey, RecycledIdsAndRequeuedRunsDiffer) {
  EXPECT_NE(MakeKey("alder", 7, At(1'700'000'000)), MakeKey("alder", 7, At(1'790'000'000)));
  EXPECT_NE(MakeKey("alder", 7, At(1'700'000'000)), MakeKey("birch", 7, At(1'700'000'000)));
}

TEST(SlurmJobKey, IgnoresFractionsOfASecond) {
  EXPECT_EQ(MakeKey("alder", 7, At(1'700'000'000) + std::chrono::milliseconds(900)),
            MakeKey("alder", 7, At(1'700'000'000)));
}

TEST(SlurmJobKey, NeedsAllThreeParts) {
  const Job whole{.cluster = "alder", .job_id = 7, .submitted = At(1'700'000'000), .execution = {}};
  Job job = whole;
  job.submitted.reset();
  EXPECT_FALSE(KeyOf(job));
  job = whole;
  job.job_id = 0;
  EXPECT_FALSE(KeyOf(job));
  job = whole;
  job.cluster.clear();
  EXPECT_FALSE(KeyOf(job));
}

TEST(SlurmJobKey, IsReadBack) {
  const auto identity =
      ParseIdentity(MakeKey("odd/name@x", 4'294'967'295, At(1'800'000'000)).identity);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->cluster, "odd/name@x");
  EXPECT_EQ(identity->job_id, 4'294'967'295);
  EXPECT_EQ(identity->submitted, At(1'800'000'000));
}

TEST(SlurmJobKey, OthersAreRefused) {
  for (std::string_view text : {"", "alder/7", "alder/7@", "/7@1700000000", "alder/0@1700000000",
                                "alder/x@1700000000", "alder@7/1700000000", "alder/7@1700000000000",
                                "alder/4294967296@1700000000", "alder/-7@1700000000"}) {
    EXPECT_FALSE(ParseIdentity(text)) << text;
  }
}

TEST(SlurmJobTexts, LeaveWithoutSecrets) {
  const std::string secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567";
  evidence::Execution execution;
  execution.command = {"/home/mara/train.sh --epochs 3 --token " + secret};
  execution.comment = "expanse=nologs api_key=" + secret;
  execution.name = "train-" + secret;
  execution.stdout_path = "/home/mara/out-" + secret + ".log";
  execution.labels[std::string(kLabelAdminComment)] = "password=" + secret;
  execution.stderr_path = "/home/mara/err.log";
  RedactTexts(execution);
  for (const std::string* text :
       {&execution.command[0], &execution.comment, &execution.name, &execution.stdout_path,
        &execution.labels[std::string(kLabelAdminComment)]}) {
    EXPECT_EQ(text->find(secret), std::string::npos) << *text;
    EXPECT_NE(text->find("[redacted]"), std::string::npos) << *text;
  }
  EXPECT_TRUE(execution.command[0].starts_with("/home/mara/train.sh --epochs 3"));
  EXPECT_TRUE(execution.comment.starts_with("expanse=nologs"));
  EXPECT_EQ(execution.stderr_path, "/home/mara/err.log");
}

}  // namespace
}  // namespace expanse::schedulers::slurm
