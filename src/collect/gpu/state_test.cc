#include "collect/gpu/state.h"

#include <gtest/gtest.h>

#include "collect/fake_tree_testing.h"
#include "collect/sink_testing.h"

namespace expanse::collect {
namespace {

using namespace std::chrono_literals;

constexpr double kGiB = 1024.0 * 1024 * 1024;

GpuReading Reading(std::string uuid, double util, double used_gib) {
  GpuReading reading;
  reading.uuid = std::move(uuid);
  reading.index = 5;
  reading.util_pct = util;
  reading.memory_used_bytes = used_gib * kGiB;
  reading.memory_total_bytes = 80 * kGiB;
  return reading;
}

GpuProcess Process(std::string uuid, pid_t pid, double gib) {
  return {std::move(uuid), pid, "w", gib * kGiB};
}

class GpuStateTest : public testing::Test {
 protected:
  GpuStateTest() {
    workloads_.resize(3);
    for (std::size_t i = 0; i < 3; ++i) {
      workloads_[i].key = {evidence::SourceType::kHost, std::string(1, static_cast<char>('a' + i))};
    }
    state_.SetProcessesKnown(true);
  }
  // Process 1xx is of workload a, 2xx of b, 3xx of c, others of none.
  void Emit(std::chrono::milliseconds since) {
    sink_.Clear();
    state_.Emit(
        TickAt(since), workloads_,
        [this](pid_t pid) -> const TrackedWorkload* {
          return pid / 100 >= 1 && pid / 100 <= 3
                     ? &workloads_[static_cast<std::size_t>(pid) / 100 - 1]
                     : nullptr;
        },
        sink_);
  }
  static base::MonoTime At(std::chrono::milliseconds since) { return TickAt(since).mono; }

