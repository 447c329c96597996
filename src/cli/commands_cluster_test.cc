#include <gtest/gtest.h>

#include "cli/cli_testing.h"

namespace expanse::cli {
namespace {

const std::string kTestData = std::string(EXPANSE_SOURCE_DIR) + "/testdata";

control::v1::Compute MakeCompute(int n, const std::string& name, common::v1::SourceType type) {
  control::v1::Compute compute;
  compute.set_compute_id("0191e7a0-0000-7000-8000-00000000000" + std::to_string(n));
  compute.set_name(name);
  compute.set_type(type);
  return compute;
}

class ClusterCommands : public testing::Test {
 protected:
  ClusterCommands() {
    platform_.computes = {MakeCompute(1, "box", common::v1::SOURCE_TYPE_HOST),
                          MakeCompute(2, "slurm", common::v1::SOURCE_TYPE_SLURM)};
    platform_.cluster.mutable_reported_at()->set_seconds(1'790'000'000);
    data::v1::ClusterState& state = *platform_.cluster.mutable_state();
    state.set_cluster("lab");
    state.mutable_observed_at()->set_seconds(1'790'000'000);
    state.mutable_nodes_observed_at()->set_seconds(1'790'000'000);
    state.set_pending_jobs(4);
    (*state.mutable_pending_by_reason())["Priority"] = 3;
    (*state.mutable_pending_by_reason())["QOSMaxGRESPerUser"] = 1;
    AddPartitions(&state);
    AddNodes(&state);
    AddPending(&state);
    harness_.SignIn(platform_);
    harness_.clock.pinned = base::FromMicros(1'790'000'060'000'000);
  }
  static void AddPartitions(data::v1::ClusterState* state) {
    auto* gpu = state->add_partitions();
    gpu->set_name("gpu");
    gpu->set_state("UP");
    gpu->set_is_default(true);
    gpu->set_max_time_seconds(86'400);
    gpu->set_nodes_total(2);
    gpu->set_cpus_total(128);
    gpu->set_cpus_allocated(96);
    gpu->set_cpus_idle(0);
    gpu->set_memory_total_bytes(512ULL << 30);
    gpu->set_memory_allocated_bytes(256ULL << 30);
    auto* a100 = gpu->add_gpus();
    a100->set_type("a100");
    a100->set_total(8);
    a100->set_allocated(8);
    gpu->add_gpus()->set_total(2);
    gpu->set_running_jobs(3);
    gpu->set_pending_jobs(2);
    auto* old = state->add_partitions();
    old->set_name("old");
    old->set_state("DOWN");
  }
  static void AddNodes(data::v1::ClusterState* state) {
    auto* one = state->add_nodes();
    one->set_name("n1");
    one->set_state("MIXED");
    one->set_cpus_total(64);
    one->set_cpus_allocated(32);
    one->set_memory_total_bytes(256ULL << 30);
    one->set_memory_allocated_bytes(0);
    auto* a100 = one->add_gpus();
    a100->set_type("a100");
    a100->set_total(4);
    one->add_partitions("gpu");
    auto* two = state->add_nodes();
    two->set_name("n2");
    two->set_state("IDLE");
    two->add_flags("DRAIN");
    two->add_flags("NOT_RESPONDING");
    two->set_reason("fan\x1b[2J \xe2\x9a\xa0\nsee ticket");
    two->add_partitions("gpu");
    two->add_partitions("old");
    state->add_nodes()->set_name("n3");
  }
  static void AddPending(data::v1::ClusterState* state) {
    auto* first = state->add_pending();
    first->set_native_id("41982_[0-99%5]");
    first->set_name("sweep\nrm -rf");
    first->set_user("ada");
    first->set_partition("gpu,old");
    first->set_reason("Priority");
    first->mutable_submitted_at()->set_seconds(1'789'999'760);
    first->mutable_expected_start_at()->set_seconds(1'790'000'660);
    auto* second = state->add_pending();
    second->set_native_id("41990");
    second->set_name("half\xef\xbf\xbd\"");
    second->set_user("bob\x1b[31m");
    second->set_partition("gpu");
    second->set_reason("QOSMaxGRESPerUser");
    second->mutable_submitted_at()->set_seconds(1'789'990'000);
    auto* third = state->add_pending();
    third->set_native_id("42000");
    third->set_user("ada");
    third->set_partition("old");
    third->set_reason("Wonder, of a newer version");
  }
  FakePlatform platform_;
  CliHarness harness_;
  FakeTerminal& terminal_ = harness_.terminal;
};

TEST_F(ClusterCommands, QueueInAPipeIsComplete) {
  ASSERT_EQ(harness_.Run({"compute", "queue"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "queue-pipe.txt", terminal_.out);
  EXPECT_EQ(terminal_.err, "3 of 4 pending jobs; --limit N shows more.\n");
  EXPECT_EQ(platform_.cluster_asked.compute_id(), platform_.computes[1].compute_id())
      << "the one that is a cluster";
}

TEST_F(ClusterCommands, QueueOnATerminalFitsAndIsColoured) {
  terminal_.width = 100;
  terminal_.colour = true;
  ASSERT_EQ(harness_.Run({"compute", "queue", "slurm"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "queue-terminal.txt", terminal_.out);
}

TEST_F(ClusterCommands, QueueCanBeOfOneUserOrPartition) {
  ASSERT_EQ(harness_.Run({"compute", "queue", "--user", "ada", "--partition", "gpu"}), 0);
  EXPECT_NE(terminal_.out.find("41982_[0-99%5]"), std::string::npos);
  EXPECT_EQ(terminal_.out.find("41990"), std::string::npos) << "of another user";
  EXPECT_EQ(terminal_.out.find("42000"), std::string::npos) << "of another partition";
  EXPECT_EQ(terminal_.out.find("\nold"), std::string::npos);
  EXPECT_EQ(terminal_.out.find("QOSMaxGRESPerUser"), std::string::npos);
  EXPECT_EQ(terminal_.err, "");
  ASSERT_EQ(harness_.Run({"compute", "queue", "--limit", "1"}), 0);
  EXPECT_EQ(terminal_.out.find("41990"), std::string::npos);
  EXPECT_EQ(terminal_.err, "1 of 4 pending jobs; --limit N shows more.\n");
}

TEST_F(ClusterCommands, QueueSaysWhatIsWithheldAndWhatIsOld) {
  platform_.cluster.set_pending_withheld(true);
  platform_.cluster.mutable_state()->clear_pending();
  harness_.clock.pinned = base::FromMicros(1'790'007'200'000'000);
  ASSERT_EQ(harness_.Run({"compute", "queue"}), 0);
  EXPECT_NE(terminal_.err.find("shown to those who may read executions"), std::string::npos);
  EXPECT_NE(terminal_.err.find("the queue was last looked at 2h00m ago"), std::string::npos)
      << terminal_.err;
  EXPECT_NE(terminal_.out.find("Priority"), std::string::npos) << "counts by reason stay";
}

TEST_F(ClusterCommands, NodesShowStateAllocationAndReason) {
  ASSERT_EQ(harness_.Run({"compute", "nodes"}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out,
            "NODE  STATE                       CPUS       MEMORY  GPUS      PARTITIONS  REASON\n"
            "n1    mixed                      32/64  0 B/256 GiB  a100 ?/4  gpu         -\n"
            "n2    idle+drain+not_responding      -            -  -         gpu,old     "
            "fan\\x1b[2J \xe2\x9a\xa0\\nsee ticket\n"
            "n3    -                              -            -  -         -           -\n");
  ASSERT_EQ(harness_.Run({"compute", "nodes", "--partition", "old"}), 0);
  EXPECT_EQ(terminal_.out.find("n1"), std::string::npos);
  EXPECT_NE(terminal_.out.find("n2"), std::string::npos);
}

TEST_F(ClusterCommands, JsonIsTheApisWithWhatWasAskedFor) {
  ASSERT_EQ(harness_.Run({"compute", "queue", "--json", "--user", "ada"}), 0);
  EXPECT_NE(terminal_.out.find("\"native_id\": \"42000\""), std::string::npos) << terminal_.out;
  EXPECT_EQ(terminal_.out.find("41990"), std::string::npos);
  ASSERT_EQ(harness_.Run({"compute", "nodes", "--json"}), 0);
  EXPECT_NE(terminal_.out.find("\"cpus_total\": 64"), std::string::npos) << terminal_.out;
}

TEST_F(ClusterCommands, WhichClusterMustBeClear) {
  platform_.computes.push_back(MakeCompute(3, "kube", common::v1::SOURCE_TYPE_KUBERNETES));
  EXPECT_EQ(harness_.Run({"compute", "queue"}), 6);
  EXPECT_EQ(terminal_.err,
            "expanse: compute queue: which cluster? There are slurm, kube\n"
            "Try: expanse compute queue COMPUTE (expanse compute list)\n");
  ASSERT_EQ(harness_.Run({"compute", "queue", "kube"}), 0);
  platform_.computes.resize(1);
  EXPECT_EQ(harness_.Run({"compute", "nodes"}), 3);
  EXPECT_NE(terminal_.err.find("none of your computes is a cluster"), std::string::npos);
  platform_.cluster.Clear();
  EXPECT_EQ(harness_.Run({"compute", "nodes", "box"}), 3);
  EXPECT_NE(terminal_.err.find("has not told the state of a cluster yet"), std::string::npos);
}

}  // namespace
}  // namespace expanse::cli
