// What needs a second user runs as root only (with CAP_SETUID and CAP_SETGID) and says so
// otherwise.
#include "collect/files/user_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>

#include "base/text.h"

namespace expanse::collect {
namespace {

constexpr uid_t kAda = 61'001;  // nobody's ids
constexpr gid_t kAdas = 61'101;
constexpr uid_t kEve = 61'002;
constexpr gid_t kTeam = 61'200;

const UserIdentity kAdaIdentity{.uid = kAda, .gid = kAdas, .groups = {kAdas, kTeam}};

bool MaySwitch() { return ::geteuid() == 0 && UserRights::Assume(kAdaIdentity).has_value(); }

// In a process of its own, because what it does to its rights cannot be undone. True: `body` was.
bool InChild(const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string ReadAs(const UserIdentity& user, const std::string& path) {
  auto rights = UserRights::Assume(user);
  if (!rights) return rights.error().reason;
  auto file = OpenAs(user, path);
  if (!file) return file.error().reason;
  return base::ReadFd(file->get(), 1024).value_or("unreadable");
}

class UserFilesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0); }
  std::string Path(std::string_view name) const { return base::JoinPath(dir_.path(), name); }
  std::string Write(std::string_view name, std::string_view data, mode_t mode) {
    const std::string path = Path(name);
    EXPECT_TRUE(base::WriteFileAtomically(path, data, mode));
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string Owned(std::string_view name, std::string_view data, mode_t mode, uid_t uid,
                    gid_t gid) {
    const std::string path = Write(name, data, mode);
    EXPECT_EQ(::chown(path.c_str(), uid, gid), 0);
    return path;
  }
  std::string Open(const std::string& path, bool follow_links = true) const {
    auto file = OpenRegularFile(path, follow_links);
    if (!file) return file.error().reason;
    return base::ReadFd(file->get(), 1024).value_or("unreadable");
  }
  base::TempDir dir_ = base::TempDir::Create("userfiles").value();
};

TEST_F(UserFilesTest, OpensAlongDotsAndLinks) {
  ASSERT_EQ(::mkdir(Path("a").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(Path("a/b").c_str(), 0755), 0);
  Write("a/b/out", "text", 0644);
  ASSERT_EQ(::symlink("a/b/../b", Path("rel").c_str()), 0);
  ASSERT_EQ(::symlink(Path("rel/out").c_str(), Path("abs").c_str()), 0);
  EXPECT_EQ(Open(Path("a/b/out")), "text");
  EXPECT_EQ(Open(Path("a//b/./../b//out")), "text");
  EXPECT_EQ(Open(Path("rel/out")), "text");
  EXPECT_EQ(Open(Path("abs")), "text");
  EXPECT_EQ(Open(Path("abs"), /*follow_links=*/false), "files.link");
  EXPECT_EQ(Open(Path("rel/out"), /*follow_links=*/false), "files.link");
  EXPECT_EQ(Open(Path("a/b/out"), /*follow_links=*/false), "text");
}

TEST_F(UserFilesTest, SaysWhatIsNoFile) {
  Write("file", "x", 0644);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0666), 0);
  ASSERT_EQ(::symlink("loop", Path("loop").c_str()), 0);
  ASSERT_EQ(::symlink("nothing", Path("dangling").c_str()), 0);
  EXPECT_EQ(Open(Path("absent")), "files.not_found");
  EXPECT_EQ(Open(Path("dangling")), "files.not_found");
  EXPECT_EQ(Open(Path("file/x")), "files.not_found");
  EXPECT_EQ(Open(Path("file/")), "files.not_found");
  EXPECT_EQ(Open(Path("loop")), "files.link");
  EXPECT_EQ(Open(Path("pipe")), "files.not_regular");
  EXPECT_EQ(Open(dir_.path()), "files.not_regular");
  EXPECT_EQ(Open("/"), "files.not_regular");
  EXPECT_EQ(Open("/dev/null"), "files.not_regular");
  EXPECT_EQ(Open("relative"), "files.not_found");
  EXPECT_EQ(Open(""), "files.not_found");
  EXPECT_EQ(Open(Path(std::string("file\0x", 6))), "files.not_found");
  EXPECT_EQ(Open("/" + std::string(5000, 'x')), "files.not_found");
}

