#include "collect/process/tree.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/process/fake_process_testing.h"

namespace expanse::collect {
namespace {

class ProcessTreeTest : public testing::Test {
 protected:
  // Regular files stay readable while open, so nothing is kept open.
  ProcessTreeTest() : table_(tree_.root(), /*open_files=*/0) {
    WriteProcess(tree_, {.pid = 1, .parent = 0, .name = "init", .user = 999, .start = 1});
    WriteProcess(tree_, {.pid = 10, .name = "other", .user = 777, .start = 5});
  }
  ProcessUsage Update() {
    table_.NextRound(now_ += std::chrono::seconds(10));
    const auto usage = following_.Update(table_);
    EXPECT_TRUE(usage) << usage.error().message;
    return usage.value_or(ProcessUsage{});
  }
  void End(int pid) { tree_.Remove(fmt::format("proc/{}", pid)); }

  base::MonoTime now_{};
  FakeTree tree_;
  ProcessTable table_;
  ProcessTree following_{{{100, 100}}};
};

TEST_F(ProcessTreeTest, SumsTheTreeAndNothingElse) {
  WriteProcess(tree_, {.pid = 100, .user = 100, .system = 50, .anon_kb = 10});
  WriteProcess(tree_, {.pid = 101, .parent = 100, .user = 200, .start = 101, .anon_kb = 20});
  WriteProcess(
      tree_,
      {.pid = 90, .parent = 101, .user = 300, .start = 102, .anon_kb = 30});  // pids had wrapped
  const auto usage = Update();
  EXPECT_DOUBLE_EQ(usage.cpu_s, 6.5);
  EXPECT_DOUBLE_EQ(usage.cpu_system_s, 0.5);
  EXPECT_EQ(usage.processes, 3U);
  EXPECT_EQ(usage.threads, 6U);
  EXPECT_EQ(usage.memory_need_bytes, 60U * 1024);
}

TEST_F(ProcessTreeTest, TakesAWaitedForChildOverFromItsParent) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  WriteProcess(tree_, {.pid = 101, .parent = 100, .user = 200, .start = 101});
  EXPECT_DOUBLE_EQ(Update().cpu_s, 3);
  End(101);
  WriteProcess(tree_,
               {.pid = 100, .user = 110, .children = 250});  // it used 50 more before it ended
  EXPECT_DOUBLE_EQ(Update().cpu_s, 3.6);
}

TEST_F(ProcessTreeTest, KeepsTheTimeOfAChildThatNobodyWaitedFor) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  WriteProcess(tree_, {.pid = 101, .parent = 100, .user = 200, .start = 101});
  Update();
  End(101);
  WriteProcess(tree_, {.pid = 100, .user = 110});
  EXPECT_DOUBLE_EQ(Update().cpu_s, 3.1);
  EXPECT_DOUBLE_EQ(Update().cpu_s, 3.1) << "once only";
}

TEST_F(ProcessTreeTest, ASubtreeThatEndsBetweenTwoLooksIsCountedOnce) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  WriteProcess(tree_, {.pid = 101, .parent = 100, .user = 200, .start = 101});
  WriteProcess(tree_, {.pid = 102, .parent = 101, .user = 300, .start = 102});
  EXPECT_DOUBLE_EQ(Update().cpu_s, 6);
  End(101);
  End(102);
  WriteProcess(tree_, {.pid = 100, .user = 100, .children = 500});
  EXPECT_DOUBLE_EQ(Update().cpu_s, 6);
}

TEST_F(ProcessTreeTest, FollowsAnOrphanAndKeepsWhatItUsed) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  WriteProcess(tree_, {.pid = 101, .parent = 100, .user = 200, .start = 101});
  Update();
  WriteProcess(tree_, {.pid = 101, .parent = 1, .user = 300, .start = 101});
  EXPECT_DOUBLE_EQ(Update().cpu_s, 4);
  End(101);
  EXPECT_DOUBLE_EQ(Update().cpu_s, 4);
  EXPECT_EQ(following_.members().size(), 1U);
}

