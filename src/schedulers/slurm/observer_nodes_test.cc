// What nodes report of jobs, the cluster's state, files and health.
#include "schedulers/slurm/observer_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using testing::ElementsAre;

TEST_F(Observing, UsageOfNodesIsAddedUp) {
  using enum QueueField;
  slurm.Submit(41);
  slurm.Begin(41);
  slurm.row(41)[kNodeList] = "fir[07-08]";
  slurm.row(41)[kNumNodes] = "2";
  slurm.row(41)[kTresAlloc] = "cpu=4,mem=8G,node=2,billing=4";
  evidence::Usage usage;
  usage.cpu_s = 10;
  usage.memory_peak_bytes = 1000;
  usage.memory_peak_basis = "cgroup_peak";
  const auto report = [&](const char* node) {
    return MakeUsageReport({.job_id = 41, .sluid = {}}, node, usage, /*last=*/false);
  };
  // Before any listing: kept until the job is known.
  EXPECT_TRUE(observer->OnLifecycle(report("fir07"), "fir07", clock.Now()));
  Pass(31s);
  EXPECT_EQ(Run(41).used.cpu_s, std::nullopt) << "half of it is no total";
  EXPECT_TRUE(observer->OnLifecycle(report("fir08"), "fir08", clock.Now()));
  Pass(1s);
  EXPECT_EQ(Run(41).used.cpu_s, 20.0);
  EXPECT_EQ(Run(41).used.memory_peak_bytes, 2000U);
}

// Whoever drains what samplers left meanwhile has no row of the job yet, or never will.
TEST_F(Observing, UsageOfOneNodeIsNoTotalAfterARestartEither) {
  using enum QueueField;
  const auto on_two_nodes = [&](std::uint32_t id) {
    slurm.Submit(id);
    slurm.Begin(id);
    slurm.row(id)[kNodeList] = "fir[07-08]";
    slurm.row(id)[kNumNodes] = "2";
    slurm.row(id)[kTresAlloc] = "cpu=4,mem=8G,node=2,billing=4";
  };
  on_two_nodes(41);
  on_two_nodes(42);
  Pass(31s);
  slurm.HoldAccounting(true);
  slurm.End(42);
  Pass(31s);
  slurm.slurmctld_is_up = false;
  Restart();
  evidence::Usage usage;
  usage.cpu_s = 10;
  const auto report = [&](std::uint32_t id, const char* node) {
    EXPECT_TRUE(observer->OnLifecycle(
        MakeUsageReport({.job_id = id, .sluid = {}}, node, usage, /*last=*/true), node,
        clock.Now()));
  };
  for (const std::uint32_t id : {41, 42}) report(id, "fir07");
  Pass(2s);
  EXPECT_EQ(Run(41).used.cpu_s, std::nullopt);
  EXPECT_EQ(Run(42).used.cpu_s, std::nullopt);
  for (const std::uint32_t id : {41, 42}) report(id, "fir08");
  Pass(2s);
  EXPECT_EQ(Run(41).used.cpu_s, 20.0);
  EXPECT_EQ(Run(42).used.cpu_s, 20.0);
}

// A second cluster on the same machines: its job has this id too.
TEST_F(Observing, UsageOfAnotherClustersNodeIsNotTaken) {
  using enum QueueField;
  slurm.Submit(41);
  slurm.Begin(41);
  slurm.row(41)[kNodeList] = "fir07";
  Pass(31s);
  evidence::Usage usage;
  usage.cpu_s = 500;
  EXPECT_TRUE(observer->OnLifecycle(
      MakeUsageReport({.job_id = 41, .sluid = {}}, "oak01", usage, /*last=*/false), "machine",
      clock.Now()));
  Pass(1s);
  EXPECT_EQ(Run(41).used.cpu_s, std::nullopt);
  usage.cpu_s = 10;
  EXPECT_TRUE(observer->OnLifecycle(
      MakeUsageReport({.job_id = 41, .sluid = {}}, "fir07", usage, /*last=*/false), "fir07",
      clock.Now()));
  Pass(1s);
  EXPECT_EQ(Run(41).used.cpu_s, 10.0);
}

