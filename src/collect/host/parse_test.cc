#include "collect/host/parse.h"

#include <gtest/gtest.h>

namespace expanse::collect {
namespace {

TEST(HostParse, AddsTheKindsOfCpuTimeUp) {
  const auto times = ParseStat(
      "cpu  1000 200 300 4000 50 60 70 80 900 10\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nintr 5 cpu\nctxt "
      "9\n");
  ASSERT_TRUE(times);
  EXPECT_DOUBLE_EQ(times->user, 12) << "user and nice; guests are in user";
  EXPECT_DOUBLE_EQ(times->system, 4.3);
  EXPECT_DOUBLE_EQ(times->idle, 40);
  EXPECT_DOUBLE_EQ(times->iowait, 0.5);
  EXPECT_DOUBLE_EQ(times->steal, 0.8);
  EXPECT_EQ(times->cpus, 2U);
  EXPECT_TRUE(ParseStat("cpu 1 2 3 4\n")) << "kernels that know no more";
  EXPECT_FALSE(ParseStat("cpu 1 2 x 4\n"));
  EXPECT_FALSE(ParseStat("intr 1\n"));
  EXPECT_FALSE(ParseStat(""));
}

TEST(HostParse, ReadsMemory) {
  const MemoryInfo info = ParseMeminfo(
      "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable: 400 kB\nCached: 300 kB\nShmem: 120 kB\n"
      "SwapTotal: 0 kB\nSwapFree: 0 kB\nHugePages_Total: 0\nBroken\nMapped: x kB\n");
  EXPECT_EQ(info.total, 1024000U);
  EXPECT_EQ(info.available, 409600U);
  EXPECT_EQ(info.cached, 180U * 1024);
  EXPECT_EQ(info.swap_total, 0U);
  EXPECT_EQ(ParseMeminfo("MemFree: 5 kB\nCached: 3 kB\n").available, 8192U) << "old kernels";
  EXPECT_FALSE(ParseMeminfo("MemTotal: 99999999999999999 kB\n").total) << "would overflow";
}

TEST(HostParse, ReadsLoad) {
  const auto load = ParseLoadavg("0.50 12.25 3.00 4/567 8910\n");
  ASSERT_TRUE(load);
  EXPECT_DOUBLE_EQ(load->one, 0.5);
  EXPECT_DOUBLE_EQ(load->fifteen, 3);
  EXPECT_EQ(load->tasks, 567U);
  EXPECT_FALSE(ParseLoadavg("0.5 x 1\n"));
}

TEST(HostParse, CountsWholeDisksOnce) {
  const auto disks = ParseDiskstats(
      "   8       0 sda 10 0 100 5 20 0 200 6 0 77 11 0 0 0 0\n"
      "   8       1 sda1 9 0 99 5 20 0 200 6 0 70 11\n"
      " 259       0 nvme0n1 1 0 2 0 3 0 4 0 0 5 0\n"
      " 259       1 nvme0n1p1 1 0 2 0 3 0 4 0 0 5 0\n"
      " 202       1 xvda1 1 0 8 0 1 0 8 0 0 5 0\n"
      " 253       0 dm-0 9 0 99 5 20 0 200 6 0 70 11\n"
      "   9     127 md127 9 0 99 5 20 0 200 6 0 70 11\n"
      "   7       0 loop0 9 0 99 5 20 0 200 6 0 70 11\n"
      "   8      16 sdb 1 2\n");
  ASSERT_EQ(disks.size(), 3U);
  EXPECT_EQ(disks[0].name, "sda");
  EXPECT_EQ(disks[0].read_bytes, 51200U);
  EXPECT_EQ(disks[0].write_bytes, 102400U);
  EXPECT_EQ(disks[0].busy_ms, 77U);
  EXPECT_EQ(disks[1].name, "nvme0n1");
  EXPECT_EQ(disks[2].name, "xvda1") << "a disk that the hypervisor named like a partition";
}

TEST(HostParse, ReadsInterfacesWithoutBlankAfterTheColon) {
  const auto interfaces = ParseNetDev(
      "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed "
      "multicast|bytes\n"
      "  eth0:12345 1 2 3 0 0 0 0 678 1 4 5 0 0 0 0\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n "
      "bad0: 1 2\n");
  ASSERT_EQ(interfaces.size(), 2U);
  EXPECT_EQ(interfaces[0].name, "eth0");
  EXPECT_EQ(interfaces[0].receive_bytes, 12345U);
  EXPECT_EQ(interfaces[0].transmit_bytes, 678U);
  EXPECT_EQ(interfaces[0].errors, 14U);
}

TEST(HostParse, TellsPhysicalInterfaces) {
  for (const char* name : {"eth0", "enp3s0f1np1", "ib0", "hsn0", "bond0", "wlan0"}) {
    EXPECT_TRUE(IsPhysicalInterface(name)) << name;
  }
  for (const char* name :
       {"lo", "veth12ab", "docker0", "br-1f", "eth0.100", "cali1", "tun0", "vxlan.calico"}) {
    EXPECT_FALSE(IsPhysicalInterface(name)) << name;
  }
}

}  // namespace
}  // namespace expanse::collect
