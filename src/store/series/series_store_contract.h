// What every backend of SeriesStore does, as tests. A backend's test file includes this once and
// says
//   INSTANTIATE_TEST_SUITE_P(Sqlite, SeriesStoreContract, ::testing::Values(SeriesBackend{...}));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "store/series/series_store.h"
#include "store/sql/fault_testing.h"

namespace expanse::store {

struct SeriesBackend {
  // Opens the store whose data is in `directory`; again after the first one has been destroyed.
  std::function<base::Result<std::unique_ptr<SeriesStore>>(const std::string& directory,
                                                           std::size_t max_series_per_scope)>
      open;
};

class SeriesStoreContract : public ::testing::TestWithParam<SeriesBackend> {
 protected:
  using Model = std::map<std::int64_t, double>;  // microseconds -> value

  void SetUp() override {
    auto dir = StoreDirectory();
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
    Reopen(100);
  }
  void Reopen(std::size_t max_series = 100) {
    store_.reset();
    auto opened = GetParam().open(dir_->path(), max_series);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }

  static SeriesKey Key(std::string metric = "cpu.used_pct", std::string scope = "exec-1") {
    return {.compute_id = "c1",
            .scope = std::move(scope),
            .metric = std::move(metric),
            .source = "host",
            .node = "n1",
            .gpu_index = std::nullopt,
            .gpu_uuid = ""};
  }
  static base::WallTime At(std::int64_t seconds) {
    return base::WallTime(std::chrono::seconds(seconds));
  }

  // Appends to one series as the next sequence of stream s.
  base::Result<bool> Append(const SeriesKey& key, const std::vector<std::int64_t>& micros,
                            const std::vector<double>& values) {
    std::vector<base::WallTime> times;
    for (std::int64_t time : micros) times.push_back(base::FromMicros(time));
    const SeriesAppend append{
        .key = key, .unit = "%", .attribution = "", .times = times, .values = values};
    return store_->Append({.compute_id = key.compute_id, .stream_id = "s", .sequence = ++sequence_},
                          std::span(&append, 1));
  }
  SeriesQuery Everything(const std::string& metric = "cpu.used_pct") const {
    return {.compute_id = "c1",
            .scope = "exec-1",
            .metric = metric,
            .source = "",
            .gpu_index = {},
            .from = base::WallTime::min(),
            .to = base::WallTime::max(),
            .interval = std::chrono::seconds(0),
            .max_points = 1'000'000};
  }
  Model Read(const SeriesQuery& query) {
    Model points;
    auto results = store_->Query(query);
    EXPECT_TRUE(results) << (results ? "" : results.error().message);
    if (!results || results->empty()) return points;
    EXPECT_EQ(results->size(), 1U);
    std::int64_t previous = std::numeric_limits<std::int64_t>::min();
    for (const Bucket& bucket : results->front().buckets) {
      EXPECT_GT(base::ToMicros(bucket.start), previous);
      previous = base::ToMicros(bucket.start);
      EXPECT_EQ(bucket.count, 1U);
      EXPECT_EQ(bucket.min, bucket.last);
      EXPECT_EQ(bucket.max, bucket.last);
      EXPECT_EQ(bucket.sum, bucket.last);
      EXPECT_EQ(bucket.p95, bucket.last);
      points[previous] = bucket.last;
    }
    return points;
  }
  // The series of Key() has the points of `model`, and its description agrees.
  void ExpectHolds(const Model& model) {
    EXPECT_EQ(Read(Everything()), model);
    auto list = store_->List("c1", "exec-1", "");
    ASSERT_TRUE(list);
    std::erase_if(*list, [](const SeriesInfo& info) { return info.key.metric != Key().metric; });
    ASSERT_EQ(list->size(), model.empty() ? 0U : 1U);
    if (model.empty()) return;
    EXPECT_EQ(list->front().point_count, model.size());
    EXPECT_EQ(base::ToMicros(list->front().first), model.begin()->first);
    EXPECT_EQ(base::ToMicros(list->front().last), model.rbegin()->first);
  }