// How many nodes the job has is not known while it is known from a hook alone.
TEST_F(Observing, UsageOfOneNodeIsNoTotalBeforeTheNodesAreKnown) {
  using enum QueueField;
  slurm.Submit(41);
  Pass(31s);
  slurm.Begin(41);
  slurm.row(41)[kNodeList] = "fir[07-08]";
  slurm.row(41)[kNumNodes] = "2";
  slurm.row(41)[kTresAlloc] = "cpu=4,mem=8G,node=2,billing=4";
  evidence::Usage usage;
  usage.cpu_s = 10;
  Hook(HookKind::kProlog, 41);
  EXPECT_TRUE(
      observer->OnLifecycle(MakeUsageReport({.job_id = 41, .sluid = {}}, "", usage, /*last=*/true),
                            "fir07", clock.Now()));
  ASSERT_TRUE(observer->FlushReports(sink, clock.Now()));
  EXPECT_EQ(Run(41).used.cpu_s, std::nullopt);
  EXPECT_TRUE(
      observer->OnLifecycle(MakeUsageReport({.job_id = 41, .sluid = {}}, "", usage, /*last=*/true),
                            "fir08", clock.Now()));
  Pass(5s);
  EXPECT_EQ(Run(41).used.cpu_s, 20.0);
}

TEST_F(Observing, AMachineTellsOfItsOwnJobsOnly) {
  const auto resolves = [&](std::string_view host) {
    return observer
        ->Resolve({.source_type = evidence::SourceType::kSlurm, .identity = "job:41"}, clock.Now(),
                  host)
        .has_value();
  };
  slurm.Submit(41);
  Pass(31s);
  EXPECT_TRUE(resolves("fir08")) << "nobody knows yet where it will be";
  slurm.Begin(41);
  Pass(31s);
  EXPECT_TRUE(resolves("fir07"));
  EXPECT_TRUE(resolves("fir07.example"));
  EXPECT_FALSE(resolves("fir08"));
  EXPECT_TRUE(resolves("head1")) << "ourselves";
  slurm.End(41, "FAILED", 3 << 8);
  Pass(90s);
  EXPECT_TRUE(resolves("fir07")) << "what comes late";
  EXPECT_FALSE(resolves("fir08"));
  // Who a job is and how it ended is for Slurm to say; what became of its files, for the sampler.
  evidence::ExecutionObservation seen;
  seen.key = {.source_type = evidence::SourceType::kSlurm, .identity = "job:41"};
  seen.execution.source_type = evidence::SourceType::kSlurm;
  seen.execution.capture_notes = {"stdout: not found here"};
  EXPECT_FALSE(observer->OnLifecycle(seen, "fir07", clock.Now())) << "goes on as it is";
  seen.execution.user = "mallory";
  EXPECT_TRUE(observer->OnLifecycle(seen, "fir07", clock.Now()));
  Pass(1s);
  EXPECT_NE(Run(41).user, "mallory");
  EXPECT_EQ(Row("slurm_samplers").figures["forged_reports"], 1);
}

TEST_F(Observing, KnowsWhichSamplersShouldBeHeard) {
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(31s);
  EXPECT_TRUE(observer->BusyHosts().empty()) << "its sampler may just be starting";
  Pass(240s);
  EXPECT_THAT(observer->BusyHosts(), ElementsAre("fir07.example")) << "as Slurm calls the machine";
  EXPECT_EQ(Row("slurm_samplers").reason, "without_sampler");
  observer->OnSampler("fir07", clock.Now(), /*reads_files=*/false);
  Pass(31s);
  EXPECT_THAT(observer->BusyHosts(), ElementsAre("fir07")) << "as its directory is called";
  EXPECT_EQ(Row("slurm_samplers").status, HealthStatus::kOk);
  slurm.End(41, "COMPLETED", 0);
  Pass(31s);
  EXPECT_TRUE(observer->BusyHosts().empty());
}

