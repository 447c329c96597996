#include "net/compute_identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"

namespace expanse::net {
namespace {

ComputeIdentity Sample() {
  return {.compute_id = "0191e7a0-0000-7000-8000-00000000c0de",
          .compute_name = "bench \"7\"",
          .organisation_id = "org-1",
          .type = "host",
          .credential = "exp_compute_secret",
          .control_plane_url = "https://control.test",
          .data_plane_url = "https://data.test"};
}

TEST(ComputeIdentity, IsReadBackAsWritten) {
  auto directory = base::TempDir::Create();
  ASSERT_TRUE(directory);
  const std::string path = DefaultComputeIdentityPath(directory->path());
  ASSERT_TRUE(WriteComputeIdentity(path, Sample()));
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  const auto read = ReadComputeIdentity(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, Sample());
}

TEST(ComputeIdentity, IsRefusedWhenOthersCanReadIt) {
  auto directory = base::TempDir::Create();
  ASSERT_TRUE(directory);
  const std::string path = directory->path() + "/config.json";
  ASSERT_TRUE(WriteComputeIdentity(path, Sample()));
  for (const mode_t mode : {0640U, 0604U, 0620U, 0644U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    const auto read = ReadComputeIdentity(path);
    ASSERT_FALSE(read) << mode;
    EXPECT_EQ(read.error().reason, "identity.permissions");
    EXPECT_EQ(read.error().message.find("exp_compute_"), std::string::npos);
  }
}

TEST(ComputeIdentity, SaysWhichKeyIsWrongButNotItsValue) {
  const auto missing =
      DecodeComputeIdentity(R"({"version": 1, "compute_id": "c", "type": "host"})");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason, "identity.malformed");
  EXPECT_NE(missing.error().message.find("credential"), std::string::npos);
  const auto wrong = DecodeComputeIdentity(R"({"version": 1, "compute_id": 17})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message.find("17"), std::string::npos);
  EXPECT_EQ(DecodeComputeIdentity(R"({"version": 2})").error().reason, "identity.version");
  for (const char* text : {"", "[]", "{", "null", "{}", R"({"version": "1"})"}) {
    EXPECT_EQ(DecodeComputeIdentity(text).error().reason, "identity.malformed") << text;
  }
}

TEST(ComputeIdentity, MissingFileIsNotFound) {
  const auto read = ReadComputeIdentity("/nonexistent/config.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, base::Code::kNotFound);
  EXPECT_EQ(read.error().reason, "identity.missing");
}

TEST(ComputeIdentity, IsLookedForWhereTheFlagTheEnvironmentOrTheHomeSays) {
  const auto home = base::TempDir::Create();
  ASSERT_TRUE(home.has_value());
  const std::string own = home->path() + "/.expanse/config.json";
  const std::map<std::string, std::string> environment = {{"HOME", home->path()}};
  EXPECT_EQ(ComputeIdentityPath("/x", environment, /*is_root=*/false), "/x");
  EXPECT_EQ(ComputeIdentityPath("", {{"EXPANSE_DAEMON_CONFIG", "/y"}}, /*is_root=*/true), "/y");
  EXPECT_EQ(ComputeIdentityPath("", environment, /*is_root=*/false), own);
  if (base::Exists("/etc/expanse/config.json"))
    GTEST_SKIP() << "this machine has a daemon of its own";
  EXPECT_EQ(ComputeIdentityPath("", environment, /*is_root=*/true), "/etc/expanse/config.json");
  ASSERT_TRUE(base::MakeDirectories(home->path() + "/.expanse").has_value());
  ASSERT_TRUE(base::WriteFileAtomically(own, "{}", 0600).has_value());
  EXPECT_EQ(ComputeIdentityPath("", environment, /*is_root=*/true), own);
}

}  // namespace
}  // namespace expanse::net
