#include "daemon/step_pacer.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/files.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

class StepPacerTest : public testing::Test {
 protected:
  // How long a wait takes, by the real clock: the kernel's events know no other.
  std::chrono::milliseconds Wait(StepPacer& pacer, const std::stop_token& stop = {}) {
    const base::MonoTime before = clock_.Mono();
    pacer.Wait(stop);
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Mono() - before);
  }
  void Write(const std::string& name) {
    ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(directory_, name), "x", 0600));
  }
  StepPacerOptions Options() const {
    return {.interval = 30s, .directory = directory_, .quick_interval = 20ms, .quick_for = 300ms};
  }
  base::SystemClock clock_;
  base::TempDir temp_ = *base::TempDir::Create("pacer");
  const std::string directory_ = base::JoinPath(temp_.path(), "hooks");
};

TEST_F(StepPacerTest, WaitsForTheIntervalWhereThereIsNothingToWatch) {
  StepPacer pacer({.interval = 50ms}, clock_);
  EXPECT_GE(Wait(pacer), 49ms);
  StepPacer missing({.interval = 50ms, .directory = directory_}, clock_);
  EXPECT_GE(Wait(missing), 49ms);
}

TEST_F(StepPacerTest, LooksAtOnceWhenAFileWasWrittenAndQuicklyAfterIt) {
  ASSERT_TRUE(base::MakeDirectories(directory_, 0700));
  StepPacer pacer(Options(), clock_);
  Write("prolog.1.n");
  EXPECT_LT(Wait(pacer), 10s);
  EXPECT_LT(Wait(pacer), 10s) << "what it announced may be known now";
}

TEST_F(StepPacerTest, LooksNoMoreOftenThanQuickly) {
  ASSERT_TRUE(base::MakeDirectories(directory_, 0700));
  StepPacer pacer(Options(), clock_);
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) Write("prolog." + std::to_string(i % 10));
  });
  int looks = 0;
  const base::MonoTime until = clock_.Mono() + 400ms;
  while (clock_.Mono() < until) {
    pacer.Wait({});
    ++looks;
  }
  EXPECT_LE(looks, 22);
}

TEST_F(StepPacerTest, WatchesADirectoryThatIsMadeAnew) {
  StepPacerOptions options = Options();
  options.interval = 40ms;
  StepPacer pacer(options, clock_);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(base::MakeDirectories(directory_, 0700));
    pacer.Wait({});  // finds it
    pacer.Wait({});
    Write("prolog.1.n");
    pacer.Wait({});
    ASSERT_TRUE(base::RemoveTree(directory_));
    pacer.Wait({});
    EXPECT_GT(Wait(pacer), 5ms);
  }
}

TEST_F(StepPacerTest, EndsWhenAsked) {
  ASSERT_TRUE(base::MakeDirectories(directory_, 0700));
  StepPacer pacer(Options(), clock_);
  std::stop_source source;
  std::jthread stopper([&] { source.request_stop(); });
  EXPECT_LT(Wait(pacer, source.get_token()), 10s);
}

}  // namespace
}  // namespace expanse::daemon
