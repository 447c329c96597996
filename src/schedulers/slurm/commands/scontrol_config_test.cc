#include "schedulers/slurm/commands/scontrol_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/slurm/commands/reference_testing.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::string_view kConfig = R"(Configuration data as of 1790000000
AccountingStorageTRES   = cpu,mem,energy,node,billing,gres/gpu
AccountingStorageType   = accounting_storage/slurmdbd
BOOT_TIME               = 1789990000
ClusterName             = aurora
Epilog                  = (null)
Epilog[0]               = /opt/site/epilog.sh
JobAcctGatherType       = jobacct_gather/cgroup
MaxArraySize            = 1001
MaxJobId                = 67043328
MinJobAge               = 300 sec
ProctrackType           = proctrack/cgroup
Prolog                  = /opt/site/prolog.sh
PrologFlags             = Alloc,Contain
SelectType              = select/cons_tres
SlurmUser               = slurm(64030)
SlurmctldHost[0]        = head1(10.7.0.1)
SlurmctldHost[1]        = head2
SLURM_VERSION           = 22.05.8
StateSaveLocation       = /var/spool/ctld = odd
TaskProlog              = (null)

Cgroup Support Configuration:
ClusterName             = not this one

Slurmctld(primary) at head1 is UP
)";

TEST(ScontrolConfig, TakesWhatMatters) {
  const auto config = ParseSlurmConfig(kConfig);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->cluster, "aurora");
  EXPECT_EQ(config->version, "22.05.8");
  EXPECT_THAT(config->controllers, testing::ElementsAre("head1", "head2"));
  EXPECT_EQ(config->state_save_location, "/var/spool/ctld = odd");
  EXPECT_EQ(config->slurm_user, "slurm");
  EXPECT_EQ(config->slurm_uid, 64030U);
  EXPECT_EQ(config->prolog, "/opt/site/prolog.sh");
  EXPECT_EQ(config->epilog, "/opt/site/epilog.sh");
  EXPECT_EQ(config->task_prolog, "");
  EXPECT_EQ(config->prolog_flags, "Alloc,Contain");
  EXPECT_EQ(config->min_job_age, std::chrono::seconds(300));
  EXPECT_EQ(config->max_job_id, 67043328U);
  EXPECT_EQ(config->max_array_size, 1001U);
  EXPECT_TRUE(config->has_accounting());
}

TEST(ScontrolConfig, WithoutAccountingSaysSo) {
  EXPECT_FALSE(
      ParseSlurmConfig("ClusterName = a\nAccountingStorageType = accounting_storage/none\n")
          ->has_accounting());
  EXPECT_FALSE(
      ParseSlurmConfig("ClusterName = a\nAccountingStorageType = (null)\n")->has_accounting());
}

TEST(ScontrolConfig, WithoutAClusterIsNoConfiguration) {
  const auto config = ParseSlurmConfig("slurm_load_ctl_conf error: Unable to contact\n");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().reason, "slurm.config");
}

TEST(ScontrolConfig, ReadsCapturesOfRealClusters) {
  const auto paths = ReferenceTexts("scontrol-show-config");
  if (paths.empty()) GTEST_SKIP() << "no reference inputs at " << ReferenceTextDirectory();
  for (const std::string& path : paths) {
    const auto config = ParseSlurmConfig(base::ReadFile(path).value());
    ASSERT_TRUE(config) << path;
    EXPECT_TRUE(config->version.starts_with("2")) << path;
    EXPECT_FALSE(config->controllers.empty()) << path;
    EXPECT_TRUE(config->state_save_location.starts_with('/')) << path;
    EXPECT_TRUE(config->min_job_age && config->max_job_id && config->slurm_uid) << path;
    EXPECT_TRUE(config->has_accounting()) << path;
  }
}

}  // namespace
}  // namespace expanse::schedulers::slurm