  std::optional<base::TempDir> dir_;
  std::unique_ptr<SeriesStore> store_;
  std::uint64_t sequence_ = 0;
};

TEST_P(SeriesStoreContract, GivesPointsBackExactlyAndAfterReopening) {
  const Model model = {
      {1, 0.1 + 0.2}, {2'000'001, -1e300}, {2'000'002, 0}, {1'800'000'000'123'456, 37.25}};
  std::vector<std::int64_t> times;
  std::vector<double> values;
  for (const auto& [time, value] : model) {
    times.push_back(time);
    values.push_back(value);
  }
  EXPECT_EQ(Append(Key(), times, values), true);
  ExpectHolds(model);
  Reopen();
  ExpectHolds(model);
  auto info = store_->List("c1", "exec-1", "host");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->front().key, Key());
  EXPECT_EQ(info->front().unit, "%");
}

TEST_P(SeriesStoreContract, TakesASequenceOnce) {
  const std::vector<base::WallTime> times = {At(1)};
  const auto append = [&](const std::string& stream, std::uint64_t sequence, double value) {
    const std::vector<double> values = {value};
    const SeriesAppend one{
        .key = Key(), .unit = "", .attribution = "", .times = times, .values = values};
    return store_->Append({.compute_id = "c1", .stream_id = stream, .sequence = sequence},
                          std::span(&one, 1));
  };
  EXPECT_EQ(append("a", 3, 1), true);
  EXPECT_EQ(append("a", 3, 2), false);
  EXPECT_EQ(append("a", 2, 3), false);
  EXPECT_EQ(Read(Everything()), (Model{{1'000'000, 1}}));
  EXPECT_EQ(append("b", 1, 4), true);
  EXPECT_EQ(store_->Watermark("c1", "a"), 3U);
  EXPECT_EQ(store_->Watermark("c1", "b"), 1U);
  EXPECT_EQ(store_->Watermark("c1", "never"), 0U);
  EXPECT_EQ(store_->Watermark("c2", "a"), 0U);
  EXPECT_EQ(append("a", 4, 5), true);
  Reopen();
  EXPECT_EQ(append("a", 4, 6), false);
  EXPECT_EQ(Read(Everything()), (Model{{1'000'000, 5}}));
}

TEST_P(SeriesStoreContract, AnEmptyAppendMovesTheWatermark) {
  EXPECT_EQ(store_->Append({.compute_id = "c1", .stream_id = "s", .sequence = 7}, {}), true);
  EXPECT_EQ(store_->Append({.compute_id = "c1", .stream_id = "s", .sequence = 7}, {}), false);
}

TEST_P(SeriesStoreContract, ManySmallAppendsGrowOneSeries) {
  Model model;
  for (std::int64_t i = 0; i < 1500; ++i) {
    model[i * 1'000'000] = static_cast<double>(i % 97) / 4;
    ASSERT_EQ(Append(Key(), {i * 1'000'000}, {model[i * 1'000'000]}), true);
  }
  ExpectHolds(model);
  Reopen();
  ASSERT_EQ(Append(Key(), {1500 * 1'000'000LL}, {1}), true);
  model[1500 * 1'000'000LL] = 1;
  ExpectHolds(model);
}

TEST_P(SeriesStoreContract, ALargeAppendFits) {
  Model model;
  std::vector<std::int64_t> times;
  std::vector<double> values;
  for (std::int64_t i = 0; i < 10'000; ++i) {
    times.push_back(i * 250'000);
    values.push_back(std::sqrt(static_cast<double>(i)));
    model[times.back()] = values.back();
  }
  ASSERT_EQ(Append(Key(), times, values), true);
  ExpectHolds(model);
}

TEST_P(SeriesStoreContract, PointsOutOfOrderAndAgainMatchAModel) {
  std::mt19937_64 random(11);
  Model model;
  for (int round = 0; round < 300; ++round) {
    // Mostly later points, sometimes a stretch anywhere in the past, sometimes the same times
    // again.
    const std::int64_t newest = model.empty() ? 0 : model.rbegin()->first / 1'000'000;
    const std::int64_t start =
        random() % 4 == 0 && newest > 0
            ? static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(newest)) - 20
            : newest + static_cast<std::int64_t>(random() % 3);
    std::vector<std::int64_t> times;
    std::vector<double> values;
    const auto count = 1 + random() % (round % 10 == 0 ? 700 : 40);
    for (std::size_t i = 0; i < count; ++i) {
      times.push_back((start + static_cast<std::int64_t>(i * (1 + round % 2))) * 1'000'000);
      values.push_back(static_cast<double>(random() % 1000) / 8);
      model[times.back()] = values.back();
    }
    if (round % 5 == 0) {  // the same time twice in one append: the last counts
      times.push_back(times.back());
      values.push_back(-1);
      model[times.back()] = -1;
    }
    ASSERT_EQ(Append(Key(), times, values), true);
    if (round % 50 == 25) Reopen();
    if (round % 50 == 0) ExpectHolds(model);
  }
  ExpectHolds(model);
  for (int round = 0; round < 20; ++round) {
    SeriesQuery query = Everything();
    const auto a =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(model.rbegin()->first));
    query.from = base::FromMicros(a);
    query.to = base::FromMicros(a + static_cast<std::int64_t>(random() % 2'000'000'000));
    EXPECT_EQ(Read(query), Model(model.lower_bound(base::ToMicros(query.from)),
                                 model.lower_bound(base::ToMicros(query.to))));
  }
}

TEST_P(SeriesStoreContract, NanIsNoPoint) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ASSERT_EQ(Append(Key(), {1, 2, 3}, {nan, 5, nan}), true);
  ASSERT_EQ(Append(Key("never"), {1, 2}, {nan, nan}), true);
  ExpectHolds({{2, 5}});
}

TEST_P(SeriesStoreContract, WindowIncludesItsStartAndNotItsEnd) {
  ASSERT_EQ(Append(Key(), {10, 20, 30}, {1, 2, 3}), true);
  SeriesQuery query = Everything();
  query.from = base::FromMicros(10);
  query.to = base::FromMicros(30);
  EXPECT_EQ(Read(query), (Model{{10, 1}, {20, 2}}));
  query.to = query.from;
  EXPECT_EQ(Read(query), Model{});
}

TEST_P(SeriesStoreContract, BucketsAreExactAndAligned) {
  std::mt19937_64 random(5);
  Model model;
  std::vector<std::int64_t> times;
  std::vector<double> values;
  for (std::int64_t second = -150; second < 3000;
       second += 1 + static_cast<std::int64_t>(random() % 5)) {
    if (second > 600 && second < 900) continue;  // a gap: no buckets
    times.push_back(second * 1'000'000 + static_cast<std::int64_t>(random() % 1'000'000));
    values.push_back(static_cast<double>(random() % 10'000) / 16);  // sums are exact
    model[times.back()] = values.back();
  }
  ASSERT_EQ(Append(Key(), times, values), true);
  SeriesQuery query = Everything();
  query.interval = std::chrono::seconds(60);
  auto results = store_->Query(query);
  ASSERT_TRUE(results);
  std::map<std::int64_t, std::vector<double>> expected;
  for (const auto& [time, value] : model) {
    expected[static_cast<std::int64_t>(std::floor(static_cast<double>(time) / 60e6))].push_back(
        value);
  }
  const std::vector<Bucket>& buckets = results->at(0).buckets;
  ASSERT_EQ(buckets.size(), expected.size());
  std::size_t i = 0;
  for (auto& [minute, points] : expected) {
    const Bucket& bucket = buckets[i++];
    EXPECT_EQ(base::ToMicros(bucket.start), minute * 60'000'000);
    EXPECT_EQ(bucket.count, points.size());
    EXPECT_EQ(bucket.last, points.back());
    double sum = 0;
    for (double value : points) sum += value;
    EXPECT_EQ(bucket.sum, sum);
    std::sort(points.begin(), points.end());
    EXPECT_EQ(bucket.min, points.front());
    EXPECT_EQ(bucket.max, points.back());
    EXPECT_EQ(
        bucket.p95,
        points[static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(points.size()))) - 1]);
    EXPECT_EQ(bucket.avg(), sum / static_cast<double>(points.size()));
  }
}

TEST_P(SeriesStoreContract, KeepsTheEarliestWhenThereAreTooMany) {
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < 2000; ++i) times.push_back(i * 1'000'000);
  ASSERT_EQ(Append(Key(), times, std::vector<double>(times.size(), 1)), true);
  SeriesQuery query = Everything();
  query.max_points = 700;
  auto cut = store_->Query(query);
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->at(0).truncated);
  ASSERT_EQ(cut->at(0).buckets.size(), 700U);
  EXPECT_EQ(cut->at(0).buckets.back().start, At(699));
  query.max_points = 2000;
  EXPECT_FALSE(store_->Query(query)->at(0).truncated);
  query.interval = std::chrono::seconds(100);
  query.max_points = 20;
  EXPECT_FALSE(store_->Query(query)->at(0).truncated);
  query.max_points = 19;
  EXPECT_TRUE(store_->Query(query)->at(0).truncated);
  EXPECT_EQ(store_->Query(query)->at(0).buckets.back().count, 100U);
}

