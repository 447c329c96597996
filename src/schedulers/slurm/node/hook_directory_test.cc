#include "schedulers/slurm/node/hook_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

constexpr base::WallTime kNow{std::chrono::seconds(1'799'000'000)};

std::string Event(const std::string& kind, int job) {
  std::string bytes;
  for (const std::string& field : {std::string("expanse-hook 1"), kind,
                                   "SLURM_JOB_ID=" + std::to_string(job), std::string("end")}) {
    bytes += field + '\0';
  }
  return bytes;
}

class HookDirectoryTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0); }
  std::string Path(const std::string& name) const { return base::JoinPath(path_, name); }
  void Put(const std::string& name, const std::string& bytes, base::WallTime at = kNow) {
    base::UniqueFd file(::open(Path(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644));
    ASSERT_TRUE(file.valid());
    ASSERT_TRUE(base::WriteFd(file.get(), bytes));
    const auto since = at.time_since_epoch();
    const timespec time{.tv_sec = since / 1s, .tv_nsec = (since % 1s).count() * 1000};
    const timespec times[2] = {time, time};
    ASSERT_EQ(::futimens(file.get(), times), 0);
  }
  std::vector<std::string> Names(base::WallTime now = kNow, std::size_t limit = 256) {
    std::vector<std::string> names;
    auto entries = directory_.Look(now, limit);
    EXPECT_TRUE(entries) << entries.error().message;
    for (const auto& entry : *entries) names.push_back(entry.name);
    return names;
  }
  using List = std::vector<std::string>;

  base::TempDir temp_ = *base::TempDir::Create("hooks");
  const std::string path_ = base::JoinPath(temp_.path(), "hooks");
  const std::string quarantine_ = base::JoinPath(temp_.path(), "quarantine");
  HookDirectory directory_{path_, quarantine_};
};

TEST_F(HookDirectoryTest, GivesEventsInTheOrderInWhichTheyHappened) {
  Put("prolog.3.n", Event("prolog", 3), kNow - 2s);
  Put("epilog.2.n", Event("epilog", 2), kNow - 3s);
  Put("epilog.9.n", Event("epilog", 9), kNow - 1s);  // a job shorter than the kernel's tick
  Put("prolog.9.n", Event("prolog", 9), kNow - 1s);
  Put("sampler", "1234 0.1.0 sampler");
  EXPECT_EQ(Names(), (List{"epilog.2.n", "prolog.3.n", "prolog.9.n", "epilog.9.n"}));
  EXPECT_EQ(directory_.figures().last_at, kNow - 1s);
}

TEST_F(HookDirectoryTest, OffersEventsUntilTheyAreRemoved) {
  Put("prolog.1.n", Event("prolog", 1));
  const auto entries = directory_.Look(kNow);
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ((*entries)[0].event.job_id, 1U);
  EXPECT_EQ((*entries)[0].event.at, kNow);
  EXPECT_EQ(Names(), List{"prolog.1.n"});
  EXPECT_TRUE(directory_.Remove((*entries)[0]));
  EXPECT_EQ(Names(), List{});
  EXPECT_EQ(directory_.figures().taken, 1U);
}

TEST_F(HookDirectoryTest, TakesTheOldestFirstWhenThereAreMany) {
  for (int i = 0; i < 9; ++i) {
    Put("prolog." + std::to_string(i) + ".n", Event("prolog", i + 1), kNow - 1s * i);
  }
  EXPECT_EQ(Names(kNow, 2), (List{"prolog.8.n", "prolog.7.n"}));
  EXPECT_EQ(directory_.figures().waiting, 7U);
}

TEST_F(HookDirectoryTest, WaitsForTheRestOfAnEventButNotForEver) {
  const std::string whole = Event("prolog", 5);
  Put("prolog.5.n", whole.substr(0, 20));
  EXPECT_EQ(Names(kNow + 1s), List{});
  EXPECT_TRUE(base::Exists(Path("prolog.5.n")));
  Put("prolog.5.n", whole);
  EXPECT_EQ(Names(kNow + 1s), List{"prolog.5.n"});
  Put("prolog.5.n", whole.substr(0, 20));  // the file system was full
  EXPECT_EQ(Names(kNow + 11s), List{});
  EXPECT_FALSE(base::Exists(Path("prolog.5.n")));
  EXPECT_EQ(directory_.figures().quarantined, 1U);
  EXPECT_EQ(base::ListDirectory(quarantine_)->size(), 1U);
}

TEST_F(HookDirectoryTest, QuarantinesGarbageAndKeepsNoMoreThanPeopleWillRead) {
  for (int i = 0; i < 70; ++i) Put("prolog." + std::to_string(i) + ".n", std::string("junk\0", 5));
  Put("epilog.1.n", Event("prolog", 1));
  Put("prolog.300.n", std::string(kMaxHookEvent + 1, 'x'));
  Put("prolog.301.n", Event("prolog", 301));
  EXPECT_EQ(Names(), List{"prolog.301.n"});
  EXPECT_EQ(base::ListDirectory(path_)->size(), 1U);
  EXPECT_EQ(base::ListDirectory(quarantine_)->size(), 64U);
  EXPECT_EQ(directory_.figures().quarantined, 72U);
}

TEST_F(HookDirectoryTest, FollowsNothingAndHangsOnNothing) {
  const std::string secret = base::JoinPath(temp_.path(), "secret");
  ASSERT_TRUE(base::WriteFileAtomically(secret, Event("prolog", 6), 0600));
  ASSERT_EQ(::symlink(secret.c_str(), Path("prolog.6.n").c_str()), 0);
  ASSERT_EQ(::link(secret.c_str(), Path("prolog.7.n").c_str()), 0);
  ASSERT_EQ(::mkfifo(Path("prolog.8.n").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir(Path("prolog.9.n").c_str(), 0700), 0);
  EXPECT_EQ(Names(), List{});
  EXPECT_TRUE(base::Exists(secret));
  EXPECT_EQ(*base::ListDirectory(path_), List{"prolog.9.n"});
}

TEST_F(HookDirectoryTest, BelievesNoDirectoryThatOthersCanWriteTo) {
  ASSERT_EQ(::chmod(path_.c_str(), 0777), 0);
  const auto entries = directory_.Look(kNow);
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().reason, "hook.untrusted");
}

TEST_F(HookDirectoryTest, IsEmptyBeforeTheFirstHookMakesIt) {
  ASSERT_EQ(::rmdir(path_.c_str()), 0);
  EXPECT_EQ(Names(), List{});
  ASSERT_EQ(::symlink("/", path_.c_str()), 0);
  EXPECT_FALSE(directory_.Look(kNow));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
