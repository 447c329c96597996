#include "schedulers/slurm/work_lane.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

TEST(ThreadLane, DoesOneAfterTheOther) {
  ThreadLane lane;
  std::vector<int> order;
  std::promise<void> last;
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(lane.Post([&, i](std::stop_token) { order.push_back(i); }));
  ASSERT_TRUE(lane.Post([&](std::stop_token) { last.set_value(); }));
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(ThreadLane, RefusesWhatIsTooMuch) {
  ThreadLane lane(/*most_waiting=*/2);
  std::promise<void> begun;
  std::promise<void> go_on;
  ASSERT_TRUE(lane.Post([&, wait = go_on.get_future().share()](std::stop_token) {
    begun.set_value();
    wait.wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(lane.Post([](std::stop_token) {}));
  EXPECT_TRUE(lane.Post([](std::stop_token) {}));
  EXPECT_FALSE(lane.Post([](std::stop_token) {}));
  go_on.set_value();
}

TEST(ThreadLane, StopEndsWhatRunsAndDropsWhatWaits) {
  ThreadLane lane;
  std::promise<void> begun;
  std::atomic<bool> second = false;
  ASSERT_TRUE(lane.Post([&](std::stop_token stop) {
    std::promise<void> stopped;
    const std::stop_callback wake(stop, [&] { stopped.set_value(); });
    begun.set_value();
    stopped.get_future().wait();
  }));
  ASSERT_TRUE(lane.Post([&](std::stop_token) { second = true; }));
  begun.get_future().wait();
  lane.Stop(10s);
  EXPECT_FALSE(second);
  EXPECT_FALSE(lane.Post([](std::stop_token) {}));
  lane.Stop(10s);
}

TEST(ThreadLane, LeavesBehindWhatIsStuck) {
  std::promise<void> go_on;
  std::promise<void> over;
  {
    ThreadLane lane;
    std::promise<void> begun;
    ASSERT_TRUE(lane.Post([&, wait = go_on.get_future().share()](std::stop_token) {
      begun.set_value();
      wait.wait();
      over.set_value();
    }));
    begun.get_future().wait();
    lane.Stop(1ms);
  }
  go_on.set_value();
  over.get_future().wait();
}

}  // namespace
}  // namespace expanse::schedulers::slurm
