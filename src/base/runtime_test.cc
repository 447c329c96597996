// Tests of the small parts that run beside the work: log, metrics, worker pool, back-off.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <limits>
#include <thread>

#include "base/log.h"
#include "base/metrics.h"
#include "base/retry.h"
#include "base/worker_pool.h"

namespace expanse::base {
namespace {

using namespace std::chrono_literals;

std::string Logged(LogFormat format, std::string_view event,
                   std::initializer_list<LogField> fields) {
  ConfigureLog(LogLevel::kInfo, format);
  testing::internal::CaptureStderr();
  Log(LogLevel::kInfo, event, fields);
  Log(LogLevel::kDebug, "unseen");
  std::string line = testing::internal::GetCapturedStderr();
  return line.substr(
      std::min(line.size(), line.find(format == LogFormat::kJson ? "\"event\"" : " info") +
                                (format == LogFormat::kJson ? 0 : 1)));
}

TEST(Log, WritesOneLineOfKeysAndValues) {
  EXPECT_EQ(Logged(LogFormat::kText, "started",
                   {{"port", 80}, {"path", "/a b"}, {"ok", true}, {"share", 0.5}, {"empty", ""}}),
            "info  started port=80 path=\"/a b\" ok=true share=0.5 empty=\"\"\n");
  EXPECT_EQ(Logged(LogFormat::kJson, "started", {{"port", 80}, {"path", "/a\"b"}, {"ok", true}}),
            "\"event\":\"started\",\"port\":80,\"path\":\"/a\\\"b\",\"ok\":true}\n");
}

TEST(Log, AValueCannotForgeALineOrReachTheTerminal) {
  const std::string line = Logged(
      LogFormat::kText, "x",
      {{"a", "1\n2026 info forged"}, {"b", "\x1B[31mred"}, {"c", "\r"}, {"d", "\xE2\x80\xAE"}});
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  EXPECT_EQ(line.find('\x1B'), std::string::npos) << line;
  EXPECT_EQ(line.find('\r'), std::string::npos) << line;
  EXPECT_EQ(line.find("\xE2\x80\xAE"), std::string::npos) << line;
}

TEST(Log, JsonStaysJsonWithNumbersThatAreNone) {
  EXPECT_EQ(Logged(LogFormat::kJson, "x",
                   {{"a", std::numeric_limits<double>::infinity()}, {"b", std::nan("")}}),
            "\"event\":\"x\",\"a\":\"inf\",\"b\":\"nan\"}\n");
}

TEST(Log, KnowsItsLevels) {
  EXPECT_EQ(ParseLogLevel("warn"), LogLevel::kWarn);
  EXPECT_EQ(ParseLogLevel("loud").error().reason, "log.level");
}

TEST(RateLimit, LetsOneThroughPerPeriod) {
  RateLimit limit(3600s);
  std::atomic<int> through{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) through += limit.Allow() ? 1 : 0;
    });
  threads.clear();
  EXPECT_EQ(through, 1);
}

TEST(Metrics, RendersTheTextFormat) {
  MetricRegistry registry;
  registry.GetCounter("requests_total", "Requests", {{"method", "a\"b\\c\nd"}}).Add(3);
  registry.GetCounter("requests_total", "Requests", {{"method", "x"}}).Add();
  registry.GetGauge("queue", "Queued").Set(1.5);
  Histogram& histogram = registry.GetHistogram("seconds", "Time", {0.1, 1});
  for (double v : {0.05, 0.1, 0.5, 7.0}) histogram.Observe(v);
  EXPECT_EQ(
      registry.Render(),
      "# HELP requests_total Requests\n# TYPE requests_total counter\n"
      "requests_total{method=\"a\\\"b\\\\c\\nd\"} 3\nrequests_total{method=\"x\"} 1\n"
      "# HELP queue Queued\n# TYPE queue gauge\nqueue 1.5\n"
      "# HELP seconds Time\n# TYPE seconds histogram\n"
      "seconds_bucket{le=\"0.1\"} 2\nseconds_bucket{le=\"1\"} 3\nseconds_bucket{le=\"+Inf\"} 4\n"
      "seconds_sum 7.65\nseconds_count 4\n");
}

TEST(Metrics, TheSameNameAndLabelsAreTheSameInstrument) {
  MetricRegistry registry;
  Counter& a = registry.GetCounter("n", "N", {{"k", "v"}});
  EXPECT_EQ(&a, &registry.GetCounter("n", "N", {{"k", "v"}}));
  EXPECT_NE(&a, &registry.GetCounter("n", "N", {{"k", "w"}}));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) registry.GetCounter("n", "N", {{"k", "v"}}).Add();
    });
  threads.clear();
  EXPECT_EQ(a.value(), 4000U);
}

TEST(WorkerPool, RunsAllThatItTook) {
  std::atomic<int> ran{0};
  {
    WorkerPool pool(3, 1000);
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(pool.TrySubmit([&] { ++ran; }));
    pool.Drain();
    pool.Drain();
    EXPECT_EQ(ran, 500);
    EXPECT_FALSE(pool.TrySubmit([&] { ++ran; })) << "no more after the end";
  }
  EXPECT_EQ(ran, 500);
}

TEST(WorkerPool, SaysNoWhenItsQueueIsFull) {
  WorkerPool pool(1, 2);
  std::promise<void> started;
  std::promise<void> release;
  std::shared_future<void> gate = release.get_future().share();
  ASSERT_TRUE(pool.TrySubmit([&, gate] {
    started.set_value();
    gate.wait();
  }));
  started.get_future().wait();  // the thread is busy, so all that follows queues up
  EXPECT_TRUE(pool.TrySubmit([] {}));
  EXPECT_TRUE(pool.TrySubmit([] {}));
  EXPECT_EQ(pool.queued(), 2U);
  EXPECT_FALSE(pool.TrySubmit([] {}));
  release.set_value();
}

TEST(Backoff, GrowsToItsCapWithJitter) {
  Backoff backoff({100ms, 1000ms}, 7);
  for (int full : {100, 200, 400, 800, 1000, 1000}) {
    const auto wait = backoff.Next();
    EXPECT_GE(wait.count(), full / 2);
    EXPECT_LE(wait.count(), full);
  }
  for (int i = 0; i < 100; ++i) EXPECT_LE(backoff.Next(), 1000ms);
  backoff.Reset();
  EXPECT_EQ(backoff.tries(), 0);
  EXPECT_LE(backoff.Next(), 100ms);
  EXPECT_NE(Backoff({1h, 24h}, 1).Next(), Backoff({1h, 24h}, 2).Next())
      << "two hosts do not retry in step";
}

}  // namespace
}  // namespace expanse::base
