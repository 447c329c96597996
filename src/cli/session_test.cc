#include "cli/session.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"

namespace expanse::cli {
namespace {

Session Sample() {
  return {.control_plane_url = "https://control.test",
          .data_plane_url = "https://data.test",
          .intelligence_plane_url = "",
          .console_url = "https://console.test",
          .refresh_token = "refresh",
          .refresh_expires_at = base::FromMicros(1'800'000'000'000'000),
          .access_token = "access",
          .access_expires_at = base::FromMicros(1'800'000'000'250'000),
          .user_name = "Ada \"the first\"",
          .organisation_id = "org",
          .organisation_name = "Lab",
          .submit_users = {"ada", "svc-ada"}};
}

class SessionStoreTest : public testing::Test {
 protected:
  base::TempDir directory_ = std::move(*base::TempDir::Create());
  SessionStore store_{directory_.path() + "/deep/.expanse/session.json"};
};

TEST_F(SessionStoreTest, KeepsASessionForItsOwnerOnly) {
  EXPECT_FALSE(store_.Load()->has_value());
  ASSERT_TRUE(store_.Save(Sample()));
  struct stat info{};
  ASSERT_EQ(stat(store_.path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  ASSERT_EQ(stat((directory_.path() + "/deep/.expanse").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  EXPECT_EQ(**store_.Load(), Sample());
  ASSERT_TRUE(store_.Remove());
  EXPECT_FALSE(store_.Load()->has_value());
}

TEST_F(SessionStoreTest, RefusesAFileThatOthersCanRead) {
  ASSERT_TRUE(store_.Save(Sample()));
  ASSERT_EQ(chmod(store_.path().c_str(), 0644), 0);
  const auto loaded = store_.Load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().reason, "session.permissions");
}

TEST_F(SessionStoreTest, SaysThatADamagedFileIsDamaged) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"control_plane_url": 1, "refresh_token": "x"})"}) {
    ASSERT_TRUE(base::MakeDirectories(directory_.path() + "/deep/.expanse", 0700));
    ASSERT_TRUE(base::WriteFileAtomically(store_.path(), text, 0600));
    const auto loaded = store_.Load();
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().reason, "session.malformed");
  }
}

TEST_F(SessionStoreTest, KeepsANameThatIsNotUtf8) {
  Session session = Sample();
  session.user_name = "bad \xff name";
  ASSERT_TRUE(store_.Save(session));
  EXPECT_EQ((*store_.Load())->refresh_token, "refresh");
}

TEST_F(SessionStoreTest, LockIsHeldByOneAndHasADeadline) {
  base::SystemClock clock;
  auto first = store_.Lock(clock, std::chrono::milliseconds(100));
  ASSERT_TRUE(first);
  const auto second = store_.Lock(clock, std::chrono::milliseconds(30));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "session.locked");
  {
    const SessionLock released = std::move(*first);
  }
  EXPECT_TRUE(store_.Lock(clock, std::chrono::milliseconds(100)));
}

}  // namespace
}  // namespace expanse::cli
