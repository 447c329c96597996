#include "schedulers/slurm/node/hook_event.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

std::string File(const std::vector<std::string>& fields) {
  std::string bytes;
  for (const std::string& field : fields) {
    bytes += field;
    bytes += '\0';
  }
  return bytes;
}

std::string Reason(const std::string& bytes) {
  const auto event = ParseHookEvent(bytes);
  return event ? "" : event.error().reason;
}

TEST(HookEvent, ReadsWhatAnEpilogKnows) {
  const auto event = ParseHookEvent(File({"expanse-hook 1",
                                          "epilog",
                                          "SLURM_JOB_ID=8812",
                                          "SLURM_JOB_SLUID=s5K1KKYAYG5D00",
                                          "SLURM_JOB_UID=2001",
                                          "SLURM_JOB_USER=mara",
                                          "SLURM_CLUSTER_NAME=fen",
                                          "SLURMD_NODENAME=reed07",
                                          "SLURM_JOB_PARTITION=long",
                                          "SLURM_JOB_NODELIST=reed[05-08]",
                                          "SLURM_ARRAY_JOB_ID=8800",
                                          "SLURM_ARRAY_TASK_ID=12",
                                          "SLURM_HET_JOB_ID=",
                                          "SLURM_JOB_RESTART_COUNT=2",
                                          "SLURM_JOB_EXIT_CODE2=3:15",
                                          "SLURM_JOB_EXIT_CODE=783",
                                          "SLURM_JOB_START_TIME=1799000000",
                                          "SLURM_JOB_GPUS=0,2",
                                          "CUDA_VISIBLE_DEVICES=0,1",
                                          "SOMETHING_NEWER=x",
                                          "end"}));
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->kind, HookKind::kEpilog);
  EXPECT_EQ(event->job_id, 8812U);
  EXPECT_EQ(event->sluid, "s5K1KKYAYG5D00");
  EXPECT_EQ(event->uid, 2001U);
  EXPECT_EQ(event->user, "mara");
  EXPECT_EQ(event->cluster, "fen");
  EXPECT_EQ(event->node, "reed07");
  EXPECT_EQ(event->partition, "long");
  EXPECT_EQ(event->node_list, "reed[05-08]");
  EXPECT_EQ(event->array_job_id, 8800U);
  EXPECT_EQ(event->array_task_id, 12U);
  EXPECT_FALSE(event->het_job_id);
  EXPECT_FALSE(event->het_offset);
  EXPECT_EQ(event->restart_count, 2U);
  EXPECT_EQ(event->exit_code, 3);
  EXPECT_EQ(event->signal, 15);
  EXPECT_EQ(event->started_at, base::WallTime(std::chrono::seconds(1'799'000'000)));
  EXPECT_EQ(GrantedGpuNumbers(*event), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_TRUE(GrantedGpuUuids(*event).empty());
}

TEST(HookEvent, KeepsAnyByteOfAValue) {
  const std::string odd = "a|b\"'\n\t=\\x \xff\xfe$(id)`";
  const auto event =
      ParseHookEvent(File({"expanse-hook 1", "prolog", "SLURM_JOB_ID=7",
                           "SLURM_JOB_PARTITION=" + odd, "SLURM_JOB_NODELIST=end", "end"}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->partition, odd);
  EXPECT_EQ(event->node_list, "end");
}

TEST(HookEvent, ReadsAWaitStatusWhereThatIsAllThereIs) {
  const auto of = [](const std::string& status) {
    return *ParseHookEvent(File(
        {"expanse-hook 1", "epilog", "SLURM_JOB_ID=7", "SLURM_JOB_EXIT_CODE=" + status, "end"}));
  };
  EXPECT_EQ(of("0").exit_code, 0);
  EXPECT_EQ(of("256").exit_code, 1);
  EXPECT_FALSE(of("256").signal);
  EXPECT_EQ(of("9").signal, 9);
  EXPECT_EQ(of("9").exit_code, 0);
  EXPECT_FALSE(of("nine").exit_code);
}

TEST(HookEvent, BelievesNoExitCodeOfABeginning) {
  const auto event = ParseHookEvent(
      File({"expanse-hook 1", "prolog", "SLURM_JOB_ID=7", "SLURM_JOB_EXIT_CODE2=1:0", "end"}));
  EXPECT_FALSE(event->exit_code);
}

TEST(HookEvent, TakesSlurmsWayToSayNoneForUnknown) {
  const auto event =
      ParseHookEvent(File({"expanse-hook 1", "prolog", "SLURM_JOB_ID=7", "SLURM_JOB_UID=4294967294",
                           "SLURM_ARRAY_TASK_ID=4294967294", "SLURM_JOB_START_TIME=0", "end"}));
  EXPECT_FALSE(event->uid);
  EXPECT_FALSE(event->array_task_id);
  EXPECT_FALSE(event->started_at);
}

TEST(HookEvent, TellsTornFromForgedFromNewer) {
  const std::string whole = File({"expanse-hook 1", "prolog", "SLURM_JOB_ID=7", "end"});
  EXPECT_EQ(Reason(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(Reason(whole.substr(0, size)), "hook.torn") << size;
  }
  EXPECT_EQ(Reason(whole + "x"), "hook.malformed");
  EXPECT_EQ(Reason(File({"expanse-hook 2", "prolog", "end"})), "hook.version");
  EXPECT_EQ(Reason(File({"something", "prolog", "SLURM_JOB_ID=7", "end"})), "hook.malformed");
  EXPECT_EQ(Reason(File({"expanse-hook 1", "prolog", "end"})), "hook.malformed");
  EXPECT_EQ(Reason(File({"expanse-hook 1", "prolog", "SLURM_JOB_ID=0", "end"})), "hook.malformed");
  EXPECT_EQ(Reason(File({"expanse-hook 1", "prolog", "SLURM_JOB_ID=-7", "end"})), "hook.malformed");
  EXPECT_EQ(Reason(File({"expanse-hook 1", "SLURM_JOB_ID=7", "end"})), "hook.malformed");
  EXPECT_EQ(Reason(File({"expanse-hook 1", "prolog", "words", "end"})), "hook.malformed");
  EXPECT_EQ(Reason(std::string(kMaxHookEvent + 1, 'x')), "hook.malformed");
}

// Every spelling that Slurm has for the GPUs of a job.
TEST(HookEvent, TellsGpusByUuidFromGpusByNumber) {
  HookEvent event;
  event.job_gpus = "GPU-11aa,GPU-22bb,GPU-11aa";
  EXPECT_EQ(GrantedGpuUuids(event), (std::vector<std::string>{"GPU-11aa", "GPU-22bb"}));
  EXPECT_FALSE(GrantedGpuNumbers(event));
  event.job_gpus = "0-2,7";
  EXPECT_EQ(GrantedGpuNumbers(event), (std::vector<std::uint32_t>{0, 1, 2, 7}));
  event.visible_devices = "MIG-33cc,MIG-44dd";
  EXPECT_EQ(GrantedGpuUuids(event), (std::vector<std::string>{"MIG-33cc", "MIG-44dd"}));
  event.job_gpus = "128,129";  // AMD
  EXPECT_EQ(GrantedGpuNumbers(event), (std::vector<std::uint32_t>{128, 129}));
  for (const char* junk : {"", "NoDevFiles", "0,", "3-1", "0-4000000000", "1,x", "-1"}) {
    event.job_gpus = junk;
    EXPECT_FALSE(GrantedGpuNumbers(event)) << junk;
  }
}

}  // namespace
}  // namespace expanse::schedulers::slurm
