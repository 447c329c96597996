#include "schedulers/slurm/node/gpu_grants.h"

#include <gtest/gtest.h>

#include "collect/fake_tree_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using List = std::vector<std::string>;

HookEvent Granted(const std::string& gpus) {
  HookEvent event;
  event.job_gpus = gpus;
  return event;
}

class GpuNumbersTest : public testing::Test {
 protected:
  void Device(const std::string& bus, const std::string& uuid, int minor) {
    tree_.Write("proc/driver/nvidia/gpus/" + bus + "/information",
                "Model: \t\t Some GPU\nIRQ:   \t\t 77\nGPU UUID: \t " + uuid +
                    "\nBus Location: \t " + bus + "\nDevice Minor: \t " + std::to_string(minor) +
                    "\n");
  }
  List Uuids(const std::string& gpus) { return GpuNumbers(tree_.root()).UuidsOf(Granted(gpus)); }
  collect::FakeTree tree_;
};

// A host where the order on the bus is not that of the device files: a collector that went by the
// index showed one user the other's GPU.
TEST_F(GpuNumbersTest, GoesByTheDeviceFilesNotByTheOrderOnTheBus) {
  Device("0000:3b:00.0", "GPU-b", 1);
  Device("0000:af:00.0", "GPU-a", 0);
  EXPECT_EQ(Uuids("0"), List{"GPU-a"});
  EXPECT_EQ(Uuids("1"), List{"GPU-b"});
  EXPECT_EQ(Uuids("0-1"), (List{"GPU-a", "GPU-b"}));
}

TEST_F(GpuNumbersTest, TakesUuidsAsTheyAre) {
  EXPECT_EQ(Uuids("GPU-x,GPU-y"), (List{"GPU-x", "GPU-y"}));
  EXPECT_EQ(Uuids("MIG-z"), List{"MIG-z"});
}

TEST_F(GpuNumbersTest, DoesNotGuess) {
  Device("0000:3b:00.0", "GPU-a", 0);
  EXPECT_EQ(Uuids("0,1"), List{}) << "one of them is no device of this host";
  EXPECT_EQ(Uuids("128"), List{}) << "AMD";
  EXPECT_EQ(Uuids("NoDevFiles"), List{});
  EXPECT_EQ(Uuids(""), List{});
  // What a job sees is counted from 0 in every job.
  HookEvent event;
  event.visible_devices = "0";
  EXPECT_EQ(GpuNumbers(tree_.root()).UuidsOf(event), List{});
}

TEST_F(GpuNumbersTest, KnowsNoNumbersOnADividedHost) {
  Device("0000:3b:00.0", "GPU-a", 0);
  tree_.Write("proc/driver/nvidia/capabilities/gpu0/mig/gi7/access", "");
  EXPECT_EQ(Uuids("0"), List{});
  EXPECT_EQ(Uuids("MIG-z"), List{"MIG-z"});
}

TEST_F(GpuNumbersTest, SaysNothingWithoutADriver) { EXPECT_EQ(Uuids("0"), List{}); }

}  // namespace
}  // namespace expanse::schedulers::slurm
