#include "collect/gpu/collector.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "collect/fake_tree_testing.h"
#include "collect/process/fake_process_testing.h"
#include "collect/sink_testing.h"

namespace expanse::collect {
namespace {

using namespace std::chrono_literals;

// A stand-in for nvidia-smi; $1 is the query.
class GpuCollectorTest : public testing::Test {
 protected:
  void Program(std::string_view script) {
    tree_.Write("bin/nvidia-smi", "#!/bin/sh\n" + std::string(script));
    ASSERT_EQ(::chmod(Path().c_str(), 0755), 0);
  }
  std::string Path() const { return tree_.root() + "/bin/nvidia-smi"; }
  GpuCollector Make() { return GpuCollector({tree_.root(), "n1"}, {Path(), 10s}); }
  // Ticks until `done`; the program is a real one, so this waits for real, with an end.
  template <typename Done>
  bool TickUntil(GpuCollector& collector, Done done, std::chrono::milliseconds step = 1ms) {
    for (int i = 0; i < 5000; ++i) {
      now_ += step;
      collector.Collect(TickAt(now_), workloads_, sink_);
      if (done()) return true;
      std::this_thread::sleep_for(2ms);
    }
    return false;
  }

  FakeTree tree_;
  RecordingSink sink_;
  std::vector<TrackedWorkload> workloads_;
  std::chrono::milliseconds now_{0};
};

constexpr char kWorking[] = R"(
case "$1" in
--query-gpu=*)
  echo "index, uuid, utilization.gpu [%], memory.used [MiB], clocks_throttle_reasons.active"
  echo "1, GPU-one, 77, 1024, 0x0000000000000001"
  ;;
*)
  echo "gpu_uuid, pid, used_gpu_memory [MiB]"
  echo "GPU-one, 102, 900"
  ;;
esac
exec sleep 600
)";

TEST_F(GpuCollectorTest, JoinsDevicesProcessesAndWorkloads) {
  Program(kWorking);
  WriteProcess(tree_, {.pid = 100, .parent = 1});
  WriteProcess(tree_, {.pid = 102, .parent = 100});
  workloads_.resize(1);
  workloads_[0].key.identity = "a";
  workloads_[0].roots = {{100, 100}};
  auto collector = Make();
  ASSERT_TRUE(collector.Start());
  ASSERT_TRUE(TickUntil(collector, [&] { return collector.health().figures.at("devices") == 1; }));
  ASSERT_TRUE(TickUntil(
      collector, [&] { return sink_.Attribution("a", "GPU-one") == "exclusive"; }, 100ms));
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kOk);
  collector.Stop();
}

TEST_F(GpuCollectorTest, SaysWhenThereIsNoNvidiaSmi) {
  GpuCollector collector({tree_.root(), "n1"}, {Path(), 10s});
  EXPECT_FALSE(collector.Start());
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kDisabled);
  EXPECT_EQ(collector.health().reason, "not_found");
}

TEST_F(GpuCollectorTest, SaysWhenThereAreNoDevicesAndTriesAgain) {
  Program("echo 'No devices were found'; exit 6\n");
  auto collector = Make();
  collector.Start();
  ASSERT_TRUE(TickUntil(collector, [&] { return collector.health().reason == "no_devices"; }));
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kDegraded);
  Program(kWorking);
  ASSERT_TRUE(
      TickUntil(collector, [&] { return collector.health().figures.at("devices") == 1; }, 1s));
  EXPECT_NE(collector.health().reason, "no_devices");
}

TEST_F(GpuCollectorTest, GivesTheDriversWordsWhenItFails) {
  Program("echo 'Failed to initialize NVML: Driver/library version mismatch' >&2; exit 18\n");
  auto collector = Make();
  collector.Start();
  ASSERT_TRUE(TickUntil(collector, [&] { return collector.health().reason == "driver_error"; }));
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kFailed);
  EXPECT_NE(collector.health().message.find("version mismatch"), std::string::npos)
      << collector.health().message;
}

TEST_F(GpuCollectorTest, BacksOffFromAProgramThatDies) {
  Program("exit 9\n");
  auto collector = Make();
  collector.Start();
  ASSERT_TRUE(TickUntil(collector, [&] { return collector.health().reason == "driver_error"; }));
  const double starts = collector.health().figures.at("starts");
  for (int i = 0; i < 50; ++i) collector.Collect(TickAt(now_ + i * 1ms), workloads_, sink_);
  EXPECT_LE(collector.health().figures.at("starts"), starts + 1);
}

TEST_F(GpuCollectorTest, LeavesOutFieldsThatThisVersionDoesNotKnow) {
  Program(R"(
case "$1" in
*clocks_event_reasons.active*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2;;
*temperature.memory*) echo 'Field "temperature.memory" is not a valid field to query.'; exit 2;;
esac
)" + std::string(kWorking));
  auto collector = Make();
  collector.Start();
  ASSERT_TRUE(
      TickUntil(collector, [&] { return sink_.Value("gpu-throttle-reasons").has_value(); }));
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kOk) << collector.health().message;
}

TEST_F(GpuCollectorTest, SaysWhenItCannotTellWhoseADeviceIs) {
  Program(R"(
case "$1" in --query-compute-apps=*) echo "not for you" >&2; exit 4;; esac
)" + std::string(kWorking));
  auto collector = Make();
  collector.Start();
  ASSERT_TRUE(TickUntil(collector, [&] { return collector.health().reason == "no_processes"; }));
  EXPECT_EQ(collector.health().status, evidence::HealthStatus::kDegraded);
  EXPECT_NE(collector.health().message.find("not for you"), std::string::npos);
}

TEST_F(GpuCollectorTest, ReplacesAProgramThatHangs) {
  Program("exec sleep 600\n");
  auto collector = Make();
  collector.Start();
  ASSERT_TRUE(
      TickUntil(collector, [&] { return collector.health().reason == "driver_error"; }, 10s));
  EXPECT_NE(collector.health().message.find("hangs"), std::string::npos);
  Program(kWorking);
  ASSERT_TRUE(
      TickUntil(collector, [&] { return collector.health().figures.at("devices") == 1; }, 10s));
}

}  // namespace
}  // namespace expanse::collect
