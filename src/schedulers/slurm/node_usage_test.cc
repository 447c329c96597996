#include "schedulers/slurm/node_usage.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

constexpr RunId kRun{.job_id = 9, .submitted_s = 1000};
const base::WallTime kNow(std::chrono::seconds(2000));

evidence::Usage Used(double cpu_s, std::uint64_t memory, std::string basis) {
  evidence::Usage usage;
  usage.cpu_s = cpu_s;
  usage.memory_peak_bytes = memory;
  usage.memory_peak_basis = std::move(basis);
  return usage;
}

TEST(NodeUsage, OneNodeIsTheWhole) {
  NodeUsage usage;
  EXPECT_EQ(usage.Add(kRun, "n1", 1, Used(3, 100, "sampled"), kNow), Used(3, 100, "sampled"));
  EXPECT_EQ(usage.Add(kRun, "n1", 0, Used(4, 100, "sampled"), kNow), std::nullopt);
  EXPECT_EQ(usage.entries(), 0U);
}

TEST(NodeUsage, WaitsForAllNodesAndAddsThem) {
  NodeUsage usage;
  EXPECT_EQ(usage.Add(kRun, "n1", 2, Used(3, 100, "cgroup_peak"), kNow), std::nullopt);
  EXPECT_EQ(usage.Add(kRun, "n1", 2, Used(5, 120, "cgroup_peak"), kNow), std::nullopt);
  EXPECT_EQ(usage.Add(kRun, "n2", 2, Used(1, 30, "sampled"), kNow), Used(6, 150, "sampled"));
  EXPECT_EQ(usage.Add(kRun, "n1", 2, Used(7, 130, "cgroup_peak"), kNow), Used(8, 160, "sampled"));
  EXPECT_EQ(usage.Add({9, 5000}, "n1", 2, Used(1, 1, "sampled"), kNow), std::nullopt)
      << "another run of the id";
}

TEST(NodeUsage, WhatOneNodeDoesNotKnowIsUnknown) {
  evidence::Usage blank;
  blank.cpu_s = 2;
  const evidence::Usage sum = AddUsage(blank, Used(1, 5, "sampled"));
  EXPECT_EQ(sum.cpu_s, 3.0);
  EXPECT_EQ(sum.memory_peak_bytes, std::nullopt);
  EXPECT_EQ(sum.memory_peak_basis, "");
  EXPECT_EQ(sum.oom_kills, std::nullopt);
}

TEST(NodeUsage, IsBoundedAndForgets) {
  NodeUsage usage(3);
  for (const char* node : {"n1", "n2", "n3", "n4"})
    (void)usage.Add(kRun, node, 9, Used(1, 1, "sampled"), kNow);
  EXPECT_EQ(usage.entries(), 3U);
  EXPECT_EQ(usage.refused(), 1U);
  usage.Forget(kNow);
  EXPECT_EQ(usage.entries(), 3U);
  usage.Forget(kNow + std::chrono::seconds(1));
  EXPECT_EQ(usage.entries(), 0U);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
