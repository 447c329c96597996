#include "intelligence/diagnose/attribution.h"

#include <gtest/gtest.h>

namespace expanse::intelligence::diagnose {
namespace {

NodeRecord Record(std::uint32_t executions, std::uint32_t users, std::uint32_t elsewhere,
                  std::uint32_t other_nodes) {
  return {.node = "n7",
          .failure_class = "no_space_left",
          .executions = executions,
          .users = users,
          .elsewhere = elsewhere,
          .other_nodes = other_nodes};
}

TEST(PointsToNode, NeedsSeveralUsersAndNodesToCompareWith) {
  EXPECT_TRUE(PointsToNode(Record(3, 2, 1, 2)));
  EXPECT_TRUE(PointsToNode(Record(4, 2, 2, 2)));
  EXPECT_FALSE(PointsToNode(Record(2, 2, 0, 9))) << "few";
  EXPECT_FALSE(PointsToNode(Record(9, 1, 0, 9))) << "one user's way of working";
  EXPECT_FALSE(PointsToNode(Record(4, 4, 3, 9))) << "it happens everywhere";
  EXPECT_FALSE(PointsToNode(Record(9, 9, 0, 1))) << "nothing to compare with";
}

TEST(NodePointedTo, IsOneNodeAndTheSameClass) {
  Case of;
  of.node_records = {Record(5, 3, 0, 4)};
  ASSERT_NE(NodePointedTo(of, "no_space_left"), nullptr);
  EXPECT_EQ(NodePointedTo(of, "no_space_left")->node, "n7");
  EXPECT_EQ(NodePointedTo(of, "disk_quota"), nullptr);
  of.node_records.push_back(Record(5, 3, 0, 4));
  of.node_records[1].node = "n8";
  EXPECT_EQ(NodePointedTo(of, "no_space_left"), nullptr);
}

TEST(AttributionStage, SaysWhatItPointsTo) {
  Case of;
  Diagnosis diagnosis;
  EXPECT_EQ(AttributionStage(of, diagnosis).summary, "nothing failed");
  EXPECT_EQ(AttributionStage(of, diagnosis).status, StageStatus::kSkipped);
  diagnosis.failure_class = "unknown";
  EXPECT_EQ(AttributionStage(of, diagnosis).status, StageStatus::kSkipped);
  EXPECT_EQ(AttributionStage(of, diagnosis).summary, "no code regions captured");
  diagnosis.failure_class = "no_space_left";
  diagnosis.owner = "either";
  EXPECT_EQ(AttributionStage(of, diagnosis).summary,
            "user or infrastructure; no code regions captured");
  EXPECT_EQ(AttributionStage(of, diagnosis).status, StageStatus::kDegraded);
  of.node_records = {Record(5, 3, 1, 4)};
  EXPECT_EQ(AttributionStage(of, diagnosis).summary,
            "node n7: 5 of 6 others like it; no code regions captured");
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
