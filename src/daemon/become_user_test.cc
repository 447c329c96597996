#include "daemon/become_user.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "collect/files/user_files.h"
#include "daemon/privileges.h"

namespace expanse::daemon {
namespace {

TEST(BecomeUser, KnowsOnlyUsersThatThereAre) {
  const auto became = BecomeUser("no-such-user-here", false);
  ASSERT_FALSE(became);
  EXPECT_EQ(became.error().reason, "user.unknown");
}

TEST(BecomeUser, KeepsOfRootsRightsOnlyToLook) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const pid_t child = ::fork();
  if (child == 0) {
    const auto mask_before =
        ParseEffectiveCapabilities(base::ReadFile("/proc/self/status", 65536).value_or(""));
    if (!BecomeUser("nobody", false)) ::_exit(1);
    if (::getuid() == 0 || ::geteuid() == 0 || ::getegid() == 0) ::_exit(2);
    if (::setuid(0) == 0) ::_exit(3);
    const auto mask =
        ParseEffectiveCapabilities(base::ReadFile("/proc/self/status", 65536).value_or(""));
    constexpr std::uint64_t kLook = (1U << 2) | (1U << 19);
    if (!mask || !mask_before || *mask != (*mask_before & kLook)) ::_exit(4);
    if (!BecomeUser("nobody", false)) ::_exit(5);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(BecomeUser, KeepsWhatReadingAsAJobsUserTakes) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  if (!collect::UserRights::Assume({.uid = 61'001, .gid = 61'001, .groups = {}}))
    GTEST_SKIP() << "needs CAP_SETUID and CAP_SETGID";
  const pid_t child = ::fork();
  if (child == 0) {
    if (!BecomeUser("nobody", true)) ::_exit(1);
    ::_exit(collect::UserRights::Assume({.uid = 61'001, .gid = 61'001, .groups = {}}) ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace expanse::daemon
