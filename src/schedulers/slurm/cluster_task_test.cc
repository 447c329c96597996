#include "schedulers/slurm/cluster_task.h"

#include <gtest/gtest.h>

#include "schedulers/slurm/fake_slurm_testing.h"

namespace expanse::schedulers::slurm {
namespace {

TEST(ClusterTask, KnowsTheHostsOfNodes) {
  const auto hosts = ParseNodeHosts(
      "NodeName=fir1 Arch=x86_64\n   NodeAddr=10.0.0.1 NodeHostName=box9 Version=22.05\n"
      "   Reason=see NodeHostName=evil [root@2026]\n\n"
      "NodeName=fir2 Arch=x86_64\n   NodeAddr=10.0.0.1 NodeHostName=box9 Version=22.05\n\n"
      "NodeName=fir3\n   State=FUTURE\n\n"
      // One of several slurmd of a host says its port; one that is down says no Arch.
      "NodeName=fir4 CoresPerSocket=1\n   NodeAddr=127.0.0.1 NodeHostName=box8 Port=24196\n\n"
      "NodeName=fir5 Arch=x86_64\n"
      "   NodeAddr=10.0.0.5 NodeHostName=box7 BcastAddr=10.1.0.5 Port=6818 Version=24.05.1\n\n");
  EXPECT_EQ(hosts, (std::map<std::string, std::string, std::less<>>{
                       {"fir1", "box9"}, {"fir2", "box9"}, {"fir4", "box8"}, {"fir5", "box7"}}));
}

TEST(ClusterTask, ReportsWhatScontrolTells) {
  base::FakeClock clock;
  FakeSlurm slurm(clock);
  Mailbox mailbox(1U << 20);
  RunConfigTask(*slurm.runner(), mailbox, {});
  EXPECT_EQ(std::get<ConfigDone>(*mailbox.Take()).config.cluster, "aurora");
  RunNodesTask(*slurm.runner(), clock, mailbox, {});
  const auto nodes = std::get<NodesDone>(*mailbox.Take());
  EXPECT_EQ(nodes.nodes.size(), 1U);
  EXPECT_EQ(nodes.at, clock.Now());
  RunPartitionsTask(*slurm.runner(), clock, mailbox, {});
  EXPECT_EQ(std::get<PartitionsDone>(*mailbox.Take()).partitions.size(), 1U);
  slurm.slurmctld_is_up = false;
  RunConfigTask(*slurm.runner(), mailbox, {});
  EXPECT_EQ(std::get<ConfigDone>(*mailbox.Take()).status.error().reason, "slurm.unreachable");
}

}  // namespace
}  // namespace expanse::schedulers::slurm
