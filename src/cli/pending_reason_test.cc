#include "cli/pending_reason.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace expanse::cli {
namespace {

struct Case {
  const char* reason;
  const char* waits_for;
  const char* advice;  // a part of it
};

TEST(PendingReason, SaysWhatAJobWaitsForAndWhatHelps) {
  const Case cases[] = {
      {"Priority", "jobs of higher priority", "--time"},
      {"Resources", "free nodes, CPUs, memory or GPUs", "asking for less"},
      {"DependencyNeverSatisfied", "a job that did not end as it asked", "Cancel it"},
      {"BeginTime", "its start time", "--begin"},
      {"JobHeldUser", "its release by its user", "scontrol release"},
      {"JobHeldAdmin", "its release by an administrator", "administrators"},
      {"PartitionTimeLimit", "a change: its partition allows less time", "TimeLimit"},
      {"Licenses", "licenses that others use", "Wait"},
      {"ReqNodeNotAvail, UnavailableNodes:n[1-4]", "nodes it asks for that are down or reserved",
       "--nodelist"},
      {"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
       "partitions",
       "nodes that are down, drained or reserved", "compute nodes"},
  };
  for (const Case& c : cases) {
    const PendingReason explained = ExplainPending(c.reason);
    EXPECT_EQ(explained.waits_for, c.waits_for) << c.reason;
    EXPECT_NE(explained.advice.find(c.advice), std::string::npos) << explained.advice;
  }
}

TEST(PendingReason, TakesLimitsApart) {
  const Case cases[] = {
      {"AssocGrpCpuLimit", "its account's limit of CPUs", "another account"},
      {"AssocGrpCPURunMinutesLimit", "its account's limit of CPU minutes of running jobs",
       "All jobs of the account together"},
      {"AssocGrpGRES", "its account's limit of GPUs or other GRES", ""},
      {"AssocMaxJobsLimit", "its user's limit of running jobs", "A limit of its account"},
      {"AssocMaxWallDurationPerJobLimit", "a change: its account allows less time", "Ask for less"},
      {"QOSMaxCpuPerUserLimit", "its user's limit of CPUs", "another QOS"},
      {"QOSMaxGRESPerUser", "its user's limit of GPUs or other GRES", ""},
      {"QOSGrpNodeLimit", "its QOS's limit of nodes", ""},
      {"QOSMinGRES", "a change: its QOS asks for more GPUs or other GRES", "scontrol update"},
      {"MaxMemoryPerAccount", "its account's limit of memory", "another QOS"},
      {"QOSMaxNodePerJobLimit", "a change: its QOS allows less nodes", ""},
  };
  for (const Case& c : cases) {
    const PendingReason explained = ExplainPending(c.reason);
    EXPECT_EQ(explained.waits_for, c.waits_for) << c.reason;
    EXPECT_NE(explained.advice.find(c.advice), std::string::npos) << explained.advice;
  }
}

TEST(PendingReason, LeavesWhatItDoesNotKnowAsItIs) {
  for (const char* reason :
       {"", "SomethingNew, with detail", "AssocGrp", "QOSMaxWondersPerUser", "Max", "priority"}) {
    EXPECT_EQ(ExplainPending(reason).waits_for, reason);
    EXPECT_EQ(ExplainPending(reason).advice, "");
  }
}

}  // namespace
}  // namespace expanse::cli