TEST_F(UserFilesTest, LeavesTheWriterOfAPipeWaiting) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0666), 0);
  EXPECT_EQ(Open(Path("pipe")), "files.not_regular");
  // Had it been opened for reading, this would not fail.
  base::UniqueFd writer(::open(Path("pipe").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_FALSE(writer.valid());
  EXPECT_EQ(errno, ENXIO);
}

TEST_F(UserFilesTest, NeverGoesThroughTheKernelsLinksIntoOurProcess) {
  const std::string path = Write("held", "ours", 0644);
  base::UniqueFd held(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string magic = "/proc/self/fd/" + std::to_string(held.get());
  ASSERT_TRUE(base::ReadFile(magic));  // the link works
  ASSERT_EQ(::symlink(magic.c_str(), Path("trick").c_str()), 0);
  const std::string pid = std::to_string(::getpid());
  ASSERT_EQ(::symlink(("/proc/" + pid + "/cwd/x").c_str(), Path("cwd").c_str()), 0);
  EXPECT_EQ(Open(magic), "files.link");
  EXPECT_EQ(Open(Path("trick")), "files.link");
  EXPECT_EQ(Open(Path("cwd")), "files.link");
  EXPECT_EQ(Open("/proc/" + pid + "/root" + path), "files.link");
  EXPECT_EQ(Open("/proc/" + pid + "/maps"), "files.not_regular");
  EXPECT_EQ(Open("/proc/" + pid + "/environ"), "files.not_regular");
  EXPECT_EQ(Open("/proc/version"), "files.not_regular");
}

TEST_F(UserFilesTest, SurvivesAFileThatIsExchangedAllTheTime) {
  const std::string path = Write("swap", "good", 0644);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0644), 0);
  std::jthread attacker([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      ::link(Path("pipe").c_str(), Path("next").c_str());
      ::rename(Path("next").c_str(), path.c_str());
      ::symlink("/dev/zero", Path("next").c_str());
      ::rename(Path("next").c_str(), path.c_str());
      base::UniqueFd file(::open(Path("next").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
      (void)base::WriteFd(file.get(), "good");
      ::rename(Path("next").c_str(), path.c_str());
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    auto file = OpenRegularFile(path);
    if (!file) continue;
    struct stat info{};
    ASSERT_EQ(::fstat(file->get(), &info), 0);
    ASSERT_TRUE(S_ISREG(info.st_mode));
  }
}

TEST_F(UserFilesTest, RefusesLinksThatOthersPlantedInASharedDirectory) {
  if (!MaySwitch()) GTEST_SKIP() << "needs root with CAP_SETUID and CAP_SETGID";
  ASSERT_EQ(::mkdir(Path("tmp").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(Path("tmp").c_str(), 01777), 0);
  Owned("secret", "ada's", 0600, kAda, kAdas);
  for (const auto& [name, owner] : {std::pair{"tmp/hers", kAda}, std::pair{"tmp/planted", kEve}}) {
    ASSERT_EQ(::symlink(Path("secret").c_str(), Path(name).c_str()), 0);
    ASSERT_EQ(::lchown(Path(name).c_str(), owner, owner), 0);
  }
  EXPECT_EQ(ReadAs(kAdaIdentity, Path("tmp/hers")), "ada's");
  EXPECT_EQ(ReadAs(kAdaIdentity, Path("tmp/planted")), "files.link");
}

TEST_F(UserFilesTest, ReadsWhatTheUserMayReadAndNothingElse) {
  if (!MaySwitch()) GTEST_SKIP() << "needs root with CAP_SETUID and CAP_SETGID";
  const std::string hers = Owned("hers", "hers", 0600, kAda, kAdas);
  const std::string team = Owned("team", "team", 0640, kEve, kTeam);
  const std::string roots = Write("roots", "root's", 0600);
  const std::string rootgroup = Write("rootgroup", "root's", 0640);
  const std::string eves = Owned("eves", "eve's", 0600, kEve, kEve);
  ASSERT_EQ(::mkdir(Path("closed").c_str(), 0700), 0);
  Write("closed/open", "x", 0644);
  ASSERT_EQ(::symlink("roots", Path("link").c_str()), 0);
  ASSERT_EQ(::lchown(Path("link").c_str(), kAda, kAdas), 0);
  EXPECT_EQ(ReadAs(kAdaIdentity, hers), "hers");
  EXPECT_EQ(ReadAs(kAdaIdentity, team), "team");
  for (const std::string& path :
       {roots, rootgroup, eves, Path("closed/open"), Path("link"), std::string("/etc/shadow")}) {
    EXPECT_EQ(ReadAs(kAdaIdentity, path), "files.no_permission") << path;
  }
  // A primary group alone gives no supplementary one, nor does ours remain.
  EXPECT_EQ(ReadAs({.uid = kAda, .gid = kAdas, .groups = {}}, team), "files.no_permission");
}

TEST_F(UserFilesTest, RootsOwnFilesAreNotFoundThroughLinksOfOthers) {
  if (!MaySwitch()) GTEST_SKIP() << "needs root with CAP_SETUID and CAP_SETGID";
  ASSERT_EQ(::symlink("/etc/shadow", Path("job.out").c_str()), 0);
  const std::string plain = Write("plain", "root's", 0600);
  const UserIdentity root{.uid = 0, .gid = 0, .groups = {0}};
  EXPECT_EQ(ReadAs(root, Path("job.out")), "files.link");
  EXPECT_EQ(ReadAs(root, plain), "root's");
  // Without its capabilities not even root reads what the modes deny it.
  EXPECT_EQ(ReadAs(root, Owned("eves", "eve's", 0600, kEve, kEve)), "files.no_permission");
}

TEST_F(UserFilesTest, GivesTheThreadBackAsItWasAndLeavesOthersAlone) {
  if (!MaySwitch()) GTEST_SKIP() << "needs root with CAP_SETUID and CAP_SETGID";
  const std::string roots = Write("roots", "root's", 0600);
  const auto status = [] {
    const std::string text = base::ReadFile("/proc/thread-self/status").value_or("");
    std::string kept;
    for (std::string_view line : base::Split(text, '\n'))
      for (std::string_view key : {"Uid:", "Gid:", "Groups:", "CapEff:", "CapPrm:", "CapInh:"})
        if (line.starts_with(key)) kept += std::string(line) + "\n";
    return kept;
  };
  const std::string before = status();
  {
    auto rights = UserRights::Assume(kAdaIdentity);
    ASSERT_TRUE(rights);
    EXPECT_EQ(Open(roots), "files.no_permission");
    EXPECT_NE(status(), before);
    auto moved = *std::move(rights);
    EXPECT_EQ(Open(roots), "files.no_permission");
  }
  EXPECT_EQ(status(), before);
  EXPECT_EQ(Open(roots), "root's");
}

TEST_F(UserFilesTest, SwitchesOneThreadOnly) {
  if (!MaySwitch()) GTEST_SKIP() << "needs root with CAP_SETUID and CAP_SETGID";
  const std::string roots = Write("roots", "root's", 0600);
  std::string during;
  std::atomic<int> step = 0;
  std::thread other([&] {
    step.wait(0);
    during = Open(roots);
    step = 2;
    step.notify_all();
  });
  {
    auto rights = UserRights::Assume(kAdaIdentity);
    EXPECT_TRUE(rights);
    step = 1;
    step.notify_all();
    step.wait(1);
  }
  other.join();
  EXPECT_EQ(during, "root's");
}

void DropTo(uid_t uid, std::uint64_t capabilities) {
  ::prctl(PR_SET_KEEPCAPS, 1);
  (void)::syscall(SYS_setgroups, 0, nullptr);
  (void)::syscall(SYS_setresgid, uid, uid, uid);
  (void)::syscall(SYS_setresuid, uid, uid, uid);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  data[0].effective = data[0].permitted = static_cast<std::uint32_t>(capabilities);
  (void)::syscall(SYS_capset, &header, data.data());
}
constexpr std::uint64_t Bit(int capability) { return std::uint64_t{1} << capability; }

TEST_F(UserFilesTest, AServiceUserWithTheCapabilitiesReadsNothingMoreThanTheUser) {
  if (!MaySwitch()) GTEST_SKIP() << "needs root with CAP_SETUID and CAP_SETGID";
  const std::string hers = Owned("hers", "hers", 0600, kAda, kAdas);
  const std::string roots = Write("roots", "root's", 0600);
  EXPECT_TRUE(InChild([&] {
    // CAP_DAC_READ_SEARCH would read all, and setfsuid does not take it from a service user.
    DropTo(kEve, Bit(CAP_SETUID) | Bit(CAP_SETGID) | Bit(CAP_DAC_READ_SEARCH));
    return Open(roots) == "root's" && ReadAs(kAdaIdentity, hers) == "hers" &&
           ReadAs(kAdaIdentity, roots) == "files.no_permission" && Open(roots) == "root's";
  }));
}

TEST_F(UserFilesTest, WithoutTheCapabilitiesItRefusesInsteadOfReadingAsItself) {
  if (!MaySwitch()) GTEST_SKIP() << "needs root with CAP_SETUID and CAP_SETGID";
  const std::string open = Owned("open", "open", 0644, kAda, kAdas);
  const std::string eves = Owned("eves", "eve's", 0600, kEve, kEve);
  const std::string roots = Write("roots", "root's", 0600);
  const UserIdentity eve{.uid = kEve, .gid = kEve, .groups = {kEve}};
  for (const std::uint64_t caps :
       {std::uint64_t{0}, Bit(CAP_DAC_READ_SEARCH), Bit(CAP_SETUID), Bit(CAP_SETGID)}) {
    EXPECT_TRUE(InChild([&] {
      DropTo(kEve, caps);
      return ReadAs(kAdaIdentity, open) == "user.no_permission" && ReadAs(eve, eves) == "eve's" &&
             ReadAs(eve, roots) == "files.no_permission";
    })) << caps;
  }
  // As root in a unit whose bounding set leaves out the two.
  EXPECT_TRUE(InChild([&] {
    DropTo(0, Bit(CAP_DAC_READ_SEARCH));
    return ReadAs(kAdaIdentity, open) == "user.no_permission";
  }));
}

TEST(UserRights, RefusesIdsThatMeanNoChange) {
  EXPECT_FALSE(UserRights::Assume({.uid = static_cast<uid_t>(-1), .gid = 1, .groups = {}}));
  EXPECT_FALSE(UserRights::Assume({.uid = 1, .gid = static_cast<gid_t>(-1), .groups = {}}));
}

TEST(LookUpUser, KnowsRootAndNotEverybody) {
  const auto root = LookUpUser(0);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->gid, 0U);
  EXPECT_FALSE(root->groups.empty());
  EXPECT_EQ(LookUpUser(3'999'999'999U).error().reason, "user.unknown");
}

}  // namespace
}  // namespace expanse::collect
