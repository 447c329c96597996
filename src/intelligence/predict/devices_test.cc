#include "intelligence/predict/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "intelligence/predict/run_testing.h"

namespace expanse::intelligence::predict {
namespace {

RecordedRun OnCores(double mean, std::optional<double> peak, double asked) {
  RecordedRun run = Succeeded(1, 100);
  run.cpu_mean_cores = mean;
  run.cpu_peak_cores = peak;
  run.requested.cpu_cores = asked;
  return run;
}

RecordedRun OnGpus(double active, double asked) {
  RecordedRun run = Succeeded(1, 100);
  run.gpus_active = active;
  run.requested.gpu_count = asked;
  return run;
}

TEST(Devices, IdleCoresAreGivenBack) {
  const Runs runs = {OnCores(2, 3.4, 16), OnCores(1.5, 2.2, 16)};
  const auto advice = AdviseCpu(runs, 16);
  EXPECT_EQ(advice.change, Change::kLower);
  EXPECT_EQ(advice.amount, 4);
  // Where only means are known a quarter is added.
  EXPECT_EQ(AdviseCpu(Runs{OnCores(8, std::nullopt, 16)}, 16).amount, 10);
}

TEST(Devices, LessThanACoreIsNoChange) {
  const auto advice = AdviseCpu(Runs{OnCores(1, 1.2, 2)}, 2);
  EXPECT_EQ(advice.change, Change::kNone);
  EXPECT_EQ(advice.amount, 2);
  EXPECT_EQ(AdviseCpu(Runs{OnCores(60, 61.5, 64)}, 64).change, Change::kNone);
}

TEST(Devices, BusyCoresAreNotARaiseUnlessMoreWereUsedThanAskedFor) {
  EXPECT_EQ(AdviseCpu(Runs{OnCores(16, 16, 16), OnCores(15.9, 16, 16)}, 16).change, Change::kNone);
  const auto advice = AdviseCpu(Runs{OnCores(6, 7.5, 4), OnCores(5, 6, 4)}, 4);
  EXPECT_EQ(advice.change, Change::kRaise);
  EXPECT_EQ(advice.amount, 8);
}

TEST(Devices, GpusAreLoweredOnlyWhenAllRunsLeftSomeIdle) {
  EXPECT_EQ(AdviseGpu(Runs{OnGpus(1, 4), OnGpus(2, 4)}, 4).amount, 2);
  EXPECT_EQ(AdviseGpu(Runs{OnGpus(1, 4), OnGpus(4, 4)}, 4).change, Change::kNone);
  EXPECT_EQ(AdviseGpu(Runs{OnGpus(1, 4)}, 4).change, Change::kNone);
  EXPECT_EQ(AdviseGpu(Runs{OnGpus(2, 2), OnGpus(2, 2)}, 1).change, Change::kNone);
}

TEST(Devices, CrashesAndCancelledRunsSayNothing) {
  RecordedRun crash = OnCores(1, 1, 16);
  crash.ending = Ending::kFailure;
  RecordedRun cancelled = OnGpus(0, 4);
  cancelled.ending = Ending::kCancelled;
  EXPECT_EQ(AdviseCpu(Runs{crash, crash}, 16).runs, 0u);
  EXPECT_EQ(AdviseGpu(Runs{cancelled, cancelled}, 4).runs, 0u);
}

TEST(Devices, GpuMemoryIsOfTheWorstDeviceAndItsFloorOfTheBestRun) {
  Runs runs(3, Succeeded(1, 100));
  runs[0].gpu_memory_peak_bytes = 32e9;
  runs[1].gpu_memory_peak_bytes = 33.5e9;
  runs[2].gpu_memory_peak_bytes = 20e9;
  runs[2].ending = Ending::kFailure;  // before it needed all
  runs[0].gpu_utilisation_pct = 90;
  runs[1].gpu_utilisation_pct = 92;
  runs[1].gpu_type = "a card";
  runs[1].gpu_memory_available_bytes = 85e9;
  const GpuMemory gpu = MeasuredGpu(runs);
  EXPECT_EQ(gpu.peak_bytes, 33.5e9);
  EXPECT_EQ(gpu.floor_bytes, 32e9);
  EXPECT_EQ(gpu.utilisation_pct, 91);
  EXPECT_EQ(gpu.available_bytes, 85e9);
  EXPECT_EQ(gpu.gpu_type, "a card");
}

}  // namespace
}  // namespace expanse::intelligence::predict