TEST_P(SeriesStoreContract, SelectsAndSorts) {
  const auto put = [&](const char* metric, const char* source, const char* node,
                       std::optional<std::uint32_t> gpu, const char* scope) {
    SeriesKey key{.compute_id = "c1",
                  .scope = scope,
                  .metric = metric,
                  .source = source,
                  .node = node,
                  .gpu_index = gpu,
                  .gpu_uuid = gpu ? "uuid-" + std::to_string(*gpu) : ""};
    EXPECT_EQ(Append(key, {1}, {1}), true);
  };
  put("gpu.util_pct", "nvml", "n2", 0, "e");
  put("gpu.util_pct", "nvml", "n1", 10, "e");
  put("gpu.util_pct", "nvml", "n1", 2, "e");
  put("gpu.util_pct", "smi", "n1", 2, "e");
  put("cpu.used_pct", "cgroup", "n1", std::nullopt, "e");
  put("cpu.used_pct", "host", "n1", std::nullopt, "");
  const auto names = [](const auto& list) {
    std::string text;
    for (const auto& entry : list) {
      const SeriesKey& key = entry.key;
      text += key.metric.substr(0, 3) + "/" + key.node + "/" +
              (key.gpu_index ? std::to_string(*key.gpu_index) : "-") + "/" + key.source + " ";
    }
    return text;
  };
  EXPECT_EQ(names(*store_->List("c1", "e", "")),
            "cpu/n1/-/cgroup gpu/n1/2/nvml gpu/n1/2/smi gpu/n1/10/nvml gpu/n2/0/nvml ");
  EXPECT_EQ(names(*store_->List("c1", "e", "smi")), "gpu/n1/2/smi ");
  EXPECT_EQ(names(*store_->List("c1", "", "")), "cpu/n1/-/host ");
  EXPECT_EQ(names(*store_->List("c2", "e", "")), "");
  const auto query = [&](SeriesQuery q) {
    q.compute_id = "c1";
    q.scope = "e";
    q.to = At(1);
    std::vector<SeriesInfo> infos;
    auto results = store_->Query(q);
    EXPECT_TRUE(results);
    for (const SeriesResult& result : *results) infos.push_back(result.info);
    return names(infos);
  };
  SeriesQuery by_gpu;
  by_gpu.gpu_index = 2;
  EXPECT_EQ(query(by_gpu), "gpu/n1/2/nvml gpu/n1/2/smi ");
  by_gpu.source = "nvml";
  EXPECT_EQ(query(by_gpu), "gpu/n1/2/nvml ");
  SeriesQuery by_metric;
  by_metric.metric = "cpu.used_pct";
  EXPECT_EQ(query(by_metric), "cpu/n1/-/cgroup ");
}

