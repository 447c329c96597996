#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/text.h"
#include "evidence/wire.h"
#include "expanse/data/v1/cluster.pb.h"

namespace expanse::evidence {
namespace {

namespace pb = data::v1;
using std::chrono::seconds;

const base::WallTime kNow{seconds(1'800'000'000)};

ClusterState Cluster() {
  ClusterState state;
  state.cluster = "lab";
  state.observed_at = kNow;
  state.nodes_observed_at = kNow - seconds(60);
  state.pending_jobs = 1;
  state.running_jobs = 0;
  state.pending_by_reason = {{"Resources", 1}};
  state.partitions = {{.name = "gpu",
                       .state = "UP",
                       .is_default = true,
                       .max_time_s = 60,
                       .nodes_total = 1,
                       .nodes_by_state = {{"IDLE", 1}},
                       .cpus_total = 4,
                       .gpus = {{"a100", 2, 0}}}};
  state.nodes = {{.name = "n1",
                  .state = "IDLE",
                  .flags = {"DRAIN"},
                  .reason = "fan",
                  .cpus_total = 4,
                  .memory_total_bytes = 5,
                  .gpus = {{"a100", 2, {}}},
                  .partitions = {"gpu"},
                  .features = {"ib"}}};
  PendingJob job;
  job.key = {SourceType::kSlurm, "lab/9@1"};
  job.native_id = "9";
  job.user = "ada";
  job.reason = "Resources";
  job.submitted_at = kNow - seconds(5);
  job.expected_start_at = kNow + std::chrono::hours(24 * 365);
  job.priority = 7;
  job.requested.cpu_cores = 3;
  state.pending = {job};
  return state;
}

TEST(WireCluster, BringsAStateBack) {
  pb::ClusterState message;
  ToProto(Cluster(), &message);
  const auto back = FromProto(message, kNow);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, Cluster());
}

TEST(WireCluster, MakesTextUtf8AndCutsWhatIsTooMuch) {
  ClusterState state = Cluster();
  state.nodes[0].reason = "caf\xe9" + std::string(5000, 'x');
  state.nodes[0].flags.assign(5000, "F");
  state.pending.assign(5000, state.pending[0]);
  state.pending[0].name = "\xff\n";
  state.pending[0].priority = std::numeric_limits<double>::infinity();
  pb::ClusterState message;
  ToProto(state, &message);
  pb::ClusterState parsed;
  ASSERT_TRUE(parsed.ParseFromString(message.SerializeAsString())) << "something is not UTF-8";
  const auto back = FromProto(parsed, kNow);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back->nodes[0].reason.starts_with("caf\uFFFDxxx"));
  EXPECT_EQ(back->nodes[0].reason.size(), WireLimits{}.cluster_text);
  EXPECT_EQ(back->nodes[0].flags.size(), WireLimits{}.cluster_words);
  EXPECT_EQ(back->pending.size(), WireLimits{}.cluster_pending);
  EXPECT_EQ(back->pending[0].name, "\uFFFD\n");
  EXPECT_EQ(back->pending[0].priority, std::nullopt);
}

TEST(WireCluster, LetsTheLastNodesGiveWayWhereAllTogetherAreTooLarge) {
  ClusterState state = Cluster();
  ClusterNode node = state.nodes[0];
  node.features.assign(200, std::string(200, 'f'));
  state.nodes.assign(2000, node);  // 80 MiB
  state.nodes[0].name = "first";
  pb::ClusterState message;
  ToProto(state, &message);
  const auto back = FromProto(message, kNow);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_GT(back->nodes.size(), 300U);
  EXPECT_LT(back->nodes.size(), 2000U);
  EXPECT_EQ(back->nodes[0].name, "first");
  EXPECT_EQ(back->pending.size(), 1U);
}

struct Spoiled {
  const char* what;
  std::function<void(pb::ClusterState*)> spoil;
  const char* reason;
};

TEST(WireCluster, RefusesWhatProducersMustNotSend) {
  using M = pb::ClusterState;
  const std::string long_text(300, 'x');
  const std::vector<Spoiled> all = {
      {"no time", [](M* m) { m->clear_observed_at(); }, "evidence.time"},
      {"ahead", [](M* m) { m->mutable_observed_at()->set_seconds(1'900'000'000); },
       "evidence.time"},
      {"submitted ahead",
       [](M* m) { m->mutable_pending(0)->mutable_submitted_at()->set_seconds(1'900'000'000); },
       "evidence.time"},
      {"long name", [=](M* m) { m->mutable_nodes(0)->set_name(long_text); }, "evidence.too_large"},
      {"long reason", [=](M* m) { (*m->mutable_pending_by_reason())[long_text] = 1; },
       "evidence.too_large"},
      {"many partitions",
       [](M* m) {
         for (int i = 0; i < 2000; ++i) m->add_partitions();
       },
       "evidence.too_large"},
      {"many nodes",
       [](M* m) {
         for (int i = 0; i < 70'000; ++i) m->add_nodes();
       },
       "evidence.too_large"},
      {"many jobs",
       [](M* m) {
         for (int i = 0; i < 1001; ++i) m->add_pending();
       },
       "evidence.too_large"},
      {"many flags",
       [](M* m) {
         for (int i = 0; i < 300; ++i) m->mutable_nodes(0)->add_flags("F");
       },
       "evidence.too_large"},
      {"many types of GPUs",
       [](M* m) {
         for (int i = 0; i < 300; ++i) m->mutable_partitions(0)->add_gpus();
       },
       "evidence.too_large"},
      {"negative limit", [](M* m) { m->mutable_partitions(0)->set_max_time_seconds(-1); },
       "evidence.malformed"},
      {"memory beyond int64", [](M* m) { m->mutable_nodes(0)->set_memory_total_bytes(~0ULL); },
       "evidence.malformed"},
      {"key without an identity",
       [](M* m) { m->mutable_pending(0)->mutable_key()->clear_identity(); }, "evidence.malformed"},
      {"unknown source",
       [](M* m) {
         m->mutable_pending(0)->mutable_key()->set_source_type(
             static_cast<common::v1::SourceType>(77));
       },
       "evidence.malformed"},
      {"negative priority", [](M* m) { m->mutable_pending(0)->set_priority(-1); },
       "evidence.malformed"},
  };
  for (const Spoiled& spoiled : all) {
    SCOPED_TRACE(spoiled.what);
    pb::ClusterState message;
    ToProto(Cluster(), &message);
    ASSERT_TRUE(FromProto(message, kNow)) << "good before";
    spoiled.spoil(&message);
    const auto back = FromProto(message, kNow);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().reason, spoiled.reason) << back.error().message;
  }
}

}  // namespace
}  // namespace expanse::evidence