TEST_F(Observing, TellsTheClustersState) {
  using enum QueueField;
  slurm.Submit(1, {{kPriority, "10"}, {kPartition, "long,short"}});
  slurm.Submit(2, {{kPriority, "90"}, {kReason, "ReqNodeNotAvail, UnavailableNodes:fir[01-09]"}});
  slurm.Submit(3);
  slurm.Begin(3);
  Pass(61s);
  std::optional<ClusterState> newest;
  if (auto state = observer->TakeClusterState()) newest = std::move(state);
  Pass(30s);
  if (auto state = observer->TakeClusterState()) newest = std::move(state);
  ASSERT_TRUE(newest);
  EXPECT_FALSE(observer->TakeClusterState()) << "each once";
  EXPECT_EQ(newest->cluster, "aurora");
  EXPECT_EQ(newest->pending_jobs, 2U);
  EXPECT_EQ(newest->running_jobs, 1U);
  ASSERT_EQ(newest->pending.size(), 2U);
  EXPECT_EQ(newest->pending[0].native_id, "2");
  EXPECT_EQ(newest->pending[0].priority, 90.0);
  EXPECT_EQ(newest->pending[1].key.identity.substr(0, 9), "aurora/1@");
  EXPECT_EQ(newest->pending_by_reason,
            (std::map<std::string, std::uint32_t>{{"Priority", 1}, {"ReqNodeNotAvail", 1}}));
  ASSERT_EQ(newest->nodes.size(), 1U);
  ASSERT_EQ(newest->partitions.size(), 1U);
  EXPECT_EQ(newest->partitions[0].pending_jobs, 2U);
  EXPECT_EQ(newest->partitions[0].running_jobs, 1U);
  EXPECT_EQ(newest->partitions[0].cpus_total, 16U);
}

TEST_F(Observing, KnowsNodesByTheirHosts) {
  Pass(31s);
  EXPECT_TRUE(observer->IsNodeOf("fir07", "fir07.example"));
  EXPECT_TRUE(observer->IsNodeOf("fir07", "fir07"));
  EXPECT_FALSE(observer->IsNodeOf("fir07", "fir08"));
  EXPECT_TRUE(observer->IsNodeOf("unheard", "unheard"));
}

TEST_F(Observing, HealthMissesHooksAndSamplers) {
  Pass(31s);
  for (std::uint32_t id = 1; id <= 12; ++id) slurm.Submit(id);
  Pass(31s);
  for (std::uint32_t id = 1; id <= 12; ++id) slurm.Begin(id);
  Pass(31s);
  EXPECT_EQ(Row("slurm_hooks").reason, "no_events");
  EXPECT_EQ(Row("slurm_samplers").status, HealthStatus::kOk) << "they have just begun";
  Pass(240s);
  EXPECT_EQ(Row("slurm_samplers").reason, "without_sampler");
  EXPECT_EQ(Row("slurm_samplers").figures["nodes_with_jobs"], 1);
  Hook(HookKind::kEpilog, 1);
  Pass(31s);
  EXPECT_EQ(Row("slurm_hooks").status, HealthStatus::kOk);
  EXPECT_EQ(Row("slurm_samplers").status, HealthStatus::kOk);
}

TEST_F(Observing, JobsOfThisHostWithoutCgroupsAreAFailure) {
  options.host = "fir07";
  Restart();
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(61s);
  EXPECT_EQ(Row("slurm_jobs").status, HealthStatus::kOk);
  Pass(180s);
  EXPECT_EQ(Row("slurm_jobs").status, HealthStatus::kFailed);
  EXPECT_EQ(Row("slurm_jobs").reason, "no_cgroups");
}

TEST_F(Observing, FilesOfRunningJobsAreFollowed) {
  options.files.switches.logs = true;
  Restart();
  slurm.Submit(41);
  slurm.Begin(41);
  Pass(31s);
  // Files have a thread of their own.
  for (int i = 0; i < 1000 && Row("job_files").figures["jobs"] == 0; ++i)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(Row("job_files").figures["jobs"], 1);
}

