#include "intelligence/run_executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

namespace expanse::intelligence {
namespace {

using namespace std::chrono_literals;

RunExecutor::Deadline In(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

TEST(RunExecutor, GivesWhatTheWorkGives) {
  RunExecutor executor(1, 1);
  EXPECT_EQ(executor.Within<int>(In(10s), {}, [] { return 7; }), 7);
  const auto failed = executor.Within<int>(In(10s), {}, []() -> base::Result<int> {
    return base::Fail(base::Code::kNotFound, "x.y", "no");
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().reason, "x.y");
}

TEST(RunExecutor, DoesNotWaitBeyondTheDeadlineAndOutlivesTheWork) {
  std::promise<void> release;
  std::atomic<bool> ended = false;
  {
    RunExecutor executor(1, 1);
    const auto late = executor.Within<int>(In(20ms), {}, [&, wait = release.get_future().share()] {
      wait.wait();
      ended = true;
      return 1;
    });
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, base::Code::kDeadlineExceeded);
    EXPECT_EQ(late.error().reason, "run.timeout");
    release.set_value();
  }
  EXPECT_TRUE(ended);
}

TEST(RunExecutor, TurnsAwayWhatItHasNoPlaceForAndBeginsNothingNobodyWaitsFor) {
  std::promise<void> release;
  const auto wait = release.get_future().share();
  RunExecutor executor(1, 1);
  std::promise<void> begun;
  std::jthread first([&] {
    EXPECT_EQ(executor.Within<int>(In(20s), {},
                                   [&] {
                                     begun.set_value();
                                     wait.wait();
                                     return 1;
                                   }),
              1);
  });
  begun.get_future().wait();
  std::atomic<int> others = 0;
  // The second waits for the thread in vain, and is never begun.
  EXPECT_EQ(executor.Within<int>(In(10ms), {}, [&] { return ++others; }).error().reason,
            "run.timeout");
  const auto third = executor.Within<int>(In(20s), {}, [&] { return ++others; });
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, base::Code::kResourceExhausted);
  EXPECT_EQ(third.error().reason, "run.overloaded");
  release.set_value();
  first.join();
  executor.Drain();
  EXPECT_EQ(others, 0);
}

TEST(RunExecutor, WhenItIsToStopWorkHasAMomentToEnd) {
  RunExecutor executor(1, 1);
  std::stop_source stop;
  std::promise<void> begun;
  std::promise<void> release;
  std::jthread helper([&] {
    begun.get_future().wait();
    stop.request_stop();
    release.set_value();
  });
  EXPECT_EQ(executor.Within<std::string>(In(20s), stop.get_token(),
                                         [&]() -> base::Result<std::string> {
                                           begun.set_value();
                                           release.get_future().wait();
                                           return "done";
                                         }),
            "done");
}

TEST(RunExecutor, SaysWhenTheStopCameFirst) {
  std::promise<void> release;
  RunExecutor executor(1, 1);
  std::stop_source stop;
  stop.request_stop();
  const auto answer =
      executor.Within<int>(In(30ms), stop.get_token(), [wait = release.get_future().share()] {
        wait.wait();
        return 1;
      });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, "run.interrupted");
  release.set_value();
}

}  // namespace
}  // namespace expanse::intelligence
