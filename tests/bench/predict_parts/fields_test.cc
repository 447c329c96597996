#include "bench/predict_parts/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace expanse::bench {
namespace {

using testing::ElementsAre;

TEST(Fields, QuotesKeepSeparators) {
  EXPECT_THAT(SplitFields("a,\"b,c\",,\"say \"\"hi\"\"\"\r", ','),
              ElementsAre("a", "b,c", "", "say \"hi\""));
  EXPECT_THAT(SplitFields("", '|'), ElementsAre(""));
}

TEST(Fields, TheSeparatorIsWhatTheHeaderHasMostOf) {
  EXPECT_EQ(Table::Separator("a\tb\tc,d\n1,2,3,4,5\n"), '\t');
  EXPECT_EQ(Table::Separator("a|b|c"), '|');
  EXPECT_EQ(Table::Separator("one"), ',');
}

TEST(Fields, TablesHaveTheirColumnsByName) {
  const Table table("\xef\xbb\xbf#id, \"name\" ,size\n1,x, 5 \n\n2\n", ',');
  EXPECT_TRUE(table.Has("id"));
  EXPECT_TRUE(table.Has("name"));
  EXPECT_FALSE(table.Has("Name"));
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.At(0, "size"), "5");
  EXPECT_EQ(table.At(1, "size"), "");  // a short row
  EXPECT_EQ(table.At(0, "other"), "");
}

TEST(Fields, Numbers) {
  EXPECT_EQ(Number(" 12.5 "), 12.5);
  EXPECT_EQ(Number("87.1%"), 87.1);
  EXPECT_FALSE(Number("-"));
  EXPECT_FALSE(Number("NA"));
  EXPECT_FALSE(Number("nan"));
  EXPECT_FALSE(Number(""));
}

TEST(Fields, Durations) {
  EXPECT_EQ(Duration("1-02:03:04"), 86400 + 2 * 3600 + 3 * 60 + 4);
  EXPECT_EQ(Duration("03:04.5"), 184.5);
  EXPECT_EQ(Duration("1h 2m 3s"), 3723);
  EXPECT_EQ(Duration("500ms"), 0.5);
  EXPECT_FALSE(Duration("UNLIMITED"));
  EXPECT_FALSE(Duration("5"));
  EXPECT_FALSE(Duration("1:x"));
  EXPECT_FALSE(Duration("-"));
}

TEST(Fields, Amounts) {
  EXPECT_EQ(Amount("17K"), 17 * 1024.0);
  EXPECT_EQ(Amount("2.5 GB"), 2.5 * (1 << 30));
  EXPECT_EQ(Amount("12"), 12);
  EXPECT_FALSE(Amount("G"));
  EXPECT_FALSE(Amount("5 parsecs"));
}

TEST(Fields, Moments) {
  EXPECT_EQ(Moment("1970-01-02 00:00:01.5"), 86401.5);
  EXPECT_EQ(Moment("2001-09-09T01:46:40Z"), 1'000'000'000);
  EXPECT_FALSE(Moment("Unknown"));
  EXPECT_FALSE(Moment("2023-02-30 00:00:00"));
}

}  // namespace
}  // namespace expanse::bench
