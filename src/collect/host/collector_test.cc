#include "collect/host/collector.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collect/fake_tree_testing.h"
#include "collect/sink_testing.h"

namespace expanse::collect {
namespace {

using namespace std::chrono_literals;

void WriteHost(FakeTree& tree) {
  tree.Write("proc/stat", "cpu 1000 0 500 9000 10 0 0 0 0 0\ncpu0 1 1 1 1\ncpu1 1 1 1 1\n");
  tree.Write("proc/meminfo",
             "MemTotal: 8000 kB\nMemAvailable: 6000 kB\nSwapTotal: 100 kB\nSwapFree: 40 kB\n");
  tree.Write("proc/loadavg", "1.00 2.00 3.00 2/300 999\n");
  tree.Write("proc/diskstats", " 8 0 sda 10 0 100 5 20 0 200 6 0 4294967000 11\n");
  tree.Write("proc/net/dev", " eth0: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
  for (const char* what : {"cpu", "memory", "io"}) {
    tree.Write(std::string("proc/pressure/") + what,
               "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n");
  }
}

TEST(HostCollector, GivesRatesFromTheSecondTickOn) {
  FakeTree tree;
  WriteHost(tree);
  HostCollector collector({tree.root(), "n1"});
  RecordingSink sink;
  ASSERT_TRUE(collector.Start());
  collector.Collect(TickAt(0s), {}, sink);
  EXPECT_EQ(sink.Value("host-load1"), 1.0);
  EXPECT_EQ(sink.Value("host-memory-used"), 2000.0 * 1024);
  EXPECT_EQ(sink.Value("host-swap-used"), 60.0 * 1024);
  EXPECT_EQ(sink.Value("host-cpu-count"), 2.0);
  EXPECT_EQ(sink.Value("host-tasks"), 300.0);
  EXPECT_FALSE(sink.Value("host-cpu"));
  EXPECT_FALSE(sink.Value("host-net-receive"));

  tree.Write("proc/stat", "cpu 2500 0 1000 9000 10 0 0 0 0 0\ncpu0 1 1 1 1\n");
  tree.Write("proc/diskstats", " 8 0 sda 30 0 300 5 20 0 600 6 0 4704 11\n");
  tree.Write("proc/net/dev", " eth0: 3000 1 5 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
  tree.Write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=3500000\n");
  sink.Clear();
  collector.Collect(TickAt(10s), {}, sink);
  EXPECT_EQ(sink.Value("host-cpu"), 2.0);
  EXPECT_EQ(sink.Value("host-cpu-user"), 1.5);
  EXPECT_EQ(sink.Value("host-disk-read-ops"), 2.0);
  EXPECT_EQ(sink.Value("host-disk-read"), 200 * 512 / 10.0);
  EXPECT_EQ(sink.Value("host-disk-write"), 400 * 512 / 10.0);
  EXPECT_NEAR(*sink.Value("host-disk-busy"), 50, 0.01) << "the 32-bit counter wrapped";
  EXPECT_EQ(sink.Value("host-net-receive"), 200.0);
  EXPECT_EQ(sink.Value("host-net-transmit"), 0.0);
  EXPECT_EQ(sink.Value("host-net-errors"), 0.5);
  EXPECT_EQ(sink.Value("host-pressure-cpu"), 25.0);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kOk);
  EXPECT_EQ(sink.points()[0].series.node, "n1");
  EXPECT_EQ(sink.points()[0].series.source, "host");
}

TEST(HostCollector, LeavesAPointOutWhenACounterStartsAgain) {
  FakeTree tree;
  WriteHost(tree);
  HostCollector collector({tree.root(), "n1"});
  RecordingSink sink;
  collector.Start();
  collector.Collect(TickAt(0s), {}, sink);
  tree.Write("proc/net/dev",
             " eth0: 10 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n eth1: 1 1 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n");
  sink.Clear();
  collector.Collect(TickAt(10s), {}, sink);
  EXPECT_FALSE(sink.Value("host-net-receive")) << "the reset is no rate, a new interface neither";
  tree.Write("proc/net/dev",
             " eth0: 20 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n eth1: 91 1 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n");
  sink.Clear();
  collector.Collect(TickAt(20s), {}, sink);
  EXPECT_EQ(sink.Value("host-net-receive"), 10.0);
}

TEST(HostCollector, CountsMembersOfABondInsteadOfTheBond) {
  FakeTree tree;
  WriteHost(tree);
  tree.Write("proc/net/bonding/bond0", "");
  tree.Write("proc/net/dev",
             "bond0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\neth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  HostCollector collector({tree.root(), "n1"});
  RecordingSink sink;
  collector.Start();
  collector.Collect(TickAt(0s), {}, sink);
  tree.Write("proc/net/dev",
             "bond0: 50 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\neth0: 50 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  collector.Collect(TickAt(10s), {}, sink);
  EXPECT_EQ(sink.Value("host-net-receive"), 5.0);
}

TEST(HostCollector, CountsNoBridgeBesideTheDeviceInIt) {
  FakeTree tree;
  WriteHost(tree);
  tree.Write("sys/class/net/eth0/device/vendor", "0x8086\n");
  tree.Write("sys/class/net/br0/bridge/bridge_id", "8000.0\n");
  // A virtual function whose packets eth0 counts as well.
  tree.Write("sys/class/net/enP1/device/vendor", "0x15b3\n");
  tree.Write("sys/class/net/enP1/master/device/vendor", "0x8086\n");
  const auto counters = [&](int bytes) {
    std::string text;
    for (const char* name : {"br0", "enP1", "eth0"})
      text += fmt::format("{}: {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", name, bytes);
    tree.Write("proc/net/dev", text);
  };
  counters(0);
  HostCollector collector({tree.root(), "n1"});
  RecordingSink sink;
  collector.Start();
  collector.Collect(TickAt(0s), {}, sink);
  counters(50);
  collector.Collect(TickAt(10s), {}, sink);
  EXPECT_EQ(sink.Value("host-net-receive"), 5.0);
}

TEST(HostCollector, SaysWhatIsMissing) {
  FakeTree tree;
  WriteHost(tree);
  tree.Remove("proc/pressure");
  HostCollector collector({tree.root(), "n1"});
  RecordingSink sink;
  collector.Start();
  collector.Collect(TickAt(0s), {}, sink);
  const auto row = collector.health();
  EXPECT_EQ(row.status, evidence::HealthStatus::kDegraded);
  EXPECT_EQ(row.reason, "not_found");
  EXPECT_NE(row.message.find("pressure/io"), std::string::npos) << row.message;
  EXPECT_TRUE(sink.Value("host-load1"));
}

TEST(HostCollector, FailsWhereThereIsNoProc) {
  FakeTree tree;
  HostCollector collector({tree.root(), "n1"});
  RecordingSink sink;
  collector.Start();
  collector.Collect(TickAt(0s), {}, sink);
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kFailed);
  EXPECT_TRUE(sink.points().empty());
}

TEST(HostCollector, ReadsThisHost) {
  HostCollector collector({"/", "here"});
  RecordingSink sink;
  collector.Start();
  collector.Collect(TickAt(0s), {}, sink);
  EXPECT_GT(sink.Value("host-memory-total").value_or(0), 1e6);
  EXPECT_GT(sink.Value("host-cpu-count").value_or(0), 0);
}

}  // namespace
}  // namespace expanse::collect
