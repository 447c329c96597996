#include "data/options.h"

#include <gtest/gtest.h>

namespace expanse::data {
namespace {

TEST(DataOptions, DefaultsOfTheSettingsAreThoseOfTheStruct) {
  const auto settings = base::Settings::Load(DataSettings(), "", {}, {});
  ASSERT_TRUE(settings) << settings.error().message;
  const DataOptions from = DataOptionsFrom(*settings);
  const DataOptions plain;
  EXPECT_EQ(from.max_batch_records, plain.max_batch_records);
  EXPECT_EQ(from.max_batch_bytes, plain.max_batch_bytes);
  EXPECT_EQ(from.records_per_second, plain.records_per_second);
  EXPECT_EQ(from.samples_per_second, plain.samples_per_second);
  EXPECT_EQ(from.exchanges_per_second, plain.exchanges_per_second);
  EXPECT_EQ(from.max_response_points, plain.max_response_points);
  EXPECT_EQ(from.max_response_bytes, plain.max_response_bytes);
  EXPECT_EQ(from.health_interval, plain.health_interval);
  EXPECT_EQ(from.keep_executions, plain.keep_executions);
  EXPECT_EQ(from.keep_samples, plain.keep_samples);
  EXPECT_EQ(from.keep_loose_blobs, plain.keep_loose_blobs);
  EXPECT_EQ(from.retention_interval, plain.retention_interval);
}

TEST(DataOptions, ComeFromFileAndEnvironment) {
  const auto settings = base::Settings::Load(DataSettings(), R"({"data": {"keep_samples": "7d"}})",
                                             {{"EXPANSE_DATA_RECORDS_PER_SECOND", "5"}},
                                             {{"data.keep_executions", "0"}});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(DataOptionsFrom(*settings).keep_samples, std::chrono::hours(7 * 24));
  EXPECT_EQ(DataOptionsFrom(*settings).records_per_second, 5);
  EXPECT_EQ(DataOptionsFrom(*settings).keep_executions.count(), 0);
}

TEST(DataOptions, RefuseWhatWouldLoseBlobsOfRecordsOnTheirWay) {
  const auto settings =
      base::Settings::Load(DataSettings(), "", {}, {{"data.keep_loose_blobs", "1s"}});
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().reason, "settings.range");
}

}  // namespace
}  // namespace expanse::data
