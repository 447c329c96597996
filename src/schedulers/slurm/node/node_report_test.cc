#include "schedulers/slurm/node/node_report.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

HookEvent Prolog(std::uint32_t job) {
  HookEvent event;
  event.job_id = job;
  event.node = "reed07";
  return event;
}

TEST(NodeReport, NamesAJobByItsRawIdElseByItsSluid) {
  EXPECT_EQ(LocalKey({.job_id = 41, .sluid = "s5K1KKYAYG5D00"}).identity, "job:41");
  EXPECT_EQ(LocalKey({.sluid = "s5K1KKYAYG5D00"}).identity, "sluid:s5K1KKYAYG5D00");
  for (const LocalJob& job : {LocalJob{.job_id = 41}, LocalJob{.sluid = "s5K1KKYAYG5D00"}}) {
    EXPECT_EQ(ParseLocalKey(LocalKey(job)), job);
  }
  for (const char* junk : {"", "job:", "job:0", "job:007", "job:-1", "job:1 ", "job:99999999999",
                           "sluid:", "sluid:5K1KKYAYG5D00", "sluid:s../..", "41"}) {
    EXPECT_FALSE(ParseLocalKey({evidence::SourceType::kSlurm, junk})) << junk;
  }
  EXPECT_FALSE(ParseLocalKey({evidence::SourceType::kHost, "job:41"}));
}

TEST(NodeReport, SaysWhatTheHookSaidAndNoMore) {
  HookEvent event = Prolog(8812);
  event.sluid = "s5K1KKYAYG5D00";
  event.user = "mara";
  event.array_job_id = 8800;
  event.array_task_id = 12;
  event.restart_count = 2;
  const auto report = MakeReport(event);
  EXPECT_EQ(report.execution.status, evidence::ExecutionStatus::kRunning);
  EXPECT_EQ(report.execution.native_id, "8800_12");
  EXPECT_EQ(report.execution.parent_native_id, "8800");
  EXPECT_EQ(report.execution.restart_count, 2U);
  EXPECT_FALSE(report.execution.started_at) << "slurmctld's to say";
  const auto read = ReadReport(report);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, ReportKind::kBegan);
  EXPECT_EQ(read->job.job_id, 8812U);
  EXPECT_EQ(read->job.sluid, "s5K1KKYAYG5D00");
  EXPECT_EQ(read->node, "reed07");
}

TEST(NodeReport, DoesNotEndAJobThatMayRunOnOtherNodes) {
  HookEvent event = Prolog(5);
  event.kind = HookKind::kEpilog;
  event.het_job_id = 4;
  event.het_offset = 1;
  event.exit_code = 3;
  const auto report = MakeReport(event);
  EXPECT_EQ(ReadReport(report)->kind, ReportKind::kEnded);
  EXPECT_EQ(report.execution.status, evidence::ExecutionStatus::kUnspecified);
  EXPECT_FALSE(report.execution.ended_at);
  EXPECT_EQ(report.execution.native_id, "4+1");
  EXPECT_EQ(report.execution.exit_code, 3);
}

TEST(NodeReport, CarriesTheUsageOfANode) {
  const evidence::Usage usage{.cpu_s = 12.5, .oom_kills = 1};
  const auto last = MakeUsageReport({.job_id = 5}, "", usage, /*last=*/true);
  EXPECT_EQ(ReadReport(last)->kind, ReportKind::kLastUsage);
  EXPECT_EQ(ReadReport(last)->node, "");
  EXPECT_EQ(last.execution.used, usage);
  EXPECT_EQ(ReadReport(MakeUsageReport({.job_id = 5}, "n", usage, false))->kind,
            ReportKind::kUsage);
}

TEST(NodeReport, IsNotWhatOthersWrite) {
  auto report = MakeReport(Prolog(5));
  report.execution.labels["slurm.report"] = "exploded";
  EXPECT_FALSE(ReadReport(report));
  report.execution.labels.clear();
  EXPECT_FALSE(ReadReport(report));
  report = MakeReport(Prolog(5));
  report.key.identity = "cluster/5@17";
  EXPECT_FALSE(ReadReport(report));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