TEST_F(ProcessTreeTest, LivesOnWithoutItsRoot) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  WriteProcess(tree_, {.pid = 101, .parent = 100, .user = 200, .start = 101});
  Update();
  End(100);
  WriteProcess(tree_, {.pid = 101, .parent = 1, .user = 250, .start = 101});
  EXPECT_DOUBLE_EQ(Update().cpu_s, 3.5);
}

TEST_F(ProcessTreeTest, DoesNotTakeARecycledPidForTheWorkload) {
  WriteProcess(tree_, {.pid = 100, .user = 5000, .start = 777});
  table_.NextRound(now_ += std::chrono::seconds(10));
  const auto usage = following_.Update(table_);
  ASSERT_FALSE(usage);
  EXPECT_EQ(usage.error().reason, "process.gone");
}

TEST_F(ProcessTreeTest, APidRecycledBetweenTwoLooksIsNoMember) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  WriteProcess(tree_, {.pid = 101, .parent = 100, .user = 200, .start = 101});
  Update();
  WriteProcess(tree_, {.pid = 101, .parent = 1, .name = "stranger", .user = 90000, .start = 5000});
  EXPECT_DOUBLE_EQ(Update().cpu_s, 3) << "the old one's time stays, the new one's does not come in";
  EXPECT_EQ(following_.members().size(), 1U);
}

TEST_F(ProcessTreeTest, AChildIsNotOlderThanItsParent) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  WriteProcess(tree_, {.pid = 50, .parent = 100, .user = 900, .start = 20});
  EXPECT_EQ(Update().processes, 1U);
}

TEST_F(ProcessTreeTest, NeverGoesBackwards) {
  WriteProcess(tree_, {.pid = 100, .user = 100, .children = 100});
  EXPECT_DOUBLE_EQ(Update().cpu_s, 2);
  WriteProcess(tree_, {.pid = 100, .user = 100, .children = 40});  // as some kernels have done
  EXPECT_DOUBLE_EQ(Update().cpu_s, 2);
}

TEST_F(ProcessTreeTest, CountsSharedPagesInPartWhereItMayLook) {
  WriteProcess(tree_, {.pid = 100, .anon_kb = 1000, .shmem_kb = 500});
  WriteProcess(tree_, {.pid = 101, .parent = 100, .start = 101, .anon_kb = 1000, .shmem_kb = 500});
  auto usage = Update();
  EXPECT_FALSE(usage.memory_exact);
  EXPECT_EQ(usage.memory_need_bytes, 2500U * 1024) << "the shared segment once, at the least";
  for (int pid : {100, 101}) {
    tree_.Write(fmt::format("proc/{}/smaps_rollup", pid),
                "Pss: 900 kB\nPss_Anon: 500 kB\nPss_Shmem: 250 kB\n");
  }
  usage = Update();
  EXPECT_TRUE(usage.memory_exact);
  EXPECT_EQ(usage.memory_need_bytes, 1500U * 1024);
}

TEST_F(ProcessTreeTest, FindsANewChildAmongKnownStrangers) {
  WriteProcess(tree_, {.pid = 100, .user = 100});
  for (int i = 0; i < 4; ++i) Update();
  WriteProcess(tree_, {.pid = 103, .parent = 100, .user = 40, .start = 400});
  EXPECT_DOUBLE_EQ(Update().cpu_s, 1.4);
}

TEST(ReadProcessTree, SeesARealChild) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(fds[1]);
    (void)!::read(fds[0], &byte, 1);  // until the test ends
    ::_exit(0);
  }
  ::close(fds[0]);
  const auto usage = ReadProcessTree("/", {{::getpid(), 0}});
  ::close(fds[1]);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->processes, 2U);
  EXPECT_GT(usage->memory_need_bytes, 100'000U);
}

}  // namespace
}  // namespace expanse::collect