TEST_P(SeriesStoreContract, PropertiesFollowTheLastAppend) {
  ASSERT_EQ(Append(Key(), {1}, {1}), true);
  const std::vector<base::WallTime> times = {At(2)};
  const std::vector<double> values = {2};
  const SeriesAppend append{
      .key = Key(), .unit = "fraction", .attribution = "shared", .times = times, .values = values};
  ASSERT_EQ(store_->Append({.compute_id = "c1", .stream_id = "s", .sequence = ++sequence_},
                           std::span(&append, 1)),
            true);
  auto list = store_->List("c1", "exec-1", "");
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 1U);
  EXPECT_EQ(list->front().unit, "fraction");
  EXPECT_EQ(list->front().attribution, "shared");
}

TEST_P(SeriesStoreContract, RefusesMoreSeriesThanAScopeMayHaveAsAWhole) {
  Reopen(/*max_series=*/3);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Append(Key("m" + std::to_string(i)), {1}, {1}), true);
  const std::vector<base::WallTime> times = {At(9)};
  const std::vector<double> values = {9};
  const SeriesAppend both[] = {
      {.key = Key("m0"), .unit = "%", .attribution = "", .times = times, .values = values},
      {.key = Key("m3"), .unit = "%", .attribution = "", .times = times, .values = values}};
  const AppendMark mark{.compute_id = "c1", .stream_id = "s", .sequence = ++sequence_};
  auto refused = store_->Append(mark, both);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "series.too_many");
  EXPECT_EQ(Read(Everything("m0")), (Model{{1, 1}}));
  EXPECT_EQ(store_->Append(mark, std::span(both, 1)), true);  // the sequence was not taken
  EXPECT_EQ(Read(Everything("m0")), (Model{{1, 1}, {9'000'000, 9}}));
  EXPECT_EQ(Append(Key("m3", "exec-2"), {1}, {1}), true);  // another scope has room
}

