// Which line of many is the cause: one test a rule that failed runs taught. What each rule says is
// its test's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "intelligence/diagnose/diagnose.h"

namespace expanse::intelligence::diagnose {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;
using evidence::SourceType;
using predict::Confidence;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr double kGiB = 1024.0 * 1024 * 1024;

const RunbookSet& Set() {
  static const auto set = *RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
  return *set;
}

Case Failed(std::string log, SourceType scheduler = SourceType::kSlurm) {
  Case of;
  of.execution.source_type = scheduler;
  of.execution.status = ExecutionStatus::kFailed;
  of.execution.exit_code = 1;
  if (!log.empty()) of.logs.push_back({.stream = "stderr", .data = std::move(log)});
  return of;
}

Diagnosis Say(const Case& of) { return Diagnose(of, Set()); }
Diagnosis Say(std::string log) { return Diagnose(Failed(std::move(log)), Set()); }
std::string ClassOf(const Case& of) { return Say(of).failure_class; }
std::string ClassOf(std::string log) { return Say(std::move(log)).failure_class; }

// Lines of peers that a failed rank takes along.
std::string Peers(int count) {
  std::string log;
  for (int rank = 0; rank < count; ++rank) {
    log += "[rank" + std::to_string(rank) +
           "]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was "
           "a network error, Connection closed by remote peer\n";
  }
  return log;
}

TEST(Cascade, R1TheFirstRankThatFailsIsTheCauseAndItsPeersAreNot) {
  const Diagnosis said =
      Say("[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB\n" +
          Peers(8) + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n");
  EXPECT_EQ(said.failure_class, "gpu_out_of_memory");
  EXPECT_THAT(said.root_cause, HasSubstr("(rank 5)"));
  EXPECT_EQ(ClassOf("srun: error: n1: tasks 0-2,4-7: Terminated\n"
                    "srun: error: n1: task 3: Segmentation fault (core dumped)\n"
                    "srun: Terminating StepId=7.0\n"),
            "segmentation_fault");
}

TEST(Cascade, R2TheCauseMayStandInTheMiddleOrBeforeTheCrash) {
  EXPECT_EQ(ClassOf(Peers(20) + "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB\n" +
                    Peers(20)),
            "gpu_out_of_memory");
  EXPECT_EQ(
      ClassOf("[W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29500 "
              "(errno: 98 - Address already in use).\n"
              "waiting\ntorch.distributed.DistStoreError: Timed out after 601 seconds waiting "
              "for clients. 1/2 clients joined.\n"),
      "port_in_use");
}

TEST(Cascade, R2ASummaryWithoutTheCauseIsNotSure) {
  const Diagnosis said =
      Say("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
          "  exitcode  : 1 (pid: 4411)\n  error_file: <N/A>\n");
  EXPECT_EQ(said.confidence, Confidence::kLow);
  EXPECT_FALSE(said.collect.empty());
}

TEST(Cascade, R3WhatComesLaterMayBeItsEcho) {
  EXPECT_EQ(ClassOf("[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
                    "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before "
                    "timing out.\n"
                    "RuntimeError: CUDA error: Tried to allocate more than 1EB memory.\n"),
            "nccl_timeout");
  EXPECT_EQ(ClassOf("NVRM: Xid (PCI:0000:3b:00): 79, pid=4411, GPU has fallen off the bus.\n"
                    "NVRM: Xid (PCI:0000:3b:00): 45, pid=4411, Ch 00000008\n"),
            "gpu_xid_79_fell_off_bus");
}

TEST(Cascade, R4DecoysAreNoCause) {
  const std::string decoys =
      "WARNING: There was an error initializing an OpenFabrics device.\n"
      "WARNING: No preset parameters were found: unable to find any relevant network interfaces\n"
      "PMIX ERROR: NO-PERMISSIONS in file gds_dstore.c at line 702\n"
      "NET/Plugin: No plugin found (libnccl-net.so), using internal implementation\n";
  EXPECT_THAT(ClassOf(decoys), AnyOf("unknown", "application_error"));
  EXPECT_EQ(ClassOf(decoys + "forrtl: severe (174): SIGSEGV, possible program stack overflow\n"),
            "stack_limit_exceeded");
}

TEST(Cascade, R5ATruncatedCheckpointIsOfAnEarlierRun) {
  const Diagnosis said =
      Say("Traceback (most recent call last):\n"
          "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
          "directory\n");
  EXPECT_EQ(said.failure_class, "checkpoint_corrupt");
}

TEST(Cascade, R6DeviceMemoryIsAMessageAndHostMemoryAKill) {
  EXPECT_EQ(ClassOf("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED\n"),
            "gpu_out_of_memory");
  EXPECT_EQ(ClassOf("n1:77:90 [0] NCCL WARN Cuda failure 'out of memory'\n" + Peers(3)),
            "gpu_out_of_memory");
  Case killed = Failed("Killed\n");
  killed.execution.exit_code = 137;
  killed.execution.used.oom_kills = 1;
  EXPECT_EQ(ClassOf(killed), "host_out_of_memory");
}

TEST(Cascade, R7TheKernelSaysWhoseLimitItWas) {
  Case node = Failed("Killed\n");
  node.events.push_back({.source = "kernel",
                         .text = "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,"
                                 "task=solver,pid=4411,uid=1000"});
  EXPECT_EQ(ClassOf(node), "node_out_of_memory");
  Case job = Failed("Killed\n");
  job.events.push_back({.source = "kernel",
                        .text = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),"
                                "oom_memcg=/slurm/uid_1000/job_7,task=solver,pid=4411,uid=1000"});
  EXPECT_EQ(ClassOf(job), "host_out_of_memory");
  EXPECT_THAT(Say(job).root_cause, HasSubstr("the kernel's record says \"oom-kill:"));
}

TEST(Cascade, R8KilledAloneProvesNothing) {
  Case of = Failed("epoch 3\n./run.sh: line 4:  4411 Killed                  ./solver\n");
  of.execution.exit_code = 137;
  const Diagnosis said = Say(of);
  EXPECT_EQ(said.failure_class, "killed_unknown");
  EXPECT_EQ(said.confidence, Confidence::kLow);
  EXPECT_FALSE(said.collect.empty());
}

TEST(Cascade, R9LackOfMemoryHasManyFaces) {
  EXPECT_EQ(ClassOf("Error: cannot allocate vector of size 12.4 Gb\nExecution halted\n"),
            "host_out_of_memory");
  EXPECT_EQ(ClassOf("Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n"),
            "java_heap_exhausted");
  Case loader =
      Failed("RuntimeError: DataLoader worker (pid 22334) is killed by signal: Killed.\n");
  EXPECT_EQ(ClassOf(loader), "data_loader_worker_killed");
  loader.execution.used.oom_kills = 1;
  EXPECT_EQ(ClassOf(loader), "host_out_of_memory");
}

TEST(Cascade, R10CannotAllocateMemoryNeedNotBeMemory) {
  EXPECT_EQ(
      ClassOf("OpenBLAS blas_thread_init: pthread_create failed for thread 31 of 64: Resource "
              "temporarily unavailable\n"),
      "cannot_fork_nproc");
  EXPECT_THAT(ClassOf("./solver: error while loading shared libraries: libfoo.so: cannot map "
                      "zero-fill pages: Cannot allocate memory\n"),
              Not("host_out_of_memory"));
}

TEST(Cascade, R11MemoryThatGrowsToTheEndIsALeak) {
  Case of = Failed("slurmstepd: error: Detected 1 oom_kill event in StepId=8.batch.\n");
  of.execution.outcome = Outcome::kOutOfMemory;
  of.snapshot.host_ram_observed_peak_bytes = 23.5 * kGiB;
  of.snapshot.host_ram_requested_bytes = 24 * kGiB;
  EXPECT_EQ(ClassOf(of), "host_out_of_memory");
  of.snapshot.memory_growth_bytes_per_hour = 4 * kGiB;
  EXPECT_EQ(ClassOf(of), "memory_leak");
}

TEST(Cascade, R12CancelledMayBeAKillByTheMemoryPoller) {
  Case of = Failed(
      "slurmstepd: error: Step 7.0 exceeded memory limit (2101432 > 2097152), being "
      "killed\nslurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT "
      "2026-01-02T03:04:05 ***\n");
  of.execution.status = ExecutionStatus::kCancelled;
  of.execution.native_state = "CANCELLED";
  EXPECT_EQ(ClassOf(of), "host_out_of_memory");
}

TEST(Cascade, R12ATimeoutMayBeAHangOrTheWaitForAKilledRank) {
  Case of = Failed(
      "step 100\nslurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T03:04:05 "
      "DUE TO TIME LIMIT ***\n");
  of.execution.native_state = "TIMEOUT";
  of.execution.outcome = Outcome::kTimeout;
  of.snapshot.runtime_s = of.snapshot.walltime_s = 7200;
  EXPECT_EQ(ClassOf(of), "walltime_exceeded");
  of.snapshot.idle_tail_s = 5400;
  EXPECT_EQ(ClassOf(of), "hang_no_progress");
  of.snapshot.idle_tail_s.reset();
  of.logs[0].data =
      "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have "
      "been "
      "OOM Killed.\n" +
      of.logs[0].data;
  EXPECT_EQ(ClassOf(of), "host_out_of_memory");
}

TEST(Cascade, R13OptionsThatRunAsCommandsAreABrokenContinuation) {
  EXPECT_EQ(ClassOf("/var/spool/job7/slurm_script: line 12: -db: command not found\n"
                    "/var/spool/job7/slurm_script: line 13: -out: command not found\n"),
            "syntax_or_usage_error");
  EXPECT_EQ(ClassOf("/var/spool/job7/slurm_script: line 12: blastn: command not found\n"),
            "command_not_found");
}

TEST(Cascade, R14ABadInterpreterIsALineEndWhereOneShows) {
  EXPECT_EQ(ClassOf("/usr/bin/env: 'python3\\r': No such file or directory\n"),
            "bad_interpreter_crlf");
  EXPECT_EQ(ClassOf("slurmstepd: error: execve(): bad interpreter(/bin/zsh): No such file or "
                    "directory\n"),
            "bad_shebang_or_no_exec_bit");
}

TEST(Cascade, R15ScriptsRunFromACopyInTheSpool) {
  const Diagnosis said =
      Say("/var/spool/slurmd/job77/slurm_script: line 3: /var/spool/slurmd/job77/lib.sh: No such "
          "file or directory\n");
  EXPECT_EQ(said.failure_class, "file_not_found");
}

TEST(Cascade, R17WhatTheLoginNodeCanMayFailOnTheNode) {
  EXPECT_EQ(ClassOf("srun: error: n1: task 0: Illegal instruction (core dumped)\n"),
            "illegal_instruction");
  EXPECT_EQ(ClassOf("urllib3.exceptions.NameResolutionError: Failed to resolve 'host.example' "
                    "([Errno -3] Temporary failure in name resolution)\n"),
            "dns_failure");
}

TEST(Cascade, R18TheAdviceKnowsOfChildrenWithLimitsOfTheirOwn) {
  Case of = Failed("");
  of.execution.native_state = "TIMEOUT";
  of.execution.outcome = Outcome::kTimeout;
  EXPECT_THAT(Say(of).advice, HasSubstr("children"));
}

TEST(Cascade, R19ASocketThatTimesOutMayBeAKey) {
  const Diagnosis said = Say(
      "srun: error: Task launch for StepId=7.0 failed on node n1: Socket timed out on send/recv "
      "operation\n");
  EXPECT_EQ(said.failure_class, "scheduler_comm_failure");
  EXPECT_THAT(said.advice, HasSubstr("munge"));
  EXPECT_EQ(ClassOf("slurmstepd: error: Munge decode failed: Invalid credential\n"
                    "srun: error: Socket timed out on send/recv operation\n"),
            "scheduler_auth_failure");
}

TEST(Cascade, R20OtherWorkOnTheNodePointsToIt) {
  Case of = Failed("NVRM: Xid (PCI:0000:3b:00): 79, pid=4411, GPU has fallen off the bus.\n");
  of.node_records.push_back({.node = "n7",
                             .failure_class = "gpu_xid_79_fell_off_bus",
                             .executions = 4,
                             .users = 2,
                             .elsewhere = 1,
                             .other_nodes = 8});
  EXPECT_THAT(Say(of).root_cause, HasSubstr("which points to the node"));
  of.node_records[0].failure_class = "walltime_exceeded";
  EXPECT_THAT(Say(of).root_cause, Not(HasSubstr("n7")));
}

TEST(Cascade, R21XidsOfApplicationsAreNoHardware) {
  const Diagnosis said =
      Say("RuntimeError: CUDA error: an illegal memory access was encountered\n"
          "NVRM: Xid (PCI:0000:3b:00): 31, pid=4411, MMU Fault: ENGINE GRAPHICS\n");
  EXPECT_EQ(said.failure_class, "cuda_illegal_memory_access");
  EXPECT_NE(said.owner, "infrastructure");
}

TEST(Cascade, R22AFullDiskMayBeInodes) {
  const Diagnosis said = Say("OSError: [Errno 28] No space left on device: '/tmp/part-7'\n");
  EXPECT_EQ(said.failure_class, "no_space_left");
  EXPECT_THAT(said.collect, Contains(HasSubstr("df -i")));
  EXPECT_EQ(ClassOf("OSError: [Errno 122] Disk quota exceeded: '/home/ann/x'\n"),
            "disk_quota_exceeded");
}

TEST(Cascade, R23NoDeviceIsFirstOfAllARequest) {
  Case of = Failed("RuntimeError: No CUDA GPUs are available\n");
  EXPECT_EQ(ClassOf(of), "no_gpu_allocated");
}

TEST(Cascade, R24AnOutcomeSendsToThePodBefore) {
  Case of = Failed("", SourceType::kKubernetes);
  of.execution.native_reason = "BackoffLimitExceeded";
  const Diagnosis said = Say(of);
  EXPECT_EQ(said.failure_class, "deadline_or_backoff_limit");
  EXPECT_EQ(said.confidence, Confidence::kLow);
  EXPECT_THAT(said.collect, Contains(HasSubstr("--previous")));
  of.logs.push_back({.stream = "stderr", .data = "ModuleNotFoundError: No module named 'x'\n"});
  EXPECT_EQ(ClassOf(of), "import_error");
}

TEST(Cascade, R25AContainerThatCannotBeConfiguredHasSeveralCauses) {
  for (const char* text : {"Error: secret \"db\" not found",
                           "Error: container has runAsNonRoot and image will run as root"}) {
    Case of = Failed("", SourceType::kKubernetes);
    of.execution.native_reason = "CreateContainerConfigError";
    of.events.push_back({.source = "kubernetes", .text = text});
    const Diagnosis said = Say(of);
    EXPECT_EQ(said.failure_class, "create_container_config_error") << text;
    EXPECT_THAT(said.root_cause, HasSubstr(text));
  }
}

TEST(Cascade, R26NoiseOfTheClusterIsNoCauseOfAProgramThatRan) {
  Case of = Failed(
      "Traceback (most recent call last):\n  File \"etl.py\", line 3, in <module>\n"
      "KeyError: 'labels'\n",
      SourceType::kKubernetes);
  of.events.push_back({.source = "kubernetes",
                       .text = "FailedScheduling: 0/3 nodes are available: 3 Insufficient cpu."});
  of.events.push_back(
      {.source = "kubernetes", .text = "Unhealthy: Readiness probe failed: connection refused"});
  EXPECT_EQ(ClassOf(of), "shape_or_type_error");
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