TEST_F(Observing, FilesAreLeftToALiveSamplerThatMayReadThem) {
  options.files.switches.logs = true;
  options.assign_directory = base::JoinPath(directory->path(), "assign");
  Restart();
  const std::string path = base::JoinPath(options.assign_directory, "fir07");
  const auto pass_until = [&](auto done, bool heard, bool reads_files) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      if (heard) observer->OnSampler("fir07", clock.Now(), reads_files);
      Pass(1s);
      std::this_thread::sleep_for(1ms);  // the board has a thread of its own
    }
    return done();
  };
  slurm.Submit(41);
  slurm.Begin(41);
  observer->OnSampler("fir07", clock.Now(), true);
  const auto assigned = [&] {
    const auto jobs = ParseAssignments(base::ReadFile(path).value_or(""), "fir07");
    return jobs && jobs->size() == 1 && (*jobs)[0].job_id == 41 && (*jobs)[0].logs &&
           !(*jobs)[0].stdout_path.empty();
  };
  EXPECT_TRUE(pass_until(assigned, true, true));
  EXPECT_EQ(Row("assignments").figures["jobs"], 1);
  // It says that it may not: the controller looks itself.
  EXPECT_TRUE(pass_until([&] { return !base::Exists(path); }, true, false));
  EXPECT_TRUE(pass_until([&] { return Row("job_files").figures["looks"] > 1; }, true, false));
}

TEST_F(Observing, TakesThisHostAndItsHooks) {
  options.run_directory = base::JoinPath(directory->path(), "run");
  options.version = "9.9";
  Restart();
  Pass(40s);
  EXPECT_EQ(base::ReadFile(options.run_directory + "/hooks/sampler").value_or(""),
            std::to_string(::getpid()) + " 9.9 controller\n");
  slurm.Submit(41);
  slurm.Begin(41);
  std::string event("expanse-hook 1\0prolog\0SLURM_JOB_ID=41\0SLURMD_NODENAME=fir07\0end\0", 64);
  event.resize(event.rfind("end") + 4);
  ASSERT_TRUE(
      base::WriteFileAtomically(options.run_directory + "/hooks/prolog.41.fir07", event, 0644));
  Pass(2s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kRunning);
  EXPECT_FALSE(base::Exists(options.run_directory + "/hooks/prolog.41.fir07"));
  EXPECT_EQ(Row("slurm_hooks").figures["events"], 1);
  // Another controller has the host: it takes the events, and samples.
  std::unique_ptr<SlurmObserver> first = std::move(observer);
  options.state_directory += "2";
  Start();
  Pass(5s);
  EXPECT_EQ(Row("slurm_hooks").reason, "not_claimed");
  first->Stop();
  Pass(60s);
  EXPECT_EQ(Row("slurm_hooks").status, HealthStatus::kOk);
}

TEST_F(Observing, ADamagedStateIsStartedAnew) {
  slurm.Submit(41);
  Pass(61s);
  observer->Stop();
  observer.reset();
  ASSERT_TRUE(base::WriteFileAtomically(options.state_directory + "/runs", "EXPSLURM junk", 0600));
  Start();
  Pass(61s);
  EXPECT_EQ(Run(41).status, ExecutionStatus::kQueued);
}

TEST_F(Observing, JobsAreKnownBeforeSlurmctldAnswers) {
  slurm.Submit(41);
  slurm.Begin(41);
  const std::int64_t submitted = Now();
  Pass(61s);
  slurm.slurmctld_is_up = false;
  Restart();
  EXPECT_EQ(
      observer->Resolve(LocalKey({.job_id = 41, .sluid = {}}), clock.Now(), "fir07")->identity,
      Identity(41, submitted));
  Pass(61s);
  EXPECT_EQ(Row("slurm_squeue").status, HealthStatus::kFailed);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