TEST_P(SeriesStoreContract, DropsOldPointsAndThenTheSeries) {
  std::vector<std::int64_t> times;
  Model model;
  for (std::int64_t i = 0; i < 2000; ++i) {
    times.push_back(i * 1'000'000);
    model[times.back()] = static_cast<double>(i);
    ASSERT_EQ(Append(Key(), {times.back()}, {static_cast<double>(i)}), true);
  }
  ASSERT_EQ(Append(Key("other"), {1, 1'999'000'000}, {1, 2}), true);
  std::uint64_t left = 2002;
  for (std::int64_t before : {0, 1, 700, 1024, 1999}) {
    auto dropped = store_->DropBefore(At(before), {});
    ASSERT_TRUE(dropped) << dropped.error().message;
    left -= *dropped;
    model.erase(model.begin(), model.lower_bound(before * 1'000'000));
    ExpectHolds(model);
  }
  EXPECT_EQ(left, 2U);
  ASSERT_EQ(Append(Key(), {2000 * 1'000'000LL}, {5}), true);  // a series that was trimmed goes on
  model[2000 * 1'000'000LL] = 5;
  ExpectHolds(model);
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(store_->DropBefore(At(5000), stopped.get_token()), 0U);
  ExpectHolds(model);
  EXPECT_EQ(store_->DropBefore(At(5000), {}), 3U);
  EXPECT_TRUE(store_->List("c1", "exec-1", "")->empty());
  EXPECT_EQ(Append(Key(), {1}, {1}), true);
  ExpectHolds({{1, 1}});
}

TEST_P(SeriesStoreContract, ReadersSeeWholeAppendsWhileOneWrites) {
  constexpr std::int64_t kAppends = 150;
  constexpr std::int64_t kPerAppend = 7;
  std::atomic<bool> done{false};
  std::atomic<int> failures{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      std::size_t last = 0;
      while (!done) {
        auto results = store_->Query(Everything());
        if (!results) {
          ++failures;
          continue;
        }
        const std::size_t count = results->empty() ? 0 : results->front().buckets.size();
        if (count % kPerAppend != 0 || count < last) ++failures;
        last = count;
      }
    });
  }
  for (std::int64_t i = 0; i < kAppends; ++i) {
    std::vector<std::int64_t> times;
    for (std::int64_t p = 0; p < kPerAppend; ++p) times.push_back((i * kPerAppend + p) * 1'000'000);
    EXPECT_EQ(Append(Key(), times, std::vector<double>(kPerAppend, 1)), true);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(failures, 0);
}

TEST_P(SeriesStoreContract, WritersAtOnceLoseNothing) {
  std::vector<std::thread> writers;
  std::atomic<int> failures{0};
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&, w] {
      for (std::int64_t i = 1; i <= 60; ++i) {
        const std::vector<base::WallTime> times = {At(i)};
        const std::vector<double> values = {static_cast<double>(i)};
        const SeriesAppend append{.key = Key("m" + std::to_string(w)),
                                  .unit = "",
                                  .attribution = "",
                                  .times = times,
                                  .values = values};
        auto taken = store_->Append({.compute_id = "c1",
                                     .stream_id = std::to_string(w),
                                     .sequence = static_cast<std::uint64_t>(i)},
                                    std::span(&append, 1));
        if (!taken || !*taken) ++failures;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failures, 0);
  for (int w = 0; w < 3; ++w) EXPECT_EQ(Read(Everything("m" + std::to_string(w))).size(), 60U);
}

}  // namespace expanse::store
