#include "collect/cgroup/reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/files.h"

namespace expanse::collect {
namespace {

const std::string kV2 = EXPANSE_SOURCE_DIR "/testdata/v2";
const std::string kV1 = EXPANSE_SOURCE_DIR "/testdata/v1";

TEST(CgroupHierarchy, TellsTheVersionsApart) {
  EXPECT_EQ(DetectHierarchy(kV2)->version, CgroupVersion::kV2);
  const auto hybrid = DetectHierarchy(kV1);
  EXPECT_EQ(hybrid->version, CgroupVersion::kV1);
  EXPECT_EQ(hybrid->v1_mounts.at("cpuacct"), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(hybrid->v2_mount, "/sys/fs/cgroup/unified");
  EXPECT_EQ(ParseCgroupMounts("proc /proc proc rw 0 0\n").version, CgroupVersion::kNone);
  EXPECT_EQ(DetectHierarchy("/nonexistent").error().code, base::Code::kNotFound);
}

TEST(CgroupHierarchy, UnescapesMountPoints) {
  EXPECT_EQ(ParseCgroupMounts("none /a\\040b\\134 cgroup2 rw 0 0\n").v2_mount, "/a b\\");
}

TEST(CgroupHierarchy, ParsesMembershipsWithColonsAndDeletedOnes) {
  const auto memberships = ParseProcCgroup(
      "4:cpu,cpuacct:/a:b/c\n1:name=systemd:/x\n0::/gone (deleted)\nnonsense\n:x:/y\n5:memory\n");
  ASSERT_EQ(memberships.size(), 3U);
  EXPECT_EQ(memberships[0].controllers, (std::vector<std::string>{"cpu", "cpuacct"}));
  EXPECT_EQ(memberships[0].path, "/a:b/c");
  EXPECT_EQ(memberships[1].controllers, std::vector<std::string>{"name=systemd"});
  EXPECT_TRUE(memberships[2].deleted);
  EXPECT_EQ(memberships[2].path, "/gone");
}

TEST(CgroupHierarchy, FindsTheDirectoriesOfAProcess) {
  EXPECT_EQ(*CgroupsOfPid(kV2, 4242),
            std::vector<std::string>{"/sys/fs/cgroup/site.slice/work-31.scope"});
  EXPECT_EQ(*CgroupsOfPid(kV1, 77),
            (std::vector<std::string>{
                "/sys/fs/cgroup/pids/batch/run:8", "/sys/fs/cgroup/blkio/batch/run:8",
                "/sys/fs/cgroup/memory/batch/run:8", "/sys/fs/cgroup/cpu,cpuacct/batch/run:8"}));
  EXPECT_EQ(CgroupsOfPid(kV2, 1).error().code, base::Code::kNotFound);
  CgroupHierarchy v2;
  v2.version = CgroupVersion::kV2;
  v2.v2_mount = "/sys/fs/cgroup";
  EXPECT_TRUE(CgroupDirectories(v2, ParseProcCgroup("0::/\n")).empty()) << "nobody's own";
}

TEST(CgroupReader, ReadsV2) {
  const auto usage = ReadCgroup(kV2, *CgroupsOfPid(kV2, 4242));
  ASSERT_TRUE(usage);
  EXPECT_DOUBLE_EQ(*usage->cpu_s, 7.5);
  EXPECT_DOUBLE_EQ(*usage->cpu_user_s, 6);
  EXPECT_DOUBLE_EQ(*usage->cpu_system_s, 1.5);
  EXPECT_DOUBLE_EQ(*usage->throttled_s, 0.25);
  EXPECT_EQ(usage->memory_current_bytes, 734003200U);
  EXPECT_EQ(usage->memory_peak_bytes, 900000000U);
  EXPECT_FALSE(usage->memory_limit_bytes) << "max is no limit";
  EXPECT_EQ(usage->memory_need_bytes, 314572800U + 104857600U + 20971520U);
  EXPECT_EQ(usage->memory_file_bytes, 314572800U) << "file without shmem";
  EXPECT_EQ(usage->oom_kills, 1U);
  EXPECT_EQ(usage->io_read_bytes, 1048576U + 512U) << "the device mapper's share is not added";
  EXPECT_EQ(usage->io_write_bytes, 4096U);
  EXPECT_EQ(usage->pids, 9U);
  EXPECT_DOUBLE_EQ(*usage->cpu_pressure_s, 2.5);
}

TEST(ParseV1CpuStat, LeavesNothingNegativeToTheSystem) {
  // 0.044717301 * 3 / 3 is more than 0.044717301; whoever stores the difference refuses it.
  for (int ticks = 0; ticks < 50; ++ticks) {
    CgroupUsage usage;
    usage.cpu_s = 0.044717301;
    ParseV1CpuStat("user " + std::to_string(ticks) + "\nsystem 0\n", usage);
    ASSERT_TRUE(usage.cpu_user_s && usage.cpu_system_s);
    EXPECT_GE(*usage.cpu_system_s, 0) << ticks;
    EXPECT_LE(*usage.cpu_user_s, *usage.cpu_s) << ticks;
  }
}

TEST(CgroupReader, ReadsV1WithItsSubtree) {
  const auto usage = ReadCgroup(kV1, *CgroupsOfPid(kV1, 77));
  ASSERT_TRUE(usage);
  EXPECT_DOUBLE_EQ(*usage->cpu_s, 40);
  EXPECT_DOUBLE_EQ(*usage->cpu_user_s, 30);
  EXPECT_DOUBLE_EQ(*usage->cpu_system_s, 10);
  EXPECT_DOUBLE_EQ(*usage->throttled_s, 1.5);
  EXPECT_EQ(usage->memory_current_bytes, 268435456U);
  EXPECT_EQ(usage->memory_peak_bytes, 300000000U);
  EXPECT_FALSE(usage->memory_limit_bytes) << "the v1 spelling of no limit";
  EXPECT_EQ(usage->memory_need_bytes, 134217728U + 33554432U + 5000000U);
  EXPECT_EQ(usage->memory_file_bytes, 67108864U - 33554432U);
  EXPECT_EQ(usage->oom_kills, 3U) << "one of its own and two of the step below";
  EXPECT_EQ(usage->io_read_bytes, 8192U);
  EXPECT_EQ(usage->io_write_bytes, 16384U);
  EXPECT_EQ(usage->pids, 3U);
}

TEST(CgroupReader, ReadsAgainAndNoticesWhenTheCgroupIsGone) {
  auto temp = base::TempDir::Create();
  ASSERT_TRUE(temp);
  const std::string directory = temp->path() + "/cg";
  ASSERT_TRUE(base::MakeDirectories(directory));
  const auto write = [&](const char* name, const char* text) {
    ASSERT_TRUE(base::WriteFileAtomically(directory + "/" + name, text, 0644));
  };
  write("cgroup.controllers", "memory\n");
  write("memory.current", "1000\n");
  write("memory.max", "2000\n");
  CgroupReader reader(temp->path(), {"/cg"}, nullptr);
  EXPECT_EQ(reader.Read()->memory_current_bytes, 1000U);
  EXPECT_EQ(reader.Read()->memory_limit_bytes, 2000U);
  write("memory.current", "1500\n");
  const auto usage = reader.Read();
  EXPECT_EQ(usage->memory_current_bytes, 1500U);
  EXPECT_FALSE(usage->cpu_s);
  EXPECT_FALSE(usage->memory_need_bytes);
  ASSERT_TRUE(base::RemoveTree(directory));
  EXPECT_EQ(reader.Read().error().reason, "cgroup.vanished");
  EXPECT_EQ(ReadCgroup(temp->path(), {"/cg"}).error().reason, "cgroup.vanished");
}

TEST(CgroupReader, ReadsOurOwnOnThisHost) {
  const auto hierarchy = DetectHierarchy("/");
  if (!hierarchy || hierarchy->version == CgroupVersion::kNone) GTEST_SKIP() << "no cgroups here";
  const auto paths = CgroupsOfPid("/", ::getpid());
  ASSERT_TRUE(paths);
  const auto usage = ReadCgroup("/", *paths);
  if (!usage) GTEST_SKIP() << "our cgroup is not visible here: " << usage.error().message;
  EXPECT_GT(usage->cpu_s.value_or(1), 0);
  EXPECT_GT(usage->memory_current_bytes.value_or(1), 0U);
}

TEST(CgroupParse, LeavesUnknownWhatIsMalformed) {
  CgroupUsage usage;
  ParseV2CpuStat("usage_usec\nuser_usec -5\nsystem_usec 99999999999999999999999\n", usage);
  ParseV2MemoryStat("anon x\nfile 5\n", usage);
  ParseV2MemoryEvents("oom_kill \n", usage);
  ParseV1CpuStat("user 5\n", usage);
  ParseV1MemoryStat("", usage);
  EXPECT_EQ(usage, CgroupUsage{});
  EXPECT_FALSE(ParsePressureTotal("full avg10=0.00 total=9\n"));
  EXPECT_FALSE(ParsePressureTotal("some avg10=0.00\n"));
  EXPECT_FALSE(ParseV1OomKills("under_oom 0\n"));
}

TEST(CgroupParse, AddsKernelMemoryUpWhereOldKernelsHaveNoSum) {
  CgroupUsage usage;
  ParseV2MemoryStat("anon 100\nfile 30\nkernel_stack 1\npagetables 2\npercpu 3\nshmem 40\nslab 4\n",
                    usage);
  EXPECT_EQ(usage.memory_kernel_bytes, 10U);
  EXPECT_EQ(usage.memory_need_bytes, 150U);
  EXPECT_EQ(usage.memory_file_bytes, 0U) << "never below zero";
}

TEST(CgroupParse, CountsAStackedDeviceThatStandsAlone) {
  CgroupUsage usage;
  ParseV2IoStat("253:2 rbytes=7 wbytes=9\nx:1 rbytes=1000\n8:0\n", 253, usage);
  EXPECT_EQ(usage.io_read_bytes, 7U);
  EXPECT_EQ(usage.io_write_bytes, 9U);
}

}  // namespace
}  // namespace expanse::collect