  std::vector<TrackedWorkload> workloads_;
  GpuState state_{"n1", 10s};
  RecordingSink sink_;
};

TEST_F(GpuStateTest, GivesTheMachineEveryDeviceByUuid) {
  state_.TakeReading(Reading("GPU-x", 30, 4), At(0s));
  state_.TakeReading(Reading("GPU-y", 60, 8), At(0s));
  Emit(0s);
  EXPECT_EQ(sink_.Value("gpu-util", "", "GPU-x"), 30.0);
  EXPECT_EQ(sink_.Value("gpu-util", "", "GPU-y"), 60.0);
  EXPECT_EQ(sink_.Value("gpu-memory-used", "", "GPU-y"), 8 * kGiB);
  EXPECT_EQ(sink_.Value("gpu-processes", "", "GPU-y"), 0.0);
  EXPECT_FALSE(sink_.Value("gpu-power", "", "GPU-x")) << "unknown is no point";
  EXPECT_EQ(sink_.points()[0].series.gpu_index, 5U);
  EXPECT_EQ(sink_.points()[0].series.source, "nvidia-smi");
  EXPECT_EQ(sink_.points()[0].series.attribution, "");
}

TEST_F(GpuStateTest, AnExclusiveDeviceIsTheWorkloadsAsAWhole) {
  workloads_[0].gpu_uuids = {"GPU-x"};
  state_.TakeReading(Reading("GPU-x", 90, 20), At(0s));
  state_.TakeProcess(Process("GPU-x", 101, 18), At(0s));
  state_.TakeProcess(Process("GPU-x", 102, 1), At(0s));
  Emit(0s);
  EXPECT_EQ(sink_.Attribution("a", "GPU-x"), "exclusive");
  EXPECT_EQ(sink_.Value("gpu-util", "a"), 90.0);
  EXPECT_EQ(sink_.Value("gpu-memory-used", "a"), 20 * kGiB);
  EXPECT_EQ(sink_.Value("gpu-process-memory", "a"), 19 * kGiB);
  EXPECT_EQ(sink_.Value("gpu-processes", "a"), 2.0);
  EXPECT_FALSE(sink_.Value("gpu-util", "b"));
}

TEST_F(GpuStateTest, MemoryOfASharedDeviceIsNeverCountedTwice) {
  state_.TakeReading(Reading("GPU-x", 90, 30), At(0s));
  state_.TakeProcess(Process("GPU-x", 101, 18), At(0s));
  state_.TakeProcess(Process("GPU-x", 201, 10), At(0s));
  Emit(0s);
  EXPECT_EQ(sink_.Attribution("a", "GPU-x"), "shared");
  EXPECT_EQ(sink_.Attribution("b", "GPU-x"), "shared");
  EXPECT_EQ(*sink_.Value("gpu-memory-used", "a") + *sink_.Value("gpu-memory-used", "b"), 28 * kGiB);
  EXPECT_EQ(sink_.Value("gpu-util", "a"), 90.0);
}

TEST_F(GpuStateTest, AStrangersProcessMakesADeviceShared) {
  state_.TakeReading(Reading("GPU-x", 90, 30), At(0s));
  state_.TakeProcess(Process("GPU-x", 101, 18), At(0s));
  state_.TakeProcess(Process("GPU-x", 999, 5), At(0s));
  Emit(0s);
  EXPECT_EQ(sink_.Attribution("a", "GPU-x"), "shared");
  EXPECT_EQ(sink_.Value("gpu-memory-used", "a"), 18 * kGiB);
}

TEST_F(GpuStateTest, AGrantedDeviceWithoutProcessIsHeldIdle) {
  workloads_[0].gpu_uuids = {"GPU-x"};
  workloads_[1].gpu_uuids = {"GPU-y"};
  state_.TakeReading(Reading("GPU-x", 0, 1), At(0s));
  state_.TakeReading(Reading("GPU-y", 70, 9), At(0s));
  state_.TakeProcess(Process("GPU-y", 301, 9), At(0s));  // c's process on b's device
  Emit(0s);
  EXPECT_EQ(sink_.Attribution("a", "GPU-x"), "idle_held");
  EXPECT_EQ(sink_.Attribution("b", "GPU-y"), "idle_held");
  EXPECT_EQ(sink_.Value("gpu-memory-used", "b"), 0.0) << "what is used there is c's";
  EXPECT_EQ(sink_.Value("gpu-memory-used", "c"), 9 * kGiB);
  EXPECT_EQ(sink_.Attribution("c", "GPU-y"), "exclusive") << "no other process is on it";
}

TEST_F(GpuStateTest, WithoutAProcessListNothingIsSure) {
  state_.SetProcessesKnown(false);
  workloads_[0].gpu_uuids = {"GPU-x"};
  state_.TakeReading(Reading("GPU-x", 40, 1), At(0s));
  Emit(0s);
  EXPECT_EQ(sink_.Attribution("a", "GPU-x"), "unknown");
  EXPECT_EQ(sink_.Value("gpu-util", "a"), 40.0);
  EXPECT_FALSE(sink_.Value("gpu-processes", "a"));
}

TEST_F(GpuStateTest, AProcessOnADividedDeviceIsNotOnAllOfIt) {
  GpuReading reading = Reading("GPU-x", 0, 30);
  reading.mig = true;
  reading.util_pct.reset();
  state_.TakeReading(reading, At(0s));
  state_.TakeReading(Reading("MIG-1", 55, 3), At(0s));
  state_.TakeProcess(Process("GPU-x", 101, 4), At(0s));
  workloads_[1].gpu_uuids = {"MIG-1"};
  Emit(0s);
  EXPECT_EQ(state_.divided(), 1U);
  EXPECT_EQ(sink_.Attribution("a", "GPU-x"), "unknown");
  EXPECT_EQ(sink_.Value("gpu-memory-used", "a"), 4 * kGiB);
  EXPECT_FALSE(sink_.Value("gpu-util", "a"));
  EXPECT_EQ(sink_.Value("gpu-util", "b", "MIG-1"), 55.0) << "an instance is a device of its own";
}

TEST_F(GpuStateTest, MemoryThatTheDriverDoesNotTellIsUnknown) {
  state_.TakeReading(Reading("GPU-x", 90, 30), At(0s));
  state_.TakeProcess({"GPU-x", 101, "w", std::nullopt}, At(0s));
  state_.TakeProcess(Process("GPU-x", 201, 10), At(0s));
  Emit(0s);
  EXPECT_FALSE(sink_.Value("gpu-memory-used", "a"));
  EXPECT_EQ(sink_.Value("gpu-memory-used", "b"), 10 * kGiB);
  EXPECT_FALSE(sink_.Value("gpu-process-memory", ""));
}

TEST_F(GpuStateTest, AReadingStandsInOnceWhenTheNextIsLate) {
  state_.TakeReading(Reading("GPU-x", 30, 4), At(9900ms));
  Emit(10s);
  EXPECT_TRUE(sink_.Value("gpu-util"));
  Emit(11s);
  EXPECT_FALSE(sink_.Value("gpu-util")) << "faster ticks do not repeat it";
  Emit(20s);
  EXPECT_TRUE(sink_.Value("gpu-util"));
  Emit(30s);
  EXPECT_FALSE(sink_.Value("gpu-util")) << "a device that says nothing has no values";
}

TEST_F(GpuStateTest, ForgetsProcessesThatAreNoLongerListed) {
  state_.TakeReading(Reading("GPU-x", 30, 4), At(0s));
  state_.TakeProcess(Process("GPU-x", 101, 4), At(0s));
  Emit(0s);
  state_.TakeReading(Reading("GPU-x", 0, 0), At(20s));
  Emit(20s);
  EXPECT_FALSE(sink_.Value("gpu-util", "a"));
  EXPECT_EQ(sink_.Value("gpu-processes"), 0.0);
}

}  // namespace
}  // namespace expanse::collect
